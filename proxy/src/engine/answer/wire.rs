//! What a provider's own bytes mean, by the dialect that it speaks: which event is the first content, what is an error
//! inside a 200, whether a stream has said that it is over. From this follows the commit point, the moment from which an
//! answer is passed on and no other attempt can take its place.
//!
//! Chosen for each target and asked about what the target sent, before any step has changed it. OpenAI's and Anthropic's
//! events are told apart without being parsed, since most of them pass as they came. Those of other formats are always
//! translated: there the codec that reads them says what they mean.

use super::content::{self, Meaning};
use super::ending::StreamEnding;
use crate::request::refusal::Refusal;
use crate::wire::codecs;
use crate::wire::codecs::{StreamReader, WireEvent};
use crate::wire::conversation::{Delta, WireFormat};
use shared::providers::Family;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireDialect {
    /// Chats, completions, and every family without a stream of its own kind.
    OpenAi,
    Messages,
    Responses,
    Gemini,
    Converse,
    Cohere,
}

impl WireDialect {
    /// What a target speaks that is asked for this family in the family's own dialect.
    pub fn of_family(family: Family) -> Self {
        match family {
            Family::Messages | Family::CountTokens => Self::Messages,
            Family::Responses => Self::Responses,
            _ => Self::OpenAi,
        }
    }

    /// What a target speaks that is asked in this format.
    pub fn of_format(format: WireFormat) -> Self {
        match format {
            WireFormat::Chat | WireFormat::Completions => Self::OpenAi,
            WireFormat::Messages => Self::Messages,
            WireFormat::Responses => Self::Responses,
            WireFormat::Gemini => Self::Gemini,
            WireFormat::Converse => Self::Converse,
            WireFormat::Cohere => Self::Cohere,
        }
    }

    /// For the events of a stream as long as no content has come.
    pub fn watch(self) -> EventWatch {
        let format = match self {
            // Their events cannot be taken for each other's.
            Self::OpenAi | Self::Messages | Self::Responses => return EventWatch(None),
            Self::Gemini => WireFormat::Gemini,
            Self::Converse => WireFormat::Converse,
            Self::Cohere => WireFormat::Cohere,
        };
        EventWatch(codecs::by_format(format).map(|codec| codec.stream_reader()))
    }

    /// What a whole plain answer with a success status means.
    pub fn body_meaning(self, body: &[u8]) -> Meaning {
        match self {
            Self::OpenAi | Self::Messages | Self::Responses => content::meaning_of_answer(body),
            // Whoever translates it finds out.
            Self::Gemini | Self::Converse | Self::Cohere => Meaning::Content,
        }
    }

    /// Watches a stream for its end marker.
    pub fn ending(self) -> StreamEnding {
        StreamEnding::new(self)
    }
}

/// Says what the events at the beginning of a stream mean.
pub struct EventWatch(Option<Box<dyn StreamReader>>);

impl EventWatch {
    pub fn meaning(&mut self, name: Option<&str>, data: &[u8]) -> Meaning {
        let Some(reader) = &mut self.0 else { return content::meaning(data) };
        let mut deltas = Vec::new();
        if reader.push(&WireEvent { name, data }, &mut deltas).is_err() {
            return Meaning::Malformed;
        }
        let is_content = |delta: &Delta| delta.is_content() || matches!(delta, Delta::Finish { .. });
        let error = deltas.iter().find_map(|delta| match delta {
            Delta::Error(error) => Some(Refusal::upstream_error(error.status, error.message.clone())),
            _ => None,
        });
        match error {
            Some(refusal) => Meaning::Error(Box::new(refusal)),
            None if deltas.iter().any(is_content) => Meaning::Content,
            None => Meaning::Preamble,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_content_of_a_translated_stream_is_what_a_caller_could_see() {
        let meanings = |wire: WireDialect, events: &[(&str, &str)]| -> Vec<String> {
            let mut watch = wire.watch();
            let said = events.iter().map(|(name, data)| watch.meaning(Some(name), data.as_bytes()));
            said.map(|meaning| match meaning {
                Meaning::Error(refusal) => refusal.status.to_string(),
                Meaning::Preamble => "-".into(),
                Meaning::Content => "content".into(),
                Meaning::Malformed => "malformed".into(),
            })
            .collect()
        };
        let converse = [
            ("messageStart", r#"{"role":"assistant"}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":""}}"#),
            ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"a"}}"#),
        ];
        assert_eq!(meanings(WireDialect::Converse, &converse), ["-", "-", "content"]);
        let throttled = [converse[0], ("throttlingException", r#"{"message":"m"}"#)];
        assert_eq!(meanings(WireDialect::Converse, &throttled), ["-", "429"]);
        let gemini = [
            ("", r#"{"candidates":[{"content":{"role":"model"}}],"usageMetadata":{"promptTokenCount":1}}"#),
            ("", r#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#),
        ];
        assert_eq!(meanings(WireDialect::Gemini, &gemini), ["-", "content"]);
        assert_eq!(meanings(WireDialect::Gemini, &[("", r#"{"candidates":[{"finishReason":"STOP"}]}"#)]), ["content"]);
        assert_eq!(meanings(WireDialect::Gemini, &[("", "{")]), ["malformed"]);
        let cohere = [
            ("", r#"{"type":"message-start","id":"1"}"#),
            ("", r#"{"type":"content-start","index":0,"delta":{"message":{"content":{"type":"text","text":""}}}}"#),
        ];
        assert_eq!(meanings(WireDialect::Cohere, &cohere), ["-", "-"]);
    }
}
