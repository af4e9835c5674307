//! Words that exclude each other: before and after, buy and sell, when and where. Two questions of which one says the first
//! and the other the second do not ask the same. A word against no word of its group says nothing.

use super::stem::stem;
use super::tokens::Token;
use super::vocabulary::ALTERNATIVES;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::LazyLock;

/// Which words of which group are there: a bit for each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Opposites(Vec<(u8, u16)>);

impl Opposites {
    /// Notes the word, or the two words, that these tokens begin with.
    pub fn note(&mut self, tokens: &[Token<'_>]) {
        let Some(first) = tokens.first().filter(|token| !token.is_code) else { return };
        let word = stem(&first.lower);
        let pair = tokens.get(1).map(|second| format!("{word} {}", stem(&second.lower)));
        let found = pair.and_then(|pair| PLACES.get(&pair)).or_else(|| PLACES.get(&word));
        for (group, bit) in found.into_iter().flatten() {
            match self.0.binary_search_by_key(group, |(group, _)| *group) {
                Ok(at) => self.0[at].1 |= bit,
                Err(at) => self.0.insert(at, (*group, *bit)),
            }
        }
    }

    pub fn oppose(&self, other: &Self) -> bool {
        self.0.iter().any(|(group, bits)| {
            let there = other.0.binary_search_by_key(group, |(group, _)| *group);
            there.is_ok_and(|at| other.0[at].1 != *bits)
        })
    }

    pub fn weight(&self) -> usize {
        self.0.capacity() * size_of::<(u8, u16)>()
    }
}

/// A word may be in several groups: one may raise or lower, and be lower or higher.
static PLACES: LazyLock<HashMap<String, Vec<(u8, u16)>>> = LazyLock::new(|| {
    let mut places: HashMap<String, Vec<(u8, u16)>> = HashMap::new();
    for (group, classes) in ALTERNATIVES.iter().enumerate() {
        for (class, words) in classes.iter().enumerate() {
            let place = (u8::try_from(group).unwrap_or(u8::MAX), 1_u16 << class.min(15));
            for words in words.split(", ") {
                let stems: Vec<String> = words.split(' ').map(stem).collect();
                places.entry(stems.join(" ")).or_default().push(place);
            }
        }
    }
    places
});

#[cfg(test)]
mod tests {
    use super::super::tokens::read;
    use super::*;

    fn of(text: &str) -> Opposites {
        let (tokens, mut found) = (read(text), Opposites::default());
        (0..tokens.len()).for_each(|at| found.note(&tokens[at..]));
        found
    }

    #[test]
    fn a_word_opposes_its_opposite_and_nothing_else() {
        for (one, another, oppose) in [
            ("stretch before a run", "stretch after a run", true),
            ("turn on the light", "turn off the light", true),
            ("turn on the light", "enable the light", false),
            ("enable it", "disabling it", true),
            ("where is it", "when is it", true),
            ("what is it", "when is it", false),
            ("buy", "buying", false),
            ("before and after", "after and before", false),
        ] {
            assert_eq!(of(one).oppose(&of(another)), oppose, "{one} {another}");
            assert_eq!(of(another).oppose(&of(one)), oppose, "{another} {one}");
        }
    }

    #[test]
    fn groups_and_their_classes_fit_their_bits() {
        assert!(ALTERNATIVES.len() < 256);
        assert!(ALTERNATIVES.iter().all(|classes| (2..=16).contains(&classes.len())));
    }
}
