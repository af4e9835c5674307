//! Whether a stream has said that it is over. A provider, or something on the way to it, may end one in the middle so that
//! it looks complete: without its end marker it is not, and the client must hear of it.
//!
//! By the dialect: chats and completions end with `[DONE]`, or when a choice has its `finish_reason`, since some providers
//! never send the former; Gemini's with a finish reason; Converse's with `messageStop`; the others with an event of their
//! own (`wire::framing::end_markers`). A stream that brought an error has told its client. Streams of another kind are not judged.

use crate::engine::answer::wire::WireDialect;
use crate::wire::framing::end_markers;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// In quotes, which a text inside JSON cannot have without a backslash before the second.
static FINISH_REASON: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finish_reason\""));
static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"error\""));
static CHOICES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"choices\""));
static DONE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("[DONE]"));
static MESSAGE_START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"message_start\""));
static MESSAGE_STOP: LazyLock<Finder<'static>> = LazyLock::new(|| quoted(end_markers::MESSAGES));
static CANDIDATES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"candidates\""));
static GEMINI_FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"finishReason\""));
/// Of a prompt that was blocked.
static GEMINI_BLOCK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"blockReason\""));
static CONVERSE_START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("event: messageStart\n"));
static CONVERSE_STOP: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("event: messageStop\n"));
static CONVERSE_EXCEPTION: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("Exception\ndata: "));
static COHERE_START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"message-start\""));
static COHERE_END: LazyLock<Finder<'static>> = LazyLock::new(|| quoted(end_markers::COHERE));
static RESPONSE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"response."));

/// The type of the last event, of a format that has one.
fn quoted(ends: &[&str]) -> Finder<'static> {
    Finder::new(&format!("\"{}\"", ends.concat())).into_owned()
}

#[derive(Debug)]
pub struct StreamEnding {
    dialect: WireDialect,
    /// It is a stream of a kind whose end we know.
    is_known: bool,
    is_over: bool,
}

impl StreamEnding {
    pub fn new(dialect: WireDialect) -> Self {
        Self { dialect, is_known: false, is_over: false }
    }

    /// Whole events have come, or what is left at the end.
    pub fn see(&mut self, events: &[u8]) {
        if self.is_over {
            return;
        }
        self.is_known = self.is_known || self.begins().find(events).is_some();
        self.is_over = self.ends(events) || has_value(events, &ERROR);
    }

    /// Whether a stream that ends now has not said so.
    pub fn is_missing(&self) -> bool {
        self.is_known && !self.is_over
    }

    fn begins(&self) -> &'static Finder<'static> {
        match self.dialect {
            WireDialect::OpenAi => &CHOICES,
            WireDialect::Messages => &MESSAGE_START,
            WireDialect::Responses => &RESPONSE,
            WireDialect::Gemini => &CANDIDATES,
            WireDialect::Converse => &CONVERSE_START,
            WireDialect::Cohere => &COHERE_START,
        }
    }

    fn ends(&self, events: &[u8]) -> bool {
        match self.dialect {
            WireDialect::OpenAi => has_value(events, &FINISH_REASON) || is_done(events),
            WireDialect::Messages => MESSAGE_STOP.find(events).is_some(),
            WireDialect::Responses => RESPONSE
                .find_iter(events)
                .any(|at| end_markers::begins_with_end(&events[at + 1..], end_markers::RESPONSES)),
            WireDialect::Gemini => has_value(events, &GEMINI_FINISH) || GEMINI_BLOCK.find(events).is_some(),
            // As our own framing writes them.
            WireDialect::Converse => CONVERSE_STOP.find(events).is_some() || CONVERSE_EXCEPTION.find(events).is_some(),
            WireDialect::Cohere => COHERE_END.find(events).is_some(),
        }
    }
}

/// Whether the key stands there with a value that is not null.
fn has_value(events: &[u8], key: &Finder<'_>) -> bool {
    key.find_iter(events).any(|at| {
        let rest = events[at + key.needle().len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| !value.trim_ascii_start().starts_with(b"null"))
    })
}

/// Whether an event says that it was the last. The words may also be part of a text.
fn is_done(events: &[u8]) -> bool {
    DONE.find_iter(events).any(|at| events[..at].trim_ascii_end().ends_with(b"data:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_missing(dialect: WireDialect, pieces: &[&str]) -> bool {
        let mut ending = StreamEnding::new(dialect);
        pieces.iter().for_each(|piece| ending.see(piece.as_bytes()));
        ending.is_missing()
    }

    #[test]
    fn a_stream_ends_with_what_its_dialect_ends_with() {
        let said = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}]}\n\n";
        let started = "event: message_start\ndata: {\"type\": \"message_start\"}\n\n";
        let created = "data: {\"type\":\"response.created\"}\n\n";
        for (dialect, pieces, expected) in [
            (WireDialect::OpenAi, vec![said, said], true),
            (WireDialect::OpenAi, vec![said, "data: [DONE]\n\n"], false),
            (WireDialect::OpenAi, vec![said, "data:[DONE]"], false),
            (WireDialect::OpenAi, vec!["data: {\"choices\":[{\"finish_reason\": \"stop\"}]}\n\n"], false),
            (
                WireDialect::OpenAi,
                vec!["data: {\"choices\":[{\"text\":\"say \\\"finish_reason\\\":\\\"stop\\\"\"}]}\n\n"],
                true,
            ),
            (WireDialect::OpenAi, vec!["data: {\"choices\":[{\"text\":\"then [DONE]\"}]}\n\n"], true),
            (WireDialect::OpenAi, vec![said, "data: {\"error\":{\"message\":\"m\"}}\n\n"], false),
            (WireDialect::OpenAi, vec!["data: {\"choices\":[],\"error\":null}\n\n"], true),
            (WireDialect::OpenAi, vec!["data: {\"type\":\"speech.audio.delta\"}\n\n"], false),
            (WireDialect::OpenAi, vec!["data: words of another kind\n\n"], false),
            (WireDialect::Messages, vec![started], true),
            (WireDialect::Messages, vec![started, "data: {\"type\":\"message_stop\"}\n\n"], false),
            (WireDialect::Messages, vec![started, "data: {\"type\":\"error\",\"error\":{}}\n\n"], false),
            (WireDialect::Responses, vec![created], true),
            (WireDialect::Responses, vec![created, "data: {\"type\":\"response.completed\"}\n\n"], false),
            (WireDialect::Responses, vec![created, "data: {\"type\":\"response.output_item.completed\"}\n\n"], true),
            (WireDialect::Responses, vec![created, "data: {\"type\":\"response.failed\",\"response\":{}}\n\n"], false),
            (WireDialect::Gemini, vec!["data: {\"candidates\":[{\"content\":{}}]}\n\n"], true),
            (WireDialect::Gemini, vec!["data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n"], false),
            (WireDialect::Converse, vec!["event: messageStart\ndata: {}\n\n"], true),
            (
                WireDialect::Converse,
                vec!["event: messageStart\ndata: {}\n\n", "event: messageStop\ndata: {}\n\n"],
                false,
            ),
            (
                WireDialect::Converse,
                vec!["event: messageStart\ndata: {}\n\n", "event: xException\ndata: {}\n\n"],
                false,
            ),
            (WireDialect::Cohere, vec!["data: {\"type\":\"message-start\"}\n\n"], true),
            (
                WireDialect::Cohere,
                vec!["data: {\"type\":\"message-start\"}\n\n", "data: {\"type\":\"message-end\"}\n\n"],
                false,
            ),
        ] {
            assert_eq!(is_missing(dialect, &pieces), expected, "{dialect:?} {pieces:?}");
        }
    }
}
