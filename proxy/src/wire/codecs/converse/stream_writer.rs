//! Deltas → events of a Converse stream. Each event has a name and is put into a frame by its sink.

use super::answer::{stop_reason, write_metrics, write_usage};
use super::write_error;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::sink::EventSink;
use crate::wire::codecs::{StreamWriter, citations};
use crate::wire::conversation::{Delta, ErrorKind, Finish, Part, PartStart, Signer, Usage, WireFormat};

const FORMAT: WireFormat = WireFormat::Converse;

#[derive(Debug)]
pub(super) struct ConverseStreamWriter<'a> {
    options: AnswerOptions<'a>,
    next_block: u64,
    /// Open parts, their block, and whether it is a thought.
    open: Vec<(u32, u64, bool)>,
    finish: Option<Finish>,
    usage: Usage,
    has_failed: bool,
}

impl<'a> ConverseStreamWriter<'a> {
    pub fn new(options: AnswerOptions<'a>) -> Self {
        let usage = Usage::default();
        Self { options, next_block: 0, open: Vec::new(), finish: None, usage, has_failed: false }
    }

    fn begin(&mut self, part: u32, start: &PartStart, sink: &mut dyn EventSink) {
        let block = self.next_block;
        match start {
            PartStart::Text | PartStart::Refusal | PartStart::Audio { .. } => self.open.push((part, block, false)),
            PartStart::Thinking { .. } => self.open.push((part, block, true)),
            PartStart::ToolUse { id, name, .. } => {
                self.open.push((part, block, false));
                event(sink, "contentBlockStart", |w| {
                    w.object_field("start");
                    w.object_field("toolUse");
                    match id.as_str() {
                        "" => w.string_field("toolUseId", &self.options.tool_id(0, part)),
                        id => w.string_field("toolUseId", id),
                    }
                    w.string_field("name", name);
                    w.close_object();
                    w.close_object();
                    w.integer_field("contentBlockIndex", block);
                });
            }
            PartStart::Whole(whole) => match &**whole {
                Part::RedactedThinking(sealed) if sealed.signer == Signer::Anthropic => {
                    self.open.push((part, block, true));
                    delta(sink, block, |w| {
                        w.object_field("reasoningContent");
                        w.string_field("redactedContent", &sealed.value);
                        w.close_object();
                    });
                }
                _ => return,
            },
        }
        self.next_block += 1;
    }

    fn find(&self, part: u32) -> Option<(u64, bool)> {
        self.open.iter().rev().find(|open| open.0 == part).map(|open| (open.1, open.2))
    }
}

impl StreamWriter for ConverseStreamWriter<'_> {
    fn push(&mut self, piece: &Delta, sink: &mut dyn EventSink) {
        match piece {
            Delta::Start { .. } => event(sink, "messageStart", |w| w.string_field("role", "assistant")),
            Delta::PartBegins { choice: 0, part, start } => self.begin(*part, start, sink),
            Delta::Text { choice: 0, part, text } => match self.find(*part) {
                Some((block, false)) => delta(sink, block, |w| w.string_field("text", text)),
                Some((block, true)) => delta(sink, block, |w| {
                    w.object_field("reasoningContent");
                    w.string_field("text", text);
                    w.close_object();
                }),
                None => {}
            },
            Delta::Arguments { choice: 0, part, json } => {
                if let Some((block, _)) = self.find(*part) {
                    delta(sink, block, |w| {
                        w.object_field("toolUse");
                        w.string_field("input", json);
                        w.close_object();
                    });
                }
            }
            Delta::Signature { choice: 0, part, signature } => {
                if let (Some((block, true)), Some(value)) = (self.find(*part), signature.by(Signer::Anthropic)) {
                    delta(sink, block, |w| {
                        w.object_field("reasoningContent");
                        w.string_field("signature", value);
                        w.close_object();
                    });
                }
            }
            Delta::Citation { choice: 0, part, citation } => {
                let own = citations::own(std::slice::from_ref(&**citation), FORMAT).next();
                if let (Some((block, _)), Some(own)) = (self.find(*part), own) {
                    delta(sink, block, |w| w.value_field("citation", own));
                }
            }
            Delta::PartEnds { choice: 0, part } => {
                if let Some(place) = self.open.iter().rposition(|open| open.0 == *part) {
                    let (_, block, _) = self.open.remove(place);
                    stop(sink, block);
                }
            }
            Delta::Finish { choice: 0, finish, .. } => self.finish = Some(finish.clone()),
            Delta::Usage(usage) => self.usage = usage.clone(),
            Delta::Error(error) => {
                self.has_failed = true;
                let name = exception(error.kind);
                write_error(&mut JsonWriter::new(sink.begin(Some(name))), error, &self.options);
                sink.end();
            }
            _ => {}
        }
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        if self.has_failed {
            return;
        }
        for (_, block, _) in std::mem::take(&mut self.open) {
            stop(sink, block);
        }
        let reason = stop_reason(self.finish.as_ref());
        event(sink, "messageStop", |w| w.string_field("stopReason", reason));
        event(sink, "metadata", |w| {
            write_usage(w, &self.usage);
            write_metrics(w, None);
        });
    }
}

/// A stream has fewer exceptions than an answer: clients know these and no others.
fn exception(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidRequest
        | ErrorKind::TooLarge
        | ErrorKind::NotFound
        | ErrorKind::Authentication
        | ErrorKind::Permission => "validationException",
        ErrorKind::RateLimit | ErrorKind::Billing => "throttlingException",
        ErrorKind::Timeout | ErrorKind::Overloaded | ErrorKind::Unavailable => "serviceUnavailableException",
        ErrorKind::Internal => "internalServerException",
    }
}

fn stop(sink: &mut dyn EventSink, block: u64) {
    event(sink, "contentBlockStop", |w| w.integer_field("contentBlockIndex", block));
}

fn delta(sink: &mut dyn EventSink, block: u64, body: impl FnOnce(&mut JsonWriter<'_>)) {
    event(sink, "contentBlockDelta", |w| {
        w.object_field("delta");
        body(w);
        w.close_object();
        w.integer_field("contentBlockIndex", block);
    });
}

fn event(sink: &mut dyn EventSink, name: &str, body: impl FnOnce(&mut JsonWriter<'_>)) {
    let mut writer = JsonWriter::new(sink.begin(Some(name)));
    writer.open_object();
    body(&mut writer);
    writer.close_object();
    sink.end();
}
