//! `wordCount`: how many words the text has.

use crate::guardrails::check::Check;
use crate::guardrails::checks::counted::{CountNames, Counted};
use crate::guardrails::data::JudgedText;
use crate::guardrails::fault::Fault;
use crate::guardrails::lanes::{least, padded};
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::{CheckError, Verdict};

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

impl WordCount {
    fn judge_text(&self, judged: &JudgedText<'_>, data: &mut String) -> Result<bool, CheckError> {
        match words(judged.text) as u64 {
            0 => Err(CheckError::no_text()),
            count => Ok(self.0.judge(count, judged, data)),
        }
    }
}

impl Check for WordCount {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        Verdict::judged(subject, |text, data| self.judge_text(text, data))
    }

    fn judge(&self, text: &JudgedText<'_>, data: &mut String) -> Option<Result<bool, CheckError>> {
        Some(self.judge_text(text, data))
    }

    fn reads_body(&self) -> bool {
        false
    }
}

/// No more than a byte can count.
const BLOCK: usize = 128;

/// What stands between spaces. Bytes say it as well where there is nothing but ASCII.
fn words(text: &str) -> usize {
    let bytes = text.as_bytes();
    // From the blank to the end of ASCII, as a line of text is: then there is one kind of space.
    if least(bytes, b' ', |byte| !byte.wrapping_sub(b' ')) >= !(0x7f - b' ') {
        return begins(bytes, |byte| byte == b' ');
    }
    match text.is_ascii() {
        true => begins(bytes, |byte| (byte == b' ') | (byte.wrapping_sub(b'\t') < 5)),
        false => text.split_whitespace().count(),
    }
}

/// How often something begins that is no space.
#[inline(always)]
fn begins(bytes: &[u8], is_space: impl Fn(u8) -> bool + Copy) -> usize {
    let (Some((first, behind)), Some((_, before))) = (bytes.split_first(), bytes.split_last()) else { return 0 };
    let count = |before: &[u8; BLOCK], bytes: &[u8; BLOCK]| {
        let begins = before.iter().zip(bytes).map(|(before, byte)| u8::from(is_space(*before) & !is_space(*byte)));
        usize::from(begins.sum::<u8>())
    };
    let ((before, first_rest), (behind, rest)) = (before.as_chunks(), behind.as_chunks());
    let whole: usize = before.iter().zip(behind).map(|(before, bytes)| count(before, bytes)).sum();
    usize::from(!is_space(*first)) + whole + count(&padded(first_rest, b'.'), &padded(rest, b'.'))
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
            &"a ".repeat(64),
            &" a".repeat(65),
            &"a\n".repeat(200),
            "a\u{7f}b \u{80}",
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
