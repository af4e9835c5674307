//! Chunks of a chat stream → deltas.

use super::usage;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_CHOICES, MAX_PARTS};
use crate::wire::codecs::open_parts::{OpenParts, Run};
use crate::wire::codecs::sink::WireEvent;
use crate::wire::codecs::{StreamReader, citations, finish_reasons, logprobs};
use crate::wire::conversation::{Delta, Extra, NativeValue, Part, PartStart, Signature, Signer, WireFormat};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct ChatStreamReader {
    parts: OpenParts,
    has_started: bool,
    has_finished: bool,
    is_done: bool,
}

impl StreamReader for ChatStreamReader {
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
        match chunk.take("error") {
            Some(Value::Object(map)) => {
                deltas.push(Delta::Error(super::from_error_object(200, map, event.data)));
                self.is_done = true;
                return Ok(());
            }
            Some(_) => {
                deltas.push(Delta::Error(super::unreadable(500, event.data)));
                self.is_done = true;
                return Ok(());
            }
            None => {}
        }
        self.chunk(chunk, deltas)
    }

    fn has_ended(&self) -> bool {
        self.is_done
    }

    /// Some providers leave out `[DONE]`; then the finish reason is the end.
    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.parts.end_all(deltas);
        if self.is_done || self.has_finished { Ok(()) } else { Err(CodecError::CutStream) }
    }
}

impl ChatStreamReader {
    fn chunk(&mut self, mut chunk: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let (id, model, created) = (chunk.string("id")?, chunk.string("model")?, chunk.integer("created")?);
        let choices = chunk.bounded_list("choices", MAX_CHOICES)?;
        let counts = chunk.object("usage")?;
        let groq = chunk.inner("x_groq").object("usage")?;
        let ratings = chunk.take("prompt_filter_results");
        chunk.take("object");
        chunk.take("provider");
        chunk.take("obfuscation");
        if !self.has_started {
            self.has_started = true;
            let id = id.filter(|id| !id.is_empty());
            let model = model.filter(|model| !model.is_empty());
            let created = created.filter(|at| *at > 0);
            deltas.push(Delta::Start { id, model, created, extra: Extra::new(WireFormat::Chat, chunk.rest()) });
        }
        if let Some(value) = ratings {
            deltas.push(Delta::Safety { choice: None, ratings: NativeValue::new(WireFormat::Chat, value) });
        }
        for value in choices {
            self.choice(Fields::new(value, FieldPath::Root)?, deltas)?;
        }
        deltas.extend(counts.or(groq).map(|map| Delta::Usage(usage::read(map))));
        Ok(())
    }

    fn choice(&mut self, mut choice: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let index = choice.integer("index")?.and_then(|index| u32::try_from(index).ok()).unwrap_or(0);
        let delta = choice.inner("delta");
        self.delta(index, delta, deltas)?;
        let tokens = choice.inner("logprobs").list("content")?.map(logprobs::read).unwrap_or_default();
        if !tokens.is_empty() {
            deltas.push(Delta::Logprobs { choice: index, tokens });
        }
        let word = choice.string("finish_reason")?;
        if let Some(value) = choice.take("content_filter_results") {
            let ratings = NativeValue::new(WireFormat::Chat, value);
            deltas.push(Delta::Safety { choice: Some(index), ratings });
        }
        if let Some(word) = word.filter(|word| !word.is_empty()) {
            self.has_finished = true;
            let finish = finish_reasons::read(WireFormat::Chat, word);
            let extra = Extra::new(WireFormat::Chat, choice.rest());
            deltas.push(Delta::Finish { choice: index, finish, extra });
        }
        Ok(())
    }

    fn delta(&mut self, choice: u32, mut delta: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let blocks = delta.bounded_list("content_blocks", MAX_PARTS)?;
        let has_blocks = !blocks.is_empty();
        for block in blocks {
            self.block(choice, block, deltas)?;
        }
        let thought = delta.string("reasoning_content")?.or(delta.string("reasoning")?);
        let texts = [
            (Run::Thinking, thought.filter(|_| !has_blocks)),
            (Run::Text, text_of(delta.take("content"))),
            (Run::Refusal, delta.string("refusal")?),
        ];
        for (run, text) in texts {
            if let Some(text) = text.filter(|text| !text.is_empty()) {
                let part = self.parts.run(choice, run, deltas)?;
                deltas.push(Delta::Text { choice, part, text });
            }
        }
        for value in delta.list("annotations")?.unwrap_or_default() {
            let part = self.parts.run(choice, Run::Text, deltas)?;
            let citation = Box::new(citations::from_openai(value, WireFormat::Chat));
            deltas.push(Delta::Citation { choice, part, citation });
        }
        let mut audio = delta.inner("audio");
        if let Some(id) = audio.string("id")?
            && self.parts.current(choice, Run::Audio).is_none()
        {
            self.parts.begin_audio(choice, id, deltas)?;
        }
        if let Some(base64) = audio.string("data")? {
            let part = self.parts.run(choice, Run::Audio, deltas)?;
            deltas.push(Delta::Sound { choice, part, base64 });
        }
        if let Some(text) = audio.string("transcript")? {
            let part = self.parts.run(choice, Run::Audio, deltas)?;
            deltas.push(Delta::Text { choice, part, text });
        }
        for (place, value) in delta.bounded_list("tool_calls", MAX_PARTS)?.into_iter().enumerate() {
            self.call(choice, place as u64, Fields::new(value, FieldPath::Root)?, deltas)?;
        }
        Ok(())
    }

    /// A call begins where its number is new, or known with another id: some providers number every call 0.
    fn call(
        &mut self,
        choice: u32,
        place: u64,
        mut call: Fields<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), CodecError> {
        let number = call.integer("index")?.unwrap_or(place);
        let id = call.string("id")?.unwrap_or_default();
        let mut function = call.inner("function");
        let name = function.string("name")?.unwrap_or_default();
        let json = match function.take("arguments") {
            Some(Value::String(text)) => text,
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let signature = function.string("thought_signature")?.map(|value| Signature::new(Signer::Google, value));
        let known = self.parts.call(choice, number);
        let part = match known {
            Some(part) if id.is_empty() || name.is_empty() || self.parts.has_id(choice, number, &id) => part,
            _ => {
                let start = PartStart::ToolUse { id: id.clone(), name, signature };
                self.parts.begin_call(choice, number, id, start, deltas)?
            }
        };
        if !json.is_empty() {
            deltas.push(Delta::Arguments { choice, part, json });
        }
        Ok(())
    }

    /// `{index, delta: {thinking | signature | data | text}}`; the text comes in `content` too.
    fn block(&mut self, choice: u32, value: Value, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let mut delta = Fields::new(value, FieldPath::Root)?.inner("delta");
        if let Some(text) = delta.string("thinking")? {
            let part = self.parts.run(choice, Run::Thinking, deltas)?;
            deltas.push(Delta::Text { choice, part, text });
        }
        if let Some(value) = delta.string("signature")? {
            let part = self.parts.run(choice, Run::Thinking, deltas)?;
            deltas.push(Delta::Signature { choice, part, signature: Signature::new(Signer::Anthropic, value) });
        }
        if let Some(data) = delta.string("data")? {
            let sealed = Part::RedactedThinking(Signature::new(Signer::Anthropic, data));
            self.parts.whole(choice, sealed, deltas)?;
        }
        Ok(())
    }
}

/// Mistral streams a list of parts at times.
fn text_of(content: Option<Value>) -> Option<String> {
    match content? {
        Value::String(text) => Some(text),
        Value::Array(list) => Some(list.iter().filter_map(|part| part.get("text")?.as_str()).collect()),
        _ => None,
    }
}
