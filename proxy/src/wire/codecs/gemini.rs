//! Google generateContent, of AI Studio and of Vertex.

mod answer_reader;
mod answer_writer;
mod parts;
mod request_reader;
mod request_writer;
mod stream;
mod tools;
mod usage;

use super::error::CodecError;
use super::json_reader::{FieldPath, Fields};
use super::json_writer::JsonWriter;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::{Codec, StreamReader, StreamWriter, chat, error_table};
use crate::wire::conversation::{Answer, ProviderError, Request, WireFormat};
use serde_json::{Map, Value};

#[derive(Debug)]
pub struct GeminiCodec;

impl Codec for GeminiCodec {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn format(&self) -> WireFormat {
        WireFormat::Gemini
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
        answer_writer::write(answer, options, out);
    }

    /// `{error: {code, message, status}}`, in a list where a stream was asked for.
    fn read_error(&self, status: u16, _: Option<&str>, body: &[u8]) -> ProviderError {
        let value = match serde_json::from_slice(body) {
            Ok(Value::Array(list)) => list.into_iter().next().unwrap_or(Value::Null),
            Ok(value) => value,
            Err(_) => return chat::unreadable(status, body),
        };
        match Fields::new(value, FieldPath::Root).ok().and_then(|mut fields| fields.take("error")) {
            Some(Value::Object(map)) => from_error_object(status, map, body),
            _ => chat::unreadable(status, body),
        }
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        write_error(&mut JsonWriter::new(out), error, options);
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream::GeminiStreamReader>::default()
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        Box::new(stream::GeminiStreamWriter::new(options))
    }
}

fn from_error_object(status: u16, map: Map<String, Value>, body: &[u8]) -> ProviderError {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let native_type = fields.string("status").ok().flatten();
    let message = fields.string("message").ok().flatten().unwrap_or_else(|| chat::quoted(body));
    let code = fields.integer("code").ok().flatten();
    let known = native_type.as_deref().and_then(|name| error_table::kind_of_type(WireFormat::Gemini, name));
    let stated = code.and_then(|code| u16::try_from(code).ok()).filter(|code| (400..600).contains(code));
    let status = match status {
        200 => stated.or(known.map(|(status, _)| status)).unwrap_or(500),
        status => status,
    };
    let kind = known.map_or_else(|| error_table::kind_of_status(status), |(_, kind)| kind);
    let code = code.map(|code| code.to_string());
    ProviderError { native_type, code, ..ProviderError::new(status, kind, message) }
}

fn write_error(w: &mut JsonWriter<'_>, error: &ProviderError, options: &AnswerOptions<'_>) {
    w.open_object();
    w.object_field("error");
    w.integer_field("code", u64::from(error.status));
    w.string_field("message", &[&*options.provider, " error: ", &error.message].concat());
    w.string_field("status", error_table::type_for(WireFormat::Gemini, error.kind));
    w.close_object();
    w.close_object();
}
