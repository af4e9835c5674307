//! Deltas → events of a responses stream, in OpenAI's order (contract 6.4). The last event repeats the whole response,
//! so the answer is assembled on the way.

use super::answer_writer::{
    call_id, call_item_id, carried, item_id, write, write_call, write_content, write_echo, write_head, write_reasoning,
};
use super::freeform::FreeformText;
use super::known_tools;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::logprobs::MissingBytes;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::sink::EventSink;
use crate::wire::codecs::{StreamWriter, citations, logprobs};
use crate::wire::conversation::{
    Answer, Assembler, CarriedAs, Delta, FinishReason, Part, PartStart, ProviderError, TextPart, Thinking,
    TokenLogprob, ToolUse, WireFormat,
};

const FORMAT: WireFormat = WireFormat::Responses;

#[derive(Debug)]
pub(super) struct ResponsesStreamWriter<'a> {
    options: AnswerOptions<'a>,
    assembler: Assembler,
    head: Answer,
    sequence: u64,
    next_item: u32,
    /// The message that texts are being added to, and how many it has.
    message: Option<OpenMessage>,
    open: Vec<OpenPart>,
    /// Of the text that comes next.
    tokens: Vec<TokenLogprob>,
    error: Option<ProviderError>,
    has_started: bool,
}

#[derive(Debug)]
struct OpenMessage {
    item: u32,
    parts: Vec<Part>,
    next_content: u64,
}

#[derive(Debug)]
struct OpenPart {
    part: u32,
    item: u32,
    content: u64,
    /// The part so far, for the event that ends it.
    so_far: Part,
    /// Of a call whose arguments carry a text.
    freeform: Option<FreeformText>,
    /// Of a call that no event tells in pieces.
    is_whole: bool,
}

impl<'a> ResponsesStreamWriter<'a> {
    pub fn new(options: AnswerOptions<'a>) -> Self {
        Self {
            options,
            assembler: Assembler::default(),
            head: Answer::default(),
            sequence: 0,
            next_item: 0,
            message: None,
            open: Vec::new(),
            tokens: Vec::new(),
            error: None,
            has_started: false,
        }
    }

    fn event(&mut self, sink: &mut dyn EventSink, name: &str, body: impl FnOnce(&mut JsonWriter<'_>, &Self)) {
        let sequence = self.sequence;
        self.sequence += 1;
        let mut writer = JsonWriter::new(sink.begin(Some(name)));
        writer.open_object();
        writer.string_field("type", name);
        writer.integer_field("sequence_number", sequence);
        body(&mut writer, self);
        writer.close_object();
        sink.end();
    }

    fn start(&mut self, sink: &mut dyn EventSink) {
        self.has_started = true;
        for name in ["response.created", "response.in_progress"] {
            self.event(sink, name, |w, this| {
                w.object_field("response");
                write_head(w, &this.head, &this.options, "in_progress");
                w.null_field("error");
                w.null_field("incomplete_details");
                w.array_field("output");
                w.close_array();
                w.null_field("usage");
                write_echo(w, &this.head, &this.options);
                w.close_object();
            });
        }
    }

    fn begin(&mut self, part: u32, start: &PartStart, sink: &mut dyn EventSink) {
        match start {
            PartStart::Text | PartStart::Audio { .. } => {
                self.begin_content(part, Part::Text(TextPart::default()), sink);
            }
            PartStart::Refusal => self.begin_content(part, Part::Refusal(String::new()), sink),
            PartStart::Thinking { id } => {
                self.end_message(sink);
                let item = self.take_item();
                let so_far = Part::Thinking(Thinking { id: id.clone(), ..Thinking::default() });
                self.item_event(sink, "response.output_item.added", item, part, &so_far, "in_progress");
                self.open.push(OpenPart { part, item, content: 0, so_far, freeform: None, is_whole: false });
            }
            PartStart::ToolUse { id, name, .. } => {
                self.end_message(sink);
                let item = self.take_item();
                let id = call_id(id, &self.options, part);
                let carried_as = carried(name, &self.options).map_or(CarriedAs::Function, |tool| tool.carried_as);
                let is_whole = known_tools::by_carried(carried_as).is_some();
                let so_far = Part::ToolUse(ToolUse { id, name: name.clone(), ..ToolUse::default() });
                if !is_whole {
                    self.item_event(sink, "response.output_item.added", item, part, &so_far, "in_progress");
                }
                let freeform = (carried_as == CarriedAs::Freeform).then(FreeformText::default);
                self.open.push(OpenPart { part, item, content: 0, so_far, freeform, is_whole });
            }
            PartStart::Whole(whole) => match &**whole {
                Part::Native(native) if native.format == FORMAT => {
                    self.end_message(sink);
                    let item = self.take_item();
                    for name in ["response.output_item.added", "response.output_item.done"] {
                        self.item_event(sink, name, item, part, whole, "completed");
                    }
                }
                Part::Audio(media) => {
                    let text = media.transcript.clone().unwrap_or_default();
                    self.begin_content(part, Part::Text(TextPart::default()), sink);
                    self.text(part, &text, sink);
                }
                _ => {}
            },
        }
    }

    fn take_item(&mut self) -> u32 {
        let item = self.next_item;
        self.next_item += 1;
        item
    }

    fn begin_content(&mut self, part: u32, so_far: Part, sink: &mut dyn EventSink) {
        if self.message.is_none() {
            let item = self.take_item();
            self.message = Some(OpenMessage { item, parts: Vec::new(), next_content: 0 });
            self.message_event(sink, "response.output_item.added", item, "in_progress", &[]);
        }
        let Some(message) = &mut self.message else { return };
        let (item, content) = (message.item, message.next_content);
        message.next_content += 1;
        self.content_event(sink, "response.content_part.added", item, content, &so_far);
        self.open.push(OpenPart { part, item, content, so_far, freeform: None, is_whole: false });
    }

    fn message_event(&mut self, sink: &mut dyn EventSink, name: &str, item: u32, status: &str, parts: &[Part]) {
        self.event(sink, name, |w, this| {
            w.integer_field("output_index", u64::from(item));
            w.object_field("item");
            w.string_field("type", "message");
            w.string_field("id", &item_id("msg", &this.options, item));
            w.string_field("status", status);
            w.string_field("role", "assistant");
            w.array_field("content");
            parts.iter().for_each(|part| write_content(w, part, &[]));
            w.close_array();
            w.close_object();
        });
    }

    fn content_event(&mut self, sink: &mut dyn EventSink, name: &str, item: u32, content: u64, part: &Part) {
        self.event(sink, name, |w, this| {
            w.string_field("item_id", &item_id("msg", &this.options, item));
            w.integer_field("output_index", u64::from(item));
            w.integer_field("content_index", content);
            w.key("part");
            write_content(w, part, &[]);
        });
    }

    fn item_event(&mut self, sink: &mut dyn EventSink, name: &str, item: u32, place: u32, part: &Part, status: &str) {
        self.event(sink, name, |w, this| {
            w.integer_field("output_index", u64::from(item));
            w.key("item");
            match part {
                Part::Thinking(thinking) => write_reasoning(w, thinking, &item_id("rs", &this.options, item)),
                Part::ToolUse(call) => {
                    let id = call_id(&call.id, &this.options, place);
                    write_call(w, call, &id, item, status, &this.options);
                }
                Part::Native(native) => w.value(&native.value),
                _ => w.raw("null"),
            }
        });
    }

    fn text(&mut self, part: u32, text: &str, sink: &mut dyn EventSink) {
        let tokens = std::mem::take(&mut self.tokens);
        let Some(open) = self.open.iter_mut().rev().find(|open| open.part == part) else { return };
        let (item, content) = (open.item, open.content);
        let (name, prefix, index) = match &mut open.so_far {
            Part::Text(own) => {
                own.text.push_str(text);
                ("response.output_text.delta", "msg", "content_index")
            }
            Part::Refusal(own) => {
                own.push_str(text);
                ("response.refusal.delta", "msg", "content_index")
            }
            Part::Thinking(own) => {
                own.text.push_str(text);
                ("response.reasoning_summary_text.delta", "rs", "summary_index")
            }
            _ => return,
        };
        let id = self.id_of(part, prefix, item);
        self.event(sink, name, |w, _| {
            w.string_field("item_id", &id);
            w.integer_field("output_index", u64::from(item));
            w.integer_field(index, content);
            w.string_field("delta", text);
            if name == "response.output_text.delta" {
                w.key("logprobs");
                logprobs::write(w, &tokens, MissingBytes::OfText);
            }
        });
    }

    /// A thought keeps the id its maker gave it.
    fn id_of(&self, part: u32, prefix: &str, item: u32) -> String {
        let open = self.open.iter().rev().find(|open| open.part == part);
        match open.map(|open| &open.so_far) {
            Some(Part::Thinking(Thinking { id: Some(id), .. })) => id.clone(),
            _ => item_id(prefix, &self.options, item),
        }
    }

    fn end(&mut self, part: u32, sink: &mut dyn EventSink) {
        let Some(place) = self.open.iter().rposition(|open| open.part == part) else { return };
        let open = self.open.remove(place);
        let (item, content) = (open.item, open.content);
        let done = |text: &str, id: &str, index: &str, field: &str, w: &mut JsonWriter<'_>| {
            w.string_field("item_id", id);
            w.integer_field("output_index", u64::from(item));
            w.integer_field(index, content);
            w.string_field(field, text);
        };
        match &open.so_far {
            Part::Text(text) => {
                self.event(sink, "response.output_text.done", |w, this| {
                    done(&text.text, &item_id("msg", &this.options, item), "content_index", "text", w);
                    w.key("logprobs");
                    logprobs::write(w, &[], MissingBytes::OfText);
                });
                self.end_content(item, content, open.so_far, sink);
            }
            Part::Refusal(text) => {
                self.event(sink, "response.refusal.done", |w, this| {
                    done(text, &item_id("msg", &this.options, item), "content_index", "refusal", w);
                });
                self.end_content(item, content, open.so_far, sink);
            }
            Part::Thinking(thinking) => {
                let made = item_id("rs", &self.options, item);
                let id = thinking.id.clone().unwrap_or(made);
                self.event(sink, "response.reasoning_summary_text.done", |w, _| {
                    done(&thinking.text, &id, "summary_index", "text", w);
                });
                self.item_event(sink, "response.output_item.done", item, part, &open.so_far, "completed");
            }
            Part::ToolUse(call) if open.freeform.is_some() => {
                let freeform = open.freeform.unwrap_or_default();
                let (whole, rest) = freeform.finish(&call.arguments);
                let id = call_item_id(&call.name, &self.options, item);
                self.input_event(sink, "delta", &id, item, &rest);
                self.input_event(sink, "done", &id, item, &whole);
                self.item_event(sink, "response.output_item.done", item, part, &open.so_far, "completed");
            }
            Part::ToolUse(_) if open.is_whole => {
                for (name, status) in
                    [("response.output_item.added", "in_progress"), ("response.output_item.done", "completed")]
                {
                    self.item_event(sink, name, item, part, &open.so_far, status);
                }
            }
            Part::ToolUse(call) => {
                let arguments = if call.arguments.is_empty() { "{}" } else { &call.arguments };
                self.event(sink, "response.function_call_arguments.done", |w, this| {
                    w.string_field("item_id", &item_id("fc", &this.options, item));
                    w.integer_field("output_index", u64::from(item));
                    w.string_field("name", carried(&call.name, &this.options).map_or(&call.name, |tool| &tool.name));
                    w.string_field("arguments", arguments);
                });
                self.item_event(sink, "response.output_item.done", item, part, &open.so_far, "completed");
            }
            _ => {}
        }
    }

    fn arguments(&mut self, part: u32, json: &str, sink: &mut dyn EventSink) {
        let Some(open) = self.open.iter_mut().rev().find(|open| open.part == part) else { return };
        let item = open.item;
        let Part::ToolUse(call) = &mut open.so_far else { return };
        call.arguments.push_str(json);
        if open.is_whole {
            return;
        }
        if let Some(freeform) = &mut open.freeform {
            let (more, name) = (freeform.push(json), call.name.clone());
            let id = call_item_id(&name, &self.options, item);
            return self.input_event(sink, "delta", &id, item, &more);
        }
        self.event(sink, "response.function_call_arguments.delta", |w, this| {
            w.string_field("item_id", &item_id("fc", &this.options, item));
            w.integer_field("output_index", u64::from(item));
            w.string_field("delta", json);
        });
    }

    /// More of a freeform text, or all of it. Of nothing more there is no event.
    fn input_event(&mut self, sink: &mut dyn EventSink, kind: &str, id: &str, item: u32, text: &str) {
        let (name, field) = match kind {
            "delta" if text.is_empty() => return,
            "delta" => ("response.custom_tool_call_input.delta", "delta"),
            _ => ("response.custom_tool_call_input.done", "input"),
        };
        self.event(sink, name, |w, _| {
            w.string_field("item_id", id);
            w.integer_field("output_index", u64::from(item));
            w.string_field(field, text);
        });
    }

    fn end_content(&mut self, item: u32, content: u64, part: Part, sink: &mut dyn EventSink) {
        self.content_event(sink, "response.content_part.done", item, content, &part);
        if let Some(message) = &mut self.message {
            message.parts.push(part);
        }
    }

    fn end_message(&mut self, sink: &mut dyn EventSink) {
        let Some(message) = self.message.take() else { return };
        self.message_event(sink, "response.output_item.done", message.item, "completed", &message.parts);
    }
}

impl StreamWriter for ResponsesStreamWriter<'_> {
    fn push(&mut self, delta: &Delta, sink: &mut dyn EventSink) {
        // An answer too large to repeat is ended with what fits.
        let _ = self.assembler.push(delta.clone());
        match delta {
            Delta::Start { id, model, created, extra } => {
                self.head = Answer {
                    id: id.clone(),
                    model: model.clone(),
                    created: *created,
                    extra: extra.clone(),
                    ..Answer::default()
                };
                self.start(sink);
            }
            Delta::PartBegins { choice: 0, part, start } => self.begin(*part, start, sink),
            Delta::Text { choice: 0, part, text } => self.text(*part, text, sink),
            Delta::Arguments { choice: 0, part, json } => self.arguments(*part, json, sink),
            Delta::Signature { choice: 0, part, signature } => {
                let open = self.open.iter_mut().rev().find(|open| open.part == *part);
                if let Some(OpenPart { so_far: Part::Thinking(thinking), .. }) = open {
                    thinking.signature = Some(signature.clone());
                }
            }
            Delta::Citation { choice: 0, part, citation } => {
                let Some(open) = self.open.iter_mut().rev().find(|open| open.part == *part) else { return };
                let (item, content) = (open.item, open.content);
                let Part::Text(text) = &mut open.so_far else { return };
                let number = text.citations.len() as u64;
                if !citations::is_writable_openai(citation, FORMAT) {
                    return;
                }
                text.citations.push((**citation).clone());
                self.event(sink, "response.output_text.annotation.added", |w, this| {
                    w.string_field("item_id", &item_id("msg", &this.options, item));
                    w.integer_field("output_index", u64::from(item));
                    w.integer_field("content_index", content);
                    w.integer_field("annotation_index", number);
                    w.key("annotation");
                    citations::write_openai(w, citation, FORMAT);
                });
            }
            Delta::PartEnds { choice: 0, part } => self.end(*part, sink),
            Delta::Logprobs { choice: 0, tokens } => self.tokens.extend(tokens.iter().cloned()),
            Delta::Error(error) => self.error = Some(error.clone()),
            // Usage and the finish reason stand in the last event.
            _ => {}
        }
    }

    /// The answer as it is assembled, and the parts that the events of their ends repeat.
    fn held(&self) -> usize {
        2 * self.assembler.size()
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        let open: Vec<u32> = self.open.iter().map(|open| open.part).collect();
        open.into_iter().for_each(|part| self.end(part, sink));
        self.end_message(sink);
        let answer = match std::mem::take(&mut self.assembler).finish() {
            Ok(answer) => answer,
            Err(_) => self.head.clone(),
        };
        let error = self.error.take();
        let reason = answer.choices.first().and_then(|choice| choice.finish.as_ref()).map(|end| end.reason.coarse());
        let name = match (&error, reason) {
            (Some(_), _) => "response.failed",
            (None, Some(FinishReason::Length | FinishReason::ContentFilter)) => "response.incomplete",
            _ => "response.completed",
        };
        self.event(sink, name, |w, this| {
            w.key("response");
            write(w, &answer, &this.options, error.as_ref());
        });
    }
}
