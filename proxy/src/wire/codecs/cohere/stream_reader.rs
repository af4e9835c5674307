//! Events of a Cohere stream → deltas. Content, calls and citations are numbered apart.

use super::answer::read_usage;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::Fields;
use crate::wire::codecs::open_parts::{OpenParts, Run};
use crate::wire::codecs::sink::WireEvent;
use crate::wire::codecs::{StreamReader, citations, finish_reasons};
use crate::wire::conversation::{Delta, ErrorKind, Extra, PartStart, ProviderError, WireFormat};

const FORMAT: WireFormat = WireFormat::Cohere;

#[derive(Debug, Default)]
pub(super) struct CohereStreamReader {
    parts: OpenParts,
    is_done: bool,
}

impl StreamReader for CohereStreamReader {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if self.is_done || event.data.trim_ascii().is_empty() || event.data == b"[DONE]" {
            return Ok(());
        }
        let mut fields = Fields::parse(event.data)?;
        let kind = fields.string("type")?.unwrap_or_default();
        let number = fields.count("index");
        let id = fields.string("id")?;
        let mut delta = fields.inner("delta");
        let mut message = delta.inner("message");
        match kind.as_str() {
            "message-start" => {
                deltas.push(Delta::Start { id, model: None, created: None, extra: Extra::default() });
                Ok(())
            }
            "content-start" | "content-delta" => self.content(message.inner("content"), deltas),
            "tool-plan-delta" => self.text(Run::Thinking, message.string("tool_plan")?, deltas),
            "tool-call-start" => {
                let mut call = message.inner("tool_calls");
                let id = call.string("id")?.unwrap_or_default();
                let mut function = call.inner("function");
                let name = function.string("name")?.unwrap_or_default();
                let start = PartStart::ToolUse { id: id.clone(), name, signature: None };
                let part = self.parts.begin_call(0, number, id, start, deltas)?;
                let json = function.string("arguments")?.filter(|json| !json.is_empty());
                deltas.extend(json.map(|json| Delta::Arguments { choice: 0, part, json }));
                Ok(())
            }
            "tool-call-delta" => {
                let json = message.inner("tool_calls").inner("function").string("arguments")?;
                if let (Some(part), Some(json)) = (self.parts.call(0, number), json) {
                    deltas.push(Delta::Arguments { choice: 0, part, json });
                }
                Ok(())
            }
            "citation-start" => {
                if let Some(value) = message.take("citations") {
                    let part = self.parts.run(0, Run::Text, deltas)?;
                    let citation = Box::new(citations::from_cohere(value));
                    deltas.push(Delta::Citation { choice: 0, part, citation });
                }
                Ok(())
            }
            "message-end" => self.end(delta, deltas),
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.is_done
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.parts.end_all(deltas);
        if self.is_done { Ok(()) } else { Err(CodecError::CutStream) }
    }
}

impl CohereStreamReader {
    fn content(&mut self, mut content: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.text(Run::Thinking, content.string("thinking")?, deltas)?;
        self.text(Run::Text, content.string("text")?, deltas)
    }

    fn text(&mut self, run: Run, text: Option<String>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let part = self.parts.run(0, run, deltas)?;
            deltas.push(Delta::Text { choice: 0, part, text });
        }
        Ok(())
    }

    fn end(&mut self, mut delta: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.is_done = true;
        self.parts.end_all(deltas);
        if let Some(message) = delta.string("error")? {
            deltas.push(Delta::Error(ProviderError::new(500, ErrorKind::Internal, message)));
            return Ok(());
        }
        let word = delta.string("finish_reason")?.unwrap_or_default();
        let finish = finish_reasons::read(FORMAT, word);
        deltas.push(Delta::Finish { choice: 0, finish, extra: Extra::default() });
        deltas.extend(delta.object("usage")?.map(|map| Delta::Usage(read_usage(map))));
        Ok(())
    }
}
