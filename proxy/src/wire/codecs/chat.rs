//! OpenAI chat completions: the format most clients and most providers speak.

mod answer_reader;
mod answer_writer;
pub(super) mod content;
mod content_blocks;
pub(super) mod request_reader;
pub(super) mod request_writer;
mod stream_reader;
mod stream_writer;
pub(super) mod tools;
pub(super) mod usage;

use super::error::CodecError;
use super::error_table;
use super::json_reader::Fields;
use super::json_writer::JsonWriter;
use super::options::{AnswerOptions, Dropped, RequestOptions};
use super::{Codec, StreamReader, StreamWriter};
use crate::wire::conversation::{Answer, ErrorKind, ProviderError, Request, WireFormat};
use serde_json::Value;

#[derive(Debug)]
pub struct ChatCodec;

impl Codec for ChatCodec {
    fn name(&self) -> &'static str {
        "chat"
    }

    fn format(&self) -> WireFormat {
        WireFormat::Chat
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

    fn read_error(&self, status: u16, _: Option<&str>, body: &[u8]) -> ProviderError {
        read_error(status, body)
    }

    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
        write_error(&mut JsonWriter::new(out), error, options);
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream_reader::ChatStreamReader>::default()
    }

    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a> {
        Box::new(stream_writer::ChatStreamWriter::new(options))
    }
}

/// `{error: {message, type, param, code}}`, Mistral's `{message, type, …}` and `{detail}`, and bodies that are no JSON.
pub(super) fn read_error(status: u16, body: &[u8]) -> ProviderError {
    let Ok(mut fields) = Fields::parse(body) else { return unreadable(status, body) };
    match fields.take("error") {
        Some(Value::Object(map)) => from_error_object(status, map, body),
        Some(Value::String(message)) => ProviderError::new(status, error_table::kind_of_status(status), message),
        _ if fields.has("message") => from_error_object(status, fields.rest(), body),
        _ => match fields.take("detail") {
            Some(Value::String(message)) => ProviderError::new(status, error_table::kind_of_status(status), message),
            Some(detail) => ProviderError::new(status, error_table::kind_of_status(status), detail.to_string()),
            None => unreadable(status, body),
        },
    }
}

/// Inside a stream there is no status; the type implies one.
pub(super) fn from_error_object(status: u16, map: serde_json::Map<String, Value>, body: &[u8]) -> ProviderError {
    let mut fields = Fields::from_map(map, super::json_reader::FieldPath::Root);
    let mut word = |name: &str| match fields.take(name) {
        Some(Value::String(text)) => Some(text),
        Some(value @ Value::Number(_)) => Some(value.to_string()),
        _ => None,
    };
    let (message, native_type, code, param) = (word("message"), word("type"), word("code"), word("param"));
    let named = [&native_type, &code].into_iter().flatten();
    let known = named.filter_map(|name| error_table::kind_of_type(WireFormat::Chat, name)).next();
    let from_status = error_table::kind_of_status(status);
    // A type that names only "the request" says less than the status does.
    let kind = match known {
        Some((_, kind)) if kind != ErrorKind::InvalidRequest => kind,
        Some((_, kind)) if status == 200 => kind,
        _ => from_status,
    };
    let numeric = code.as_deref().and_then(|code| code.parse().ok()).filter(|code| (400..600).contains(code));
    let status = match status {
        200 => numeric.or(known.map(|(status, _)| status)).unwrap_or(500),
        status => status,
    };
    let message = message.unwrap_or_else(|| quoted(body));
    ProviderError { status, kind, message, native_type, code, param }
}

pub(super) fn unreadable(status: u16, body: &[u8]) -> ProviderError {
    ProviderError::new(status, error_table::kind_of_status(status), quoted(body))
}

/// What of an unknown body is shown to a caller.
const QUOTED: usize = 2048;

pub(super) fn quoted(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(QUOTED)]).into_owned()
}

/// Contract 7.0: the provider's name and its words.
pub(super) fn write_error(w: &mut JsonWriter<'_>, error: &ProviderError, options: &AnswerOptions<'_>) {
    w.open_object();
    w.key("error");
    write_error_object(w, error, options);
    w.string_field("provider", &options.provider);
    w.close_object();
}

fn write_error_object(w: &mut JsonWriter<'_>, error: &ProviderError, options: &AnswerOptions<'_>) {
    w.open_object();
    w.string_field("message", &[&*options.provider, " error: ", &error.message].concat());
    let own = error_table::type_for(WireFormat::Chat, error.kind);
    w.string_field("type", error.native_type.as_deref().unwrap_or(own));
    for (name, word) in [("param", &error.param), ("code", &error.code)] {
        match word {
            Some(word) => w.string_field(name, word),
            None => w.null_field(name),
        }
    }
    w.close_object();
}
