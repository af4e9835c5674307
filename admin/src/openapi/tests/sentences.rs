//! That every field and parameter says what it means, and every operation in English what it does.

use super::{described, document};
use crate::openapi::descriptions::special_rows;
use serde_json::Value;
use std::collections::BTreeSet;

/// Fields without a sentence, each with where it stands.
fn silent(part: &Value, at: &str, found: &mut Vec<String>) {
    match part {
        Value::Array(items) => items.iter().for_each(|item| silent(item, at, found)),
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("example" | "examples" | "const" | "enum" | "default", _) => {}
                    ("properties", Value::Object(fields)) => {
                        for (name, field) in fields {
                            let at = format!("{at}.{name}");
                            if field["description"].as_str().is_none_or(|text| text.trim().is_empty()) {
                                found.push(at.clone());
                            }
                            silent(field, &at, found);
                        }
                    }
                    (keyword, value) => {
                        let is_named = ["schemas", "responses"].contains(&at);
                        silent(value, if is_named { keyword } else { at }, found);
                    }
                }
            }
        }
        _ => {}
    }
}

#[test]
fn every_field_has_a_description() {
    let document = document();
    let mut found = Vec::new();
    silent(&document["components"]["schemas"], "schemas", &mut found);
    silent(&document["components"]["responses"], "responses", &mut found);
    for (name, operation) in described(&document) {
        silent(operation, &name, &mut found);
    }
    let found: BTreeSet<String> = found.into_iter().collect();
    assert_eq!(found.len(), 0, "say something (openapi/descriptions) about {found:#?}");
}

#[test]
fn every_parameter_has_a_description() {
    let document = document();
    let mut found = BTreeSet::new();
    for (name, operation) in described(&document) {
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let own = parameters.filter(|one| one.get("$ref").is_none() && one.get("description").is_none());
        found.extend(own.map(|one| format!("{name} {}.{}", one["in"], one["name"])));
    }
    assert!(found.is_empty(), "say something (openapi/descriptions) about {found:#?}");
    // Headers of the contract: ours, and those of one provider.
    for name in ["x-gateway-api-key", "x-gateway-config", "x-gateway-aws-region", "x-gateway-azure-auth-mode"] {
        assert!(document["components"]["parameters"][name].is_object(), "{name}");
    }
    for (name, header) in document["components"]["parameters"].as_object().unwrap() {
        assert!(header["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
    }
}

/// A row for a field that is gone would mislead who looks for one.
#[test]
fn every_special_row_is_used() {
    let document = document();
    let text = document.to_string();
    let unused: Vec<&str> =
        special_rows().filter(|(_, sentence)| !text.contains(*sentence)).map(|(name, _)| name).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[test]
fn summaries_are_english_and_say_what_the_operation_does() {
    let document = document();
    for (name, operation) in described(&document) {
        let summary = operation["summary"].as_str().unwrap();
        let is_stuttering = summary.split(' ').any(|word| word.ends_with("tss") || word.ends_with("cys"));
        assert!(!summary.contains(['_', '`']) && !is_stuttering && !summary.ends_with('.'), "{name}: {summary}");
        assert!(summary.starts_with(|letter: char| letter.is_ascii_uppercase()), "{name}: {summary}");
    }
    let summary = |path: &str| document["paths"][path]["get"]["summary"].clone();
    assert_eq!(summary("/policies/rate-limits"), "List rate limits policies");
    assert_eq!(summary("/policies/usage-limits"), "List usage limits policies");
}

/// Every operation has a handler, and every field an effect.
#[test]
fn no_sentence_says_that_something_is_missing() {
    let document = document();
    let text = format!("{}{}", document["paths"], document["components"]["schemas"]).to_lowercase();
    for words in ["not built", "not implemented", "coming soon"] {
        assert!(!text.contains(words), "{words}");
    }
}
