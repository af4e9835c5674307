//! Deltas → events of a Cohere stream.

use super::answer::{finish_word, write_usage};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::sink::EventSink;
use crate::wire::codecs::{StreamWriter, citations};
use crate::wire::conversation::{Delta, Finish, PartStart, Usage, WireFormat};

const FORMAT: WireFormat = WireFormat::Cohere;

#[derive(Debug)]
pub(super) struct CohereStreamWriter<'a> {
    options: AnswerOptions<'a>,
    next_content: u64,
    next_call: u64,
    next_citation: u64,
    open: Vec<(u32, u64, CoherePart)>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    has_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoherePart {
    Text,
    Thinking,
    Call,
}

impl<'a> CohereStreamWriter<'a> {
    pub fn new(options: AnswerOptions<'a>) -> Self {
        Self {
            options,
            next_content: 0,
            next_call: 0,
            next_citation: 0,
            open: Vec::new(),
            finish: None,
            usage: None,
            has_failed: false,
        }
    }

    fn begin(&mut self, part: u32, start: &PartStart, sink: &mut dyn EventSink) {
        let kind = match start {
            PartStart::Text | PartStart::Refusal | PartStart::Audio { .. } => CoherePart::Text,
            PartStart::Thinking { .. } => CoherePart::Thinking,
            PartStart::ToolUse { .. } => CoherePart::Call,
            PartStart::Whole(_) => return,
        };
        let counter = if kind == CoherePart::Call { &mut self.next_call } else { &mut self.next_content };
        let number = *counter;
        *counter += 1;
        self.open.push((part, number, kind));
        if let PartStart::ToolUse { id, name, .. } = start {
            event(sink, "tool-call-start", Some(number), |w| {
                w.object_field("tool_calls");
                match id.as_str() {
                    "" => w.string_field("id", &self.options.tool_id(0, part)),
                    id => w.string_field("id", id),
                }
                w.string_field("type", "function");
                w.object_field("function");
                w.string_field("name", name);
                w.string_field("arguments", "");
                w.close_object();
                w.close_object();
            });
            return;
        }
        let name = if kind == CoherePart::Thinking { "thinking" } else { "text" };
        event(sink, "content-start", Some(number), |w| {
            w.object_field("content");
            w.string_field("type", name);
            w.string_field(name, "");
            w.close_object();
        });
    }

    fn end(&mut self, part: u32, sink: &mut dyn EventSink) {
        let Some(place) = self.open.iter().rposition(|open| open.0 == part) else { return };
        let (_, number, kind) = self.open.remove(place);
        let name = if kind == CoherePart::Call { "tool-call-end" } else { "content-end" };
        bare_event(sink, name, |w| w.integer_field("index", number));
    }
}

impl StreamWriter for CohereStreamWriter<'_> {
    fn push(&mut self, delta: &Delta, sink: &mut dyn EventSink) {
        match delta {
            Delta::Start { id, .. } => bare_event(sink, "message-start", |w| {
                w.string_field("id", id.as_deref().unwrap_or(&self.options.id));
                w.object_field("delta");
                w.object_field("message");
                w.string_field("role", "assistant");
                w.close_object();
                w.close_object();
            }),
            Delta::PartBegins { choice: 0, part, start } => self.begin(*part, start, sink),
            Delta::Text { choice: 0, part, text } => {
                let Some((_, number, kind)) = self.open.iter().rev().find(|open| open.0 == *part) else { return };
                let name = if *kind == CoherePart::Thinking { "thinking" } else { "text" };
                event(sink, "content-delta", Some(*number), |w| {
                    w.object_field("content");
                    w.string_field(name, text);
                    w.close_object();
                });
            }
            Delta::Arguments { choice: 0, part, json } => {
                let Some((_, number, _)) = self.open.iter().rev().find(|open| open.0 == *part) else { return };
                event(sink, "tool-call-delta", Some(*number), |w| {
                    w.object_field("tool_calls");
                    w.object_field("function");
                    w.string_field("arguments", json);
                    w.close_object();
                    w.close_object();
                });
            }
            Delta::Citation { choice: 0, citation, .. } => {
                if let Some(own) = citations::own(std::slice::from_ref(&**citation), FORMAT).next() {
                    let number = self.next_citation;
                    self.next_citation += 1;
                    event(sink, "citation-start", Some(number), |w| w.value_field("citations", own));
                    bare_event(sink, "citation-end", |w| w.integer_field("index", number));
                }
            }
            Delta::PartEnds { choice: 0, part } => self.end(*part, sink),
            Delta::Finish { choice: 0, finish, .. } => self.finish = Some(finish.clone()),
            Delta::Usage(usage) => self.usage = Some(usage.clone()),
            Delta::Error(error) => {
                self.has_failed = true;
                let message = [&*self.options.provider, " error: ", &error.message].concat();
                bare_event(sink, "message-end", |w| {
                    w.object_field("delta");
                    w.string_field("finish_reason", "ERROR");
                    w.string_field("error", &message);
                    w.close_object();
                });
            }
            _ => {}
        }
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        if self.has_failed {
            return;
        }
        let open: Vec<u32> = self.open.iter().map(|open| open.0).collect();
        open.into_iter().for_each(|part| self.end(part, sink));
        bare_event(sink, "message-end", |w| {
            w.object_field("delta");
            w.string_field("finish_reason", finish_word(self.finish.as_ref()));
            if let Some(usage) = &self.usage {
                write_usage(w, usage);
            }
            w.close_object();
        });
    }
}

/// An event whose `delta.message` is written by `body`.
fn event(sink: &mut dyn EventSink, name: &str, number: Option<u64>, body: impl FnOnce(&mut JsonWriter<'_>)) {
    bare_event(sink, name, |w| {
        if let Some(number) = number {
            w.integer_field("index", number);
        }
        w.object_field("delta");
        w.object_field("message");
        body(w);
        w.close_object();
        w.close_object();
    });
}

fn bare_event(sink: &mut dyn EventSink, name: &str, body: impl FnOnce(&mut JsonWriter<'_>)) {
    let mut writer = JsonWriter::new(sink.begin(Some(name)));
    writer.open_object();
    writer.string_field("type", name);
    body(&mut writer);
    writer.close_object();
    sink.end();
}
