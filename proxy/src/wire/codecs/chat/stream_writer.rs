//! Deltas → chunks of a chat stream (contract 7.0): one id in all of them, the role in the first, usage in a chunk of
//! its own before `[DONE]` if the caller asked for it.

use super::answer_writer::{write_audio, write_logprobs, write_safety};
use super::{usage, write_error};
use crate::wire::codecs::data_url::data_url;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::sink::EventSink;
use crate::wire::codecs::{StreamWriter, citations, finish_reasons};
use crate::wire::conversation::{Delta, Extra, MediaSource, Part, PartStart, Signer, Usage, WireFormat};

const FORMAT: WireFormat = WireFormat::Chat;

#[derive(Debug)]
pub(super) struct ChatStreamWriter<'a> {
    options: AnswerOptions<'a>,
    id: Option<String>,
    model: Option<String>,
    created: Option<u64>,
    extra: Extra,
    /// What has begun: its choice, its part, what it is.
    parts: Vec<(u32, u32, ChatPart)>,
    usage: Option<Usage>,
    /// Choices whose role was said.
    introduced: Vec<u32>,
    has_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ChatPart {
    Text,
    Refusal,
    Thinking,
    Audio,
    /// With its place among the calls of its choice.
    Call(u64),
    Whole,
}

impl<'a> ChatStreamWriter<'a> {
    pub fn new(options: AnswerOptions<'a>) -> Self {
        Self {
            options,
            id: None,
            model: None,
            created: None,
            extra: Extra::default(),
            parts: Vec::new(),
            usage: None,
            introduced: Vec::new(),
            has_failed: false,
        }
    }

    fn chunk(&mut self, sink: &mut dyn EventSink, choices: impl FnOnce(&mut JsonWriter<'_>)) {
        let mut writer = JsonWriter::new(sink.begin(None));
        let w = &mut writer;
        w.open_object();
        w.string_field("id", self.id.as_deref().unwrap_or(&self.options.id));
        w.string_field("object", "chat.completion.chunk");
        w.integer_field("created", self.created.unwrap_or(self.options.created));
        w.string_field("model", self.model.as_deref().unwrap_or(&self.options.model));
        if !self.options.provider.is_empty() {
            w.string_field("provider", &self.options.provider);
        }
        w.fields(self.extra.fields_for(FORMAT));
        choices(w);
        w.close_object();
        sink.end();
    }

    /// A chunk with one choice; `body` writes the fields of its delta.
    fn delta(&mut self, sink: &mut dyn EventSink, choice: u32, body: impl FnOnce(&mut JsonWriter<'_>)) {
        let is_new = !self.introduced.contains(&choice);
        if is_new {
            self.introduced.push(choice);
        }
        self.chunk(sink, |w| {
            w.array_field("choices");
            w.open_object();
            w.integer_field("index", u64::from(choice));
            w.object_field("delta");
            if is_new {
                w.string_field("role", "assistant");
            }
            body(w);
            w.close_object();
            w.null_field("finish_reason");
            w.close_object();
            w.close_array();
        });
    }

    fn kind(&self, choice: u32, part: u32) -> Option<ChatPart> {
        self.parts.iter().rev().find(|known| (known.0, known.1) == (choice, part)).map(|known| known.2)
    }

    fn begin(&mut self, choice: u32, part: u32, start: &PartStart, sink: &mut dyn EventSink) {
        let kind = match start {
            PartStart::Text => ChatPart::Text,
            PartStart::Refusal => ChatPart::Refusal,
            PartStart::Thinking { .. } => ChatPart::Thinking,
            PartStart::Audio { .. } => ChatPart::Audio,
            PartStart::ToolUse { .. } => {
                let earlier = self.parts.iter().filter(|known| known.0 == choice);
                ChatPart::Call(earlier.filter(|known| matches!(known.2, ChatPart::Call(_))).count() as u64)
            }
            PartStart::Whole(_) => ChatPart::Whole,
        };
        self.parts.push((choice, part, kind));
        let is_strict = self.options.is_strict;
        match (start, kind) {
            (PartStart::ToolUse { id, name, signature }, ChatPart::Call(index)) => {
                let made;
                let id = if id.is_empty() {
                    made = self.options.tool_id(choice, part);
                    &made
                } else {
                    id
                };
                self.delta(sink, choice, |w| {
                    w.array_field("tool_calls");
                    w.open_object();
                    w.integer_field("index", index);
                    w.string_field("id", id);
                    w.string_field("type", "function");
                    w.object_field("function");
                    w.string_field("name", name);
                    w.string_field("arguments", "");
                    if !is_strict {
                        let signature = signature.as_ref().and_then(|own| own.by(Signer::Google));
                        w.optional_string("thought_signature", signature);
                    }
                    w.close_object();
                    w.close_object();
                    w.close_array();
                });
            }
            (PartStart::Audio { id: Some(id) }, _) => self.delta(sink, choice, |w| {
                w.object_field("audio");
                w.string_field("id", id);
                w.close_object();
            }),
            (PartStart::Whole(whole), _) => self.whole(choice, part, whole, sink),
            _ => {}
        }
    }

    fn whole(&mut self, choice: u32, part: u32, whole: &Part, sink: &mut dyn EventSink) {
        match whole {
            Part::Audio(media) => self.delta(sink, choice, |w| write_audio(w, media)),
            Part::RedactedThinking(sealed) if !self.options.is_strict && sealed.signer == Signer::Anthropic => {
                self.block(sink, choice, part, "data", &sealed.value);
            }
            Part::Image(image) if !self.options.is_strict => {
                let url = match &image.source {
                    MediaSource::Base64(data) => data_url(image.media_type.as_deref().unwrap_or("image/png"), data),
                    MediaSource::Url(url) | MediaSource::FileId(url) | MediaSource::Text(url) => url.clone(),
                };
                self.delta(sink, choice, |w| {
                    w.array_field("content_blocks");
                    w.open_object();
                    w.integer_field("index", u64::from(part));
                    w.object_field("delta");
                    w.string_field("type", "image_url");
                    w.object_field("image_url");
                    w.string_field("url", &url);
                    w.close_object();
                    w.close_object();
                    w.close_object();
                    w.close_array();
                });
            }
            _ => {}
        }
    }

    fn block(&mut self, sink: &mut dyn EventSink, choice: u32, part: u32, name: &str, text: &str) {
        self.delta(sink, choice, |w| write_block(w, part, name, text));
    }

    fn text(&mut self, choice: u32, part: u32, text: &str, sink: &mut dyn EventSink) {
        let is_strict = self.options.is_strict;
        match self.kind(choice, part) {
            Some(ChatPart::Text) => self.delta(sink, choice, |w| w.string_field("content", text)),
            Some(ChatPart::Refusal) => self.delta(sink, choice, |w| w.string_field("refusal", text)),
            Some(ChatPart::Thinking) if !is_strict => self.delta(sink, choice, |w| {
                w.string_field("reasoning_content", text);
                write_block(w, part, "thinking", text);
            }),
            Some(ChatPart::Audio) => self.delta(sink, choice, |w| {
                w.object_field("audio");
                w.string_field("transcript", text);
                w.close_object();
            }),
            _ => {}
        }
    }
}

fn write_block(w: &mut JsonWriter<'_>, part: u32, name: &str, text: &str) {
    w.array_field("content_blocks");
    w.open_object();
    w.integer_field("index", u64::from(part));
    w.object_field("delta");
    w.string_field(name, text);
    w.close_object();
    w.close_object();
    w.close_array();
}

impl StreamWriter for ChatStreamWriter<'_> {
    fn push(&mut self, delta: &Delta, sink: &mut dyn EventSink) {
        match delta {
            Delta::Start { id, model, created, extra } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
                self.created = *created;
                self.extra = extra.clone();
                self.delta(sink, 0, |w| w.string_field("content", ""));
            }
            Delta::PartBegins { choice, part, start } => self.begin(*choice, *part, start, sink),
            Delta::Text { choice, part, text } => self.text(*choice, *part, text, sink),
            Delta::Arguments { choice, part, json } => {
                let Some(ChatPart::Call(index)) = self.kind(*choice, *part) else { return };
                self.delta(sink, *choice, |w| {
                    w.array_field("tool_calls");
                    w.open_object();
                    w.integer_field("index", index);
                    w.object_field("function");
                    w.string_field("arguments", json);
                    w.close_object();
                    w.close_object();
                    w.close_array();
                });
            }
            Delta::Sound { choice, base64, .. } => self.delta(sink, *choice, |w| {
                w.object_field("audio");
                w.string_field("data", base64);
                w.close_object();
            }),
            Delta::Signature { choice, part, signature } => {
                let is_thinking = self.kind(*choice, *part) == Some(ChatPart::Thinking);
                if let (Some(value), false, true) =
                    (signature.by(Signer::Anthropic), self.options.is_strict, is_thinking)
                {
                    self.block(sink, *choice, *part, "signature", value);
                }
            }
            Delta::Citation { choice, citation, .. } => {
                if citations::is_writable_openai(citation, FORMAT) {
                    self.delta(sink, *choice, |w| {
                        w.array_field("annotations");
                        citations::write_openai(w, citation, FORMAT);
                        w.close_array();
                    });
                }
            }
            Delta::PartEnds { .. } => {}
            Delta::Logprobs { choice, tokens } => self.chunk(sink, |w| {
                w.array_field("choices");
                w.open_object();
                w.integer_field("index", u64::from(*choice));
                w.object_field("delta");
                w.close_object();
                write_logprobs(w, tokens);
                w.null_field("finish_reason");
                w.close_object();
                w.close_array();
            }),
            Delta::Safety { choice, ratings } => {
                let is_strict = self.options.is_strict;
                let is_written = ratings.format == FORMAT || (ratings.format == WireFormat::Gemini && !is_strict);
                match choice {
                    _ if !is_written => {}
                    None => self.chunk(sink, |w| {
                        w.array_field("choices");
                        w.close_array();
                        write_safety(w, Some(ratings), "prompt_filter_results", "promptFeedback", is_strict);
                    }),
                    Some(choice) => self.chunk(sink, |w| {
                        w.array_field("choices");
                        w.open_object();
                        w.integer_field("index", u64::from(*choice));
                        w.object_field("delta");
                        w.close_object();
                        w.null_field("finish_reason");
                        write_safety(w, Some(ratings), "content_filter_results", "safetyRatings", is_strict);
                        w.close_object();
                        w.close_array();
                    }),
                }
            }
            Delta::Finish { choice, finish, extra } => {
                let word = finish_reasons::word_for(FORMAT, finish, self.options.is_strict).unwrap_or("stop");
                self.chunk(sink, |w| {
                    w.array_field("choices");
                    w.open_object();
                    w.integer_field("index", u64::from(*choice));
                    w.object_field("delta");
                    w.close_object();
                    w.string_field("finish_reason", word);
                    w.fields(extra.fields_for(FORMAT));
                    w.close_object();
                    w.close_array();
                });
            }
            Delta::Usage(usage) => self.usage = Some(usage.clone()),
            Delta::Error(error) => {
                self.has_failed = true;
                write_error(&mut JsonWriter::new(sink.begin(None)), error, &self.options);
                sink.end();
            }
        }
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        if let Some(counts) = self.usage.take()
            && self.options.include_usage
            && !self.has_failed
        {
            self.chunk(sink, |w| {
                w.array_field("choices");
                w.close_array();
                usage::write(w, &counts);
            });
        }
        sink.begin(None).extend_from_slice(b"[DONE]");
        sink.end();
    }
}
