//! Counts the tokens of a text as OpenAI's models do: the text is cut into pieces (a word with the space before it, up to
//! three digits, …), and the pairs of bytes in each piece are merged in the order of the vocabulary.
//!
//! The vocabularies are bundled as published, compressed (2.4 MB). What counting needs is built of one when it is first
//! used, which takes a second of a background thread; ready-made tables would be 50 MB of the program.

use bpe::byte_pair_encoding::BytePairEncoding;
use flate2::read::GzDecoder;
use regex::Regex;
use std::io::Read;
use std::sync::LazyLock;

/// With it no two tokens of these vocabularies have the same hash.
const HASH_FACTOR: u64 = 17_846_336_922_010_275_747;

/// The pieces of a text, without those that are nothing but white space.
const CL100K_PIECES: &str =
    r"^(?:(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)";
const O200K_PIECES: &str = concat!(
    r"^(?:[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+)",
);

pub struct Tokenizer {
    pieces: Regex,
    merges: BytePairEncoding,
}

/// GPT-3.5 and GPT-4.
pub fn cl100k() -> &'static Tokenizer {
    static CL100K: LazyLock<Tokenizer> = LazyLock::new(|| {
        Tokenizer::new(CL100K_PIECES, include_bytes!("../../../vocabularies/cl100k_base.tiktoken.gz"))
    });
    &CL100K
}

/// Everything since GPT-4o.
pub fn o200k() -> &'static Tokenizer {
    static O200K: LazyLock<Tokenizer> =
        LazyLock::new(|| Tokenizer::new(O200K_PIECES, include_bytes!("../../../vocabularies/o200k_base.tiktoken.gz")));
    &O200K
}

impl Tokenizer {
    fn new(pieces: &str, compressed: &[u8]) -> Self {
        let mut vocabulary = String::new();
        GzDecoder::new(compressed).read_to_string(&mut vocabulary).expect("a bundled vocabulary is compressed text");
        Self {
            pieces: Regex::new(pieces).expect("the pattern is a constant that the tests compile"),
            merges: BytePairEncoding::from_tiktoken(&vocabulary, Some(HASH_FACTOR))
                .expect("a bundled vocabulary is a token in base64 on each line"),
        }
    }

    pub fn count(&self, text: &str) -> usize {
        self.split(text).map(|piece| self.merges.count(piece.as_bytes())).sum()
    }

    /// The text of tokens; none where one of them is no token of this vocabulary.
    pub fn decode(&self, tokens: &[u32]) -> Option<String> {
        let known = u32::try_from(self.merges.num_tokens()).unwrap_or(u32::MAX);
        if tokens.iter().any(|token| *token >= known) {
            return None;
        }
        Some(String::from_utf8_lossy(&self.merges.decode_tokens(tokens)).into_owned())
    }

    fn split<'t>(&self, mut text: &'t str) -> impl Iterator<Item = &'t str> {
        std::iter::from_fn(move || {
            let end = match self.pieces.find(text) {
                Some(piece) => piece.end(),
                None => white_space(text)?,
            };
            let (piece, rest) = text.split_at(end);
            text = rest;
            Some(piece)
        })
    }
}

/// Where the white space ends that a text begins with. The last of several characters belongs to the word after them.
fn white_space(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let end = text.find(|character: char| !character.is_whitespace()).unwrap_or(text.len());
    let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
    Some(match end - last {
        shorter if shorter > 0 && end < text.len() => shorter,
        // No character is neither in a piece nor white space; if one were, it would be a piece of its own.
        _ => end.max(first.len_utf8()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted by `bpe-openai` 0.3, which is tested against OpenAI's own tokenizer.
    #[test]
    fn texts_have_the_tokens_that_openai_counts() {
        for (text, older, newer) in [
            ("", 0, 0),
            ("hello world", 2, 2),
            ("  two  spaces   and\n\nlines \n ", 10, 10),
            ("Don't I'LL we've 1234567 £5/kg", 14, 11),
            ("漢字かな交じり文 😀😀", 12, 9),
            ("trailing   ", 3, 3),
            (" \u{a0} x", 2, 2),
        ] {
            assert_eq!((cl100k().count(text), o200k().count(text)), (older, newer), "{text:?}");
        }
    }
}
