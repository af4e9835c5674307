//! `requiredMetadataKeyPairs`: the request says all, any or none of some pairs about itself.

use super::listed::Expected;
use crate::guardrails::check::Check;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::{Value, json};

struct RequiredMetadataPairs {
    pairs: Vec<(String, Expected)>,
    operator: String,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let match_type = parameters.text_or("matchType", "exact");
    let mut pairs = Vec::new();
    for (key, expected) in parameters.get("metadataPairs").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("metadataPairs.{key}");
        if expected.is_object() || expected.is_null() {
            return Err(Fault::new(FaultKind::WrongType, path, "must be a text or a list of texts"));
        }
        pairs.push((key.clone(), Expected::new(expected, &match_type, &path)?));
    }
    if pairs.is_empty() {
        return Err(Fault::new(FaultKind::Empty, "metadataPairs", "must have a pair"));
    }
    Ok(Box::new(RequiredMetadataPairs { pairs, operator: parameters.text_or("operator", "all") }))
}

impl Check for RequiredMetadataPairs {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        for (key, expected) in &self.pairs {
            let fits = subject.metadata.get(key).map_or(Ok(false), |value| expected.fits(value));
            match fits {
                Ok(true) => found.push(key),
                Ok(false) => missing.push(key),
                Err(costly) => return Verdict::bound("TooCostly", costly.to_string()),
            }
        }
        let verdict = match self.operator.as_str() {
            "any" => !found.is_empty(),
            "none" => found.is_empty(),
            _ => missing.is_empty(),
        };
        let explanation =
            format!("{} of {} pairs are in the metadata; {} must be.", found.len(), self.pairs.len(), self.operator);
        let data = json!({ "found_metadata_keys": found, "missing_metadata_keys": missing, "operator": self.operator });
        Verdict::new(verdict, explanation, data)
    }

    fn reads_body(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{said, subject};
    use crate::guardrails::{Subject, compile};
    use serde_json::json;

    #[test]
    fn pairs_are_compared_in_four_ways() {
        for (pairs, operator, match_type, metadata, expected) in [
            (json!({ "a": "1" }), "all", "exact", json!({ "a": "1" }), "pass"),
            (json!({ "a": "1" }), "all", "exact", json!({ "a": 1 }), "pass"),
            (json!({ "a": "1" }), "all", "exact", json!({ "a": "2" }), "fail"),
            (json!({ "a": ["1", "2"] }), "all", "exact", json!({ "a": "2" }), "pass"),
            (json!({ "a": "1", "b": "2" }), "all", "exact", json!({ "a": "1" }), "fail"),
            (json!({ "a": "1", "b": "2" }), "any", "exact", json!({ "a": "1" }), "pass"),
            (json!({ "a": "1" }), "none", "exact", json!({ "a": "1" }), "fail"),
            (json!({ "a": "1" }), "none", "exact", json!({}), "pass"),
            (json!({ "a": "es" }), "all", "contains", json!({ "a": "test" }), "pass"),
            (json!({ "a": ["x", "y"] }), "all", "contains", json!({ "a": ["y"] }), "pass"),
            (json!({ "a": ["x", "y"] }), "all", "containsAll", json!({ "a": ["y"] }), "fail"),
            (json!({ "a": ["x", "y"] }), "all", "containsAll", json!({ "a": ["y", "x"] }), "pass"),
            (json!({ "a": "^t.st$" }), "all", "regex", json!({ "a": "test" }), "pass"),
            (json!({ "a": "^t.st$" }), "all", "regex", json!({ "a": "tést2" }), "fail"),
            (json!({ "é": "日本" }), "all", "exact", json!({ "é": "日本" }), "pass"),
            (json!({ "a": "" }), "all", "exact", json!({ "a": "" }), "pass"),
            (json!({ "a": "y" }), "all", "contains", json!({ "a": format!("{}y", "x".repeat(1 << 20)) }), "pass"),
            (json!({ "a": "(x+)+y" }), "all", "regex", json!({ "a": "x".repeat(1 << 16) }), "fail"),
        ] {
            let parameters = json!({ "metadataPairs": pairs, "operator": operator, "matchType": match_type });
            let check = compile("requiredMetadataKeyValuePairs", &parameters).unwrap();
            let request = json!({});
            let verdict = check.run(&Subject { metadata: metadata.as_object().unwrap(), ..subject(&request, None) });
            assert_eq!(said(&verdict), expected, "{parameters} {metadata}");
        }
        for pairs in [json!({}), json!({ "a": {} })] {
            assert!(compile("requiredMetadataKeyPairs", &json!({ "metadataPairs": pairs })).is_err(), "{pairs}");
        }
    }

    #[test]
    fn what_is_there_and_what_is_missing_is_told_but_no_value() {
        let parameters = json!({ "metadataPairs": { "a": "one", "é": "two" }, "operator": "any" });
        let check = compile("requiredMetadataKeyPairs", &parameters).unwrap();
        let (request, metadata) = (json!({}), json!({ "a": "other", "é": "two" }));
        let verdict = check.run(&Subject { metadata: metadata.as_object().unwrap(), ..subject(&request, None) });
        let told = json!({ "found_metadata_keys": ["é"], "missing_metadata_keys": ["a"], "operator": "any",
                           "explanation": "1 of 2 pairs are in the metadata; any must be." });
        assert_eq!((said(&verdict), &*verdict.data.value()), ("pass", &told));
    }
}
