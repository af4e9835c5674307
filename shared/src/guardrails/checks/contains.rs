//! `contains`: any, all or none of some words stand in the text, letter by letter.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::json;

struct Contains {
    words: Vec<String>,
    operator: String,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let operator = parameters.text_or("operator", "any");
    Ok(Box::new(Contains { words: parameters.texts("words"), operator }))
}

impl Check for Contains {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        let (found, missing): (Vec<&String>, Vec<&String>) =
            self.words.iter().partition(|word| memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some());
        let verdict = match self.operator.as_str() {
            "all" => missing.is_empty(),
            "none" => found.is_empty(),
            _ => !found.is_empty(),
        };
        let explanation = format!(
            "The text has {} of {} words; {} of them must be there.",
            found.len(),
            self.words.len(),
            self.operator
        );
        let data = json!({ "foundWords": found, "missingWords": missing, "operator": self.operator });
        Verdict::new(verdict, explanation, data)
    }

    /// A word that must not be there is found where it ends.
    fn window(&self) -> Option<usize> {
        let longest = self.words.iter().map(String::len).max().unwrap_or(0);
        (self.operator == "none").then_some(longest)
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run, run_answer, run_text, said};
    use serde_json::json;

    #[test]
    fn words_are_there_by_the_operator() {
        for (words, operator, text, expected) in [
            (&["a", "b"][..], "any", "xax", "pass"),
            (&["a", "b"], "any", "x", "fail"),
            (&["a", "b"], "all", "ab", "pass"),
            (&["a", "b"], "all", "a", "fail"),
            (&["a", "b"], "none", "x", "pass"),
            (&["a", "b"], "none", "b", "fail"),
            (&["Word"], "any", "word", "fail"),
            (&["é"], "any", "café", "pass"),
            (&["日本"], "none", "日本語", "fail"),
            (&["a"], "any", "", "fail"),
            (&["a"], "none", "", "pass"),
            (&["two words"], "any", "these two words", "pass"),
            (&["needle"], "any", &format!("{}needle", "hay".repeat(300_000)), "pass"),
        ] {
            let verdict = run_text("contains", &json!({ "words": words, "operator": operator }), text);
            assert_eq!(said(&verdict), expected, "{words:?} {operator} {}", text.len());
        }
    }

    #[test]
    fn a_word_behind_more_texts_than_are_looked_at_does_not_pass() {
        let mut parts = vec![json!({ "type": "text", "text": "a" }); 10_000];
        parts.push(json!({ "type": "text", "text": "bad" }));
        let parameters = json!({ "words": ["bad"], "operator": "none" });
        let request = json!({ "messages": [{ "role": "user", "content": parts }] });
        let verdict = run("contains", &parameters, &request);
        assert_eq!((said(&verdict), verdict.passes(false)), ("error", false));
    }

    #[test]
    fn what_was_found_and_what_is_missing_is_told_and_any_is_the_default() {
        let verdict = run_answer("contains", &json!({ "words": "a, b" }), &json!("a"));
        assert_eq!(verdict.data["foundWords"], json!(["a"]));
        assert_eq!(verdict.data["missingWords"], json!(["b"]));
        assert_eq!((said(&verdict), &verdict.data["operator"]), ("pass", &json!("any")));
    }
}
