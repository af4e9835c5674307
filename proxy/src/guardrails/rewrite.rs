//! Texts of a stream, rewritten while they pass: redactors of hooks that hold, and values that come back for their
//! placeholders. A text goes out in the events that brought it, later by as much as a replacement may still reach back.

use super::hook::CompiledHook;
use crate::wire::event_texts::{StreamShape, event_texts, gemini_carrier, set_text};
use serde_json::{Value, json};
use shared::guardrails::{Placeholders, Replaced};
use std::sync::Arc;

/// A text that must be seen whole is held up to this length.
const MAX_HELD_TEXT: usize = 16 << 20;

pub struct Rewriting {
    shape: StreamShape,
    stages: Vec<Stage>,
    pipes: Vec<Pipe>,
}

enum Stage {
    /// The check at this place of the hook.
    Redact(Arc<CompiledHook>, usize),
    Restore(Placeholders),
}

struct Pipe {
    channel: String,
    /// What each stage still holds.
    held: Vec<String>,
    /// The last event that brought some of it, for what is left at the end.
    carrier: (Option<String>, Value, String),
}

/// An event with its name, if it has one.
pub type NamedEvent = (Option<String>, Value);

/// A text is longer than can be held.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

impl Stage {
    fn replace(&self, text: &str, is_end: bool) -> Replaced {
        let unchanged = || Replaced { text: text.to_owned(), consumed: text.len(), is_changed: false };
        match self {
            Self::Redact(hook, at) => {
                hook.checks.get(*at).and_then(|check| check.check.replace(text, is_end)).unwrap_or_else(unchanged)
            }
            Self::Restore(placeholders) => placeholders.restore(text, is_end),
        }
    }
}

impl Rewriting {
    /// `None` when nothing would be rewritten.
    pub fn new(hooks: &[Arc<CompiledHook>], placeholders: &Placeholders, shape: StreamShape) -> Option<Self> {
        let mut stages = Vec::new();
        for hook in hooks.iter().filter(|hook| hook.actions.holds && !hook.actions.is_async) {
            let redacts = |at: &usize| hook.checks[*at].check.replace("", true).is_some();
            stages.extend((0..hook.checks.len()).filter(redacts).map(|at| Stage::Redact(hook.clone(), at)));
        }
        if !placeholders.is_empty() {
            // Last, so that what comes back is not redacted again.
            stages.push(Stage::Restore(placeholders.clone()));
        }
        (!stages.is_empty()).then_some(Self { shape, stages, pipes: Vec::new() })
    }

    /// One event with its name: what goes out in its place, each with its name. `None`: it goes out as it came.
    pub fn push(&mut self, name: Option<&str>, event: &Value) -> Result<Option<Vec<NamedEvent>>, TooLong> {
        let texts = event_texts(self.shape, event).map_err(|_| TooLong)?;
        let is_end = self.shape.ends_texts(event);
        let mut rewritten = event.clone();
        let mut is_empty = true;
        for text in &texts {
            let piece = event.pointer(&text.place).and_then(Value::as_str).unwrap_or_default();
            let passed = match text.channel.is_empty() {
                true => self.whole(piece),
                false => self.through(&text.channel, piece, is_end, (name, event, &text.place))?,
            };
            is_empty &= passed.is_empty();
            set_text(&mut rewritten, &text.place, passed);
        }
        // What is held of other texts goes out before the event that ends them.
        let mut out = if is_end { self.flush() } else { Vec::new() };
        if texts.is_empty() && out.is_empty() {
            return Ok(None);
        }
        if texts.is_empty() || !is_empty || !self.shape.is_bare(event) {
            out.push((name.map(str::to_owned), rewritten));
        }
        Ok(Some(out))
    }

    /// What is still held of all texts.
    pub fn flush(&mut self) -> Vec<NamedEvent> {
        let mut out = Vec::new();
        for pipe in &mut self.pipes {
            let mut rest = String::new();
            for (stage, held) in self.stages.iter().zip(&mut pipe.held) {
                held.push_str(&rest);
                rest = stage.replace(held, true).text;
                held.clear();
            }
            if !rest.is_empty() {
                let (name, event, place) = &pipe.carrier;
                let mut event = event.clone();
                set_text(&mut event, place, rest);
                out.push((name.clone(), event));
            }
        }
        out
    }

    fn whole(&self, text: &str) -> String {
        self.stages.iter().fold(text.to_owned(), |text, stage| stage.replace(&text, true).text)
    }

    fn through(
        &mut self,
        channel: &str,
        piece: &str,
        is_end: bool,
        (name, event, place): (Option<&str>, &Value, &str),
    ) -> Result<String, TooLong> {
        let at = match self.pipes.iter().position(|pipe| pipe.channel == channel) {
            Some(at) => at,
            None => {
                let held = vec![String::new(); self.stages.len()];
                let carrier = (None, Value::Null, String::new());
                self.pipes.push(Pipe { channel: channel.to_owned(), held, carrier });
                self.pipes.len() - 1
            }
        };
        let pipe = &mut self.pipes[at];
        let mut passing = piece.to_owned();
        for (stage, held) in self.stages.iter().zip(&mut pipe.held) {
            held.push_str(&passing);
            if held.len() > MAX_HELD_TEXT {
                return Err(TooLong);
            }
            let replaced = stage.replace(held, is_end);
            held.drain(..replaced.consumed.min(held.len()));
            passing = replaced.text;
        }
        if pipe.held.iter().any(|held| !held.is_empty()) {
            pipe.carrier = carrier(self.shape, name, event, place);
        }
        Ok(passing)
    }
}

/// An event that can bring more of a text, and says nothing else again.
fn carrier(shape: StreamShape, name: Option<&str>, event: &Value, place: &str) -> (Option<String>, Value, String) {
    if shape == StreamShape::Messages && place == "/content_block/text" {
        let delta = json!({ "type": "content_block_delta", "index": event["index"],
                            "delta": { "type": "text_delta", "text": "" } });
        return (Some("content_block_delta".into()), delta, "/delta/text".into());
    }
    if shape == StreamShape::Messages && place == "/content_block/thinking" {
        let delta = json!({ "type": "content_block_delta", "index": event["index"],
                            "delta": { "type": "thinking_delta", "thinking": "" } });
        return (Some("content_block_delta".into()), delta, "/delta/thinking".into());
    }
    if shape == StreamShape::Gemini {
        let (event, place) = gemini_carrier(event, place);
        return (name.map(str::to_owned), event, place);
    }
    let mut event = event.clone();
    for text in event_texts(shape, &event).unwrap_or_default() {
        set_text(&mut event, &text.place, String::new());
    }
    for choice in event.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(delta) = choice.get_mut("delta").and_then(Value::as_object_mut) else { continue };
        delta.shift_remove("role");
        if let Some(function) = delta.get_mut("function_call").and_then(Value::as_object_mut) {
            function.shift_remove("name");
        }
        for call in delta.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(call) = call.as_object_mut() else { continue };
            call.shift_remove("id");
            call.shift_remove("type");
            for kind in ["function", "custom"] {
                if let Some(called) = call.get_mut(kind).and_then(Value::as_object_mut) {
                    called.shift_remove("name");
                }
            }
        }
    }
    (name.map(str::to_owned), event, place.to_owned())
}

#[cfg(test)]
mod tests;
