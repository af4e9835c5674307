//! AWS Bedrock Converse. Events come out of an AWS event stream with their name; the frames are read elsewhere.

mod answer;
mod blocks;
mod request_reader;
mod request_writer;
mod stream_reader;
mod stream_writer;
mod tools;

use super::error::CodecError;
use super::json_reader::Fields;
use super::json_writer::JsonWriter;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::{Codec, StreamReader, StreamWriter, chat, error_table};
use crate::wire::conversation::{Answer, ProviderError, Request, WireFormat};

#[derive(Debug)]
pub struct ConverseCodec;

impl Codec for ConverseCodec {
    fn name(&self) -> &'static str {
        "converse"
    }

    fn format(&self) -> WireFormat {
        WireFormat::Converse
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
        answer::read(body)
    }

    fn write_answer(&self, answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        answer::write(answer, options, out);
    }

    /// `{message}`; the type stands in a header, with an address after a colon at times.
    fn read_error(&self, status: u16, native_type: Option<&str>, body: &[u8]) -> ProviderError {
        let mut fields = match Fields::parse(body) {
            Ok(fields) => fields,
            Err(_) => return chat::unreadable(status, body),
        };
        let stated = fields.string("__type").ok().flatten();
        let name = native_type.or(stated.as_deref());
        let name = name.and_then(|name| name.split(':').next()).and_then(|name| name.rsplit('#').next());
        let message = fields.string("message").ok().flatten().or(fields.string("Message").ok().flatten());
        error_named(status, name, message.unwrap_or_else(|| chat::quoted(body)))
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        write_error(&mut JsonWriter::new(out), error, options);
    }

    fn error_type(&self, error: &ProviderError) -> Option<&'static str> {
        Some(error_table::type_for(WireFormat::Converse, error.kind))
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream_reader::ConverseStreamReader>::default()
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        Box::new(stream_writer::ConverseStreamWriter::new(options))
    }
}

/// `status` 200 means inside a stream, where the name implies it.
fn error_named(status: u16, name: Option<&str>, message: String) -> ProviderError {
    let known = name.and_then(|name| error_table::kind_of_type(WireFormat::Converse, name));
    let status = match (status, known) {
        (200, Some((implied, _))) => implied,
        (200, None) => 500,
        (status, _) => status,
    };
    let kind = known.map_or_else(|| error_table::kind_of_status(status), |(_, kind)| kind);
    ProviderError { native_type: name.map(str::to_owned), ..ProviderError::new(status, kind, message) }
}

fn write_error(w: &mut JsonWriter<'_>, error: &ProviderError, options: &AnswerOptions<'_>) {
    w.open_object();
    w.string_field("message", &[&*options.provider, " error: ", &error.message].concat());
    w.close_object();
}
