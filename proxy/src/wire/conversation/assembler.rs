//! Deltas → the whole answer: for logs, for caches, for checks that need all of the text.

use super::answer::{Answer, Choice};
use super::delta::{Delta, PartStart};
use super::part::{Media, MediaSource, Part, TextPart, Thinking, ToolUse};
use super::provider_error::ProviderError;
use serde_json::Value;

/// An assembled answer larger than this is given up; the stream itself goes on.
pub const MAX_ANSWER: usize = 64 << 20;
/// Choices and parts that are told apart.
pub const MAX_CHOICES: usize = 256;
pub const MAX_PARTS: usize = 16_384;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an answer larger than {MAX_ANSWER} bytes, {MAX_CHOICES} choices or {MAX_PARTS} parts")]
pub struct AnswerTooLarge;

#[derive(Debug, Default)]
pub struct Assembler {
    answer: Answer,
    size: usize,
    error: Option<ProviderError>,
}

impl Assembler {
    pub fn push(&mut self, delta: Delta) -> Result<(), AnswerTooLarge> {
        match delta {
            Delta::Start { id, model, created, extra } => {
                self.answer.id = id.or(self.answer.id.take());
                self.answer.model = model.or(self.answer.model.take());
                self.answer.created = created.or(self.answer.created);
                self.answer.extra.merge(extra);
            }
            Delta::PartBegins { choice, start, .. } => {
                self.grow(begun_size(&start))?;
                let choice = self.choice(choice)?;
                if choice.parts.len() >= MAX_PARTS {
                    return Err(AnswerTooLarge);
                }
                choice.parts.push(empty_part(start));
            }
            Delta::Text { choice, part, text } => {
                self.grow(text.len())?;
                match self.part(choice, part) {
                    Some(Part::Text(own)) => own.text.push_str(&text),
                    Some(Part::Refusal(own)) => own.push_str(&text),
                    Some(Part::Thinking(own)) => own.text.push_str(&text),
                    Some(Part::Audio(own)) => own.transcript.get_or_insert_default().push_str(&text),
                    _ => {}
                }
            }
            Delta::Arguments { choice, part, json } => {
                self.grow(json.len())?;
                if let Some(Part::ToolUse(call)) = self.part(choice, part) {
                    call.arguments.push_str(&json);
                }
            }
            Delta::Sound { choice, part, base64 } => {
                self.grow(base64.len())?;
                if let Some(Part::Audio(Media { source: MediaSource::Base64(own), .. })) = self.part(choice, part) {
                    own.push_str(&base64);
                }
            }
            Delta::Signature { choice, part, signature } => {
                self.grow(signature.value.len())?;
                match self.part(choice, part) {
                    Some(Part::Thinking(own)) => own.signature = Some(signature),
                    Some(Part::Text(own)) => own.signature = Some(signature),
                    Some(Part::ToolUse(own)) => own.signature = Some(signature),
                    _ => {}
                }
            }
            Delta::Citation { choice, part, citation } => {
                self.grow(64)?;
                if let Some(Part::Text(own)) = self.part(choice, part) {
                    own.citations.push(*citation);
                }
            }
            Delta::PartEnds { .. } => {}
            Delta::Logprobs { choice, tokens } => {
                self.grow(tokens.iter().map(|token| 64 * (1 + token.top.len())).sum())?;
                self.choice(choice)?.logprobs.extend(tokens);
            }
            Delta::Safety { choice: Some(choice), ratings } => self.choice(choice)?.safety = Some(ratings),
            Delta::Safety { choice: None, ratings } => self.answer.safety = Some(ratings),
            Delta::Finish { choice, finish, extra } => {
                let choice = self.choice(choice)?;
                choice.finish = Some(finish);
                choice.extra.merge(extra);
            }
            Delta::Usage(usage) => self.answer.usage = Some(usage),
            Delta::Error(error) => self.error = Some(error),
        }
        Ok(())
    }

    /// The answer so far, or what the vendor said in its place.
    pub fn finish(mut self) -> Result<Answer, ProviderError> {
        self.answer.choices.sort_by_key(|choice| choice.index);
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.answer),
        }
    }

    /// About how many bytes it holds.
    pub fn size(&self) -> usize {
        self.size
    }

    fn grow(&mut self, bytes: usize) -> Result<(), AnswerTooLarge> {
        self.size = self.size.saturating_add(bytes);
        if self.size > MAX_ANSWER { Err(AnswerTooLarge) } else { Ok(()) }
    }

    fn choice(&mut self, index: u32) -> Result<&mut Choice, AnswerTooLarge> {
        let choices = &mut self.answer.choices;
        let place = match choices.iter().position(|choice| choice.index == index) {
            Some(place) => place,
            None if choices.len() >= MAX_CHOICES => return Err(AnswerTooLarge),
            None => {
                choices.push(Choice { index, ..Choice::default() });
                choices.len() - 1
            }
        };
        Ok(&mut choices[place])
    }

    fn part(&mut self, choice: u32, part: u32) -> Option<&mut Part> {
        let choice = self.answer.choices.iter_mut().find(|known| known.index == choice)?;
        choice.parts.get_mut(part as usize)
    }
}

/// What a part takes before anything is added to it.
fn begun_size(start: &PartStart) -> usize {
    const PART: usize = 256;
    let length = match start {
        PartStart::ToolUse { id, name, .. } => id.len() + name.len(),
        PartStart::Whole(part) => whole_size(part),
        PartStart::Text | PartStart::Refusal | PartStart::Thinking { .. } | PartStart::Audio { .. } => 0,
    };
    PART.saturating_add(length)
}

fn whole_size(part: &Part) -> usize {
    match part {
        Part::Text(own) => own.text.len(),
        Part::Refusal(own) => own.len(),
        Part::Image(own) | Part::Audio(own) | Part::File(own) => match &own.source {
            MediaSource::Base64(own) | MediaSource::Text(own) | MediaSource::Url(own) | MediaSource::FileId(own) => {
                own.len()
            }
        },
        Part::Thinking(own) => own.text.len(),
        Part::RedactedThinking(own) => own.value.len(),
        Part::ToolUse(own) => own.arguments.len(),
        Part::Native(own) => tree_size(&own.value),
        Part::ToolResult(_) => 0,
    }
}

fn tree_size(value: &Value) -> usize {
    const VALUE: usize = 64;
    let inner = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(tree_size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + tree_size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    VALUE + inner
}

fn empty_part(start: PartStart) -> Part {
    match start {
        PartStart::Text => Part::Text(TextPart::default()),
        PartStart::Refusal => Part::Refusal(String::new()),
        PartStart::Thinking { id } => Part::Thinking(Thinking { id, ..Thinking::default() }),
        PartStart::ToolUse { id, name, signature } => {
            Part::ToolUse(ToolUse { id, name, signature, ..ToolUse::default() })
        }
        PartStart::Audio { id } => Part::Audio(Media { id, ..Media::new(MediaSource::Base64(String::new()), None) }),
        PartStart::Whole(part) => *part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(choice: u32, part: u32, text: &str) -> Delta {
        Delta::Text { choice, part, text: text.into() }
    }

    #[test]
    fn parallel_parts_grow_side_by_side() {
        let call = |id: &str| PartStart::ToolUse { id: id.into(), name: "f".into(), signature: None };
        let more = |part, json: &str| Delta::Arguments { choice: 0, part, json: json.into() };
        let mut assembler = Assembler::default();
        for delta in [
            Delta::PartBegins { choice: 0, part: 0, start: call("a") },
            Delta::PartBegins { choice: 0, part: 1, start: call("b") },
            more(1, "{"),
            more(0, "{}"),
            more(1, "}"),
            text(0, 9, "for a part that never began"),
        ] {
            assembler.push(delta).unwrap();
        }
        let answer = assembler.finish().unwrap();
        let calls: Vec<&str> = answer.choices[0]
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolUse(call) => Some(call.arguments.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(calls, ["{}", "{}"]);
    }

    #[test]
    fn parts_count_also_without_a_text() {
        let mut assembler = Assembler::default();
        let block = serde_json::json!({ "rows": ["x".repeat(2000)] });
        let native = Part::Native(crate::wire::conversation::NativeValue::new(
            crate::wire::conversation::WireFormat::Chat,
            block,
        ));
        for (part, start) in [(0, PartStart::Text), (1, PartStart::Whole(Box::new(native)))] {
            let before = assembler.size();
            assembler.push(Delta::PartBegins { choice: 0, part, start }).unwrap();
            assert!(assembler.size() > before + 2000 * part as usize, "{part}");
        }
    }

    #[test]
    fn an_endless_answer_is_given_up() {
        let mut assembler = Assembler::default();
        assembler.push(Delta::PartBegins { choice: 0, part: 0, start: PartStart::Text }).unwrap();
        let mebibyte = "x".repeat(1 << 20);
        let refused = (0..65).map(|_| assembler.push(text(0, 0, &mebibyte))).find_map(Result::err);
        assert_eq!(refused, Some(AnswerTooLarge));
        let mut assembler = Assembler::default();
        let choices = (0..300).map(|choice| {
            let start = PartStart::Text;
            assembler.push(Delta::PartBegins { choice, part: 0, start })
        });
        assert_eq!(choices.filter(Result::is_err).count(), 300 - MAX_CHOICES);
    }
}
