//! The published schema of configs against the reader that decides: the same keys, the same bounds, the same words, and
//! every example is a config.

use super::{document, faults};
use serde_json::{Map, Value, json};
use shared::config::{
    self, ConfigLimits, FIELDS, NESTED_FIELDS, QUERY_OPERATORS, Strictness, parse_config, placement_fields,
};
use std::collections::BTreeSet;

/// Where the reader finds an object → its name in the document.
const TITLES: &[(&str, &str)] = &[
    ("before_request_hooks[0]", "ConfigHook"),
    ("before_request_hooks[0].checks[0]", "ConfigCheck"),
    ("cache", "ConfigCache"),
    ("cb_config", "ConfigCircuitBreaker"),
    ("deployments[0]", "ConfigDeployment"),
    ("hedge", "ConfigHedge"),
    ("input_guardrails[0]", "ConfigGuardrail"),
    ("retry", "ConfigRetry"),
    ("strategy", "ConfigStrategy"),
    ("strategy.conditions[0]", "ConfigCondition"),
    ("strategy.sticky", "ConfigSticky"),
];

fn titles() -> impl Iterator<Item = &'static str> {
    TITLES.iter().map(|(_, title)| *title).chain(["ConfigObject", "ConfigQuery", "ConfigOperators"])
}

fn keys(document: &Value, title: &str) -> Map<String, Value> {
    let keys = document["components"]["schemas"][title]["properties"].as_object();
    keys.unwrap_or_else(|| panic!("{title} is not in the document")).clone()
}

fn names(document: &Value, title: &str) -> BTreeSet<String> {
    keys(document, title).keys().cloned().collect()
}

fn owned<'n>(names: impl IntoIterator<Item = &'n str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn saved(config: &Value) -> Result<config::ConfigNode, Vec<config::Fault>> {
    parse_config(config, Strictness::Saved, &ConfigLimits::default())
}

/// A good config in which the object `title` stands, with this value under this key.
fn with(title: &str, name: &str, value: &Value) -> Value {
    let mut part = match (title, name) {
        ("ConfigObject", "strategy" | "targets" | "on_status_codes") => {
            json!({ "strategy": { "mode": "single" }, "targets": [{ "provider": "@a" }] })
        }
        ("ConfigObject", "passthrough") => json!({}),
        // A stored provider has them itself.
        ("ConfigObject", _) if placement_fields().any(|field| field == name) => {
            json!({ "provider": "openai", "api_key": "k" })
        }
        ("ConfigObject", _) => json!({ "provider": "@a" }),
        ("ConfigStrategy", "mode" | "conditions" | "default") => {
            json!({ "mode": "conditional", "default": "small", "conditions": [{ "query": { "metadata.a": 1 }, "then": "big" }] })
        }
        ("ConfigStrategy", _) => json!({ "mode": "loadbalance" }),
        ("ConfigSticky", _) => json!({ "enabled": true, "hash_fields": ["metadata.a"] }),
        ("ConfigCondition", _) => json!({ "query": { "metadata.a": 1 }, "then": "small" }),
        ("ConfigRetry", _) => json!({ "attempts": 1 }),
        ("ConfigCache", _) => json!({ "mode": "simple" }),
        ("ConfigCircuitBreaker", _) => json!({ "failure_threshold": 5, "cooldown_interval": 30_000 }),
        ("ConfigHook", _) => json!({ "id": "h" }),
        ("ConfigCheck", _) => json!({ "id": "default.regexMatch", "parameters": { "rule": "a" } }),
        ("ConfigGuardrail", _) => json!({ "id": "pg-1" }),
        ("ConfigDeployment", _) => json!({ "deployment_id": "d" }),
        _ => json!({}),
    };
    part[name] = value.clone();
    inside(title, part)
}

fn inside(title: &str, part: Value) -> Value {
    match title {
        "ConfigStrategy" => {
            json!({ "strategy": part, "targets": [{ "name": "big", "provider": "@a" }, { "name": "small", "provider": "@b" }] })
        }
        "ConfigSticky" => inside("ConfigStrategy", json!({ "mode": "loadbalance", "sticky": part })),
        "ConfigCondition" => {
            inside("ConfigStrategy", json!({ "mode": "conditional", "conditions": [part], "default": "small" }))
        }
        "ConfigQuery" => inside("ConfigCondition", json!({ "query": part, "then": "small" })),
        "ConfigOperators" => inside("ConfigQuery", json!({ "metadata.a": part })),
        "ConfigRetry" => json!({ "provider": "@a", "retry": part }),
        "ConfigCache" => json!({ "provider": "@a", "cache": part }),
        "ConfigHedge" => json!({ "provider": "@a", "hedge": part }),
        "ConfigCircuitBreaker" => json!({ "provider": "@a", "cb_config": part }),
        "ConfigHook" => json!({ "provider": "@a", "before_request_hooks": [part] }),
        "ConfigCheck" => inside("ConfigHook", json!({ "id": "h", "checks": [part] })),
        "ConfigGuardrail" => json!({ "provider": "@a", "input_guardrails": [part] }),
        "ConfigDeployment" => json!({ "provider": "azure-openai", "api_key": "k", "deployments": [part] }),
        _ => part,
    }
}

/// The schema of a value that may also be null.
fn bare(schema: &Value) -> &Value {
    schema["anyOf"].get(0).filter(|_| schema["anyOf"][1] == json!({ "type": "null" })).unwrap_or(schema)
}

#[test]
fn the_schema_has_every_key_that_is_read_and_no_other() {
    let document = document();
    assert_eq!(names(&document, "ConfigObject"), owned(FIELDS.iter().copied().chain(placement_fields())));
    for (path, known) in NESTED_FIELDS {
        let (_, title) = TITLES.iter().find(|(at, _)| at == path).unwrap_or_else(|| panic!("{path} has no title"));
        assert_eq!(names(&document, title), owned(known.iter().copied()), "{title}");
    }
    let mut operators = names(&document, "ConfigQuery");
    operators.append(&mut names(&document, "ConfigOperators"));
    assert_eq!(operators, owned(QUERY_OPERATORS.iter().copied()));
}

#[test]
fn every_example_of_the_schema_is_a_config() {
    let document = document();
    let language = json!({ "$ref": "#/components/schemas/ConfigObject" });
    for title in titles() {
        for (name, schema) in keys(&document, title) {
            let named = schema["$ref"].as_str().map(|path| &document.pointer(&path[1..]).unwrap()["examples"]);
            let examples = schema["examples"].as_array().or(named.and_then(Value::as_array));
            let examples =
                examples.filter(|all| !all.is_empty()).unwrap_or_else(|| panic!("{title}.{name}: no example"));
            for example in examples {
                let config = with(title, &name, example);
                assert_eq!(saved(&config).err(), None, "{title}.{name}: {config}");
                let faults = faults(&document, &language, &config);
                assert!(faults.is_empty(), "{title}.{name}: {faults:?} in {config}");
            }
        }
    }
}

#[test]
fn bounds_are_those_of_the_reader() {
    let document = document();
    let mut count = 0;
    for title in titles() {
        for (name, schema) in keys(&document, title) {
            for (bound, beyond) in [("minimum", -1.0), ("maximum", 1.0)] {
                let Some(limit) = bare(&schema).get(bound) else { continue };
                assert_eq!(saved(&with(title, &name, limit)).err(), None, "{title}.{name}: {limit}");
                let further = json!(limit.as_f64().unwrap() + beyond);
                assert!(saved(&with(title, &name, &further)).is_err(), "{title}.{name}: {further}");
                count += 1;
            }
        }
    }
    assert!(count > 20, "{count}");
}

#[test]
fn words_are_those_of_the_reader_and_null_is_as_good_as_nothing() {
    let document = document();
    for title in titles() {
        let required = document["components"]["schemas"][title]["required"].clone();
        for (name, schema) in keys(&document, title) {
            for word in bare(&schema)["enum"].as_array().into_iter().flatten().filter(|word| !word.is_null()) {
                assert_eq!(saved(&with(title, &name, word)).err(), None, "{title}.{name}: {word}");
                assert!(saved(&with(title, &name, &json!("nonsense"))).is_err(), "{title}.{name}");
            }
            let accepts_null = faults(&document, &schema, &Value::Null).is_empty();
            let is_required = required.as_array().unwrap().contains(&json!(name));
            assert!(!(is_required && accepts_null), "{title}.{name} is required and may be null");
        }
    }
}

#[test]
fn defaults_are_those_of_the_reader() {
    let document = document();
    let default = |title: &str, name: &str| keys(&document, title)[name]["default"].clone();
    let config = saved(&inside("ConfigRetry", json!({ "attempts": 1 }))).unwrap();
    let retry = config.retry.unwrap();
    assert_eq!(default("ConfigRetry", "budget_percent").as_f64(), Some(retry.budget_percent));
    assert_eq!(default("ConfigRetry", "use_retry_after_header"), json!(retry.use_retry_after_header));
    assert_eq!((default("ConfigRetry", "jitter"), retry.jitter), (json!("none"), config::Jitter::None));
    let sticky = saved(&inside("ConfigSticky", json!({ "enabled": true, "hash_fields": ["metadata.a"] }))).unwrap();
    let sticky = sticky.strategy.unwrap().sticky.unwrap();
    assert_eq!(default("ConfigSticky", "ttl"), json!(sticky.ttl_seconds));
    assert_eq!(default("ConfigObject", "passthrough"), json!(config.passthrough));
}

#[test]
fn a_config_that_is_sent_is_described_by_the_language() {
    let document = document();
    for (title, pointer) in [("NewConfig", "/anyOf/0/$ref"), ("ConfigChange", "/anyOf/0/anyOf/0/$ref")] {
        let config = &document["components"]["schemas"][title]["properties"]["config"];
        assert_eq!(config.pointer(pointer), Some(&json!("#/components/schemas/ConfigObject")), "{title}: {config}");
    }
    let wrong = json!({ "provider": "@a", "retry": { "attempts": 9 }, "weigth": 1 });
    assert_eq!(faults(&document, &json!({ "$ref": "#/components/schemas/ConfigObject" }), &wrong).len(), 2);
}

#[test]
fn scopes_are_a_closed_list() {
    let document = document();
    let scope = &document["components"]["schemas"]["Scope"]["enum"];
    assert!(scope.as_array().unwrap().contains(&json!("completions.write")));
    for title in ["NewServiceKey", "Key", "InvitedKeyDetails"] {
        let items = &document["components"]["schemas"][title]["properties"]["scopes"]["items"];
        assert_eq!(items, &json!({ "$ref": "#/components/schemas/Scope" }), "{title}");
    }
    let oidc = &document["components"]["schemas"]["OidcChange"]["properties"]["scopes"]["items"];
    assert_eq!(oidc["type"], "string");
}
