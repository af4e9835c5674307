//! Bytes of which every match has at least one. A text that has none of them needs no search: most texts that are searched for
//! the number of a card have no digit, and to see that takes a tenth of what the automaton takes.

use crate::guardrails::lanes::least;
use regex_automata::nfa::thompson::{NFA, State, Transition};
use regex_automata::util::primitives::StateID;

/// Larger patterns are searched for at once: the automaton is walked through once for each choice.
const MAX_STATES: usize = 256;
const MAX_CHOICES: usize = 32;
const MAX_RANGES: usize = 3;
/// Bytes that nearly every text has rule nothing out. As `weight` counts.
const MAX_WEIGHT: usize = 128;
/// A text is looked through in pieces of this size: one that has such bytes has them early.
const PIECE: usize = 4 << 10;

/// From and to, both included.
type ByteRange = (u8, u8);

#[derive(Debug, PartialEq, Eq)]
pub struct RequiredBytes(Vec<ByteRange>);

impl RequiredBytes {
    /// The rarest that are found; none where a match may do without, as an empty one does.
    pub fn find(nfa: &NFA) -> Option<Self> {
        if nfa.states().len() > MAX_STATES {
            return None;
        }
        let mut choices: Vec<(usize, Vec<ByteRange>)> = Vec::new();
        for ranges in nfa.states().iter().filter_map(ranges) {
            let weight = ranges.iter().map(weight).sum();
            if weight <= MAX_WEIGHT && choices.len() < MAX_CHOICES && !choices.iter().any(|(_, one)| *one == ranges) {
                choices.push((weight, ranges));
            }
        }
        choices.sort_by_key(|(weight, _)| *weight);
        choices.into_iter().find(|(_, ranges)| is_required(nfa, ranges)).map(|(_, ranges)| Self(ranges))
    }

    /// Whether a text has none, and so no match.
    pub fn are_missing(&self, text: &[u8]) -> bool {
        self.0.iter().all(|range| match *range {
            (from, to) if from == to => memchr::memchr(from, text).is_none(),
            (from, to) => !text.chunks(PIECE).any(|piece| {
                // The byte before the range is the farthest from its beginning.
                least(piece, from.wrapping_sub(1), |byte| byte.wrapping_sub(from)) <= to - from
            }),
        })
    }
}

/// What a state of the automaton takes, if that is little.
fn ranges(state: &State) -> Option<Vec<ByteRange>> {
    let transitions = match state {
        State::ByteRange { trans } => std::slice::from_ref(trans),
        State::Sparse(sparse) => &*sparse.transitions,
        _ => return None,
    };
    let mut ranges: Vec<ByteRange> = Vec::new();
    for Transition { start, end, .. } in transitions {
        match ranges.last_mut() {
            Some((_, to)) if to.checked_add(1) == Some(*start) => *to = *end,
            _ => ranges.push((*start, *end)),
        }
    }
    (1..=MAX_RANGES).contains(&ranges.len()).then_some(ranges)
}

/// About how much of a text is of these bytes.
fn weight((from, to): &ByteRange) -> usize {
    let of_byte = |byte: u8| match byte {
        b'a'..=b'z' | b' ' => 8,
        b'.' | b',' => 4,
        b'0'..=b'9' | b'A'..=b'Z' | b'\n' => 3,
        0x80.. => 2,
        _ => 1,
    };
    (*from..=*to).map(of_byte).sum()
}

/// Whether no way leads to a match that takes none of these. What looks around is taken as if it always held.
fn is_required(nfa: &NFA, ranges: &[ByteRange]) -> bool {
    let is_inside = |one: &Transition| ranges.iter().any(|(from, to)| *from <= one.start && one.end <= *to);
    let mut is_seen = vec![false; nfa.states().len()];
    let mut open = vec![nfa.start_anchored()];
    let mut go = |open: &mut Vec<StateID>, to: StateID| match is_seen.get_mut(to.as_usize()) {
        Some(seen) if !*seen => {
            *seen = true;
            open.push(to);
        }
        _ => {}
    };
    while let Some(state) = open.pop() {
        match nfa.state(state) {
            State::Match { .. } => return false,
            State::Fail => {}
            State::ByteRange { trans } if is_inside(trans) => {}
            State::ByteRange { trans } => go(&mut open, trans.next),
            State::Sparse(sparse) => {
                let around = sparse.transitions.iter().filter(|one| !is_inside(one));
                around.for_each(|one| go(&mut open, one.next));
            }
            // Never made of patterns; taken as if it took anything.
            State::Dense(dense) => dense.transitions.iter().for_each(|to| go(&mut open, *to)),
            State::Look { next, .. } | State::Capture { next, .. } => go(&mut open, *next),
            State::Union { alternates } => alternates.iter().for_each(|to| go(&mut open, *to)),
            State::BinaryUnion { alt1, alt2 } => [alt1, alt2].into_iter().for_each(|to| go(&mut open, *to)),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::Pattern;
    use super::*;
    use proptest::prelude::*;

    fn required(pattern: &str) -> Option<RequiredBytes> {
        Pattern::parse(pattern, "rule").unwrap().required
    }

    #[test]
    fn the_rarest_bytes_that_no_match_does_without_are_found() {
        let one = |byte: u8| Some(RequiredBytes(vec![(byte, byte)]));
        for (pattern, expected) in [
            ("[0-9]{16}", Some(RequiredBytes(vec![(b'0', b'9')]))),
            (r"\b\d{3}-\d{2}-\d{4}\b", one(b'-')),
            (r"[\w.+]+@[\w.]+", one(b'@')),
            ("a|b@", Some(RequiredBytes(vec![(b'a', b'b')]))),
            ("a@|b@", one(b'@')),
            (".@|#.", None),
            ("x?#*y?", None),
            ("(?:ab#)*", None),
            ("(?:ab#)+", one(b'#')),
            ("^$", None),
            ("", None),
            (".", None),
            (r"[^\d]", None),
        ] {
            assert_eq!(required(pattern), expected, "{pattern}");
        }
        assert!(required(&format!("x{{{MAX_STATES}}}#")).is_none(), "it is too large to be looked at");
        // There is one more `k`, which is no letter of ASCII.
        let either = Pattern::parse_with_flags("/kyk/i", "rule").unwrap();
        assert_eq!(either.required.map(|required| required.0), Some(vec![(b'Y', b'Y'), (b'y', b'y')]));
    }

    #[test]
    fn they_are_seen_wherever_they_stand() {
        for (pattern, byte) in [("[0-9]{16}", b'0'), ("[0-9]{16}", b'9'), ("a@", b'@'), ("/kyk/i", b'Y')] {
            let required = Pattern::parse_with_flags(pattern, "rule").unwrap().required.unwrap();
            for length in [0, 1, 31, 32, 33, 64, 100, PIECE, PIECE + 40] {
                let mut text = vec![b'/'; length];
                assert!(required.are_missing(&text));
                for at in [0, length / 2, length.saturating_sub(1)].into_iter().filter(|at| *at < length) {
                    text[at] = byte;
                    assert!(!required.are_missing(&text), "{pattern} {at} of {length}");
                    text[at] = b'/';
                }
            }
        }
        let digits = required("[0-9]{16}").unwrap();
        assert!(digits.are_missing(b":/") && digits.are_missing("\u{ff10}\0\x7f".as_bytes()));
    }

    proptest! {
        #[test]
        fn a_text_without_them_has_no_match(
            pattern in "[ab@#1]{1,3}([?*+]|\\{2\\})?(\\|[ab@]{1,2})?[a#]?",
            text in "[ab@#1 ]{0,12}",
        ) {
            let pattern = Pattern::parse(&pattern, "rule").unwrap();
            if let Some(required) = &pattern.required && required.are_missing(text.as_bytes()) {
                prop_assert!(!pattern.groups.is_match(&text), "{:?} {}", pattern.groups, text);
            }
        }
    }
}
