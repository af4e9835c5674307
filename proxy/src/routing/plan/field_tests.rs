//! Every field of a config, one by one: it changes what becomes of a request. A field that is read and then forgotten would
//! be believed to work; what can have no effect is refused when it is saved (`shared::config`).

use super::{FILES, PLACING, Plan, SENT, WAYS, compile};
use crate::catalog::resolve::extras;
use crate::catalog::signing::AccountCredential;
use serde_json::{Map, Value, json};
use shared::config::{FIELDS, Strictness, parse_config, placement_fields, placement_words};
use shared::providers::{AccountFields, Providers};
use shared::settings::config_limits::ConfigLimits;
use std::cell::RefCell;
use std::collections::BTreeSet;

#[derive(Debug, PartialEq)]
enum Effect {
    /// The plan differs from one without the field.
    Plan,
    /// It is sent to the provider as this header.
    Sent(&'static str),
    /// It says where an account is, or with what it authenticates.
    Placed,
    /// It is the credential.
    Credential,
    /// It says how a file is kept; `batches::provider_objects` proves that each of them does.
    Kept,
}

fn plan(config: &Value) -> Plan {
    compile(
        &parse_config(config, Strictness::Saved, &ConfigLimits::default())
            .unwrap_or_else(|faults| panic!("{config}: {faults:?}")),
    )
}

fn target() -> Value {
    json!({ "provider": "openai", "api_key": "k", "name": "a" })
}

/// The field at a target, and the group that makes sense of it.
fn at_target(field: &str, value: &Value) -> Value {
    let mut target = target();
    if field == "virtual_key" || field == "passthrough" {
        target.as_object_mut().unwrap().remove("provider");
        target.as_object_mut().unwrap().remove("api_key");
    }
    target[field] = value.clone();
    json!({ "strategy": { "mode": "loadbalance" }, "targets": [target, { "provider": "@b" }] })
}

fn at_strategy(mode: &str, field: &str, value: &Value) -> Value {
    let mut config = json!({ "strategy": { "mode": mode }, "targets": [target(), { "provider": "@b", "name": "b" }] });
    if mode == "conditional" {
        config["strategy"]["conditions"] = json!([{ "query": { "metadata.t": 1 }, "then": "a" }]);
        config["strategy"]["default"] = json!("a");
    }
    config["strategy"][field] = value.clone();
    config
}

/// What a field of our own does. Those that make a target a group are of the next test.
fn fields() -> Vec<(&'static str, Value, Effect)> {
    let breaker = json!({ "failure_threshold": 1, "cooldown_interval": 30000 });
    let hook = json!([{ "type": "guardrail", "id": "g", "checks": [] }]);
    vec![
        ("provider", json!("anthropic"), Effect::Plan),
        ("virtual_key", json!("x"), Effect::Plan),
        ("passthrough", json!(true), Effect::Plan),
        ("weight", json!(7), Effect::Plan),
        ("override_params", json!({ "a": 1 }), Effect::Plan),
        ("default_params", json!({ "a": 1 }), Effect::Plan),
        ("drop_params", json!(["a"]), Effect::Plan),
        ("retry", json!({ "attempts": 1 }), Effect::Plan),
        ("request_timeout", json!(1), Effect::Plan),
        ("total_timeout", json!(1), Effect::Plan),
        ("stream_idle_timeout", json!(1), Effect::Plan),
        ("stream_heartbeat", json!(100), Effect::Plan),
        ("hedge", json!({ "after_ms": 1 }), Effect::Plan),
        ("custom_host", json!("https://x.example.com"), Effect::Plan),
        ("forward_headers", json!(["x-a"]), Effect::Plan),
        ("cb_config", breaker, Effect::Plan),
        ("fetch_integrated_models", json!(true), Effect::Plan),
        ("prompt_id", json!("p"), Effect::Plan),
        ("input_guardrails", json!(["g"]), Effect::Plan),
        ("output_guardrails", json!(["g"]), Effect::Plan),
        ("before_request_hooks", hook.clone(), Effect::Plan),
        ("after_request_hooks", hook, Effect::Plan),
        ("input_mutators", json!(["m"]), Effect::Plan),
        ("output_mutators", json!(["m"]), Effect::Plan),
        ("cache", json!({ "mode": "simple" }), Effect::Plan),
        ("id", json!("i"), Effect::Plan),
        ("strict_open_ai_compliance", json!(false), Effect::Plan),
        ("strict_openai_compliance", json!(false), Effect::Plan),
    ]
}

/// A value that a provider's own field takes.
fn value_for(field: &str) -> Value {
    match field {
        "azure_deployment_type" => json!("managed"),
        "azure_auth_mode" => json!("entra"),
        "aws_auth_type" => json!("accessKey"),
        "mistral_fim_completion" | "provider_responses_proxy" => json!(true),
        "vertex_service_account_json" => json!({ "private_key": "k" }),
        "deployments" => json!([{ "deployment_id": "d" }]),
        _ => json!("other"),
    }
}

/// What `AccountCredential` reads of an account that has everything.
struct ReadFields {
    modes: Vec<(&'static str, &'static str)>,
    read: RefCell<BTreeSet<String>>,
}

impl AccountFields for ReadFields {
    fn text(&self, name: &str) -> Option<&str> {
        self.read.borrow_mut().insert(name.to_owned());
        let mode = self.modes.iter().find(|(field, _)| *field == name).map(|(_, mode)| *mode);
        let plain = if name == "aws_role_arn" { "arn:aws:iam::1:role/said" } else { "said" };
        Some(mode.unwrap_or(plain))
    }

    fn object(&self, name: &str) -> Option<&Map<String, Value>> {
        self.read.borrow_mut().insert(name.to_owned());
        None
    }
}

/// Every field that leads to a provider's address, paths and variants, or to a credential.
fn read_of_accounts() -> BTreeSet<String> {
    // The deployment of the model, and the model behind a deployment: read while a target is resolved.
    let mut read = BTreeSet::from(["deployments".to_owned(), "azure_model_name".to_owned()]);
    let providers = Providers::bundled().unwrap();
    let modes = |field: &'static str| placement_words(field).unwrap().iter().map(move |word| (field, *word));
    let google = ["serviceAccount", "workloadIdentity", "basic"].map(|word| ("vertex_auth_type", word));
    let modes: Vec<_> = modes("azure_auth_mode").chain(modes("aws_auth_type")).chain(google).collect();
    for row in providers.iter() {
        read.extend(row.placement_fields().map(str::to_owned));
        for mode in &modes {
            let fields = ReadFields { modes: vec![*mode], read: RefCell::default() };
            for key in [None, Some("key")] {
                let _ = AccountCredential::parse(&row.slug, &fields, key, None);
            }
            read.extend(fields.read.into_inner());
        }
    }
    read
}

#[test]
fn every_field_of_a_target_has_an_effect() {
    const OF_GROUPS: &[&str] = &["name", "on_status_codes", "strategy", "targets"];
    let own = fields();
    let mut named: Vec<&str> = own.iter().map(|(field, ..)| *field).chain(OF_GROUPS.iter().copied()).collect();
    named.sort_unstable();
    assert_eq!(named, FIELDS, "each field of a config has its row here");
    let of_providers = placement_fields().map(|field| {
        let header = SENT.iter().find(|(sent, _)| *sent == field).map(|(_, header)| *header);
        let effect = match header {
            Some(header) => Effect::Sent(header),
            None if field == "api_key" => Effect::Credential,
            None if PLACING.contains(&field) || WAYS.contains(&field) => Effect::Placed,
            None if FILES.contains(&field) => Effect::Kept,
            None => panic!("{field} has no effect"),
        };
        (field, value_for(field), effect)
    });
    let plain = format!("{:?}", plan(&at_target("name", &json!("a"))));
    let read = read_of_accounts();
    for (field, value, effect) in own.into_iter().chain(of_providers) {
        let plan = plan(&at_target(field, &value));
        let leaf = plan.leaves().next().unwrap();
        match effect {
            Effect::Plan => assert!(format!("{plan:?}") != plain, "{field} changes nothing"),
            Effect::Sent(header) => {
                let sent = extras(leaf, |_| None);
                let is_sent = sent.iter().any(|(name, sent)| name == header && sent == value.as_str().unwrap());
                assert!(is_sent, "{field} is not sent");
            }
            Effect::Credential => {
                assert!(leaf.placement.text(field) == value.as_str(), "{field} is not handed on");
            }
            Effect::Placed => assert!(leaf.placement.has(field) && read.contains(field), "nobody reads {field}"),
            Effect::Kept => assert!(leaf.placement.text(field) == value.as_str(), "{field} is not handed on"),
        }
    }
}

#[test]
fn every_field_of_a_strategy_and_of_the_objects_in_a_target_has_an_effect() {
    let breaker = |more: Value| {
        let mut rules = json!({ "failure_threshold": 2, "cooldown_interval": 30000 });
        rules.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        rules
    };
    let retry = |more: Value| {
        let mut rules = json!({ "attempts": 1 });
        rules.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        rules
    };
    let sticky = |more: Value| {
        let mut rules = json!({ "enabled": true, "hash_fields": ["metadata.a"] });
        rules.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        rules
    };
    let at_retry = |more: Value| at_target("retry", &retry(more));
    let at_breaker = |more: Value| at_target("cb_config", &breaker(more));
    let at_sticky = |more: Value| at_strategy("loadbalance", "sticky", &sticky(more));
    for (what, with, without) in [
        ("mode", at_strategy("fallback", "mode", &json!("fallback")), at_strategy("single", "mode", &json!("single"))),
        (
            "on_status_codes",
            at_strategy("fallback", "on_status_codes", &json!([429])),
            at_strategy("fallback", "mode", &json!("fallback")),
        ),
        (
            "default",
            at_strategy("conditional", "default", &json!("b")),
            at_strategy("conditional", "default", &json!("a")),
        ),
        (
            "conditions",
            at_strategy("conditional", "conditions", &json!([{ "query": { "metadata.t": 2 }, "then": "b" }])),
            at_strategy("conditional", "default", &json!("a")),
        ),
        (
            "strategy.cb_config",
            at_strategy("single", "cb_config", &breaker(json!({}))),
            at_strategy("single", "mode", &json!("single")),
        ),
        ("sticky", at_sticky(json!({})), at_sticky(json!({ "enabled": false }))),
        ("sticky.hash_fields", at_sticky(json!({ "hash_fields": ["prompt_prefix"] })), at_sticky(json!({}))),
        ("sticky.ttl", at_sticky(json!({ "ttl": 7 })), at_sticky(json!({}))),
        ("retry.attempts", at_retry(json!({ "attempts": 2 })), at_retry(json!({}))),
        ("retry.on_status_codes", at_retry(json!({ "on_status_codes": [404] })), at_retry(json!({}))),
        ("retry.use_retry_after_header", at_retry(json!({ "use_retry_after_header": true })), at_retry(json!({}))),
        ("retry.use_retry_after_headers", at_retry(json!({ "use_retry_after_headers": true })), at_retry(json!({}))),
        ("retry.jitter", at_retry(json!({ "jitter": "full" })), at_retry(json!({}))),
        ("retry.budget_percent", at_retry(json!({ "budget_percent": 5 })), at_retry(json!({}))),
        ("cb.failure_threshold", at_breaker(json!({ "failure_threshold": 3 })), at_breaker(json!({}))),
        (
            "cb.failure_threshold_percentage",
            at_breaker(json!({ "failure_threshold_percentage": 3 })),
            at_breaker(json!({})),
        ),
        ("cb.minimum_requests", at_breaker(json!({ "minimum_requests": 3 })), at_breaker(json!({}))),
        ("cb.cooldown_interval", at_breaker(json!({ "cooldown_interval": 40000 })), at_breaker(json!({}))),
        ("cb.failure_status_codes", at_breaker(json!({ "failure_status_codes": [429] })), at_breaker(json!({}))),
        (
            "hedge.percentile",
            at_target("hedge", &json!({ "percentile": 95 })),
            at_target("hedge", &json!({ "after_ms": 95 })),
        ),
    ] {
        assert_ne!(format!("{:?}", plan(&with)), format!("{:?}", plan(&without)), "{what} changes nothing");
    }
}

#[test]
fn what_fills_a_place_of_the_table_of_providers_is_handed_on() {
    let table = Providers::bundled().unwrap();
    for field in table.iter().flat_map(|row| row.placement_fields()) {
        assert!(PLACING.contains(&field) || WAYS.contains(&field), "{field} is refused");
    }
    let known: Vec<&str> = placement_fields().collect();
    assert!(PLACING.iter().all(|field| known.contains(field)), "a field that no config may have");
}
