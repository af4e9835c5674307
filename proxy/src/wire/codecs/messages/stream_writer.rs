//! Deltas → events of a messages stream (contract 6.3).
//!
//! `message_delta` waits for the end: it carries the usage, which other formats tell after the finish reason, and
//! arguments may still follow that too.

use super::answer::write_finish;
use super::{usage, write_error};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::sink::EventSink;
use crate::wire::codecs::{StreamWriter, citations};
use crate::wire::conversation::{Delta, Finish, Part, PartStart, Signer, Usage, WireFormat};

const FORMAT: WireFormat = WireFormat::Messages;

#[derive(Debug)]
pub(super) struct MessagesStreamWriter<'a> {
    options: AnswerOptions<'a>,
    has_started: bool,
    has_failed: bool,
    next_block: u64,
    /// Open parts, their block and the name of its deltas.
    open: Vec<(u32, u64, &'static str)>,
    finish: Option<Finish>,
    usage: Usage,
}

impl<'a> MessagesStreamWriter<'a> {
    pub fn new(options: AnswerOptions<'a>) -> Self {
        Self {
            options,
            has_started: false,
            has_failed: false,
            next_block: 0,
            open: Vec::new(),
            finish: None,
            usage: Usage::default(),
        }
    }

    fn start(&mut self, id: Option<&str>, model: Option<&str>, sink: &mut dyn EventSink) {
        self.has_started = true;
        event(sink, "message_start", |w| {
            w.object_field("message");
            w.string_field("id", id.unwrap_or(&self.options.id));
            w.string_field("type", "message");
            w.string_field("role", "assistant");
            w.string_field("model", model.unwrap_or(&self.options.model));
            w.array_field("content");
            w.close_array();
            w.null_field("stop_reason");
            w.null_field("stop_sequence");
            usage::write(w, &self.usage);
            w.close_object();
        });
    }

    fn begin(&mut self, part: u32, start: &PartStart, sink: &mut dyn EventSink) {
        let kind = match start {
            PartStart::Text | PartStart::Refusal | PartStart::Audio { .. } => "text_delta",
            PartStart::Thinking { .. } => "thinking_delta",
            PartStart::ToolUse { .. } => "input_json_delta",
            PartStart::Whole(whole) => match &**whole {
                Part::RedactedThinking(sealed) if sealed.signer == Signer::Anthropic => "",
                Part::Native(native) if native.format == FORMAT => "",
                _ => return,
            },
        };
        let block = self.next_block;
        self.next_block += 1;
        self.open.push((part, block, kind));
        event(sink, "content_block_start", |w| {
            w.integer_field("index", block);
            w.key("content_block");
            match start {
                PartStart::Text | PartStart::Refusal | PartStart::Audio { .. } => empty_block(w, "text", &["text"]),
                PartStart::Thinking { .. } => empty_block(w, "thinking", &["thinking", "signature"]),
                PartStart::ToolUse { id, name, .. } => {
                    w.open_object();
                    w.string_field("type", "tool_use");
                    match id.as_str() {
                        "" => w.string_field("id", &self.options.tool_id(0, part)),
                        id => w.string_field("id", id),
                    }
                    w.string_field("name", name);
                    w.object_field("input");
                    w.close_object();
                    w.close_object();
                }
                PartStart::Whole(whole) => match &**whole {
                    Part::RedactedThinking(sealed) => {
                        w.open_object();
                        w.string_field("type", "redacted_thinking");
                        w.string_field("data", &sealed.value);
                        w.close_object();
                    }
                    Part::Native(native) => w.value(&native.value),
                    _ => w.raw("null"),
                },
            }
        });
    }

    fn grow(&mut self, part: u32, field: &str, text: &str, sink: &mut dyn EventSink) {
        let Some((_, block, kind)) = self.open.iter().rev().find(|known| known.0 == part) else { return };
        let field = if *kind == "thinking_delta" { "thinking" } else { field };
        event(sink, "content_block_delta", |w| {
            w.integer_field("index", *block);
            w.object_field("delta");
            w.string_field("type", kind);
            w.string_field(field, text);
            w.close_object();
        });
    }

    fn end(&mut self, part: u32, sink: &mut dyn EventSink) {
        let Some(place) = self.open.iter().rposition(|known| known.0 == part) else { return };
        let (_, block, _) = self.open.remove(place);
        stop(sink, block);
    }
}

impl StreamWriter for MessagesStreamWriter<'_> {
    fn push(&mut self, delta: &Delta, sink: &mut dyn EventSink) {
        match delta {
            Delta::Start { id, model, .. } => self.start(id.as_deref(), model.as_deref(), sink),
            Delta::PartBegins { choice: 0, part, start } => self.begin(*part, start, sink),
            Delta::Text { choice: 0, part, text } => self.grow(*part, "text", text, sink),
            Delta::Arguments { choice: 0, part, json } => self.grow(*part, "partial_json", json, sink),
            Delta::Signature { choice: 0, part, signature } => {
                let open = self.open.iter().find(|known| known.0 == *part && known.2 == "thinking_delta");
                if let (Some(value), Some((_, block, _))) = (signature.by(Signer::Anthropic), open) {
                    event(sink, "content_block_delta", |w| {
                        w.integer_field("index", *block);
                        w.object_field("delta");
                        w.string_field("type", "signature_delta");
                        w.string_field("signature", value);
                        w.close_object();
                    });
                }
            }
            Delta::Citation { choice: 0, part, citation } => {
                let open = self.open.iter().find(|known| known.0 == *part);
                let own = citations::own(std::slice::from_ref(&**citation), FORMAT).next();
                if let (Some(own), Some((_, block, _))) = (own, open) {
                    event(sink, "content_block_delta", |w| {
                        w.integer_field("index", *block);
                        w.object_field("delta");
                        w.string_field("type", "citations_delta");
                        w.value_field("citation", own);
                        w.close_object();
                    });
                }
            }
            Delta::PartEnds { choice: 0, part } => self.end(*part, sink),
            Delta::Finish { choice: 0, finish, .. } => self.finish = Some(finish.clone()),
            Delta::Usage(usage) => self.usage = usage.clone(),
            Delta::Error(error) => {
                self.has_failed = true;
                let out = sink.begin(Some("error"));
                write_error(&mut JsonWriter::new(out), error, &self.options);
                sink.end();
            }
            // Answers of this format have one choice, and no ratings, probabilities or sound.
            _ => {}
        }
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        if self.has_failed || !self.has_started {
            return;
        }
        for (_, block, _) in std::mem::take(&mut self.open) {
            stop(sink, block);
        }
        event(sink, "message_delta", |w| {
            w.object_field("delta");
            write_finish(w, self.finish.as_ref());
            w.close_object();
            usage::write(w, &self.usage);
        });
        event(sink, "message_stop", |_| {});
    }
}

fn stop(sink: &mut dyn EventSink, block: u64) {
    event(sink, "content_block_stop", |w| w.integer_field("index", block));
}

fn empty_block(w: &mut JsonWriter<'_>, kind: &str, fields: &[&str]) {
    w.open_object();
    w.string_field("type", kind);
    fields.iter().for_each(|field| w.string_field(field, ""));
    w.close_object();
}

fn event(sink: &mut dyn EventSink, name: &str, body: impl FnOnce(&mut JsonWriter<'_>)) {
    let mut writer = JsonWriter::new(sink.begin(Some(name)));
    writer.open_object();
    writer.string_field("type", name);
    body(&mut writer);
    writer.close_object();
    sink.end();
}
