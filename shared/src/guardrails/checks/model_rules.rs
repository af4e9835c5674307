//! `modelRules`: which models may be asked for depends on the metadata of the request.

use super::listed::written;
use crate::guardrails::check::Check;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::{Parameters, texts};
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use serde_json::{Value, json};
use std::collections::BTreeSet;

struct ModelRules {
    defaults: Vec<String>,
    /// (key, value, models).
    rules: Vec<(String, String, Vec<String>)>,
    not: bool,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let none = Value::Null;
    let rules = parameters.get("rules").unwrap_or(&none);
    let wrong = |path: String, message: &str| Err(Fault::new(FaultKind::WrongType, path, message));
    for name in rules.as_object().into_iter().flat_map(|fields| fields.keys()) {
        if !["defaults", "metadata"].contains(&name.as_str()) {
            let known = ["defaults", "metadata"];
            return Err(Fault::unknown(format!("rules.{name}"), "a part of the rules", name, known));
        }
    }
    if rules.get("defaults").is_some_and(|defaults| !defaults.is_array()) {
        return wrong("rules.defaults".into(), "must be a list of models");
    }
    let mut read = Vec::new();
    let by_key = match rules.get("metadata") {
        None | Some(Value::Null) => None,
        Some(Value::Object(fields)) => Some(fields),
        Some(_) => return wrong("rules.metadata".into(), "must be an object: {key: {value: [models]}}"),
    };
    for (key, values) in by_key.into_iter().flatten() {
        let Some(values) = values.as_object() else {
            return wrong(format!("rules.metadata.{key}"), "must be an object: {value: [models]}");
        };
        for (value, models) in values {
            if !models.is_array() {
                return wrong(format!("rules.metadata.{key}.{value}"), "must be a list of models");
            }
            read.push((key.clone(), value.clone(), texts(models)));
        }
    }
    let defaults = rules.get("defaults").map(texts).unwrap_or_default();
    Ok(Box::new(ModelRules { defaults, rules: read, not: parameters.flag("not") }))
}

impl Check for ModelRules {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let Some(model) = subject.model() else { return Verdict::error("NoModel", "the request names no model") };
        let mut allowed: BTreeSet<&str> = BTreeSet::new();
        let mut matched: Vec<String> = Vec::new();
        for (key, value, models) in &self.rules {
            let is_met = match subject.metadata.get(key) {
                None => false,
                Some(Value::Array(entries)) => entries.iter().any(|entry| written(entry) == *value),
                Some(one) => written(one) == *value,
            };
            if is_met {
                matched.push(format!("{key}={value}"));
                allowed.extend(models.iter().map(String::as_str));
            }
        }
        if matched.is_empty() {
            allowed.extend(self.defaults.iter().map(String::as_str));
        }
        if allowed.is_empty() {
            return Verdict::error("NoRule", "no rule names a model for this request");
        }
        let is_allowed = allowed.contains(model) || allowed.contains("*");
        let explanation = format!("The model {model} is {}.", if is_allowed { "allowed" } else { "not allowed" });
        let data =
            json!({ "requestedModel": model, "allowedModels": allowed, "matchedRules": matched, "not": self.not });
        Verdict::new(is_allowed != self.not, explanation, data)
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::subject::testing::{said, subject};
    use crate::guardrails::{Subject, compile};
    use serde_json::{Value, json};

    #[test]
    fn the_models_of_every_matching_rule_are_allowed_and_the_defaults_where_none_matches() {
        let rules = json!({ "defaults": ["d"], "metadata": { "team": { "red": ["r"], "blue": ["b"], "root": ["*"] },
                            "tier": { "1": ["t"] } } });
        let none: Value = json!({ "metadata": {} });
        for (rules, metadata, model, not, expected) in [
            (&rules, json!({}), "d", false, "pass"),
            (&rules, json!({}), "r", false, "fail"),
            (&rules, json!({}), "r", true, "pass"),
            (&rules, json!({ "team": "red" }), "r", false, "pass"),
            (&rules, json!({ "team": "red" }), "d", false, "fail"),
            (&rules, json!({ "team": "red" }), "r", true, "fail"),
            (&rules, json!({ "team": ["red", "blue"] }), "b", false, "pass"),
            (&rules, json!({ "team": "red", "tier": 1 }), "t", false, "pass"),
            (&rules, json!({ "team": "root" }), "anything é", false, "pass"),
            (&rules, json!({ "team": "green" }), "d", false, "pass"),
            (&rules, json!({ "team": "Red" }), "r", false, "fail"),
            (&none, json!({}), "m", false, "error"),
            (&none, json!({}), "m", true, "error"),
            (&rules, json!({}), "", false, "error"),
            (&rules, json!({ "team": "日本" }), "日本", false, "fail"),
            (&rules, json!({ "team": "x".repeat(1 << 20) }), "d", false, "pass"),
        ] {
            let request = json!({ "model": model });
            let metadata = metadata.as_object().unwrap();
            let check = compile("modelRules", &json!({ "rules": rules, "not": not })).unwrap();
            let verdict = check.run(&Subject { metadata, ..subject(&request, None) });
            assert_eq!(said(&verdict), expected, "{metadata:?} {model} {not}");
        }
    }

    #[test]
    fn rules_of_another_form_are_refused() {
        for rules in [
            json!({ "default": ["a"] }),
            json!({ "defaults": "a" }),
            json!({ "metadata": [] }),
            json!({ "metadata": { "k": ["a"] } }),
            json!({ "metadata": { "k": { "v": "a" } } }),
        ] {
            assert!(compile("modelRules", &json!({ "rules": rules })).is_err(), "{rules}");
        }
    }
}
