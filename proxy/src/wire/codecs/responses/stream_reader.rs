//! Events of a responses stream → deltas.

use super::answer_reader::{finish, read_usage};
use super::items::{PARAGRAPH, read_item};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::Fields;
use crate::wire::codecs::open_parts::OpenParts;
use crate::wire::codecs::sink::WireEvent;
use crate::wire::codecs::{StreamReader, chat, citations, logprobs};
use crate::wire::conversation::{Delta, Extra, Part, PartStart, Signature, Signer, WireFormat};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Responses;

#[derive(Debug, Default)]
pub(super) struct ResponsesStreamReader {
    parts: OpenParts,
    open: Vec<OpenItem>,
    has_started: bool,
    is_done: bool,
}

/// A part by OpenAI's numbers: of the item, and of the content in a message.
#[derive(Debug)]
struct OpenItem {
    output: u64,
    content: Option<u64>,
    part: u32,
    has_grown: bool,
}

impl StreamReader for ResponsesStreamReader {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if self.is_done || event.data.trim_ascii().is_empty() || event.data == b"[DONE]" {
            return Ok(());
        }
        let mut fields = Fields::parse(event.data)?;
        let kind = fields.string("type")?.unwrap_or_default();
        match kind.as_str() {
            "response.created" | "response.in_progress" => self.start(fields.inner("response"), deltas),
            "response.output_item.added" => self.item_added(fields, deltas),
            "response.output_item.done" => self.item_done(fields, deltas),
            "response.content_part.added" => self.content_added(fields, deltas),
            "response.content_part.done" => {
                let (output, content) = (fields.count("output_index"), fields.count("content_index"));
                self.end(output, Some(content), deltas);
                Ok(())
            }
            "response.output_text.delta" | "response.refusal.delta" => self.text(fields, deltas),
            "response.output_text.annotation.added" => self.annotation(fields, deltas),
            "response.function_call_arguments.delta" => self.arguments(fields, "delta", deltas),
            // Only where no piece came before.
            "response.function_call_arguments.done" => self.arguments(fields, "arguments", deltas),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => self.thought(fields, deltas),
            "response.reasoning_summary_part.added" => self.next_summary(fields, deltas),
            "response.completed" | "response.incomplete" | "response.cancelled" => {
                self.completed(fields.inner("response"), deltas)
            }
            "response.failed" => {
                let error = fields.inner("response").inner("error").rest();
                self.fail(error, event.data, deltas)
            }
            "error" => {
                let nested = fields.inner("error").rest();
                let error = if nested.is_empty() { fields.rest() } else { nested };
                self.fail(error, event.data, deltas)
            }
            _ => Ok(()),
        }
    }

    fn has_ended(&self) -> bool {
        self.is_done
    }

    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.end_all(deltas);
        if self.is_done { Ok(()) } else { Err(CodecError::CutStream) }
    }
}

impl ResponsesStreamReader {
    fn start(&mut self, mut response: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if std::mem::replace(&mut self.has_started, true) {
            return Ok(());
        }
        let (id, model) = (response.string("id")?, response.string("model")?);
        let created = response.integer("created_at")?;
        for known in ["object", "status", "output", "usage", "error", "incomplete_details"] {
            response.take(known);
        }
        let mut rest = response.rest();
        rest.retain(|_, value| !value.is_null());
        deltas.push(Delta::Start { id, model, created, extra: Extra::new(FORMAT, rest) });
        Ok(())
    }

    fn item_added(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let output = fields.count("output_index");
        let mut item = fields.inner("item");
        let start = match item.peek_str("type") {
            Some("function_call") => PartStart::ToolUse {
                id: item.string("call_id")?.unwrap_or_default(),
                name: item.string("name")?.unwrap_or_default(),
                signature: None,
            },
            Some("reasoning") => PartStart::Thinking { id: item.string("id")? },
            // Messages begin with their content; other items are told when they are whole.
            _ => return Ok(()),
        };
        let part = self.parts.begin(0, start, deltas)?;
        self.open.push(OpenItem { output, content: None, part, has_grown: false });
        Ok(())
    }

    fn item_done(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let output = fields.count("output_index");
        let mut item = fields.inner("item");
        match item.peek_str("type") {
            Some("message" | "function_call") => {}
            Some("reasoning") => {
                let sealed = item.string("encrypted_content")?;
                if let (Some(value), Some(open)) = (sealed, self.find(output, None)) {
                    let signature = Signature::new(Signer::OpenAi, value);
                    deltas.push(Delta::Signature { choice: 0, part: open.part, signature });
                }
            }
            _ => {
                if let native @ Part::Native(_) = read_item(item)? {
                    self.parts.whole(0, native, deltas)?;
                }
            }
        }
        self.end(output, None, deltas);
        Ok(())
    }

    fn content_added(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let (output, content) = (fields.count("output_index"), fields.count("content_index"));
        let start = match fields.inner("part").peek_str("type") {
            Some("refusal") => PartStart::Refusal,
            Some("output_text") => PartStart::Text,
            // The text of a thought belongs to its item.
            _ => return Ok(()),
        };
        let part = self.parts.begin(0, start, deltas)?;
        self.open.push(OpenItem { output, content: Some(content), part, has_grown: false });
        Ok(())
    }

    fn text(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let (output, content) = (fields.count("output_index"), fields.count("content_index"));
        let tokens = logprobs::read(fields.list("logprobs")?.unwrap_or_default());
        if let (Some(open), Some(text)) = (self.find(output, Some(content)), fields.string("delta")?) {
            deltas.push(Delta::Text { choice: 0, part: open.part, text });
        }
        if !tokens.is_empty() {
            deltas.push(Delta::Logprobs { choice: 0, tokens });
        }
        Ok(())
    }

    fn annotation(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let (output, content) = (fields.count("output_index"), fields.count("content_index"));
        if let (Some(open), Some(value)) = (self.find(output, Some(content)), fields.take("annotation")) {
            let citation = Box::new(citations::from_openai(value, FORMAT));
            deltas.push(Delta::Citation { choice: 0, part: open.part, citation });
        }
        Ok(())
    }

    fn arguments(
        &mut self,
        mut fields: Fields<'_>,
        name: &'static str,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), CodecError> {
        let output = fields.count("output_index");
        let json = fields.string(name)?.filter(|json| !json.is_empty());
        if let (Some(open), Some(json)) = (self.find(output, None), json)
            && (name == "delta" || !open.has_grown)
        {
            open.has_grown = true;
            deltas.push(Delta::Arguments { choice: 0, part: open.part, json });
        }
        Ok(())
    }

    fn thought(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let output = fields.count("output_index");
        if let (Some(open), Some(text)) = (self.find(output, None), fields.string("delta")?) {
            open.has_grown = true;
            deltas.push(Delta::Text { choice: 0, part: open.part, text });
        }
        Ok(())
    }

    fn next_summary(&mut self, mut fields: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let output = fields.count("output_index");
        if let Some(open) = self.find(output, None)
            && open.has_grown
        {
            deltas.push(Delta::Text { choice: 0, part: open.part, text: PARAGRAPH.to_owned() });
        }
        Ok(())
    }

    fn completed(&mut self, mut response: Fields<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.end_all(deltas);
        self.is_done = true;
        let reason = response.inner("incomplete_details").string("reason")?;
        let status = response.string("status")?;
        // One that was stopped has not come to its end, and is not kept for others.
        if status.as_deref() != Some("cancelled")
            && let Some(finish) = finish(status.as_deref(), reason, self.parts.has_calls(0))
        {
            deltas.push(Delta::Finish { choice: 0, finish, extra: Extra::default() });
        }
        deltas.extend(response.object("usage")?.map(|map| Delta::Usage(read_usage(map))));
        Ok(())
    }

    fn fail(&mut self, error: Map<String, Value>, body: &[u8], deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.is_done = true;
        deltas.push(Delta::Error(chat::from_error_object(200, error, body)));
        Ok(())
    }

    fn find(&mut self, output: u64, content: Option<u64>) -> Option<&mut OpenItem> {
        self.open.iter_mut().rev().find(|open| (open.output, open.content) == (output, content))
    }

    fn end(&mut self, output: u64, content: Option<u64>, deltas: &mut Vec<Delta>) {
        if let Some(place) = self.open.iter().rposition(|open| (open.output, open.content) == (output, content)) {
            let open = self.open.remove(place);
            deltas.push(Delta::PartEnds { choice: 0, part: open.part });
        }
    }

    fn end_all(&mut self, deltas: &mut Vec<Delta>) {
        deltas.extend(self.open.drain(..).map(|open| Delta::PartEnds { choice: 0, part: open.part }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::framing::end_markers;

    #[test]
    fn every_end_that_a_stream_may_have_ends_it() {
        for kind in end_markers::RESPONSES {
            let mut reader = ResponsesStreamReader::default();
            let status = kind.trim_start_matches("response.");
            let usage = r#"{"input_tokens":10,"output_tokens":3}"#;
            let data =
                format!(r#"{{"type":"{kind}","response":{{"status":"{status}","usage":{usage},"error":{{}}}}}}"#);
            let mut deltas = Vec::new();
            reader.push(&WireEvent { name: Some(kind), data: data.as_bytes() }, &mut deltas).unwrap();
            assert!(reader.has_ended() && reader.finish(&mut Vec::new()).is_ok(), "{kind}");
            let is_failed = deltas.iter().any(|delta| matches!(delta, Delta::Error(_)));
            let is_counted = deltas.iter().any(|delta| matches!(delta, Delta::Usage(_)));
            assert!(is_failed || is_counted, "{kind}: {deltas:?}");
            let is_finished = deltas.iter().any(|delta| matches!(delta, Delta::Finish { .. }));
            assert_eq!(is_finished, matches!(status, "completed" | "incomplete"), "{kind}");
        }
    }
}
