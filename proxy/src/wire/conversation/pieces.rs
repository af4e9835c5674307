//! A whole answer → deltas, for callers who asked for a stream and get an answer that is already there.

use super::answer::{Answer, Choice};
use super::delta::{Delta, PartStart};
use super::part::Part;
use std::collections::VecDeque;

/// Characters of one piece: small enough to look like a stream, large enough to cost nothing.
pub const PIECE: usize = 500;

/// The deltas of one answer. Only one part at a time is held in pieces.
#[derive(Debug)]
pub struct Pieces<'a> {
    answer: &'a Answer,
    choice: usize,
    part: usize,
    is_over: bool,
    ready: VecDeque<Delta>,
}

impl<'a> Pieces<'a> {
    pub fn new(answer: &'a Answer) -> Self {
        let mut ready = VecDeque::new();
        ready.push_back(Delta::Start {
            id: answer.id.clone(),
            model: answer.model.clone(),
            created: answer.created,
            extra: answer.extra.clone(),
        });
        if let Some(ratings) = &answer.safety {
            ready.push_back(Delta::Safety { choice: None, ratings: ratings.clone() });
        }
        Self { answer, choice: 0, part: 0, is_over: false, ready }
    }

    fn refill(&mut self) {
        let Some(choice) = self.answer.choices.get(self.choice) else {
            self.ready.extend(self.answer.usage.clone().map(Delta::Usage));
            self.is_over = true;
            return;
        };
        match choice.parts.get(self.part) {
            Some(part) => {
                cut_part(choice.index, self.part as u32, part, &mut self.ready);
                self.part += 1;
            }
            None => {
                end_choice(choice, &mut self.ready);
                self.choice += 1;
                self.part = 0;
            }
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Delta;

    fn next(&mut self) -> Option<Delta> {
        while self.ready.is_empty() && !self.is_over {
            self.refill();
        }
        self.ready.pop_front()
    }
}

fn cut_part(choice: u32, part: u32, whole: &Part, ready: &mut VecDeque<Delta>) {
    let (start, text) = match whole {
        Part::Text(own) => (PartStart::Text, own.text.as_str()),
        Part::Refusal(own) => (PartStart::Refusal, own.as_str()),
        Part::Thinking(own) => (PartStart::Thinking { id: own.id.clone() }, own.text.as_str()),
        Part::ToolUse(call) => {
            let start =
                PartStart::ToolUse { id: call.id.clone(), name: call.name.clone(), signature: call.signature.clone() };
            (start, "")
        }
        other => (PartStart::Whole(Box::new(other.clone())), ""),
    };
    ready.push_back(Delta::PartBegins { choice, part, start });
    ready.extend(cut(text).map(|text| Delta::Text { choice, part, text: text.to_owned() }));
    match whole {
        // Whole: a reader of half a call can do nothing with it.
        Part::ToolUse(call) if !call.arguments.is_empty() => {
            ready.push_back(Delta::Arguments { choice, part, json: call.arguments.clone() });
        }
        Part::Text(own) => {
            let citations = own.citations.iter().cloned().map(Box::new);
            ready.extend(citations.map(|citation| Delta::Citation { choice, part, citation }));
            ready.extend(own.signature.clone().map(|signature| Delta::Signature { choice, part, signature }));
        }
        Part::Thinking(own) => {
            ready.extend(own.signature.clone().map(|signature| Delta::Signature { choice, part, signature }));
        }
        _ => {}
    }
    ready.push_back(Delta::PartEnds { choice, part });
}

fn end_choice(choice: &Choice, ready: &mut VecDeque<Delta>) {
    let index = choice.index;
    if !choice.logprobs.is_empty() {
        ready.push_back(Delta::Logprobs { choice: index, tokens: choice.logprobs.clone() });
    }
    if let Some(ratings) = &choice.safety {
        ready.push_back(Delta::Safety { choice: Some(index), ratings: ratings.clone() });
    }
    if let Some(finish) = &choice.finish {
        ready.push_back(Delta::Finish { choice: index, finish: finish.clone(), extra: choice.extra.clone() });
    }
}

/// Pieces of `PIECE` characters, never half a character.
fn cut(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.char_indices().nth(PIECE).map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        let text = "é€😀".repeat(400);
        let pieces: Vec<&str> = cut(&text).collect();
        let lengths: Vec<usize> = pieces.iter().map(|piece| piece.chars().count()).collect();
        assert_eq!(lengths, [500, 500, 200]);
        assert_eq!(pieces.concat(), text);
        assert_eq!(cut("").count(), 0);
    }
}
