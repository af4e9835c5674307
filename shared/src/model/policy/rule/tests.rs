//! Which requests a rule speaks of, and which group each falls into.

use super::*;
use serde_json::json;
use std::collections::HashMap;

struct Request(HashMap<&'static str, &'static str>);

impl Facts for Request {
    fn target(&self) -> PolicyTarget {
        PolicyTarget::Llm
    }

    fn value(&self, key: &PolicyKey) -> Option<Cow<'_, str>> {
        self.0.get(key.to_string().as_str()).map(|value| Cow::Borrowed(*value))
    }

    fn is(&self, key: &PolicyKey, wanted: &str) -> bool {
        match key {
            PolicyKey::Model => names_model(wanted, self.0.get("provider").copied(), self.0["model"]),
            _ => self.value(key).is_some_and(|value| value == wanted),
        }
    }
}

fn matches(conditions: Value) -> bool {
    let request = Request(HashMap::from([
        ("api_key", "k-1"),
        ("workspace_id", "w-1"),
        ("metadata.team", "red"),
        ("provider", "main"),
        ("model", "gpt-4o"),
    ]));
    let rule = json!({ "conditions": conditions, "group_by": [{ "key": "api_key" }] });
    serde_json::from_value::<Rule>(rule).unwrap().matches(&request)
}

#[test]
fn every_condition_must_hold_and_any_of_its_values_does() {
    for (conditions, expected) in [
        (json!([]), true),
        (json!([{ "key": "api_key", "value": "k-1" }]), true),
        (json!([{ "key": "api_key", "value": "k-2" }]), false),
        (json!([{ "key": "api_key", "value": ["k-2", "k-1"] }]), true),
        (json!([{ "key": "api_key", "value": "k-1" }, { "key": "metadata.team", "value": "blue" }]), false),
        (json!([{ "key": "metadata.team", "value": "*" }]), true),
        (json!([{ "key": "metadata.user", "value": "*" }]), false),
        (json!([{ "key": "metadata.team", "value": "*", "excludes": "red" }]), false),
        (json!([{ "key": "metadata.team", "value": "*", "excludes": ["blue", "green"] }]), true),
        (json!([{ "key": "model", "value": "gpt-4o" }]), true),
        (json!([{ "key": "model", "value": "@main/gpt-4o" }]), true),
        (json!([{ "key": "model", "value": "@main/*" }]), true),
        (json!([{ "key": "model", "value": "@other/*" }]), false),
        (json!([{ "key": "model", "value": "@main/gpt" }]), false),
        (json!([{ "key": "model", "value": "*", "excludes": "@main/*" }]), false),
    ] {
        assert_eq!(matches(conditions.clone()), expected, "{conditions}");
    }
}

#[test]
fn conditions_come_back_as_they_were_sent() {
    for sent in [
        json!({ "key": "api_key", "value": "x" }),
        json!({ "key": "metadata._user", "value": ["x", "y"], "excludes": "z" }),
    ] {
        let read: Condition = serde_json::from_value(sent.clone()).unwrap();
        assert_eq!(serde_json::to_value(read).unwrap(), sent);
    }
}

#[test]
fn what_is_no_condition_is_refused() {
    for sent in [
        json!({ "key": "colour", "value": "x" }),
        json!({ "key": "metadata.", "value": "x" }),
        json!({ "key": "metadata", "value": "x" }),
        json!({ "key": "metadata.a\nb", "value": "x" }),
        json!({ "key": "api_key" }),
        json!({ "key": "api_key", "value": 7 }),
        json!({ "key": "api_key", "value": [7] }),
        json!({ "key": "api_key", "value": null }),
        json!({ "key": "api_key", "value": "x", "operator": "or" }),
    ] {
        assert!(serde_json::from_value::<Condition>(sent.clone()).is_err(), "{sent}");
    }
}

#[test]
fn providers_and_models_are_known_of_attempts_alone() {
    for (conditions, group_by, expected) in [
        (json!([{ "key": "api_key", "value": "*" }]), json!([{ "key": "metadata.team" }]), false),
        (json!([{ "key": "model", "value": "*" }]), json!([{ "key": "api_key" }]), true),
        (json!([{ "key": "api_key", "value": "*" }]), json!([{ "key": "provider" }]), true),
        (json!([{ "key": "config", "value": "*" }]), json!([{ "key": "endpoint_type" }]), false),
    ] {
        let rule: Rule = serde_json::from_value(json!({ "conditions": conditions, "group_by": group_by })).unwrap();
        assert_eq!(rule.is_per_attempt(), expected, "{conditions} {group_by}");
    }
}
