//! OpenAI responses: a list of items in, a list of items out.

mod answer_reader;
mod answer_writer;
mod freeform;
mod items;
mod known_tools;
mod request_reader;
mod request_writer;
mod stream_reader;
mod stream_writer;
mod tools;

use super::error::CodecError;
use super::json_writer::JsonWriter;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::{Codec, StreamReader, StreamWriter, chat};
use crate::wire::conversation::{Answer, ProviderError, Request, WireFormat};

#[derive(Debug)]
pub struct ResponsesCodec;

impl Codec for ResponsesCodec {
    fn name(&self) -> &'static str {
        "responses"
    }

    fn format(&self) -> WireFormat {
        WireFormat::Responses
    }

    fn read_request(&self, body: &[u8]) -> Result<Request, CodecError> {
        request_reader::read(body)
    }

    fn write_request(
        &self,
        request: &Request,
        options: &RequestOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Dropped, CodecError> {
        request_writer::write(request, options, out)
    }

    fn read_answer(&self, body: &[u8]) -> Result<Answer, CodecError> {
        answer_reader::read(body)
    }

    fn write_answer(&self, answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        answer_writer::write(&mut JsonWriter::new(out), answer, options, None);
    }

    /// The errors of chat.
    fn read_error(&self, status: u16, _: Option<&str>, body: &[u8]) -> ProviderError {
        chat::read_error(status, body)
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        chat::write_error(&mut JsonWriter::new(out), error, options);
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream_reader::ResponsesStreamReader>::default()
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        Box::new(stream_writer::ResponsesStreamWriter::new(options))
    }
}
