//! One wire format each, both ways: requests, answers, errors and streams, read into `conversation` and written from it.
//! A translation is read with one codec and write with another, so that N formats need N codecs.
//!
//! Codecs are pure: bytes in, values out. They know no provider, no socket and no clock; what depends on these is an
//! argument. Framing (server-sent events, AWS event streams) is done around them.

mod arguments;
mod base64_text;
pub mod chat;
mod citations;
pub mod cohere;
pub mod completions;
pub mod converse;
mod data_url;
pub mod error;
pub mod error_table;
pub mod finish_reasons;
pub mod foreign_tools;
pub mod gemini;
pub mod jobs;
mod json_reader;
mod json_text;
mod json_writer;
mod logprobs;
pub mod messages;
pub mod objects;
mod open_parts;
pub mod options;
pub mod reasoning;
pub mod responses;
mod schema;
pub mod shaped;
pub mod sink;

#[cfg(test)]
mod essence;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod properties;

pub(crate) use data_url::type_of_name;
pub use error::CodecError;
pub use options::{AnswerOptions, Dropped, GeminiThinking, RequestOptions, ThinkingStyle};
pub use sink::{EventSink, SseSink, WireEvent};

use super::conversation::{Answer, Delta, ProviderError, Request, WireFormat};

/// One wire format.
pub trait Codec: Sync {
    fn name(&self) -> &'static str;
    fn format(&self) -> WireFormat;

    /// A caller's body. What is wrong with it is named, and is a 400.
    fn read_request(&self, body: &[u8]) -> Result<Request, CodecError>;
    /// A provider's body, and the names of what it could not say. An error names a field that must not be lost.
    fn write_request(
        &self,
        request: &Request,
        options: &RequestOptions<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Dropped, CodecError>;

    /// A provider's answer. An error means that it is none, which is a 502.
    fn read_answer(&self, body: &[u8]) -> Result<Answer, CodecError>;
    fn write_answer(&self, answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>);

    /// A provider's refusal. Cannot fail: a body in no known form is quoted. `native_type` is what a header said.
    fn read_error(&self, status: u16, native_type: Option<&str>, body: &[u8]) -> ProviderError;
    fn write_error(&self, error: &ProviderError, options: &AnswerOptions<'_>, out: &mut Vec<u8>);
    /// The name of an error, where clients of the format look for it in a header (`x-amzn-errortype`).
    fn error_type(&self, _error: &ProviderError) -> Option<&'static str> {
        None
    }

    fn stream_reader(&self) -> Box<dyn StreamReader>;
    fn stream_writer<'a>(&self, options: AnswerOptions<'a>) -> Box<dyn StreamWriter + 'a>;
}

/// Pushed one event of a provider's stream at a time.
pub trait StreamReader: Send {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError>;
    /// Whether the stream has said that nothing follows, or has failed. Formats without an end marker may never say so.
    fn has_ended(&self) -> bool;
    /// The connection has ended. A stream without its end marker was cut.
    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError>;
}

/// Pushed one delta at a time; writes a client's events.
pub trait StreamWriter: Send {
    fn push(&mut self, delta: &Delta, sink: &mut dyn EventSink);
    /// Writes whatever ends a stream. After an error this is the short end.
    fn finish(&mut self, sink: &mut dyn EventSink);
    /// About how many bytes of what was pushed it holds, for events that repeat it or that come whole.
    fn held(&self) -> usize {
        0
    }
}

pub static CODECS: &[&dyn Codec] = &[
    &chat::ChatCodec,
    &messages::MessagesCodec,
    &responses::ResponsesCodec,
    &gemini::GeminiCodec,
    &converse::ConverseCodec,
    &cohere::CohereCodec,
    &completions::CompletionsCodec,
];

/// Formats of clients and providers, and those that providers alone speak.
pub fn by_name(name: &str) -> Option<&'static dyn Codec> {
    let shaped = || shaped::SHAPED.iter().map(|codec| codec as &dyn Codec);
    CODECS.iter().copied().chain(shaped()).find(|codec| codec.name() == name)
}

pub fn by_format(format: WireFormat) -> Option<&'static dyn Codec> {
    CODECS.iter().copied().find(|codec| codec.format() == format)
}
