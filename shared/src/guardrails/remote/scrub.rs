//! What is told of an answer: bounded, and without the credentials that were sent, should the service repeat them.

use super::super::data::Data;
use super::super::verdict::Verdict;
use serde_json::{Value, json};

/// More of an answer stands in no result.
const MAX_DATA: usize = 16 << 10;
const HIDDEN: &str = "*****";
/// Shorter texts would be found by chance.
const MIN_SECRET: usize = 4;

/// The verdict without any of these texts, and with no more data than a log should hold.
pub fn scrubbed(mut verdict: Verdict, secrets: &[String]) -> Verdict {
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).filter(|text| text.len() >= MIN_SECRET).collect();
    let mut data = verdict.data.into_value();
    hide(&mut data, &secrets);
    if let Some(error) = &mut verdict.error {
        hide_text(&mut error.message, &secrets);
    }
    if data.to_string().len() > MAX_DATA {
        let explanation = data.get("explanation").cloned().unwrap_or_default();
        data = json!({ "explanation": explanation, "is_cut": true });
        // What is said in an explanation may itself be long.
        if data.to_string().len() > MAX_DATA {
            data = json!({ "is_cut": true });
        }
    }
    verdict.data = Data::Tree(data);
    verdict
}

fn hide(value: &mut Value, secrets: &[&str]) {
    match value {
        Value::String(text) => hide_text(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, secrets)),
        Value::Object(fields) => {
            let is_secret = |name: &String| secrets.iter().any(|secret| name.contains(secret));
            fields.retain(|name, _| !is_secret(name));
            fields.values_mut().for_each(|field| hide(field, secrets));
        }
        _ => {}
    }
}

fn hide_text(text: &mut String, secrets: &[&str]) {
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        if text.contains(secret) {
            *text = text.replace(secret, HIDDEN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_repeats_its_credential_does_not_have_it_told() {
        let data = json!({ "echo": { "authorization": "Bearer s3cret-key" }, "list": ["s3cret-key"], "s3cret-key": 1 });
        let said = scrubbed(Verdict::new(false, "with s3cret-key", data), &["s3cret-key".into()]);
        let told = said.to_json().to_string();
        assert!(!told.contains("s3cret") && told.contains("Bearer *****"), "{told}");
        let failed = scrubbed(Verdict::error("HttpError", "no s3cret-key"), &["s3cret-key".into()]);
        assert_eq!(failed.error.unwrap().message, "no *****");
    }

    #[test]
    fn no_more_is_told_than_a_log_should_hold() {
        let long = json!({ "all": "x".repeat(MAX_DATA) });
        let said = scrubbed(Verdict::new(false, "Found.", long), &[]);
        assert_eq!(*said.data.value(), json!({ "explanation": "Found.", "is_cut": true }));
        let said = scrubbed(Verdict::new(false, "x".repeat(MAX_DATA), Value::Null), &[]);
        assert_eq!(*said.data.value(), json!({ "is_cut": true }));
    }
}
