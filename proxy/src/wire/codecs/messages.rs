//! Anthropic messages: blocks in turns, thinking with signatures, system apart.

mod answer;
mod block_reader;
mod block_writer;
mod request_reader;
mod request_writer;
mod stream_reader;
mod stream_writer;
mod tools;
mod usage;

pub(super) use request_writer::{JSON_INSTRUCTION, thinking_budget};

use super::error::CodecError;
use super::json_reader::{FieldPath, Fields};
use super::json_writer::JsonWriter;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::{Codec, StreamReader, StreamWriter, chat, error_table};
use crate::wire::conversation::{Answer, ProviderError, Request, WireFormat};
use serde_json::{Map, Value};

#[derive(Debug)]
pub struct MessagesCodec;

impl Codec for MessagesCodec {
    fn name(&self) -> &'static str {
        "messages"
    }

    fn format(&self) -> WireFormat {
        WireFormat::Messages
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

    fn read_error(&self, status: u16, _: Option<&str>, body: &[u8]) -> ProviderError {
        match Fields::parse(body).ok().and_then(|mut fields| fields.take("error")) {
            Some(Value::Object(map)) => from_error_object(status, map, body),
            _ => chat::read_error(status, body),
        }
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        write_error(&mut JsonWriter::new(out), error, options);
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream_reader::MessagesStreamReader>::default()
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        Box::new(stream_writer::MessagesStreamWriter::new(options))
    }
}

/// `{type, message}`. Inside a stream (200) the type implies the status: 529 for `overloaded_error`.
fn from_error_object(status: u16, map: Map<String, Value>, body: &[u8]) -> ProviderError {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let native_type = fields.string("type").ok().flatten();
    let message = fields.string("message").ok().flatten().unwrap_or_else(|| chat::quoted(body));
    let known = native_type.as_deref().and_then(|name| error_table::kind_of_type(WireFormat::Messages, name));
    let status = match (status, known) {
        (200, Some((implied, _))) => implied,
        (200, None) => 500,
        (status, _) => status,
    };
    let kind = known.map_or_else(|| error_table::kind_of_status(status), |(_, kind)| kind);
    ProviderError { native_type, ..ProviderError::new(status, kind, message) }
}

fn write_error(w: &mut JsonWriter<'_>, error: &ProviderError, options: &AnswerOptions<'_>) {
    w.open_object();
    w.string_field("type", "error");
    w.object_field("error");
    w.string_field("type", error_table::type_for(WireFormat::Messages, error.kind));
    w.string_field("message", &[&*options.provider, " error: ", &error.message].concat());
    w.close_object();
    w.close_object();
}
