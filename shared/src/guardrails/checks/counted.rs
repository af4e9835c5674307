//! What the checks say that count something in a text. All of it but the count and the text is known when a check is made, and
//! is written then.

use crate::guardrails::data::{JudgedText, put_number};
use crate::guardrails::parameters::Parameters;

/// How many of something a text may have.
pub struct Counted {
    least: u64,
    most: u64,
    not: bool,
    /// What stands before the count, between it and its place in the explanation, and behind that.
    explanation_parts: [String; 3],
}

/// What is counted. None of these needs an escape.
pub struct CountNames {
    /// In results.
    pub count: &'static str,
    /// Bounds in parameters, and in results.
    pub least: (&'static str, &'static str),
    pub most: (&'static str, &'static str),
    pub usual_most: u64,
    /// In explanations.
    pub words: &'static str,
}

impl Counted {
    pub fn new(parameters: &Parameters<'_>, names: &CountNames) -> Self {
        let least = parameters.count(names.least.0, 0);
        let most = parameters.count(names.most.0, names.usual_most);
        let not = parameters.flag("not");
        let kind = if not { "all but" } else { "from" };
        let explanation_parts = [
            format!("{{\"{}\":", names.count),
            format!(
                ",\"{}\":{least},\"{}\":{most},\"not\":{not},\"explanation\":\"The text has ",
                names.least.1, names.most.1
            ),
            format!(" {}; {kind} {least} to {most} are allowed.\"", names.words),
        ];
        Self { least, most, not, explanation_parts }
    }

    /// The verdict; what it says is written.
    pub fn judge(&self, count: u64, judged: &JudgedText<'_>, data: &mut String) -> bool {
        let [begin, middle, end] = &self.explanation_parts;
        data.push_str(begin);
        put_number(data, count);
        data.push_str(middle);
        put_number(data, count);
        data.push_str(end);
        judged.end_with_excerpt(data);
        (self.least..=self.most).contains(&count) != self.not
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::run_text;
    use serde_json::json;

    #[test]
    fn everything_is_told_with_the_count() {
        let parameters = json!({ "minWords": 1, "maxWords": 2, "minSentences": 3, "maxCharacters": 4, "not": true });
        for (check, data) in [
            (
                "wordCount",
                json!({ "wordCount": 2, "minWords": 1, "maxWords": 2, "not": true,
                        "explanation": "The text has 2 words; all but 1 to 2 are allowed.", "textExcerpt": "a \"b\"" }),
            ),
            (
                "sentenceCount",
                json!({ "sentenceCount": 0, "minCount": 3, "maxCount": 99_999, "not": true,
                        "explanation": "The text has 0 ends of sentences; all but 3 to 99999 are allowed.",
                        "textExcerpt": "a \"b\"" }),
            ),
            (
                "characterCount",
                json!({ "characterCount": 5, "minCharacters": 0, "maxCharacters": 4, "not": true,
                        "explanation": "The text has 5 characters; all but 0 to 4 are allowed.", "textExcerpt": "a \"b\"" }),
            ),
        ] {
            assert_eq!(*run_text(check, &parameters, "a \"b\"").data.value(), data);
        }
        let plain = run_text("wordCount", &json!({}), "a");
        assert_eq!(plain.data.value()["explanation"], "The text has 1 words; from 0 to 99999 are allowed.");
    }
}
