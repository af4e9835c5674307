//! `wordCount`: how many words the text has.

use crate::guardrails::check::Check;
use crate::guardrails::checks::counted::{CountNames, Counted};
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;

struct WordCount(Counted);

const NAMES: CountNames = CountNames {
    count: "wordCount",
    least: ("minWords", "minWords"),
    most: ("maxWords", "maxWords"),
    usual_most: 99_999,
    words: "words",
};

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(WordCount(Counted::new(parameters, &NAMES))))
}

impl Check for WordCount {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        if text.trim().is_empty() {
            return Verdict::no_text();
        }
        let count = words(&text) as u64;
        self.0.judge(count, &text)
    }

    fn reads_body(&self) -> bool {
        false
    }
}

/// No more than a byte can count.
const CHUNK: usize = 240;

/// What stands between spaces. Bytes say it as well where there is nothing but ASCII.
fn words(text: &str) -> usize {
    if !text.is_ascii() {
        return text.split_whitespace().count();
    }
    let Some((first, behind)) = text.as_bytes().split_first() else { return 0 };
    let is_space = |byte: u8| (byte == b' ') | (byte.wrapping_sub(b'\t') < 5);
    let begins = |before: &[u8], bytes: &[u8]| {
        // What a byte can count, of whole vectors: compilers do that with few instructions.
        let begins = before.iter().zip(bytes).map(|(before, byte)| u8::from(is_space(*before) & !is_space(*byte)));
        usize::from(begins.sum::<u8>())
    };
    let pairs = text.as_bytes().chunks(CHUNK).zip(behind.chunks(CHUNK));
    usize::from(!is_space(*first)) + pairs.map(|(before, bytes)| begins(before, bytes)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::words;
    use crate::guardrails::subject::testing::{run_text, said};
    use serde_json::json;

    #[test]
    fn bytes_and_characters_count_alike() {
        for text in [
            "",
            " ",
            "a",
            " a",
            "a ",
            "a b",
            "a\u{b}b\u{c}c",
            "a\u{1c}b\u{85}c",
            "\r\n a\t\tb",
            "a\u{0}b",
            &"a b  ".repeat(500),
            &"a ".repeat(240),
        ] {
            assert_eq!(words(text), text.split_whitespace().count(), "{text:?}");
        }
    }

    #[test]
    fn words_are_what_stands_between_spaces() {
        for (least, most, not, text, expected) in [
            (1, 2, false, "one two", "pass"),
            (1, 1, false, "one two", "fail"),
            (1, 1, true, "one two", "pass"),
            (2, 2, true, "one two", "fail"),
            (2, 2, false, "  one \n\t two  ", "pass"),
            (1, 1, false, "don't-split", "pass"),
            (1, 9, false, "", "error"),
            (0, 9, false, "", "error"),
            (0, 9, true, "   ", "error"),
            (3, 3, false, "çà et là", "pass"),
            (1, 1, false, "日本語", "pass"),
            (2, 2, false, "a\u{a0}b", "pass"),
            (0, 99_999, false, &"w ".repeat(100_000), "fail"),
            (5, 1, false, "one two", "fail"),
        ] {
            let parameters = json!({ "minWords": least, "maxWords": most, "not": not });
            assert_eq!(said(&run_text("wordCount", &parameters, text)), expected, "{parameters} {}", text.len());
        }
        assert_eq!(run_text("wordCount", &json!({}), "a b").data.value()["wordCount"], 2);
    }
}
