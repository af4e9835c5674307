//! Whether a list of checks could run, or everything that is wrong with it: for saved guardrails and for hooks in configs.

use super::fault::{Fault, FaultKind};
use super::parameters::Parameters;
use super::remote::MAX_CHECKS as MAX_REMOTE;
use super::table::{self, CheckSpec, ParameterKind, ParameterSpec};
use serde_json::Value;

/// A hook with more is refused.
pub const MAX_CHECKS: usize = 50;
/// Beyond this many the writer has the wrong document.
const MAX_FAULTS: usize = 100;
/// Texts in parameters: patterns, words, prefixes.
const MAX_TEXT: usize = 64 << 10;
const MAX_LIST: usize = 1000;

/// `[{id, parameters?, name?, is_enabled?}]`: a list that is not empty, of checks that exist, with parameters that they take.
pub fn validate(checks: &Value) -> Result<(), Vec<Fault>> {
    let Some(items) = checks.as_array() else {
        return Err(vec![Fault::new(FaultKind::WrongType, "", "must be a list of checks")]);
    };
    if items.is_empty() {
        return Err(vec![Fault::new(FaultKind::Empty, "", "must have a check")]);
    }
    if items.len() > MAX_CHECKS {
        return Err(vec![Fault::new(FaultKind::TooMany, "", format!("must not have more than {MAX_CHECKS} checks"))]);
    }
    let mut faults = Vec::new();
    if remote_checks(items) > MAX_REMOTE {
        let why = format!("must not have more than {MAX_REMOTE} checks that others answer");
        faults.push(Fault::new(FaultKind::TooMany, "", why));
    }
    for (index, item) in items.iter().enumerate() {
        one(item, &format!("[{index}]"), &mut faults);
    }
    faults.truncate(MAX_FAULTS);
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// How many of these checks somebody else answers. Those that are switched off, or that nobody knows, are none.
pub fn remote_checks<'c>(checks: impl IntoIterator<Item = &'c Value>) -> usize {
    let is_remote = |check: &&Value| {
        let spec = check.get("id").and_then(Value::as_str).and_then(table::check);
        let is_enabled = check.get("is_enabled").and_then(Value::as_bool) != Some(false);
        is_enabled && spec.is_some_and(|spec| spec.is_remote(&check["parameters"]))
    };
    checks.into_iter().filter(is_remote).count()
}

const FIELDS: &[&str] = &["id", "parameters", "name", "is_enabled"];

fn one(item: &Value, path: &str, faults: &mut Vec<Fault>) {
    let Some(fields) = item.as_object() else {
        faults.push(Fault::new(FaultKind::WrongType, path, "must be an object: {id, parameters}"));
        return;
    };
    for name in fields.keys().filter(|name| !FIELDS.contains(&name.as_str())) {
        faults.push(Fault::unknown(format!("{path}.{name}"), "a field of a check", name, FIELDS.iter().copied()));
    }
    if fields.get("name").is_some_and(|name| !name.is_null() && !name.is_string()) {
        faults.push(Fault::new(FaultKind::WrongType, format!("{path}.name"), "must be a text"));
    }
    if fields.get("is_enabled").is_some_and(|flag| !flag.is_null() && !flag.is_boolean()) {
        faults.push(Fault::new(FaultKind::WrongType, format!("{path}.is_enabled"), "must be true or false"));
    }
    let id = match fields.get("id") {
        Some(Value::String(id)) => id,
        None | Some(Value::Null) => {
            faults.push(Fault::new(FaultKind::Missing, format!("{path}.id"), "is required"));
            return;
        }
        Some(_) => {
            faults.push(Fault::new(FaultKind::WrongType, format!("{path}.id"), "must be a text"));
            return;
        }
    };
    let Some(spec) = table::check(id) else {
        let path = format!("{path}.id");
        faults.push(Fault::unknown(path, "the id of a check (GET /guardrails/checks lists them)", id, table::ids()));
        return;
    };
    let none = Value::Object(serde_json::Map::new());
    let parameters = fields.get("parameters").filter(|value| !value.is_null()).unwrap_or(&none);
    let at = format!("{path}.parameters");
    let found = validate_parameters(spec, parameters);
    let reads_well = found.is_empty();
    faults.extend(found.into_iter().map(|fault| fault.under(&at)));
    // What a check itself has to say: patterns, schemas, lists that contradict each other.
    if reads_well && let Err(mut fault) = spec.made(&Parameters::new(parameters)) {
        // Inside a parameter, where it decides: nobody may pass over it.
        if fault.kind == FaultKind::UnknownName {
            fault.kind = FaultKind::NotOneOf;
        }
        faults.push(fault.under(&at));
    }
}

/// The parameters against the table. Paths begin at the parameters.
pub fn validate_parameters(spec: &CheckSpec, parameters: &Value) -> Vec<Fault> {
    let Some(fields) = parameters.as_object() else {
        return vec![Fault::new(FaultKind::WrongType, "", "must be an object")];
    };
    let mut faults = Vec::new();
    for parameter in spec.parameters {
        match fields.get(parameter.name).filter(|value| !value.is_null()) {
            Some(sent) => faults.extend(value(parameter, sent, parameter.name)),
            None if parameter.is_required => {
                faults.push(Fault::new(
                    FaultKind::Missing,
                    parameter.name,
                    format!("is required: {}", wanted(parameter.kind)),
                ));
            }
            None => {}
        }
    }
    // Any check may say what becomes of its errors.
    if fields.get("failOnError").is_some_and(|flag| !flag.is_null() && !flag.is_boolean()) {
        faults.push(Fault::new(FaultKind::WrongType, "failOnError", "must be true or false"));
    }
    let known = || spec.parameters.iter().map(|parameter| parameter.name).chain(["failOnError"]);
    for name in fields.keys().filter(|name| !known().any(|known| known == *name)) {
        faults.push(Fault::unknown(name.clone(), "a parameter of this check", name, known()));
    }
    faults
}

/// One value against its kind.
pub fn value(parameter: &ParameterSpec, sent: &Value, path: &str) -> Vec<Fault> {
    let wrong = || vec![Fault::new(FaultKind::WrongType, path, format!("must be {}", wanted(parameter.kind)))];
    let too_long =
        || vec![Fault::new(FaultKind::OutOfRange, path, format!("must not be longer than {MAX_TEXT} bytes"))];
    let not_one_of = |path: String, sent: &str, words: &[&str]| {
        let mut fault = Fault::unknown(path, &format!("one of {}", words.join(", ")), sent, words.iter().copied());
        fault.kind = FaultKind::NotOneOf;
        fault
    };
    match (parameter.kind, sent) {
        (
            ParameterKind::Text | ParameterKind::Url | ParameterKind::Texts | ParameterKind::ObjectOrText,
            Value::String(text),
        ) if text.len() > MAX_TEXT => too_long(),
        (ParameterKind::Text, Value::String(text)) => match text.is_empty() && parameter.is_required {
            true => vec![Fault::new(FaultKind::Empty, path, "must not be empty")],
            false => Vec::new(),
        },
        (ParameterKind::Url, Value::String(url)) => match url.starts_with("https://") || url.starts_with("http://") {
            true => Vec::new(),
            false => {
                vec![Fault::new(FaultKind::Unusable, path, "must be an address that begins with https:// or http://")]
            }
        },
        (ParameterKind::Flag, Value::Bool(_)) | (ParameterKind::Object, Value::Object(_)) => Vec::new(),
        (ParameterKind::ObjectOrText, Value::Object(_) | Value::String(_)) => Vec::new(),
        (ParameterKind::Number { least, most, is_whole }, Value::Number(number)) => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            match (least..=most).contains(&number) {
                _ if is_whole && number.fract() != 0.0 => wrong(),
                true => Vec::new(),
                false => vec![Fault::new(FaultKind::OutOfRange, path, format!("must be from {least} to {most}"))],
            }
        }
        (ParameterKind::Choice(words), Value::String(word)) => match words.contains(&word.as_str()) {
            true => Vec::new(),
            false => vec![not_one_of(path.to_owned(), word, words)],
        },
        (ParameterKind::Texts | ParameterKind::Choices(_), Value::Array(items)) => {
            if items.is_empty() && parameter.is_required {
                return vec![Fault::new(FaultKind::Empty, path, "must not be empty")];
            }
            if items.len() > MAX_LIST {
                let message = format!("must not have more than {MAX_LIST} entries");
                return vec![Fault::new(FaultKind::TooMany, path, message)];
            }
            let mut faults = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let at = format!("{path}[{index}]");
                match (item.as_str(), parameter.kind) {
                    (None, _) => faults.push(Fault::new(FaultKind::WrongType, at, "must be a text")),
                    (Some(text), _) if text.len() > MAX_TEXT => faults.extend(too_long()),
                    (Some(word), ParameterKind::Choices(words)) if !words.contains(&word) => {
                        faults.push(not_one_of(at, word, words));
                    }
                    _ => {}
                }
            }
            faults
        }
        (ParameterKind::Texts, Value::String(text)) if !text.is_empty() || !parameter.is_required => Vec::new(),
        _ => wrong(),
    }
}

fn wanted(kind: ParameterKind) -> String {
    match kind {
        ParameterKind::Text => "a text".into(),
        ParameterKind::Url => "an address".into(),
        ParameterKind::Flag => "true or false".into(),
        ParameterKind::Number { least, most, is_whole } => {
            format!("a {}number from {least} to {most}", if is_whole { "whole " } else { "" })
        }
        ParameterKind::Texts => "a list of texts".into(),
        ParameterKind::Choice(words) => format!("one of {}", words.join(", ")),
        ParameterKind::Choices(words) => format!("a list of {}", words.join(", ")),
        ParameterKind::Object => "an object".into(),
        ParameterKind::ObjectOrText => "an object, or one written as JSON in a text".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(checks: &Value) -> Vec<String> {
        validate(checks).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_fault_is_told_at_once_with_its_path_and_the_name_that_was_meant() {
        let checks = json!([
            { "id": "default.contain", "parameters": {} },
            { "id": "default.contains", "parameters": { "word": ["a"], "operator": "some" } },
            { "id": "default.regexMatch", "parameters": { "rule": 7, "failOnError": 1 } },
            { "id": "default.wordCount", "parameters": { "minWords": -1, "maxWords": 1.5 }, "enabled": true },
            { "id": "default.regexMatch", "parameters": { "rule": "(" } },
            {}, 7,
        ]);
        let told = told(&checks).join("\n");
        for part in [
            "[0].id is not the id of a check (GET /guardrails/checks lists them); did you mean `default.contains`?",
            "[1].parameters.words is required: a list of texts",
            "[1].parameters.word is not a parameter of this check; did you mean `words`?",
            "[1].parameters.operator is not one of any, all, none",
            "[2].parameters.rule must be a text",
            "[2].parameters.failOnError must be true or false",
            "[3].parameters.minWords must be from 0",
            "[3].parameters.maxWords must be a whole number",
            "[3].enabled is not a field of a check; did you mean `is_enabled`?",
            "[4].parameters.rule",
            "[5].id is required",
            "[6] must be an object",
        ] {
            assert!(told.contains(part), "{part}\nis not in\n{told}");
        }
    }

    #[test]
    fn what_can_run_is_taken() {
        for checks in [
            json!([{ "id": "contains", "parameters": { "words": ["a"], "operator": "none" } }]),
            json!([{ "id": "default.contains", "parameters": { "words": "a, b" }, "name": "n", "is_enabled": false }]),
            json!([{ "id": "default.alluppercase" }]),
            json!([{ "id": "default.alluppercase", "parameters": null }]),
            json!([{ "id": "default.wordCount", "parameters": { "maxWords": 10.0 } }]),
            json!([{ "id": "default.notNull", "parameters": { "failOnError": true } }]),
            json!([{ "id": "default.pii" }]),
            json!([{ "id": "default.webhook", "parameters": { "webhookURL": "https://a.test/x" } }]),
            json!([{ "id": "default.jwt", "parameters": { "jwksUri": "https://a.test/keys" } }]),
            json!([{ "id": "default.inlineImageUrls" }]),
            json!([{ "id": "aiguard.scan", "parameters": { "policyId": "7" } }]),
        ] {
            assert_eq!(told(&checks), [""; 0], "{checks}");
        }
    }

    #[test]
    fn lists_and_texts_are_bounded() {
        let many = json!(vec![json!({ "id": "default.alluppercase" }); MAX_CHECKS + 1]);
        assert_eq!(validate(&many).unwrap_err()[0].kind, FaultKind::TooMany);
        let words = json!([{ "id": "contains", "parameters": { "words": vec!["a"; MAX_LIST + 1] } }]);
        assert_eq!(validate(&words).unwrap_err()[0].kind, FaultKind::TooMany);
        let remote = json!({ "id": "webhook", "parameters": { "webhookURL": "https://a.test/x" } });
        assert_eq!(validate(&json!(vec![remote.clone(); MAX_REMOTE])), Ok(()));
        assert_eq!(validate(&json!(vec![remote; MAX_REMOTE + 1])).unwrap_err()[0].kind, FaultKind::TooMany);
        let long = json!([{ "id": "endsWith", "parameters": { "suffix": "a".repeat(MAX_TEXT + 1) } }]);
        assert_eq!(validate(&long).unwrap_err()[0].kind, FaultKind::OutOfRange);
        for checks in [json!([]), json!({}), json!(null), json!("default.contains")] {
            assert_eq!(validate(&checks).unwrap_err().len(), 1, "{checks}");
        }
    }
}
