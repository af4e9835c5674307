//! Events of a Converse stream → deltas. Blocks of text begin without a word; an exception ends the stream.

use super::answer::read_usage;
use super::error_named;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::Fields;
use crate::wire::codecs::open_parts::OpenParts;
use crate::wire::codecs::sink::WireEvent;
use crate::wire::codecs::{StreamReader, chat, citations, finish_reasons};
use crate::wire::conversation::{Delta, Extra, Part, PartStart, Signature, Signer, WireFormat};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Converse;

#[derive(Debug, Default)]
pub(super) struct ConverseStreamReader {
    parts: OpenParts,
    open: Vec<(u64, u32)>,
    has_stopped: bool,
    has_counted: bool,
    has_failed: bool,
}

impl StreamReader for ConverseStreamReader {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if self.has_failed {
            return Ok(());
        }
        let mut fields = Fields::parse(event.data)?;
        match event.name.unwrap_or_default() {
            "messageStart" => {
                deltas.push(Delta::Start { id: None, model: None, created: None, extra: Extra::default() });
                Ok(())
            }
            "contentBlockStart" => {
                let number = fields.count("contentBlockIndex");
                let mut call = fields.inner("start").inner("toolUse");
                let Some(id) = call.string("toolUseId")? else { return Ok(()) };
                let name = call.string("name")?.unwrap_or_default();
                let part = self.parts.begin(0, PartStart::ToolUse { id, name, signature: None }, deltas)?;
                self.open.push((number, part));
                Ok(())
            }
            "contentBlockDelta" => {
                let number = fields.count("contentBlockIndex");
                self.block_delta(number, fields.inner("delta"), deltas)
            }
            "contentBlockStop" => {
                let number = fields.count("contentBlockIndex");
                if let Some(place) = self.open.iter().rposition(|(known, _)| *known == number) {
                    let (_, part) = self.open.remove(place);
                    deltas.push(Delta::PartEnds { choice: 0, part });
                }
                Ok(())
            }
            "messageStop" => {
                self.end_all(deltas);
                self.has_stopped = true;
                let word = fields.string("stopReason")?.unwrap_or_default();
                let finish = finish_reasons::read(FORMAT, word);
                let extra = Extra::new(FORMAT, fields.rest());
                deltas.push(Delta::Finish { choice: 0, finish, extra });
                Ok(())
            }
            "metadata" => {
                self.has_counted = true;
                deltas.extend(fields.object("usage")?.map(|map| Delta::Usage(read_usage(map))));
                Ok(())
            }
            name if name.ends_with("Exception") => {
                self.has_failed = true;
                let message = fields.string("message")?.unwrap_or_else(|| chat::quoted(event.data));
                deltas.push(Delta::Error(error_named(200, Some(name), message)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// What was used is told after the stop.
    fn has_ended(&self) -> bool {
        self.has_failed || (self.has_stopped && self.has_counted)
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.end_all(deltas);
        if self.has_stopped || self.has_failed { Ok(()) } else { Err(CodecError::CutStream) }
    }
}

impl ConverseStreamReader {
    fn block_delta(&mut self, number: u64, mut delta: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let choice = 0;
        if let Some(text) = delta.string("text")? {
            let part = self.part(number, PartStart::Text, deltas)?;
            deltas.push(Delta::Text { choice, part, text });
        }
        if let Some(json) = delta.inner("toolUse").string("input")?
            && let Some((_, part)) = self.open.iter().rev().find(|(known, _)| *known == number)
            && !json.is_empty()
        {
            deltas.push(Delta::Arguments { choice, part: *part, json });
        }
        if let Some(Value::Object(citation)) = delta.take("citation") {
            let part = self.part(number, PartStart::Text, deltas)?;
            let citation = Box::new(citations::from_converse(Value::Object(citation)));
            deltas.push(Delta::Citation { choice, part, citation });
        }
        let mut thought = delta.inner("reasoningContent");
        if let Some(text) = thought.string("text")? {
            let part = self.part(number, PartStart::Thinking { id: None }, deltas)?;
            deltas.push(Delta::Text { choice, part, text });
        }
        if let Some(value) = thought.string("signature")? {
            let part = self.part(number, PartStart::Thinking { id: None }, deltas)?;
            deltas.push(Delta::Signature { choice, part, signature: Signature::new(Signer::Anthropic, value) });
        }
        if let Some(data) = thought.string("redactedContent")? {
            let sealed = Part::RedactedThinking(Signature::new(Signer::Anthropic, data));
            self.part(number, PartStart::Whole(Box::new(sealed)), deltas)?;
        }
        Ok(())
    }

    /// The part of a block, begun with its first delta.
    fn part(&mut self, number: u64, start: PartStart, deltas: &mut Vec<Delta>) -> Result<u32, CodecError> {
        if let Some((_, part)) = self.open.iter().rev().find(|(known, _)| *known == number) {
            return Ok(*part);
        }
        let part = self.parts.begin(0, start, deltas)?;
        self.open.push((number, part));
        Ok(part)
    }

    fn end_all(&mut self, deltas: &mut Vec<Delta>) {
        deltas.extend(self.open.drain(..).map(|(_, part)| Delta::PartEnds { choice: 0, part }));
    }
}
