//! What public lists lack or have wrong, from `conf/models/by-hand.json`: laid over what a list says of its models, as
//! `conf/models/generate.py` does for the bundled files.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const FILE: &str = include_str!("../../../../../conf/models/by-hand.json");

#[derive(Debug, Deserialize)]
pub struct HandRow {
    providers: Vec<String>,
    /// Names, or patterns with `*`.
    models: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
    source: String,
    as_of: String,
    entry: Value,
}

/// The rows that come with the program.
pub fn bundled() -> Vec<HandRow> {
    serde_json::from_str(FILE).unwrap_or_default()
}

/// Adds what the rows say of these models of a provider. They make no models: those that no list has are bundled already.
pub fn lay_over(rows: &[HandRow], provider: &str, entries: &mut BTreeMap<String, Value>) {
    for row in rows.iter().filter(|row| row.providers.iter().any(|name| name == provider)) {
        for (_, entry) in entries.iter_mut().filter(|(model, _)| row.is_about(model)) {
            merge(entry, &row.entry);
            let source = format!("{} ({})", row.source, row.as_of);
            match entry.get_mut("sources").and_then(Value::as_array_mut) {
                Some(sources) => sources.push(source.into()),
                None => entry["sources"] = json!([source]),
            }
        }
    }
}

impl HandRow {
    fn is_about(&self, model: &str) -> bool {
        let named = |patterns: &[String]| patterns.iter().any(|pattern| matches_pattern(pattern, model));
        named(&self.models) && !named(&self.except)
    }
}

fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// `*` stands for any text, also for none.
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_as_the_shell_does() {
        for (pattern, name, expected) in [
            ("gpt-4o", "gpt-4o", true),
            ("gpt-4o", "gpt-4o-mini", false),
            ("gpt-4o*", "gpt-4o-mini", true),
            ("*tts*", "gpt-4o-mini-tts-1", true),
            ("*tts*", "tts", true),
            ("gpt-4o*search-preview*", "gpt-4o-mini-search-preview-2025", true),
            ("gpt-4o*search-preview*", "gpt-4o-search", false),
            ("a*a", "a", false),
            ("glm-*-flash", "glm-4.7-flash", true),
            ("*", "", true),
        ] {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn every_row_is_read_and_has_no_pattern_that_is_not_understood() {
        let rows = bundled();
        let written: Vec<Value> = serde_json::from_str(FILE).unwrap();
        assert_eq!(rows.len(), written.len());
        let patterns = rows.iter().flat_map(|row| row.models.iter().chain(&row.except));
        assert!(patterns.into_iter().all(|pattern| !pattern.contains(['?', '['])));
    }

    #[test]
    fn a_row_adds_to_the_models_it_is_about_and_says_where_it_was_read() {
        let mut entries = BTreeMap::from([
            (
                "gpt-4o".to_owned(),
                json!({ "pricing_config": { "pay_as_you_go": { "request_token": { "price": "1" } } } }),
            ),
            ("gpt-4o-mini-tts".to_owned(), json!({ "pricing_config": {} })),
        ]);
        lay_over(&bundled(), "openai", &mut entries);
        let rates = &entries["gpt-4o"]["pricing_config"]["pay_as_you_go"];
        assert_eq!(rates["additional_units"]["web_search"]["price"], "1");
        assert_eq!(rates["request_token"]["price"], "1");
        assert_eq!(entries["gpt-4o"]["sources"].as_array().unwrap().len(), 2);
        assert_eq!(entries["gpt-4o-mini-tts"], json!({ "pricing_config": {} }));
        assert_eq!(entries.len(), 2);
    }
}
