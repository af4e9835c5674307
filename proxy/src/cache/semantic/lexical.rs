//! A guard beside the cosine: what two questions must have in common to the letter. Embeddings put "in 2023" next to "in
//! 2024" and "with eggs" next to "without eggs", because they say nearly the same of nearly the same thing; the answers
//! differ all the same. So numbers and units, negations, quoted text, code and names must be the same on both sides, and
//! opposites (before, after) may not stand against each other. A guard may be wrong in one direction only: two questions
//! that it keeps apart cost a call, two that it confuses cost a wrong answer.
//!
//! Marks are kept instead of the text: hashes, so that an index holds nothing that can be read. English words are known;
//! of other languages numbers, names, quotes and code are compared.

mod numbers;
mod opposites;
mod spans;
mod stem;
mod tokens;
mod vocabulary;

use opposites::Opposites;
use serde::{Deserialize, Serialize};
use tokens::Token;

/// What is longer is compared whole from here on, as if it were quoted.
const MAX_WORDS: usize = 512;

/// Raised whenever marks are made in another way: those of two ways must not be compared.
const VERSION: u8 = 1;

/// How much must be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Numbers, negations, quotes, code, names, opposites.
    Marks,
    /// Also: neither side has a word of its own where the other has one too, and the words come in the same order. For
    /// embedders to which rice is nearly pasta, and who bites whom is all the same.
    Words,
}

/// Why two texts are not asking the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    Numbers,
    Negations,
    Quotes,
    Names,
    Opposites,
    Words,
    Order,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LexicalMarks {
    /// Numbers with their units, then units alone, each in their order.
    numbers: u64,
    negations: u16,
    /// Quoted text, code, and what is beyond the bound.
    quotes: u64,
    /// In their order.
    names: Box<[u32]>,
    /// All words, in their order.
    all: Box<[u32]>,
    /// Words that carry the question, in their order.
    content: Box<[u32]>,
    /// Words that would be there if a prefix such as `un` were not.
    unprefixed: Box<[u32]>,
    opposites: Opposites,
}

impl LexicalMarks {
    pub fn read(text: &str) -> Self {
        let (rest, mut quotes) = spans::take(text);
        let tokens = tokens::read(&rest);
        let mut marks = Gathered::default();
        let (near, far) = tokens.split_at(tokens.len().min(MAX_WORDS));
        quotes.extend(far.iter().map(|token| token.raw.to_owned()));
        marks.gather(near, &mut quotes);
        Self {
            numbers: sequence(marks.numbers.iter().chain(std::iter::once(&String::from("|"))).chain(&marks.units)),
            negations: marks.negations,
            quotes: sequence(&quotes),
            names: unique(marks.names),
            all: unique(marks.all),
            content: unique(marks.content),
            unprefixed: unique(marks.unprefixed),
            opposites: marks.opposites,
        }
    }

    /// As bytes, for an index elsewhere.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        // Writing to memory cannot fail, and no field is of a kind that MessagePack lacks.
        let _ = rmp_serde::encode::write(&mut bytes, self);
        bytes
    }

    /// None of bytes of another version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(&[VERSION])?;
        rmp_serde::from_slice(rest).ok()
    }

    /// None when nothing keeps them apart.
    pub fn conflict(&self, other: &Self, guard: Guard) -> Option<Conflict> {
        let marks = [
            (self.numbers != other.numbers, Conflict::Numbers),
            (self.negations != other.negations, Conflict::Negations),
            (self.quotes != other.quotes, Conflict::Quotes),
            (!self.names_are_in(other) || !other.names_are_in(self), Conflict::Names),
            (
                self.negates(other) || other.negates(self) || self.opposites.oppose(&other.opposites),
                Conflict::Opposites,
            ),
        ];
        let found = marks.iter().find(|(differs, _)| *differs).map(|(_, conflict)| *conflict);
        found.or_else(|| (guard == Guard::Words).then(|| self.words_conflict(other)).flatten())
    }

    /// Bytes in memory.
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + size_of::<u32>() * (self.names.len() + self.all.len() + self.content.len() + self.unprefixed.len())
            + self.opposites.weight()
    }

    /// Each name is a word there, in whatever case, and they come in the same order.
    fn names_are_in(&self, other: &Self) -> bool {
        let names = Among::new(&self.names);
        other.all.iter().filter(|word| names.has(**word)).eq(self.names.iter())
    }

    /// The other says what this one denies by a prefix.
    fn negates(&self, other: &Self) -> bool {
        if self.unprefixed.is_empty() {
            return false;
        }
        let (own, others) = (Among::new(&self.content), Among::new(&other.content));
        self.unprefixed.iter().any(|word| others.has(*word) && !own.has(*word))
    }

    fn words_conflict(&self, other: &Self) -> Option<Conflict> {
        let (own, others) = (Among::new(&self.content), Among::new(&other.content));
        let shared = |words: &[u32], among: &Among<'_>| -> Vec<u32> {
            words.iter().copied().filter(|word| among.has(*word)).collect()
        };
        let (here, there) = (shared(&self.content, &others), shared(&other.content, &own));
        // Each has a word that the other has not.
        if here.len() < self.content.len() && there.len() < other.content.len() {
            return Some(Conflict::Words);
        }
        (!is_rotation(&here, &there)).then_some(Conflict::Order)
    }
}

/// Which words are there: few are looked through, many are put in order first.
enum Among<'w> {
    Few(&'w [u32]),
    Many(Vec<u32>),
}

impl<'w> Among<'w> {
    const FEW: usize = 24;

    fn new(words: &'w [u32]) -> Self {
        if words.len() <= Self::FEW {
            return Self::Few(words);
        }
        let mut sorted = words.to_vec();
        sorted.sort_unstable();
        Self::Many(sorted)
    }

    fn has(&self, word: u32) -> bool {
        match self {
            Self::Few(words) => words.contains(&word),
            Self::Many(words) => words.binary_search(&word).is_ok(),
        }
    }
}

/// "In Git, how do I undo" and "how do I undo in Git" are one question; "dog bites man" and "man bites dog" are not.
fn is_rotation(one: &[u32], another: &[u32]) -> bool {
    let Some(first) = one.first() else { return another.is_empty() };
    let Some(turn) = another.iter().position(|word| word == first) else { return false };
    one.len() == another.len() && one.iter().eq(another[turn..].iter().chain(&another[..turn]))
}

#[derive(Default)]
struct Gathered {
    numbers: Vec<String>,
    units: Vec<String>,
    negations: u16,
    names: Vec<u32>,
    all: Vec<u32>,
    content: Vec<u32>,
    unprefixed: Vec<u32>,
    opposites: Opposites,
}

impl Gathered {
    fn gather(&mut self, tokens: &[Token<'_>], quotes: &mut Vec<String>) {
        let mut at = 0;
        // Whether a unit that comes next belongs to the last number.
        let mut after_number = false;
        while let Some(token) = tokens.get(at) {
            let rest = &tokens[at..];
            self.opposites.note(rest);
            if let Some((number, unit, taken)) = numbers::number(rest, after_number) {
                self.numbers.push(number);
                if let Some(unit) = unit {
                    self.join(&unit);
                }
                (at, after_number) = (at + taken, true);
                continue;
            }
            at += 1;
            if token.is_code {
                quotes.push(token.raw.to_owned());
                continue;
            }
            if let Some(unit) = vocabulary::unit(&token.lower) {
                match after_number {
                    true => self.join(unit),
                    false => self.units.push(unit.to_owned()),
                }
                after_number = false;
                continue;
            }
            after_number = false;
            if token.is_negated || vocabulary::is_negation(&token.lower) {
                self.negations = self.negations.saturating_add(1);
            }
            self.word(token);
        }
    }

    fn join(&mut self, unit: &str) {
        if let Some(number) = self.numbers.last_mut() {
            number.push(' ');
            number.push_str(unit);
        }
    }

    fn word(&mut self, token: &Token<'_>) {
        if token.lower.is_empty() {
            return;
        }
        let stem = stem::stem(&token.lower);
        let hash = short(&stem);
        self.all.push(hash);
        if token.is_name() {
            self.names.push(hash);
        }
        if vocabulary::is_frame(&token.lower) || vocabulary::is_negation(&token.lower) {
            return;
        }
        self.content.push(hash);
        self.unprefixed.extend(stem::without_prefix(&token.lower).map(|rest| short(&stem::stem(rest))));
    }
}

/// Each at its first place.
fn unique(words: Vec<u32>) -> Box<[u32]> {
    let mut seen = std::collections::HashSet::with_capacity(words.len());
    words.into_iter().filter(|word| seen.insert(*word)).collect()
}

/// FNV-1a: the same in every process and version, because marks may be stored.
fn sequence<'t>(texts: impl IntoIterator<Item = &'t String>) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    texts
        .into_iter()
        .flat_map(|text| text.bytes().chain(std::iter::once(0xff)))
        .fold(BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

fn short(word: &str) -> u32 {
    let hash = sequence([&word.to_owned()]);
    u32::try_from((hash >> 32) ^ (hash & 0xffff_ffff)).unwrap_or(0)
}

#[cfg(test)]
mod tests;
