//! `characterCount`: how long the text is, in UTF-16 units, as JavaScript counts.

use crate::guardrails::check::Check;
use crate::guardrails::checks::counted::{CountNames, Counted};
use crate::guardrails::data::JudgedText;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::{CheckError, Verdict};

struct CharacterCount(Counted);

const NAMES: CountNames = CountNames {
    count: "characterCount",
    least: ("minCharacters", "minCharacters"),
    most: ("maxCharacters", "maxCharacters"),
    usual_most: 9_999_999,
    words: "characters",
};

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(CharacterCount(Counted::new(parameters, &NAMES))))
}

impl CharacterCount {
    fn judge_text(&self, judged: &JudgedText<'_>, data: &mut String) -> Result<bool, CheckError> {
        let text = judged.text;
        if text.is_empty() {
            return Err(CheckError::no_text());
        }
        // Every byte of ASCII is one of them.
        let count = if text.is_ascii() { text.len() } else { text.encode_utf16().count() };
        Ok(self.0.judge(count as u64, judged, data))
    }
}

impl Check for CharacterCount {
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

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run_text, said};
    use serde_json::json;

    #[test]
    fn characters_are_counted_as_javascript_counts_them() {
        for (least, most, not, text, expected) in [
            (1, 3, false, "abc", "pass"),
            (1, 2, false, "abc", "fail"),
            (1, 2, true, "abc", "pass"),
            (3, 3, true, "abc", "fail"),
            (4, 9, false, "abc", "fail"),
            (1, 1, false, "é", "pass"),
            (2, 2, false, "🙂", "pass"),
            (1, 1, false, "日", "pass"),
            (1, 1, false, " ", "pass"),
            (0, 9, false, "", "error"),
            (0, 9, true, "", "error"),
            (0, 1_000_000, false, &"a".repeat(1_000_001), "fail"),
            (0, 1_000_001, false, &"a".repeat(1_000_001), "pass"),
            (5, 1, false, "abc", "fail"),
        ] {
            let parameters = json!({ "minCharacters": least, "maxCharacters": most, "not": not });
            assert_eq!(said(&run_text("characterCount", &parameters, text)), expected, "{parameters} {}", text.len());
        }
        assert_eq!(run_text("characterCount", &json!({}), "a🙂").data.value()["characterCount"], 3);
    }
}
