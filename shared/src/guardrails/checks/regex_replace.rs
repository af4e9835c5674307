//! `regexReplace`: what the pattern finds is replaced, in every text part that is judged.

use crate::guardrails::check::{Check, Replaced};
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::pattern::{Pattern, TooCostly};
use crate::guardrails::subject::Subject;
use crate::guardrails::text::Scope;
use crate::guardrails::verdict::{TOO_MANY_TEXTS, Verdict};
use serde_json::json;

struct RegexReplace {
    rule: String,
    pattern: Pattern,
    replacement: String,
    fails_on_detection: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let rule = parameters.text_or("rule", "");
    let pattern = Pattern::parse_with_flags(&rule, "rule")?;
    Ok(Box::new(RegexReplace {
        rule,
        pattern,
        replacement: parameters.text_or("redactText", "[REDACTED]"),
        fails_on_detection: parameters.flag("failOnDetection"),
    }))
}

impl Check for RegexReplace {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        if let Some(text) = subject.text {
            return match self.replaced(text) {
                Ok(found) => self.verdict(found.is_some()),
                Err(costly) => Verdict::bound("TooCostly", costly.to_string()),
            };
        }
        let places = subject.places(Scope::Judged);
        if places.is_cut {
            return Verdict::unreplaced("TooMany", TOO_MANY_TEXTS);
        }
        if places.text(subject.json()).is_empty() {
            return Verdict::no_text();
        }
        let mut given_up = None;
        let changed = places.replace(subject.json(), |text| match self.replaced(text) {
            Ok(replaced) => replaced,
            Err(costly) => {
                given_up = Some(costly);
                None
            }
        });
        if let Some(costly) = given_up {
            return Verdict::unreplaced("TooCostly", costly.to_string());
        }
        let verdict = self.verdict(changed.is_some());
        match changed {
            Some(json) => verdict.with_transformed(json),
            None => verdict,
        }
    }

    /// A pattern may reach any distance, so nothing is decided before the end.
    fn replace(&self, text: &str, is_end: bool) -> Option<Replaced> {
        if !is_end {
            return Some(Replaced { text: String::new(), consumed: 0, is_changed: false });
        }
        let replaced = match self.replaced(text) {
            Ok(replaced) => replaced,
            // Nothing of it can be let out.
            Err(_) => Some("[REDACTED]".to_owned()),
        };
        let is_changed = replaced.is_some();
        let text_after = replaced.unwrap_or_else(|| text.to_owned());
        Some(Replaced { text: text_after, consumed: text.len(), is_changed })
    }
}

impl RegexReplace {
    fn verdict(&self, is_found: bool) -> Verdict {
        let explanation = match is_found {
            true => format!("The pattern {} was found and replaced.", self.rule),
            false => format!("The pattern {} was not found.", self.rule),
        };
        Verdict::new(!(is_found && self.fails_on_detection), explanation, json!({ "regexPattern": self.rule }))
    }

    /// The text with its first match replaced, or all of them; nothing when there is none.
    fn replaced(&self, text: &str) -> Result<Option<String>, TooCostly> {
        let places = match self.pattern.is_global {
            true => self.pattern.find_all(text)?,
            false => self.pattern.find(text)?.into_iter().collect(),
        };
        if places.is_empty() {
            return Ok(None);
        }
        let mut replaced = String::with_capacity(text.len());
        let mut at = 0;
        for place in places {
            replaced.push_str(&text[at..place.start]);
            replaced.push_str(&self.replacement);
            at = place.end;
        }
        replaced.push_str(&text[at..]);
        Ok(Some(replaced))
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run, run_answer, run_text, said};
    use serde_json::json;

    #[test]
    fn the_first_match_is_replaced_or_all_of_them_with_the_flag_g() {
        for (rule, text, expected) in [
            ("a", "banana", Some("b[REDACTED]nana")),
            ("/a/g", "banana", Some("b[REDACTED]n[REDACTED]n[REDACTED]")),
            ("/A/gi", "banana", Some("b[REDACTED]n[REDACTED]n[REDACTED]")),
            ("/a/", "banana", Some("b[REDACTED]nana")),
            (r"/\d+/g", "1 and 22", Some("[REDACTED] and [REDACTED]")),
            ("z", "banana", None),
            ("/^b/gm", "a\nb\nb", Some("a\n[REDACTED]\n[REDACTED]")),
            ("é", "café", Some("caf[REDACTED]")),
            ("/日/g", "日本日", Some("[REDACTED]本[REDACTED]")),
            ("/x*/g", "ab", Some("[REDACTED]a[REDACTED]b[REDACTED]")),
            ("a/b", "a/b", Some("[REDACTED]")),
        ] {
            let verdict = run_text("regexReplace", &json!({ "rule": rule }), text);
            assert_eq!(said(&verdict), "pass", "{rule}");
            let content = verdict.transformed.as_ref().map(|json| json["messages"][0]["content"].clone());
            assert_eq!(content, expected.map(|text| json!(text)), "{rule} {text}");
        }
    }

    #[test]
    fn detection_fails_only_where_it_should_and_no_text_is_an_error() {
        for (parameters, text, expected) in [
            (json!({ "rule": "a", "failOnDetection": true }), "a", "fail"),
            (json!({ "rule": "a", "failOnDetection": true }), "b", "pass"),
            (json!({ "rule": "a", "redactText": "" }), "a", "pass"),
            (json!({ "rule": "a" }), "", "error"),
            (json!({ "rule": "/a/g" }), &"a".repeat(1 << 20), "error"),
        ] {
            assert_eq!(said(&run_text("regexReplace", &parameters, text)), expected, "{parameters}");
        }
    }

    #[test]
    fn what_could_not_be_replaced_must_not_go_on() {
        let parts = vec![json!({ "type": "text", "text": "a" }); 10_001];
        let request = json!({ "messages": [{ "role": "user", "content": parts }] });
        let cut = run("regexReplace", &json!({ "rule": "a" }), &request);
        let costly = run_text("regexReplace", &json!({ "rule": "/a/g" }), &"a".repeat(1 << 20));
        for verdict in [cut, costly] {
            assert!(verdict.forbids() && !verdict.passes(false), "{verdict:?}");
            assert_eq!(verdict.transformed, None);
        }
    }

    #[test]
    fn each_text_part_is_replaced_and_the_rest_of_the_body_stays() {
        let request = json!({ "model": "m", "seed": 7, "messages": [{ "role": "user", "content": "a" }, { "role": "user",
            "content": [{ "type": "text", "text": "a" }, { "type": "image_url", "image_url": { "url": "a" } }] }] });
        let mut expected = request.clone();
        expected["messages"][1]["content"][0]["text"] = json!("x");
        assert_eq!(
            run("regexReplace", &json!({ "rule": "a", "redactText": "x" }), &request).transformed,
            Some(expected)
        );
        let answered = run_answer("regexReplace", &json!({ "rule": "a", "redactText": "x" }), &json!("a b"));
        assert_eq!(answered.transformed.unwrap()["choices"][0]["message"]["content"], "x b");
    }
}
