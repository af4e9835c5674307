//! `requiredMetadataKeys`: the request says all, any or none of some keys about itself.

use crate::guardrails::check::Check;
use crate::guardrails::fault::Fault;
use crate::guardrails::parameters::Parameters;
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::json;

struct RequiredMetadataKeys {
    keys: Vec<String>,
    operator: String,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let operator = parameters.text_or("operator", "all");
    Ok(Box::new(RequiredMetadataKeys { keys: parameters.texts("metadataKeys"), operator }))
}

impl Check for RequiredMetadataKeys {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let (found, missing): (Vec<&String>, Vec<&String>) =
            self.keys.iter().partition(|key| subject.metadata.contains_key(key.as_str()));
        let verdict = match self.operator.as_str() {
            "any" => !found.is_empty(),
            "none" => found.is_empty(),
            _ => missing.is_empty(),
        };
        let explanation =
            format!("{} of {} keys are in the metadata; {} must be.", found.len(), self.keys.len(), self.operator);
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
    fn keys_are_there_by_the_operator() {
        for (keys, operator, metadata, expected) in [
            (json!(["a", "b"]), json!("all"), json!({ "a": "1", "b": "2" }), "pass"),
            (json!(["a", "b"]), json!("all"), json!({ "a": "1" }), "fail"),
            (json!(["a", "b"]), json!(null), json!({ "a": "1" }), "fail"),
            (json!(["a", "b"]), json!("any"), json!({ "a": "1" }), "pass"),
            (json!(["a", "b"]), json!("any"), json!({ "c": "1" }), "fail"),
            (json!(["a", "b"]), json!("none"), json!({ "c": "1" }), "pass"),
            (json!(["a", "b"]), json!("none"), json!({ "b": "1" }), "fail"),
            (json!(["a"]), json!("all"), json!({}), "fail"),
            (json!(["a"]), json!("none"), json!({}), "pass"),
            (json!(["a"]), json!("all"), json!({ "A": "1" }), "fail"),
            (json!(["é"]), json!("all"), json!({ "é": "" }), "pass"),
            (json!("a, b"), json!("all"), json!({ "a": "1", "b": null }), "pass"),
            (json!(["日本"]), json!("none"), json!({ "日本語": "1" }), "pass"),
            (json!(["a"]), json!("all"), json!({ "a": "x".repeat(1 << 20) }), "pass"),
            (json!(["a"]), json!("all"), json!({ ("x".repeat(1 << 20)): "a" }), "fail"),
        ] {
            let parameters = json!({ "metadataKeys": keys, "operator": operator });
            let check = compile("requiredMetadataKeys", &parameters).unwrap();
            let request = json!({});
            let verdict = check.run(&Subject { metadata: metadata.as_object().unwrap(), ..subject(&request, None) });
            assert_eq!(said(&verdict), expected, "{parameters} {metadata}");
        }
    }

    #[test]
    fn what_is_there_and_what_is_missing_is_told_and_parameters_of_another_form_are_refused() {
        let check = compile("requiredMetadataKeys", &json!({ "metadataKeys": ["a", "é"], "operator": "any" })).unwrap();
        let (request, metadata) = (json!({}), json!({ "é": 1 }));
        let verdict = check.run(&Subject { metadata: metadata.as_object().unwrap(), ..subject(&request, None) });
        let told = json!({ "found_metadata_keys": ["é"], "missing_metadata_keys": ["a"], "operator": "any",
                           "explanation": "1 of 2 keys are in the metadata; any must be." });
        assert_eq!((said(&verdict), &*verdict.data.value()), ("pass", &told));
        for parameters in
            [json!({}), json!({ "metadataKeys": 7 }), json!({ "metadataKeys": ["a"], "operator": "some" })]
        {
            assert!(compile("requiredMetadataKeys", &parameters).is_err(), "{parameters}");
        }
    }
}
