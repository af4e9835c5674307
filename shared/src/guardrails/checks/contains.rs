//! `contains`: any, all or none of some words stand in the text, letter by letter.

use crate::guardrails::check::Check;
use crate::guardrails::data::{DataWriter, JudgedText};
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::text::Scope;
use crate::guardrails::verdict::{CheckError, Verdict};
use memchr::memmem::Finder;

struct Contains {
    words: Vec<(String, Finder<'static>)>,
    operator: String,
    /// What is said where none of them is there, as it is of most texts.
    data_of_none: String,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let operator = parameters.text_or("operator", "any");
    let finder = |word: String| {
        let finder = Finder::new(word.as_bytes()).into_owned();
        (word, finder)
    };
    let words = parameters.texts("words").into_iter().map(finder).collect();
    let mut check = Contains { words, operator, data_of_none: String::new() };
    check.data_of_none = check.data_of(&vec![false; check.words.len()]);
    Ok(Box::new(check))
}

impl Check for Contains {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        Verdict::judged(subject, |text, data| Ok(self.judge_text(text.text, data)))
    }

    fn judge(&self, text: &JudgedText<'_>, data: &mut String) -> Option<Result<bool, CheckError>> {
        Some(Ok(self.judge_text(text.text, data)))
    }

    fn reads_body(&self) -> bool {
        false
    }

    /// Words that must be there are looked for in what was asked last.
    fn scope(&self) -> Scope {
        if self.operator == "none" { Scope::All } else { Scope::Judged }
    }

    /// A word that must not be there is found where it ends.
    fn window(&self) -> Option<usize> {
        let longest = self.words.iter().map(|(word, _)| word.len()).max().unwrap_or(0);
        (self.operator == "none").then_some(longest)
    }
}

impl Contains {
    fn judge_text(&self, text: &str, data: &mut String) -> bool {
        let is_there = |(_, finder): &(String, Finder<'static>)| finder.find(text.as_bytes()).is_some();
        let Some(first) = self.words.iter().position(is_there) else {
            data.push_str(&self.data_of_none);
            return self.passes(false, self.words.is_empty());
        };
        let are_there: Vec<bool> = (0..).zip(&self.words).map(|(at, word)| at >= first && is_there(word)).collect();
        data.push_str(&self.data_of(&are_there));
        self.passes(true, !are_there.contains(&false))
    }

    fn passes(&self, is_any: bool, is_all: bool) -> bool {
        match self.operator.as_str() {
            "all" => is_all,
            "none" => !is_any,
            _ => is_any,
        }
    }

    /// A whole object.
    fn data_of(&self, is_there: &[bool]) -> String {
        let those = |wanted: bool| {
            let words = self.words.iter().zip(is_there);
            words.filter(move |(_, is_there)| **is_there == wanted).map(|((word, _), _)| word.as_str())
        };
        let (found, all) = (those(true).count(), self.words.len());
        let mut written = DataWriter::default()
            .texts("foundWords", those(true))
            .texts("missingWords", those(false))
            .text("operator", &self.operator)
            .explanation(format_args!("The text has {found} of {all} words; {} of them must be there.", self.operator))
            .begun();
        written.push('}');
        written
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
        let data = verdict.data.value();
        assert_eq!(data["foundWords"], json!(["a"]));
        assert_eq!(data["missingWords"], json!(["b"]));
        assert_eq!((said(&verdict), &data["operator"]), ("pass", &json!("any")));
        let verdict = run_answer("contains", &json!({ "words": ["a\"", "b"], "operator": "none" }), &json!("c"));
        let written = json!({ "foundWords": [], "missingWords": ["a\"", "b"], "operator": "none",
                           "explanation": "The text has 0 of 2 words; none of them must be there." });
        assert_eq!((said(&verdict), &*verdict.data.value()), ("pass", &written));
    }
}
