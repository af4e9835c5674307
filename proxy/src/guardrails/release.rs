//! What of a stream may go out. Every event waits until the text in it has been judged: by checks that can judge a window, as
//! soon as the window has passed; by any other check, when the stream is over. Events that pass are the bytes that came.
//!
//! Hooks that only report make nothing wait. They judge what was said when all of it was.

use super::hook::{CompiledHook, HookKind};
use super::meters::GuardMeters;
use super::run::{GuardInputs, SideResult, run_side, subject};
use crate::wire::event_texts::{Candidates, StreamShape, UNSPOKEN, event_texts};
use bytes::{Bytes, BytesMut};
use chrono::Utc;
use serde_json::Value;
use shared::guardrails::{Hook, Scope, Subject};
use std::collections::VecDeque;
use std::sync::Arc;

/// A stream that says more cannot be judged as a whole.
const MAX_HELD_BYTES: usize = 16 << 20;
/// More choices and calls than any answer has.
const MAX_CHANNELS: usize = 1024;

pub struct HeldBack {
    hooks: Vec<Arc<CompiledHook>>,
    shape: StreamShape,
    /// How far behind the last judged text an event is released; `None`: not before the end.
    window: Option<usize>,
    is_enforced: bool,
    /// Whether somebody will judge what was said.
    is_gathered: bool,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    candidates: Candidates,
    channels: Vec<Channel>,
    length: usize,
    /// Some text has gone out. Until then nothing does, so that a denial can still be an answer of its own.
    has_spoken: bool,
    is_over: bool,
    /// Others must be asked about the whole text.
    asks: bool,
    unjudged: Option<Unjudged>,
}

/// The whole text, until others have judged it. Meanwhile nothing goes out.
enum Unjudged {
    Text(String),
    Asked,
}

struct Waiting {
    event: Bytes,
    /// (channel, how long its text was with this event).
    ends: Vec<(usize, usize)>,
}

struct Channel {
    name: String,
    text: String,
    /// It is JSON, perhaps: a text inside of it is longer as it is written than as it reads.
    has_escapes: bool,
}

/// `\u0034`.
const MAX_ESCAPE_LENGTH: usize = 6;

/// What becomes of events.
#[derive(Debug)]
pub enum Release {
    Pass(Bytes),
    Denied(Box<SideResult>),
    /// It is too long to be held.
    TooLong,
}

/// Does a hook stop streams?
fn enforces(hook: &CompiledHook) -> bool {
    let actions = &hook.actions;
    actions.holds && actions.denies && !actions.is_async && hook.kind == HookKind::Guardrail
}

impl HeldBack {
    pub fn new(hooks: Vec<Arc<CompiledHook>>, shape: StreamShape) -> Self {
        let is_enforced = hooks.iter().any(|hook| enforces(hook));
        let is_gathered = !hooks.is_empty();
        let checks = hooks.iter().filter(|hook| enforces(hook)).flat_map(|hook| hook.checks.iter());
        let window = checks.map(|check| check.check.window()).try_fold(0, |most, window| Some(most.max(window?)));
        Self {
            hooks,
            shape,
            window,
            is_enforced,
            is_gathered,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            candidates: Candidates::default(),
            channels: Vec::new(),
            length: 0,
            has_spoken: false,
            is_over: false,
            asks: false,
            unjudged: None,
        }
    }

    /// Others than these hooks want to know what was said.
    #[must_use]
    pub fn gathering(mut self, is_wanted: bool) -> Self {
        self.is_gathered |= is_wanted;
        self
    }

    /// Whether the whole text is for others to judge, too: `take_unjudged` gives it, and `judged` goes on.
    #[must_use]
    pub fn asking(mut self, asks: bool) -> Self {
        self.asks = asks;
        self
    }

    /// What others are to be asked about, once all of it was said.
    pub fn take_unjudged(&mut self) -> Option<String> {
        match self.unjudged.as_mut().map(|unjudged| std::mem::replace(unjudged, Unjudged::Asked))? {
            Unjudged::Text(text) => Some(text),
            Unjudged::Asked => None,
        }
    }

    /// All hooks have judged all of it.
    pub fn judged(&mut self, mut side: SideResult, report: &mut Option<SideResult>) -> Release {
        self.unjudged = None;
        let is_denied = self.hooks.iter().zip(&side.hooks).any(|(hook, result)| enforces(hook) && !result.verdict);
        if is_denied {
            return Release::Denied(Box::new(side));
        }
        // It was only judged: nothing is denied.
        side.hooks.iter_mut().for_each(|result| result.is_audited = false);
        *report = Some(side);
        Release::Pass(self.release())
    }

    /// Bytes that are held in memory.
    pub fn size(&self) -> usize {
        self.waiting_bytes + self.length
    }

    /// Whether hooks would judge more text than this at the end.
    pub fn is_heavy(&self, small: usize) -> bool {
        self.length > small && !self.is_over && !self.hooks.is_empty()
    }

    /// Whether the end may be among these events.
    pub fn may_end(&self, events: &[u8]) -> bool {
        self.shape.may_end(events)
    }

    /// Whether what comes next must be judged before it goes out.
    pub fn judges_next(&self) -> bool {
        self.is_enforced && !self.is_over
    }

    /// One event, as it came and read. The results come with the last.
    pub fn push(
        &mut self,
        event: Bytes,
        read: Option<&Value>,
        data: &[u8],
        inputs: GuardInputs<'_>,
        meters: &GuardMeters,
        report: &mut Option<SideResult>,
    ) -> Release {
        // Nobody judges what follows the end.
        if self.is_enforced && self.is_over {
            return Release::Pass(Bytes::new());
        }
        let mut ends = Vec::new();
        if let Some(read) = read.filter(|_| !self.is_over && self.is_gathered) {
            let texts = match event_texts(self.shape, read) {
                Ok(texts) => texts,
                // What is not looked at is not let out.
                Err(_) if self.is_enforced => return Release::TooLong,
                Err(_) => Vec::new(),
            };
            for text in texts {
                let piece = read.pointer(&text.place).and_then(Value::as_str).unwrap_or_default();
                if text.channel.is_empty() {
                    // What was not said before, in pieces or whole, is judged by itself.
                    let is_new = !text.is_repeated || !self.channels.iter().any(|channel| channel.text == piece);
                    if self.is_enforced && (is_new || self.window.is_some()) && !self.passes(piece, false, inputs) {
                        return self.deny(inputs, meters);
                    }
                    if is_new {
                        self.length += piece.len() + 1;
                        if self.length > MAX_HELD_BYTES || !self.keep_whole(piece, text.is_repeated) {
                            match self.is_enforced {
                                true => return Release::TooLong,
                                false => break,
                            }
                        }
                    }
                    continue;
                }
                self.length += piece.len();
                // Whoever only reports has seen enough.
                let grown = if self.length > MAX_HELD_BYTES { None } else { self.grow(&text.channel, piece) };
                let Some(channel) = grown else {
                    match self.is_enforced {
                        true => return Release::TooLong,
                        false => break,
                    }
                };
                ends.push((channel, self.channels[channel].text.len()));
                if self.is_enforced
                    && let Some(window) = self.window
                {
                    let window = self.channels[channel].window(window);
                    let text = &self.channels[channel].text;
                    let from = floor(text, text.len().saturating_sub(piece.len() + 2 * window + 8));
                    let recent = text[from..].to_owned();
                    if !self.passes(&recent, true, inputs) {
                        return self.deny(inputs, meters);
                    }
                }
            }
        }
        self.waiting_bytes += event.len();
        self.waiting.push_back(Waiting { event, ends });
        let is_last = match (self.shape, read) {
            (StreamShape::Gemini, Some(read)) => self.candidates.see(read),
            _ => self.shape.is_last(read, data),
        };
        match is_last && !self.is_over {
            true => self.conclude(inputs, meters, report),
            false => Release::Pass(self.release()),
        }
    }

    /// The stream is over, whether or not it said so.
    pub fn finish(
        &mut self,
        inputs: GuardInputs<'_>,
        meters: &GuardMeters,
        report: &mut Option<SideResult>,
    ) -> Release {
        match self.is_over {
            true => Release::Pass(self.release()),
            false => self.conclude(inputs, meters, report),
        }
    }

    /// Everything was said: all hooks judge all of it.
    fn conclude(&mut self, inputs: GuardInputs<'_>, meters: &GuardMeters, report: &mut Option<SideResult>) -> Release {
        self.is_over = true;
        let text = self.judged_text(inputs);
        if self.asks {
            self.unjudged = Some(Unjudged::Text(text));
            return Release::Pass(Bytes::new());
        }
        let side = run_side(&self.hooks, GuardInputs { text: Some(&text), ..inputs }, &Value::Null, meters);
        self.judged(side, report)
    }

    /// Whether the hooks that stop streams let a text pass, as far as it can be told.
    fn passes(&self, text: &str, is_growing: bool, inputs: GuardInputs<'_>) -> bool {
        let subject = Subject {
            hook: Hook::AfterRequest,
            shape: inputs.shape,
            request_type: inputs.request_type,
            request: inputs.request,
            response: Some(&Value::Null),
            metadata: inputs.metadata,
            headers: inputs.headers,
            now: Utc::now().timestamp(),
            text: Some(text),
            is_growing,
            // Windows are of checks that look for something forbidden.
            scope: Scope::All,
        };
        let checks = self.hooks.iter().filter(|hook| enforces(hook)).flat_map(|hook| hook.checks.iter());
        // Without a window the whole decides, at the end.
        checks.filter(|check| check.check.window().is_some()).all(|check| {
            // Errors are judged at the end too, when there is a text; not those of a bound, which never pass.
            check.check.run(&subject).passes(false)
        })
    }

    /// What hooks judge at the end: what was said, and what was only thought where a check finds something forbidden in it, or
    /// where others judge it. A check that counts words counts none of the thoughts.
    fn judged_text(&self, inputs: GuardInputs<'_>) -> String {
        let thoughts = self.joined(|channel| channel.is_unspoken());
        if thoughts.is_empty() {
            return self.whole_text();
        }
        let checks = self.hooks.iter().flat_map(|hook| hook.checks.iter().map(move |check| (hook, check)));
        let is_clean = checks.filter(|(hook, check)| hook.scope(check) == Scope::All).all(|(_, check)| {
            let inputs = GuardInputs { text: Some(&thoughts), ..inputs };
            check.check.remote().is_none()
                && check.check.run(&subject(inputs, &Value::Null, 0, Scope::All)).passes(false)
        });
        if is_clean { self.joined(|channel| !channel.is_unspoken()) } else { self.whole_text() }
    }

    fn deny(&mut self, inputs: GuardInputs<'_>, meters: &GuardMeters) -> Release {
        self.is_over = true;
        self.waiting.clear();
        self.waiting_bytes = 0;
        let text = self.whole_text();
        let mut side = run_side(&self.hooks, GuardInputs { text: Some(&text), ..inputs }, &Value::Null, meters);
        side.is_failed = true;
        Release::Denied(Box::new(side))
    }

    fn release(&mut self) -> Bytes {
        let mut passed = BytesMut::new();
        while let Some(first) = self.waiting.front() {
            if !self.may_leave(first) {
                break;
            }
            self.has_spoken |= !first.ends.is_empty();
            if let Some(first) = self.waiting.pop_front() {
                self.waiting_bytes -= first.event.len();
                passed.extend_from_slice(&first.event);
            }
        }
        passed.freeze()
    }

    fn may_leave(&self, first: &Waiting) -> bool {
        if self.unjudged.is_some() {
            return false;
        }
        if !self.is_enforced || self.is_over {
            return true;
        }
        let Some(window) = self.window else { return false };
        let is_judged = |waiting: &Waiting| {
            waiting.ends.iter().all(|(channel, end)| {
                let channel = &self.channels[*channel];
                channel.text.len() >= end + channel.window(window)
            })
        };
        match first.ends.is_empty() && !self.has_spoken {
            true => self.waiting.iter().find(|waiting| !waiting.ends.is_empty()).is_some_and(is_judged),
            false => is_judged(first),
        }
    }

    fn grow(&mut self, name: &str, piece: &str) -> Option<usize> {
        let known = self.channels.iter().position(|channel| channel.name == name);
        let at = match known {
            Some(at) => at,
            None if self.channels.len() == MAX_CHANNELS => return None,
            None => {
                self.channels.push(Channel { name: name.to_owned(), text: String::new(), has_escapes: false });
                self.channels.len() - 1
            }
        };
        self.channels[at].text.push_str(piece);
        self.channels[at].has_escapes |= piece.contains('\\');
        Some(at)
    }

    /// A text that came whole. One that may be repeated stands alone, so that it is known again.
    fn keep_whole(&mut self, piece: &str, is_repeated: bool) -> bool {
        match is_repeated {
            true => {
                let name = format!("whole{}", self.channels.len());
                self.grow(&name, piece).is_some()
            }
            false => self.grow("whole", piece).and_then(|_| self.grow("whole", "\n")).is_some(),
        }
    }

    /// All that was said so far, and thought.
    pub fn whole_text(&self) -> String {
        self.joined(|_| true)
    }

    fn joined(&self, is_wanted: impl Fn(&Channel) -> bool) -> String {
        let wanted = self.channels.iter().filter(|channel| is_wanted(channel));
        wanted.map(|channel| channel.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

impl Channel {
    /// Reasoning, which is no part of what the answer says.
    fn is_unspoken(&self) -> bool {
        self.name.starts_with(UNSPOKEN)
    }

    /// How far behind the last text an event of it is released. Escapes of JSON take up to six bytes for one.
    fn window(&self, window: usize) -> usize {
        if self.has_escapes { window * MAX_ESCAPE_LENGTH } else { window }
    }
}

/// The nearest border of a character at or before this place.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests;
