//! Streams of completions: chunks with more text, `[DONE]` at the end.

use super::answer::{ROOT, read_logprobs, word, write_choice, write_head};
use crate::wire::codecs::chat;
use crate::wire::codecs::chat::usage;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{Fields, MAX_CHOICES};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::open_parts::{OpenParts, Run};
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::sink::{EventSink, WireEvent};
use crate::wire::codecs::{StreamReader, StreamWriter, finish_reasons};
use crate::wire::conversation::{Delta, Extra, PartStart, TokenLogprob, Usage, WireFormat};

const FORMAT: WireFormat = WireFormat::Completions;

#[derive(Debug, Default)]
pub(super) struct CompletionsStreamReader {
    parts: OpenParts,
    has_started: bool,
    has_finished: bool,
    is_done: bool,
}

impl StreamReader for CompletionsStreamReader {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if self.is_done || event.data.trim_ascii().is_empty() {
            return Ok(());
        }
        if event.data.trim_ascii() == b"[DONE]" {
            self.is_done = true;
            self.parts.end_all(deltas);
            return Ok(());
        }
        let mut chunk = Fields::parse(event.data)?;
        if let Some(error) = chunk.object("error")? {
            self.is_done = true;
            deltas.push(Delta::Error(chat::from_error_object(200, error, event.data)));
            return Ok(());
        }
        let (id, model, created) = (chunk.string("id")?, chunk.string("model")?, chunk.integer("created")?);
        if !std::mem::replace(&mut self.has_started, true) {
            deltas.push(Delta::Start { id, model, created, extra: Extra::default() });
        }
        for value in chunk.bounded_list("choices", MAX_CHOICES)? {
            self.choice(Fields::new(value, ROOT)?, deltas)?;
        }
        deltas.extend(chunk.object("usage")?.map(|map| Delta::Usage(usage::read(map))));
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.is_done
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.parts.end_all(deltas);
        if self.is_done || self.has_finished { Ok(()) } else { Err(CodecError::CutStream) }
    }
}

impl CompletionsStreamReader {
    fn choice(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let choice = fields.integer("index")?.and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        let tokens = read_logprobs(fields.inner("logprobs"))?;
        if !tokens.is_empty() {
            deltas.push(Delta::Logprobs { choice, tokens });
        }
        if let Some(text) = fields.string("text")?.filter(|text| !text.is_empty()) {
            let part = self.parts.run(choice, Run::Text, deltas)?;
            deltas.push(Delta::Text { choice, part, text });
        }
        if let Some(word) = fields.string("finish_reason")?.filter(|word| !word.is_empty()) {
            self.has_finished = true;
            let finish = finish_reasons::read(FORMAT, word);
            deltas.push(Delta::Finish { choice, finish, extra: Extra::default() });
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct CompletionsStreamWriter<'a> {
    options: AnswerOptions<'a>,
    id: Option<String>,
    model: Option<String>,
    created: Option<u64>,
    /// Parts that are text.
    texts: Vec<(u32, u32)>,
    /// Of the text that comes next.
    tokens: Vec<TokenLogprob>,
    usage: Option<Usage>,
    has_failed: bool,
}

impl<'a> CompletionsStreamWriter<'a> {
    pub fn new(options: AnswerOptions<'a>) -> Self {
        Self {
            options,
            id: None,
            model: None,
            created: None,
            texts: Vec::new(),
            tokens: Vec::new(),
            usage: None,
            has_failed: false,
        }
    }

    fn chunk(&mut self, sink: &mut dyn EventSink, body: impl FnOnce(&mut JsonWriter<'_>)) {
        let mut writer = JsonWriter::new(sink.begin(None));
        let w = &mut writer;
        w.open_object();
        write_head(w, self.id.as_deref(), self.created, self.model.as_deref(), &self.options);
        w.array_field("choices");
        body(w);
        w.close_object();
        sink.end();
    }
}

impl StreamWriter for CompletionsStreamWriter<'_> {
    fn push(&mut self, delta: &Delta, sink: &mut dyn EventSink) {
        match delta {
            Delta::Start { id, model, created, .. } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
                self.created = *created;
            }
            Delta::PartBegins { choice, part, start: PartStart::Text | PartStart::Refusal } => {
                self.texts.push((*choice, *part));
            }
            Delta::Text { choice, part, text } if self.texts.contains(&(*choice, *part)) => {
                let tokens = std::mem::take(&mut self.tokens);
                self.chunk(sink, |w| {
                    write_choice(w, *choice, text, &tokens, None);
                    w.close_array();
                });
            }
            Delta::Logprobs { tokens, .. } => self.tokens.extend(tokens.iter().cloned()),
            Delta::Finish { choice, finish, .. } => {
                let tokens = std::mem::take(&mut self.tokens);
                let options = self.options.clone();
                self.chunk(sink, |w| {
                    write_choice(w, *choice, "", &tokens, Some(word(finish, &options)));
                    w.close_array();
                });
            }
            Delta::Usage(counts) => self.usage = Some(counts.clone()),
            Delta::Error(error) => {
                self.has_failed = true;
                chat::write_error(&mut JsonWriter::new(sink.begin(None)), error, &self.options);
                sink.end();
            }
            _ => {}
        }
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        if let Some(counts) = self.usage.take()
            && self.options.include_usage
            && !self.has_failed
        {
            self.chunk(sink, |w| {
                w.close_array();
                usage::write(w, &counts);
            });
        }
        sink.begin(None).extend_from_slice(b"[DONE]");
        sink.end();
    }
}
