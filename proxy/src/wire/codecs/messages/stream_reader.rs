//! Events of a messages stream → deltas. Unknown events are passed over: one of them must not end an answer.

use super::block_reader::read_block;
use super::{from_error_object, usage};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields};
use crate::wire::codecs::open_parts::OpenParts;
use crate::wire::codecs::sink::WireEvent;
use crate::wire::codecs::{StreamReader, citations, finish_reasons};
use crate::wire::conversation::{Delta, Extra, Finish, NativeValue, Part, PartStart, Signature, Signer, WireFormat};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Messages;

#[derive(Debug, Default)]
pub(super) struct MessagesStreamReader {
    parts: OpenParts,
    /// Blocks that are open, by Anthropic's number.
    open: Vec<(u64, OpenBlock)>,
    /// What was said of usage so far; later events say only what changed.
    usage: Map<String, Value>,
    is_done: bool,
}

#[derive(Debug)]
enum OpenBlock {
    Part(u32),
    /// A block of Anthropic's own tools is collected and told whole.
    Native {
        value: Value,
        input: String,
    },
}

impl StreamReader for MessagesStreamReader {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if self.is_done || event.data.trim_ascii().is_empty() {
            return Ok(());
        }
        let mut fields = Fields::parse(event.data)?;
        match fields.string("type")?.as_deref() {
            Some("message_start") => self.start(fields.inner("message"), deltas),
            Some("content_block_start") => self.block_start(fields, deltas),
            Some("content_block_delta") => self.block_delta(fields, deltas),
            Some("content_block_stop") => {
                let number = fields.count("index");
                self.block_stop(number, deltas)
            }
            Some("message_delta") => self.message_delta(fields, deltas),
            Some("message_stop") => {
                self.is_done = true;
                self.close_all(deltas)
            }
            Some("error") => {
                let object = fields.inner("error").rest();
                deltas.push(Delta::Error(from_error_object(200, object, event.data)));
                self.is_done = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.is_done
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.close_all(deltas)?;
        if self.is_done { Ok(()) } else { Err(CodecError::CutStream) }
    }
}

impl MessagesStreamReader {
    /// Usage is told before the start, so that a writer of this format can put it there.
    fn start(&mut self, mut message: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if let Some(counts) = message.object("usage")? {
            self.usage = counts;
            deltas.push(Delta::Usage(usage::read(self.usage.clone())));
        }
        let (id, model) = (message.string("id")?, message.string("model")?);
        for known in ["type", "role", "content", "stop_reason", "stop_sequence"] {
            message.take(known);
        }
        let mut rest = message.rest();
        rest.retain(|_, value| !value.is_null());
        deltas.push(Delta::Start { id, model, created: None, extra: Extra::new(FORMAT, rest) });
        Ok(())
    }

    fn block_start(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let number = fields.count("index");
        let Some(block) = fields.take("content_block") else { return Ok(()) };
        let start = match read_block(block, FieldPath::Root)? {
            Part::Text(text) => {
                let part = self.parts.begin(0, PartStart::Text, deltas)?;
                if !text.text.is_empty() {
                    deltas.push(Delta::Text { choice: 0, part, text: text.text });
                }
                return self.opened(number, OpenBlock::Part(part));
            }
            Part::Thinking(thinking) => {
                let part = self.parts.begin(0, PartStart::Thinking { id: None }, deltas)?;
                if !thinking.text.is_empty() {
                    deltas.push(Delta::Text { choice: 0, part, text: thinking.text });
                }
                return self.opened(number, OpenBlock::Part(part));
            }
            Part::ToolUse(call) => PartStart::ToolUse { id: call.id, name: call.name, signature: None },
            Part::Native(native) => {
                return self.opened(number, OpenBlock::Native { value: native.value, input: String::new() });
            }
            whole => PartStart::Whole(Box::new(whole)),
        };
        let part = self.parts.begin(0, start, deltas)?;
        self.opened(number, OpenBlock::Part(part))
    }

    fn opened(&mut self, number: u64, block: OpenBlock) -> Result<(), CodecError> {
        self.open.push((number, block));
        Ok(())
    }

    fn block_delta(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let number = fields.count("index");
        let mut delta = fields.inner("delta");
        let part = match self.open.iter_mut().rev().find(|(known, _)| *known == number) {
            None => return Ok(()),
            Some((_, OpenBlock::Part(part))) => *part,
            Some((_, OpenBlock::Native { input, .. })) => {
                input.push_str(&delta.string("partial_json")?.unwrap_or_default());
                return Ok(());
            }
        };
        let choice = 0;
        match delta.string("type")?.as_deref() {
            Some("text_delta") => {
                deltas.extend(delta.string("text")?.map(|text| Delta::Text { choice, part, text }));
            }
            Some("thinking_delta") => {
                deltas.extend(delta.string("thinking")?.map(|text| Delta::Text { choice, part, text }));
            }
            Some("input_json_delta") => {
                let json = delta.string("partial_json")?.filter(|json| !json.is_empty());
                deltas.extend(json.map(|json| Delta::Arguments { choice, part, json }));
            }
            Some("signature_delta") => {
                let signature = delta.string("signature")?.filter(|value| !value.is_empty());
                let signature = signature.map(|value| Signature::new(Signer::Anthropic, value));
                deltas.extend(signature.map(|signature| Delta::Signature { choice, part, signature }));
            }
            Some("citations_delta") => {
                let citation = delta.take("citation").map(|value| Box::new(citations::from_messages(value)));
                deltas.extend(citation.map(|citation| Delta::Citation { choice, part, citation }));
            }
            _ => {}
        }
        Ok(())
    }

    fn block_stop(&mut self, number: u64, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let Some(place) = self.open.iter().rposition(|(known, _)| *known == number) else { return Ok(()) };
        let (_, block) = self.open.remove(place);
        self.close(block, deltas)
    }

    fn close(&mut self, block: OpenBlock, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        match block {
            OpenBlock::Part(part) => deltas.push(Delta::PartEnds { choice: 0, part }),
            OpenBlock::Native { mut value, input } => {
                if let (Ok(input), Value::Object(map)) = (serde_json::from_str(&input), &mut value) {
                    map.insert("input".into(), input);
                }
                self.parts.whole(0, Part::Native(NativeValue::new(FORMAT, value)), deltas)?;
            }
        }
        Ok(())
    }

    fn close_all(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        for (_, block) in std::mem::take(&mut self.open) {
            self.close(block, deltas)?;
        }
        Ok(())
    }

    fn message_delta(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let mut delta = fields.inner("delta");
        if let Some(word) = delta.string("stop_reason")? {
            let stop_sequence = delta.string("stop_sequence")?;
            let finish = Finish { stop_sequence, ..finish_reasons::read(FORMAT, word) };
            deltas.push(Delta::Finish { choice: 0, finish, extra: Extra::default() });
        }
        if let Some(counts) = fields.object("usage")? {
            self.usage.extend(counts.into_iter().filter(|(_, value)| !value.is_null()));
            deltas.push(Delta::Usage(usage::read(self.usage.clone())));
        }
        Ok(())
    }
}
