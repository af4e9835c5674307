//! Providers whose conversations are OpenAI's in another shape (contract 7.9): what the codec of chats or of completions
//! writes is put into the provider's shape, and what the provider answers into the codec's. So a shape is two or three small
//! functions, and every client's dialect reaches it. No client speaks these, and so they are read as answers only.

mod bedrock_text;
mod oracle;
mod oracle_cohere;
mod reka;
mod triton;

#[cfg(test)]
mod golden;

use super::error::CodecError;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::sink::WireEvent;
use super::{Codec, StreamReader, StreamWriter};
use crate::wire::conversation::{Answer, Delta, ProviderError, Request, WireFormat};
use serde_json::{Map, Value, json};

/// One provider's shape of the bodies of another codec.
trait ChatShape: Sync {
    fn name(&self) -> &'static str;
    /// The codec whose bodies are put into this shape.
    fn base(&self) -> &'static dyn Codec;
    /// The codec that reads its errors.
    fn errors(&self) -> &'static dyn Codec {
        self.base()
    }
    /// What the provider is sent. What it takes out of `body` it has said; the rest is dropped.
    fn request(&self, body: &mut Map<String, Value>, options: &RequestOptions<'_>) -> Result<Value, CodecError>;
    /// The answer in the shape of the base.
    fn answer(&self, reply: Value) -> Result<Value, CodecError>;
    /// An event of a stream in the shape of the base; none where providers are never asked for one.
    fn chunk(&self, _event: Value) -> Option<Value> {
        None
    }
    /// The last chunk of a stream that nothing but its connection ends.
    fn closing(&self) -> Option<Value> {
        None
    }
}

#[derive(Clone, Copy)]
pub struct Shaped(&'static dyn ChatShape);

pub static SHAPED: &[Shaped] = &[
    Shaped(&oracle::Oracle),
    Shaped(&reka::Reka),
    Shaped(&triton::Triton),
    Shaped(&bedrock_text::CohereText),
    Shaped(&bedrock_text::JurassicText),
];

/// Of the base's own, and never said to anybody else in these words.
const UNSAID: [&str; 3] = ["model", "stream", "stream_options"];

impl Codec for Shaped {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn format(&self) -> WireFormat {
        self.0.base().format()
    }

    fn read_request(&self, body: &[u8]) -> Result<Request, CodecError> {
        self.0.base().read_request(body)
    }

    fn write_request(
        &self,
        request: &Request,
        options: &RequestOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Dropped, CodecError> {
        let mut written = Vec::new();
        let options = RequestOptions { asks_for_usage: false, is_strict: true, ..options.clone() };
        let unsaid = self.0.base().write_request(request, &options, &mut written)?;
        let mut body: Map<String, Value> =
            serde_json::from_slice(&written).map_err(|error| CodecError::Malformed(error.to_string()))?;
        // OpenAI's formats have no word for it, most others have.
        if let Some(most) = request.settings.top_k {
            body.insert("top_k".into(), most.into());
        }
        let shaped = self.0.request(&mut body, &options)?;
        let mut dropped = Dropped::default();
        unsaid.names().filter(|name| *name != "top_k").for_each(|name| dropped.note(name.to_owned()));
        let lost = body.keys().filter(|name| !UNSAID.contains(&name.as_str()));
        lost.for_each(|name| dropped.note(name.clone()));
        out.extend_from_slice(shaped.to_string().as_bytes());
        Ok(dropped)
    }

    fn read_answer(&self, body: &[u8]) -> Result<Answer, CodecError> {
        let reply = serde_json::from_slice(body).map_err(|error| CodecError::Malformed(error.to_string()))?;
        self.0.base().read_answer(self.0.answer(reply)?.to_string().as_bytes())
    }

    fn write_answer(&self, answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        self.0.base().write_answer(answer, options, out);
    }

    fn read_error(&self, status: u16, native_type: Option<&str>, body: &[u8]) -> ProviderError {
        self.0.errors().read_error(status, native_type, body)
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        self.0.base().write_error(error, options, out);
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(ShapedReader { shape: self.0, base: self.0.base().stream_reader(), has_begun: false })
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        self.0.base().stream_writer(options)
    }
}

struct ShapedReader {
    shape: &'static dyn ChatShape,
    base: Box<dyn StreamReader>,
    has_begun: bool,
}

impl StreamReader for ShapedReader {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.has_begun = true;
        let Ok(reply) = serde_json::from_slice::<Value>(event.data) else { return self.base.push(event, deltas) };
        // A failure is told in the words that everybody has for it, or in a text.
        match reply.get("error") {
            None | Some(Value::Null) => {}
            Some(Value::String(message)) => {
                let error = json!({ "error": { "message": message } }).to_string();
                return self.base.push(&WireEvent { name: None, data: error.as_bytes() }, deltas);
            }
            Some(_) => return self.base.push(event, deltas),
        }
        match self.shape.chunk(reply) {
            Some(chunk) => self.base.push(&WireEvent { name: None, data: chunk.to_string().as_bytes() }, deltas),
            None => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.base.has_ended()
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if let Some(chunk) = self.shape.closing().filter(|_| self.has_begun && !self.base.has_ended()) {
            self.base.push(&WireEvent { name: None, data: chunk.to_string().as_bytes() }, deltas)?;
        }
        self.base.finish(deltas)
    }
}

/// Moves fields to their names in a shape.
fn rename(body: &mut Map<String, Value>, names: &[(&str, &str)], out: &mut Map<String, Value>) {
    for (name, theirs) in names {
        if let Some(value) = body.shift_remove(*name).filter(|value| !value.is_null()) {
            out.insert((*theirs).to_owned(), value);
        }
    }
}

/// The messages of a chat that the base has written.
fn messages(body: &mut Map<String, Value>) -> Vec<Value> {
    match body.shift_remove("messages") {
        Some(Value::Array(messages)) => messages,
        _ => Vec::new(),
    }
}

/// The text of a message, all of its parts; what is no text is handed to `other`.
fn text_of(
    content: Option<Value>,
    mut other: impl FnMut(Value) -> Result<(), CodecError>,
) -> Result<String, CodecError> {
    match content {
        Some(Value::String(text)) => Ok(text),
        Some(Value::Array(parts)) => {
            let mut texts = Vec::new();
            for mut part in parts {
                match part.get_mut("text").map(Value::take) {
                    Some(Value::String(text)) => texts.push(text),
                    _ => other(part)?,
                }
            }
            Ok(texts.join("\n\n"))
        }
        _ => Ok(String::new()),
    }
}

fn role_of(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// A part that the provider has no place for.
fn unsayable(part: &Value) -> CodecError {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or("content");
    CodecError::field(["messages.", kind].concat(), "cannot be said to this provider")
}

/// A field, moved out of what need not be an object.
fn take(value: &mut Value, name: &str) -> Value {
    value.get_mut(name).map(Value::take).unwrap_or_default()
}

/// The field of an answer without which it is none.
fn required(reply: &mut Value, place: &'static str) -> Result<Value, CodecError> {
    let found = reply.pointer_mut(place).map(Value::take).filter(|value| !value.is_null());
    found.ok_or_else(|| CodecError::field(place.trim_start_matches('/'), "is missing in the answer"))
}

/// OpenAI's usage; none where neither count was told.
fn usage(prompt: Option<u64>, completion: Option<u64>) -> Value {
    if prompt.is_none() && completion.is_none() {
        return Value::Null;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    json!({
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt.saturating_add(completion),
    })
}
