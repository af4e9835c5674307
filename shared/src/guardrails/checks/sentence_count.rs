//! `sentenceCount`: how often a sentence ends in the text.

use crate::guardrails::check::Check;
use crate::guardrails::checks::counted::{CountNames, Counted};
use crate::guardrails::data::JudgedText;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::{CheckError, Verdict};

struct SentenceCount(Counted);

const NAMES: CountNames = CountNames {
    count: "sentenceCount",
    least: ("minSentences", "minCount"),
    most: ("maxSentences", "maxCount"),
    usual_most: 99_999,
    words: "ends of sentences",
};

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(SentenceCount(Counted::new(parameters, &NAMES))))
}

impl SentenceCount {
    fn judge_text(&self, judged: &JudgedText<'_>, data: &mut String) -> Result<bool, CheckError> {
        let text = judged.text;
        // Pieces between the marks, less one: as others count, so that `a..b` are two.
        let count = text.bytes().filter(|byte| matches!(byte, b'.' | b'!' | b'?')).count() as u64;
        Ok(self.0.judge(count, judged, data))
    }
}

impl Check for SentenceCount {
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
    use crate::guardrails::subject::testing::run_text;
    use serde_json::json;

    #[test]
    fn a_sentence_is_counted_by_its_mark() {
        for (least, most, not, text, count, verdict) in [
            (0, 10, false, "Hi", 0, true),
            (1, 10, false, "Hi", 0, false),
            (1, 1, false, "Hi.", 1, true),
            (2, 2, false, "a..b", 2, true),
            (3, 3, false, "One. Two! Three?", 3, true),
            (0, 2, false, "One. Two! Three?", 3, false),
            (0, 2, true, "One. Two! Three?", 3, true),
            (0, 3, true, "One. Two! Three?", 3, false),
            (0, 0, false, "", 0, true),
            (1, 9, false, "", 0, false),
            (0, 9, false, "Bonjour… ça va ?", 1, true),
            (0, 9, false, "日本。", 0, true),
            (5, 1, false, "a. b.", 2, false),
            (0, 99_999, false, &".".repeat(100_000), 100_000, false),
        ] {
            let parameters = json!({ "minSentences": least, "maxSentences": most, "not": not });
            let said = run_text("sentenceCount", &parameters, text);
            assert_eq!(
                (&said.data.value()["sentenceCount"], said.verdict),
                (&json!(count), verdict),
                "{parameters} {}",
                text.len()
            );
        }
    }
}
