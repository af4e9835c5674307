//! `jsonKeys`: JSON in the text has any, all or none of some keys, at its top.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::json_in_text::candidates;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::json;

struct JsonKeys {
    keys: Vec<String>,
    operator: String,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    Ok(Box::new(JsonKeys { keys: parameters.texts("keys"), operator: parameters.text_or("operator", "any") }))
}

impl Check for JsonKeys {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Ok(text) = subject.text() else { return Verdict::too_many_texts() };
        let found = candidates(&text);
        let mut best: Option<(Verdict, usize)> = None;
        for document in &found {
            let (present, missing): (Vec<&String>, Vec<&String>) =
                self.keys.iter().partition(|key| document.get(key.as_str()).is_some());
            let verdict = match self.operator.as_str() {
                "all" => missing.is_empty(),
                "none" => present.is_empty(),
                _ => !present.is_empty(),
            };
            let explanation = format!(
                "JSON of the text has {} of {} keys; {} must be there.",
                present.len(),
                self.keys.len(),
                self.operator
            );
            let data = json!({ "matchedJson": document, "presentKeys": present, "missingKeys": missing,
                               "operator": self.operator });
            let judged = Verdict::new(verdict, explanation, data);
            if verdict {
                return judged;
            }
            if best.as_ref().is_none_or(|(_, most)| present.len() > *most) {
                best = Some((judged, present.len()));
            }
        }
        match best {
            Some((judged, _)) => judged,
            None => {
                let data = json!({ "matchedJson": null, "presentKeys": [], "missingKeys": self.keys,
                                   "operator": self.operator });
                Verdict::new(false, "There is no JSON in the text.", data).with_excerpt(&text)
            }
        }
    }

    fn reads_body(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run_answer, said};
    use serde_json::json;

    #[test]
    fn keys_are_there_by_the_operator() {
        for (operator, text, expected) in [
            ("any", r#"{"a":1}"#, "pass"),
            ("any", r#"{"c":1}"#, "fail"),
            ("all", r#"{"a":1,"b":null}"#, "pass"),
            ("all", r#"{"a":1}"#, "fail"),
            ("none", r#"{"c":1}"#, "pass"),
            ("none", r#"{"a":1}"#, "fail"),
            ("none", "no JSON", "fail"),
            ("any", "", "fail"),
            ("any", r#"{"x":{"a":1}}"#, "fail"),
            ("any", "```json\n{\"a\":1}\n```", "pass"),
            ("all", r#"{"a":1} then {"a":1,"b":2}"#, "pass"),
            ("any", r#"["a"]"#, "fail"),
            ("any", &format!(r#"{{"é":"{}","a":1}}"#, "日".repeat(100_000)), "pass"),
        ] {
            let verdict = run_answer("jsonKeys", &json!({ "keys": ["a", "b"], "operator": operator }), &json!(text));
            assert_eq!(said(&verdict), expected, "{operator} {}", text.len());
        }
    }

    #[test]
    fn of_several_that_do_not_satisfy_the_one_with_most_keys_is_told() {
        let text = r#"{"x":1} {"a":1} {"y":1}"#;
        let verdict = run_answer("jsonKeys", &json!({ "keys": ["a", "b"], "operator": "all" }), &json!(text));
        assert_eq!(verdict.data.value()["matchedJson"], json!({ "a": 1 }));
        assert_eq!(verdict.data.value()["missingKeys"], json!(["b"]));
    }
}
