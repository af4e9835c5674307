//! Cohere chat, second version: turns like OpenAI's, content like Anthropic's, words of its own.

mod answer;
mod request_reader;
mod request_writer;
mod stream_reader;
mod stream_writer;

use super::error::CodecError;
use super::json_reader::{FieldPath, Fields};
use super::json_writer::JsonWriter;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::{Codec, StreamReader, StreamWriter, chat};
use crate::wire::conversation::{Answer, Part, ProviderError, Request, WireFormat};
use serde_json::Value;

#[derive(Debug)]
pub struct CohereCodec;

impl Codec for CohereCodec {
    fn name(&self) -> &'static str {
        "cohere"
    }

    fn format(&self) -> WireFormat {
        WireFormat::Cohere
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

    /// `{message}`, which chat's reader knows.
    fn read_error(&self, status: u16, _: Option<&str>, body: &[u8]) -> ProviderError {
        chat::read_error(status, body)
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        let mut w = JsonWriter::new(out);
        w.open_object();
        w.string_field("message", &[&*options.provider, " error: ", &error.message].concat());
        w.close_object();
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream_reader::CohereStreamReader>::default()
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        Box::new(stream_writer::CohereStreamWriter::new(options))
    }
}

/// Chat's parts, and documents.
fn read_content(content: Option<Value>, path: &FieldPath<'_>) -> Result<Vec<Part>, CodecError> {
    let mut parts = chat::content::read(content, path)?;
    for part in &mut parts {
        let Part::Native(native) = part else { continue };
        let document = native.value.pointer("/document/data");
        match document {
            // A tool's result in Cohere's own shape is text to everybody else.
            Some(Value::String(text)) => *part = Part::text(text.as_str()),
            Some(data) => *part = Part::text(data.to_string()),
            None => native.format = WireFormat::Cohere,
        }
    }
    Ok(parts)
}

/// Calls of a message, in OpenAI's shape.
fn read_calls(message: &mut Fields<'_>, parts: &mut Vec<Part>) -> Result<(), CodecError> {
    let path = message.path;
    let path = path.field("tool_calls");
    let list = message.bounded_list("tool_calls", super::json_reader::MAX_PARTS)?;
    for (index, value) in list.into_iter().enumerate() {
        let call = Fields::new(value, path.item(index))?;
        parts.push(Part::ToolUse(chat::request_reader::read_call(call)?));
    }
    Ok(())
}
