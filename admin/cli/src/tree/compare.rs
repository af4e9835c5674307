//! What a file says against what is there, field by field. What a file does not say is not compared.

use super::live::{MASK, is_empty, normal};
use crate::kinds::{Kind, SECRET_FIELDS};
use crate::secrets::{PLACEHOLDER, hidden_by_name, redacted};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A difference, at its path within the object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub path: String,
    pub from: Value,
    pub to: Value,
}

/// A field that differs, with all its differences.
#[derive(Debug, Clone)]
pub struct FieldChange {
    pub field: String,
    pub changes: Vec<Change>,
    /// Whether the API cannot change it in an object that exists.
    pub is_fixed: bool,
}

/// Fields whose missing parts stay as they are: the API completes or merges them.
pub const MERGED: &[&str] = &["settings", "security_settings", "defaults"];

/// `file` and `live` are templates; masks in `live` show where secrets are.
pub fn differences(kind: &Kind, file: &Map<String, Value>, live: &Map<String, Value>) -> Vec<FieldChange> {
    let mut found = Vec::new();
    for (field, meant) in file {
        if field == "key" || field == "create_default_provider" {
            continue;
        }
        let mut meant = normal(field, meant);
        let mut there = normal(field, live.get(field).unwrap_or(&Value::Null));
        if SECRET_FIELDS.contains(&field.as_str()) {
            leave_out_secrets(&mut meant, &mut there);
        } else {
            (meant, there) = (redacted(field, &meant), redacted(field, &there));
        }
        if MERGED.contains(&field.as_str()) {
            there = only_named(&there, &meant);
        }
        let mut changes = Vec::new();
        walk(field, &there, &meant, &mut changes);
        if SECRET_FIELDS.contains(&field.as_str()) {
            changes.iter_mut().for_each(hide_new_secret);
        }
        if !changes.is_empty() {
            let is_fixed = kind.fixed.contains(&field.as_str());
            found.push(FieldChange { field: field.clone(), changes, is_fixed });
        }
    }
    found
}

/// Of two objects, what neither hides: a mask on one side leaves out the secret on the other.
fn leave_out_secrets(meant: &mut Value, there: &mut Value) {
    if let (Value::Object(meant), Value::Object(there)) = (&mut *meant, &mut *there) {
        meant.retain(|name, _| !there.contains_key(&format!("{MASK}{name}")));
        there.retain(|name, _| !name.starts_with(MASK));
    }
    for side in [meant, there] {
        if is_empty(side) {
            *side = Value::Null;
        }
    }
}

/// A secret that the object has not yet has no mask: its name alone tells that it is one.
fn hide_new_secret(change: &mut Change) {
    let name = change.path.rsplit('.').next().unwrap_or_default();
    change.to = hidden_by_name(name, &change.to, PLACEHOLDER);
}

fn only_named(there: &Value, meant: &Value) -> Value {
    match (there, meant) {
        (Value::Object(there), Value::Object(meant)) => {
            let named =
                there.iter().filter_map(|(name, value)| Some((name.clone(), only_named(value, meant.get(name)?))));
            Value::Object(named.collect())
        }
        _ => there.clone(),
    }
}

fn walk(path: &str, from: &Value, to: &Value, changes: &mut Vec<Change>) {
    match (from, to) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                walk(&format!("{path}.{name}"), value, after.get(name).unwrap_or(&Value::Null), changes);
            }
            for (name, value) in after.iter().filter(|(name, _)| !before.contains_key(*name)) {
                walk(&format!("{path}.{name}"), &Value::Null, value, changes);
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                walk(&format!("{path}[{at}]"), before, after, changes);
            }
        }
        (from, to) if from == to => {}
        (from, to) => changes.push(Change { path: path.to_owned(), from: from.clone(), to: to.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use serde_json::json;

    fn paths(kind: &str, file: Value, live: Value) -> Vec<String> {
        let (Value::Object(file), Value::Object(live)) = (file, live) else { panic!("objects") };
        let found = differences(kinds::find(kind).unwrap(), &file, &live);
        found.into_iter().flat_map(|field| field.changes).map(|change| change.path).collect()
    }

    #[test]
    fn only_what_the_file_says_and_the_server_lets_see_is_compared() {
        let live = json!({ "name": "a", "config": { "provider": "@p", "retry": { "attempts": 2 } } });
        assert!(paths("config", json!({ "name": "a" }), live.clone()).is_empty());
        assert_eq!(paths("config", json!({ "config": { "provider": "@p" } }), live), ["config.retry"]);
        let live = json!({ "configurations": { "region": "eu", "masked_secret": "ab*****cd" } });
        assert!(
            paths(
                "integration",
                json!({ "key": "x", "configurations": { "region": "eu", "secret": "${env:S}" } }),
                live.clone()
            )
            .is_empty()
        );
        assert_eq!(
            paths("integration", json!({ "configurations": { "region": "us", "secret": "s" } }), live),
            ["configurations.region"]
        );
    }

    #[test]
    fn a_secret_is_no_difference_and_a_new_one_is_not_shown() {
        let live = json!({ "config": { "provider": "@p", "api_key": "sk*****abc" } });
        assert!(
            paths("config", json!({ "config": { "provider": "@p", "api_key": "${env:KEY}" } }), live.clone())
                .is_empty()
        );
        assert_eq!(paths("config", json!({ "config": { "provider": "@p" } }), live), ["config.api_key"]);
        let check = |token: &str| json!({ "checks": [{ "id": "a", "parameters": { "headers": { "x": token } } }] });
        assert!(paths("guardrail", check("${env:TOKEN}"), check("plain")).is_empty());
        for live in [json!({}), json!({ "auth_config": { "vault_addr": "a" } })] {
            let file = json!({ "auth_config": { "vault_addr": "a", "vault_token": "canary" } });
            let kind = kinds::find("secret-reference").unwrap();
            let found = differences(kind, file.as_object().unwrap(), live.as_object().unwrap());
            assert!(!format!("{found:?}").contains("canary") && found.len() == 1, "{found:?}");
        }
    }

    #[test]
    fn parts_that_the_file_does_not_say_are_not_compared_and_empty_ones_are_equal() {
        let live = json!({ "defaults": { "metadata": {}, "config_id": "main" } });
        assert!(paths("api-key", json!({ "defaults": { "metadata": {} } }), live.clone()).is_empty());
        assert_eq!(
            paths("api-key", json!({ "defaults": { "metadata": { "a": "b" } } }), live),
            ["defaults.metadata.a"]
        );
    }

    #[test]
    fn what_means_the_same_is_no_difference_and_null_clears() {
        let live = json!({ "usage_limits": { "type": "cost", "credit_limit": 50, "current_usage": 3, "strict": false, "alert_threshold": null } });
        assert!(
            paths("api-key", json!({ "usage_limits": { "credit_limit": 50.0 }, "rate_limits": [] }), live.clone())
                .is_empty()
        );
        assert_eq!(paths("api-key", json!({ "usage_limits": null }), live), ["usage_limits"]);
    }
}
