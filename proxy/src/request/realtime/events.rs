//! The events of a realtime session that its limits and its logs go by: a response begins, says something, is over; and
//! which events of a client may begin one. Everything else of an event is skipped.

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Longest object of usage that is kept.
const MAX_USAGE: usize = 8 << 10;

/// Events of clients that begin no response, besides sound. Whatever is not one of these may begin one.
const HARMLESS: [&str; 10] = [
    "session.update",
    "transcription_session.update",
    "input_audio_buffer.commit",
    "input_audio_buffer.clear",
    "output_audio_buffer.clear",
    "conversation.item.create",
    "conversation.item.retrieve",
    "conversation.item.delete",
    "conversation.item.truncate",
    "response.cancel",
];

/// What a provider says of a response.
#[derive(Debug, PartialEq, Eq)]
pub enum RealtimeEvent {
    Began,
    Done(Done),
    /// Some of what the response says: so many letters of text, or of encoded sound.
    Text(u64),
    Audio(u64),
    /// The provider did not do what it was asked.
    Error,
}

#[derive(Debug, PartialEq, Eq, Default)]
pub struct Done {
    /// As the provider counts it.
    pub usage: Option<String>,
    pub is_failed: bool,
}

#[derive(Deserialize)]
struct FromProvider<'e> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'e, str>,
    #[serde(borrow)]
    response: Option<Response<'e>>,
    #[serde(borrow)]
    delta: Option<&'e RawValue>,
}

#[derive(Deserialize)]
struct Response<'e> {
    #[serde(borrow)]
    usage: Option<&'e RawValue>,
    #[serde(borrow)]
    status: Option<Cow<'e, str>>,
}

#[derive(Deserialize)]
struct FromClient<'e> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'e, str>,
}

/// An event that cannot be read although it should say what was used.
#[derive(Debug, PartialEq, Eq)]
pub struct UnreadableEvent;

impl RealtimeEvent {
    /// None for events that say nothing of a response.
    pub fn parse(text: &[u8]) -> Result<Option<Self>, UnreadableEvent> {
        let Ok(event) = serde_json::from_slice::<FromProvider<'_>>(text) else {
            return match memmem::find(text, b"response.done") {
                Some(_) => Err(UnreadableEvent),
                None => Ok(None),
            };
        };
        let length = event.delta.map_or(0, |delta| delta.get().len() as u64);
        Ok(match &*event.kind {
            "response.created" => Some(Self::Began),
            "response.done" => Some(Self::Done(Done::from_response(event.response)?)),
            "error" => Some(Self::Error),
            kind if kind.ends_with("audio.delta") => Some(Self::Audio(length)),
            kind if kind.ends_with(".delta") => Some(Self::Text(length)),
            _ => None,
        })
    }
}

impl Done {
    fn from_response(response: Option<Response<'_>>) -> Result<Self, UnreadableEvent> {
        let Some(response) = response else { return Ok(Self::default()) };
        // A response that was cancelled before it began uses nothing and says so by saying nothing.
        let usage = response.usage.map(RawValue::get).filter(|usage| *usage != "null");
        if usage.is_some_and(|usage| usage.len() > MAX_USAGE) {
            return Err(UnreadableEvent);
        }
        let is_failed = response.status.as_deref() == Some("failed");
        Ok(Self { usage: usage.map(str::to_owned), is_failed })
    }
}

/// What an event of a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientEventKind {
    BeginsResponse,
    /// Sound, whose size says little about tokens.
    Audio,
    Harmless,
    /// It may begin a response: it cannot be read, or could be read in two ways, or is new.
    Unknown,
}

impl ClientEventKind {
    pub fn parse(text: &[u8]) -> Self {
        match serde_json::from_slice::<FromClient<'_>>(text) {
            Ok(event) if event.kind == "response.create" => Self::BeginsResponse,
            Ok(event) if event.kind == "input_audio_buffer.append" => Self::Audio,
            Ok(event) if HARMLESS.contains(&&*event.kind) => Self::Harmless,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_what_becomes_of_a_response() {
        let done = |usage: Option<&str>, is_failed| {
            Some(RealtimeEvent::Done(Done { usage: usage.map(Into::into), is_failed }))
        };
        for (text, found) in [
            (r#"{"type":"response.created","response":{"id":"r"}}"#, Ok(Some(RealtimeEvent::Began))),
            (r#"{"type":"response.done","response":{"usage":{"a":1}}}"#, Ok(done(Some(r#"{"a":1}"#), false))),
            (r#"{"response":{"usage":null,"status":"failed"},"type":"response.done"}"#, Ok(done(None, true))),
            (r#"{"type":"response\u002edone"}"#, Ok(done(None, false))),
            (r#"{"type":"response.output_text.delta","delta":"four"}"#, Ok(Some(RealtimeEvent::Text(6)))),
            (r#"{"type":"response.output_audio.delta","delta":"AAAA"}"#, Ok(Some(RealtimeEvent::Audio(6)))),
            (r#"{"type":"error","error":{}}"#, Ok(Some(RealtimeEvent::Error))),
            (r#"{"type":"conversation.item.created","item":"response.done"}"#, Ok(None)),
            ("not JSON", Ok(None)),
            (r#"{"type":"response.done","response":"#, Err(UnreadableEvent)),
        ] {
            assert_eq!(RealtimeEvent::parse(text.as_bytes()), found, "{text}");
        }
    }

    #[test]
    fn only_what_surely_begins_no_response_is_harmless() {
        for (text, kind) in [
            (r#"{"type":"response.create"}"#, ClientEventKind::BeginsResponse),
            (r#"{"type":"response\u002ecreate"}"#, ClientEventKind::BeginsResponse),
            (r#"{"type":"session.update","type":"response.create"}"#, ClientEventKind::Unknown),
            (r#"{"type":"something.new"}"#, ClientEventKind::Unknown),
            ("not JSON", ClientEventKind::Unknown),
            (r#"{"type":"input_audio_buffer.append","audio":"AAAA"}"#, ClientEventKind::Audio),
            (r#"{"type":"conversation.item.create","item":{"type":"response.create"}}"#, ClientEventKind::Harmless),
        ] {
            assert_eq!(ClientEventKind::parse(text.as_bytes()), kind, "{text}");
        }
    }
}
