//! `regexMatch`: the pattern is found in the text.

use crate::guardrails::check::Check;
use crate::guardrails::data::{DataWriter, JudgedText, excerpt};
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::pattern::Pattern;
use crate::guardrails::subject::Subject;
use crate::guardrails::text::Scope;
use crate::guardrails::verdict::{CheckError, Verdict};
use serde_json::{Map, Value, json};
use std::ops::Range;

struct RegexMatch {
    rule: String,
    pattern: Pattern,
    not: bool,
    /// What is said where it is not found, before the text.
    data_of_none: String,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let rule = parameters.text_or("rule", "");
    let pattern = Pattern::parse(&rule, "rule")?;
    let mut check = RegexMatch { rule, pattern, not: parameters.flag("not"), data_of_none: String::new() };
    check.data_of_none = check.data_of(None).begun();
    Ok(Box::new(check))
}

impl Check for RegexMatch {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        Verdict::judged(subject, |text, data| self.judge_text(text, subject.is_growing, data))
    }

    fn judge(&self, text: &JudgedText<'_>, data: &mut String) -> Option<Result<bool, CheckError>> {
        Some(self.judge_text(text, false, data))
    }

    fn reads_body(&self) -> bool {
        false
    }

    /// What must be there is looked for in what was asked last.
    fn scope(&self) -> Scope {
        if self.not { Scope::All } else { Scope::Judged }
    }

    /// What must not be there is found where it ends, unless it could go on for ever. The letter behind decides about
    /// boundaries of words.
    fn window(&self) -> Option<usize> {
        self.pattern.longest.filter(|_| self.not).map(|longest| longest + 4)
    }
}

impl RegexMatch {
    fn judge_text(&self, judged: &JudgedText<'_>, is_growing: bool, data: &mut String) -> Result<bool, CheckError> {
        let text = judged.text;
        if text.is_empty() {
            return Err(CheckError::no_text());
        }
        let found = match self.pattern.find(text) {
            // It could be longer, or none at all, with what follows.
            Ok(found) => found.filter(|place| !is_growing || place.end < text.len()),
            Err(costly) => return Err(CheckError::too_costly(costly.to_string())),
        };
        let is_found = found.is_some();
        match found {
            None => data.push_str(&self.data_of_none),
            Some(place) => data.push_str(&self.data_of(Some(&self.details(text, place))).begun()),
        }
        judged.end_with_excerpt(data);
        Ok(is_found != self.not)
    }

    /// All but the text; with what was found of it, if it was.
    fn data_of(&self, details: Option<&Value>) -> DataWriter {
        DataWriter::default()
            .text("regexPattern", &self.rule)
            .flag("not", self.not)
            .flag("verdict", details.is_some() != self.not)
            .value("matchDetails", details.unwrap_or(&Value::Null))
            .explanation(format_args!(
                "The pattern {} {} in the text{}.",
                self.rule,
                if details.is_some() { "was found" } else { "was not found" },
                if self.not { ", where it must not be" } else { "" }
            ))
    }

    /// The place is told as JavaScript counts it, in UTF-16 units.
    fn details(&self, text: &str, place: Range<usize>) -> Value {
        let index = text[..place.start].encode_utf16().count();
        let captures = self.pattern.groups(text, place.clone());
        let group = |at: usize| captures.as_ref().and_then(|found| found.get(at)).map(|found| excerpt(found.as_str()));
        let mut groups = Map::new();
        let mut listed = Vec::new();
        for (at, name) in self.pattern.names().enumerate().skip(1) {
            listed.push(json!(group(at)));
            if let Some(name) = name {
                groups.insert(name.to_owned(), json!(group(at)));
            }
        }
        json!({ "matchedText": excerpt(&text[place]), "index": index, "groups": groups, "captures": listed })
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{run_text, said};
    use serde_json::json;

    #[test]
    fn a_pattern_is_found_anywhere_unless_not_turns_it_round() {
        for (rule, not, text, expected) in [
            ("cat", false, "a cat", "pass"),
            ("cat", false, "a dog", "fail"),
            ("cat", true, "a cat", "fail"),
            ("cat", true, "a dog", "pass"),
            ("Cat", false, "cat", "fail"),
            ("^cat$", false, "a cat", "fail"),
            (r"\d{3}-\d{4}", false, "call 555-1234", "pass"),
            ("é+", false, "caféé", "pass"),
            (".", false, "\n", "fail"),
            ("a", false, "", "error"),
            ("a", true, "", "error"),
            ("z", false, &"a".repeat(1 << 20), "fail"),
            ("(a+)+b", false, &"a".repeat(1 << 16), "fail"),
            ("x|y|z", false, "日本語 z", "pass"),
        ] {
            let verdict = run_text("regexMatch", &json!({ "rule": rule, "not": not }), text);
            assert_eq!(said(&verdict), expected, "{rule} {not}: {verdict:?}");
        }
    }

    #[test]
    fn the_match_is_told_with_its_groups_as_javascript_counts() {
        let verdict = run_text("regexMatch", &json!({ "rule": r"(?<who>\w+)@(\w+)(x)?" }), "🙂 ann@home!");
        let details = json!({ "matchedText": "ann@home", "index": 3, "groups": { "who": "ann" },
                              "captures": ["ann", "home", null] });
        assert_eq!(verdict.data.value()["matchDetails"], details);
        assert_eq!(run_text("regexMatch", &json!({ "rule": "z" }), "a").data.value()["matchDetails"], json!(null));
        let verdict = run_text("regexMatch", &json!({ "rule": "\"z", "not": true }), "a\n");
        let data_of = json!({ "regexPattern": "\"z", "not": true, "verdict": true, "matchDetails": null, "textExcerpt": "a\n",
                           "explanation": "The pattern \"z was not found in the text, where it must not be." });
        assert_eq!(*verdict.data.value(), data_of);
    }

    #[test]
    fn a_pattern_that_gives_up_is_an_error_that_never_passes() {
        let text = crate::guardrails::pattern::noise(1 << 19);
        let verdict = run_text("regexMatch", &json!({ "rule": "[ab]*a[ab]{300}c" }), &text);
        assert!(!verdict.passes(false), "whoever writes the text could choose it");
        assert_eq!(verdict.error.map(|error| error.name), Some("TooCostly"));
    }
}
