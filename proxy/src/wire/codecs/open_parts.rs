//! Parts of a stream whose format does not number them: which are open, and what the next one is called.
//!
//! Runs of text, thought or refusal end when another part begins. Calls stay open to the end of the answer, because
//! OpenAI's parallel calls may grow side by side, and after the finish reason too.

use super::error::CodecError;
use crate::wire::conversation::assembler::{MAX_CHOICES, MAX_PARTS};
use crate::wire::conversation::{Delta, Part, PartStart};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Text,
    Refusal,
    Thinking,
    Audio,
}

#[derive(Debug, Default)]
pub(super) struct OpenParts {
    choices: Vec<OpenChoice>,
}

#[derive(Debug, Default)]
struct OpenChoice {
    index: u32,
    next: u32,
    run: Option<(Run, u32)>,
    calls: Vec<OpenCall>,
    has_calls: bool,
}

#[derive(Debug)]
struct OpenCall {
    /// The vendor's own number of it.
    number: u64,
    id: String,
    part: u32,
}

impl OpenParts {
    /// The part in which text of this kind goes on.
    pub fn run(&mut self, choice: u32, run: Run, deltas: &mut Vec<Delta>) -> Result<u32, CodecError> {
        let open = self.choice(choice)?;
        if let Some((kind, part)) = open.run
            && kind == run
        {
            return Ok(part);
        }
        let start = match run {
            Run::Text => PartStart::Text,
            Run::Refusal => PartStart::Refusal,
            Run::Thinking => PartStart::Thinking { id: None },
            Run::Audio => PartStart::Audio { id: None },
        };
        let part = open.begin(start, deltas)?;
        open.run = Some((run, part));
        Ok(part)
    }

    /// A sound with its id.
    pub fn begin_audio(&mut self, choice: u32, id: String, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let open = self.choice(choice)?;
        let part = open.begin(PartStart::Audio { id: Some(id) }, deltas)?;
        open.run = Some((Run::Audio, part));
        Ok(())
    }

    /// The open run of this kind, if there is one.
    pub fn current(&mut self, choice: u32, run: Run) -> Option<u32> {
        let open = self.choices.iter().find(|open| open.index == choice)?;
        open.run.filter(|(kind, _)| *kind == run).map(|(_, part)| part)
    }

    /// The part of the call with this number, if it has begun.
    pub fn call(&self, choice: u32, number: u64) -> Option<u32> {
        let open = self.choices.iter().find(|open| open.index == choice)?;
        open.calls.iter().rev().find(|call| call.number == number).map(|call| call.part)
    }

    /// Whether the latest call of this number has this id.
    pub fn has_id(&self, choice: u32, number: u64, id: &str) -> bool {
        let open = self.choices.iter().find(|open| open.index == choice);
        let call = open.and_then(|open| open.calls.iter().rev().find(|call| call.number == number));
        call.is_some_and(|call| call.id == id)
    }

    pub fn begin_call(
        &mut self,
        choice: u32,
        number: u64,
        id: String,
        start: PartStart,
        deltas: &mut Vec<Delta>,
    ) -> Result<u32, CodecError> {
        let open = self.choice(choice)?;
        let part = open.begin(start, deltas)?;
        open.calls.push(OpenCall { number, id, part });
        open.has_calls = true;
        Ok(part)
    }

    /// A part that comes in one piece.
    pub fn whole(&mut self, choice: u32, part: Part, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let open = self.choice(choice)?;
        let number = open.begin(PartStart::Whole(Box::new(part)), deltas)?;
        deltas.push(Delta::PartEnds { choice, part: number });
        Ok(())
    }

    /// A part that the caller ends itself.
    pub fn begin(&mut self, choice: u32, start: PartStart, deltas: &mut Vec<Delta>) -> Result<u32, CodecError> {
        let open = self.choice(choice)?;
        open.has_calls |= matches!(start, PartStart::ToolUse { .. });
        open.begin(start, deltas)
    }

    pub fn has_calls(&self, choice: u32) -> bool {
        self.choices.iter().any(|open| open.index == choice && open.has_calls)
    }

    pub fn end_all(&mut self, deltas: &mut Vec<Delta>) {
        for open in &mut self.choices {
            open.end_run(deltas);
            let choice = open.index;
            deltas.extend(open.calls.drain(..).map(|call| Delta::PartEnds { choice, part: call.part }));
        }
    }

    fn choice(&mut self, index: u32) -> Result<&mut OpenChoice, CodecError> {
        let place = match self.choices.iter().position(|open| open.index == index) {
            Some(place) => place,
            None if self.choices.len() >= MAX_CHOICES => {
                return Err(CodecError::TooMany { field: "choices".into(), most: MAX_CHOICES });
            }
            None => {
                self.choices.push(OpenChoice { index, ..OpenChoice::default() });
                self.choices.len() - 1
            }
        };
        Ok(&mut self.choices[place])
    }
}

impl OpenChoice {
    fn begin(&mut self, start: PartStart, deltas: &mut Vec<Delta>) -> Result<u32, CodecError> {
        if self.next as usize >= MAX_PARTS {
            return Err(CodecError::TooMany { field: "content".into(), most: MAX_PARTS });
        }
        self.end_run(deltas);
        let part = self.next;
        self.next += 1;
        deltas.push(Delta::PartBegins { choice: self.index, part, start });
        Ok(part)
    }

    fn end_run(&mut self, deltas: &mut Vec<Delta>) {
        if let Some((_, part)) = self.run.take() {
            deltas.push(Delta::PartEnds { choice: self.index, part });
        }
    }
}
