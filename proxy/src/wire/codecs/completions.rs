//! OpenAI completions: one prompt, texts back. A conversation that is only text can be sent there as one prompt.

mod answer;
mod request;
mod stream;

use super::error::CodecError;
use super::json_writer::JsonWriter;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::{Codec, StreamReader, StreamWriter, chat};
use crate::wire::conversation::{Answer, ProviderError, Request, WireFormat};

#[derive(Debug)]
pub struct CompletionsCodec;

impl Codec for CompletionsCodec {
    fn name(&self) -> &'static str {
        "completions"
    }

    fn format(&self) -> WireFormat {
        WireFormat::Completions
    }

    fn read_request(&self, body: &[u8]) -> Result<Request, CodecError> {
        request::read(body)
    }

    fn write_request(
        &self,
        request: &Request,
        options: &RequestOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Dropped, CodecError> {
        request::write(request, options, out)
    }

    fn read_answer(&self, body: &[u8]) -> Result<Answer, CodecError> {
        answer::read(body)
    }

    fn write_answer(&self, answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        answer::write(answer, options, out);
    }

    fn read_error(&self, status: u16, _: Option<&str>, body: &[u8]) -> ProviderError {
        chat::read_error(status, body)
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        chat::write_error(&mut JsonWriter::new(out), error, options);
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream::CompletionsStreamReader>::default()
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        Box::new(stream::CompletionsStreamWriter::new(options))
    }
}
