//! Texts as tokens, by byte-pair encoding with a vocabulary in the form of `tokenizer.json`. Only the kind that static
//! embeddings of Llama's vocabulary need is read: words begin with `▁`, pairs are merged by rank, and characters that no
//! token has become bytes.

use anyhow::{Context as _, ensure};
use foldhash::HashMap;
use foldhash::HashMapExt as _;
use serde::Deserialize;
use std::path::Path;

const MAX_FILE: u64 = 64 << 20;
/// Merging goes through a word again and again, so a longer one is cut.
const MAX_WORD: usize = 48;
const SPACE: char = '▁';

pub struct Bpe {
    vocabulary: HashMap<String, u32>,
    /// The rank of a pair, and what it becomes.
    merges: HashMap<(u32, u32), (u32, u32)>,
    bytes: Vec<Option<u32>>,
}

#[derive(Deserialize)]
struct TokenizerFile {
    model: Model,
}

#[derive(Deserialize)]
struct Model {
    #[serde(rename = "type")]
    kind: String,
    vocab: HashMap<String, u32>,
    merges: Vec<Merge>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Merge {
    Text(String),
    Pair(String, String),
}

impl Bpe {
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let length = std::fs::metadata(path).with_context(|| path.display().to_string())?.len();
        ensure!(length <= MAX_FILE, "{} is longer than {MAX_FILE} bytes", path.display());
        let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
        Self::read(&bytes).with_context(|| path.display().to_string())
    }

    fn read(bytes: &[u8]) -> anyhow::Result<Self> {
        let TokenizerFile { model } = serde_json::from_slice(bytes)?;
        ensure!(model.kind == "BPE", "its model is {}, and only BPE is read", model.kind);
        ensure!(model.vocab.contains_key("▁"), "its words do not begin with ▁");
        let vocabulary = model.vocab;
        let mut merges = HashMap::with_capacity(model.merges.len());
        for (rank, merge) in (0_u32..).zip(&model.merges) {
            let pair = match merge {
                Merge::Text(text) => text.split_once(' '),
                Merge::Pair(left, right) => Some((left.as_str(), right.as_str())),
            };
            let (left, right) = pair.context("a merge is no pair")?;
            let ids = (vocabulary.get(left), vocabulary.get(right), vocabulary.get(&format!("{left}{right}")));
            if let (Some(left), Some(right), Some(merged)) = ids {
                merges.entry((*left, *right)).or_insert((rank, *merged));
            }
        }
        let bytes = (0..=u8::MAX).map(|byte| vocabulary.get(&format!("<0x{byte:02X}>")).copied()).collect();
        Ok(Self { vocabulary, merges, bytes })
    }

    /// Tells each token of the text.
    pub fn encode(&self, text: &str, mut tell: impl FnMut(u32)) {
        let mut word = String::from(SPACE);
        let mut length = 1;
        for char in text.chars() {
            let begins = char == ' ';
            if (begins && !word.ends_with(SPACE)) || length >= MAX_WORD {
                self.encode_word(&word, &mut tell);
                word.clear();
                length = 0;
            }
            word.push(if begins { SPACE } else { char });
            length += 1;
        }
        self.encode_word(&word, &mut tell);
    }

    fn encode_word(&self, word: &str, tell: &mut impl FnMut(u32)) {
        // A token's own text always merges to that token.
        if let Some(token) = self.vocabulary.get(word) {
            return tell(*token);
        }
        let mut tokens = self.characters(word);
        while let Some((at, merged)) = self.best_pair(&tokens) {
            tokens[at] = merged;
            tokens.remove(at + 1);
        }
        tokens.into_iter().for_each(tell);
    }

    fn characters(&self, word: &str) -> Vec<u32> {
        let mut tokens = Vec::with_capacity(word.len());
        for char in word.chars() {
            let mut buffer = [0; 4];
            let text = &*char.encode_utf8(&mut buffer);
            match self.vocabulary.get(text) {
                Some(token) => tokens.push(*token),
                None => tokens.extend(text.bytes().filter_map(|byte| self.bytes[usize::from(byte)])),
            }
        }
        tokens
    }

    /// The pair that is merged first, the leftmost of equals.
    fn best_pair(&self, tokens: &[u32]) -> Option<(usize, u32)> {
        let ranked = tokens.windows(2).enumerate().filter_map(|(at, pair)| {
            let (rank, merged) = self.merges.get(&(pair[0], pair[1]))?;
            Some((*rank, at, *merged))
        });
        ranked.min().map(|(_, at, merged)| (at, merged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bpe() -> Bpe {
        let file = json!({ "model": {
            "type": "BPE",
            "vocab": { "▁": 0, "a": 1, "b": 2, "c": 3, "ab": 4, "▁ab": 5, "bc": 6, "<0xC3>": 7, "<0xA9>": 8, "▁▁": 9 },
            "merges": ["b c", ["a", "b"], "▁ ab", "▁ ▁"],
        } });
        Bpe::read(file.to_string().as_bytes()).unwrap()
    }

    fn tokens(text: &str) -> Vec<u32> {
        let mut tokens = Vec::new();
        bpe().encode(text, |token| tokens.push(token));
        tokens
    }

    #[test]
    fn pairs_are_merged_by_rank() {
        for (text, expected) in [
            ("", vec![0]),
            ("ab", vec![5]),
            ("ab ab", vec![5, 5]),
            ("abc", vec![0, 1, 6]),
            ("é", vec![0, 7, 8]),
            ("x", vec![0]),
            ("a  b", vec![0, 1, 9, 2]),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn a_long_word_is_cut_and_none_is_slow() {
        assert_eq!(tokens(&"c".repeat(100_000)).iter().filter(|token| **token == 3).count(), 100_000);
    }

    #[test]
    fn other_kinds_are_refused() {
        for file in [
            json!({}),
            json!({ "model": { "type": "Unigram", "vocab": {}, "merges": [] } }),
            json!({ "model": { "type": "BPE", "vocab": { "a": 1 }, "merges": [] } }),
            json!({ "model": { "type": "BPE", "vocab": { "▁": 1 }, "merges": ["ab"] } }),
        ] {
            assert!(Bpe::read(file.to_string().as_bytes()).is_err(), "{file}");
        }
    }
}
