//! Every field of a config, one by one: it changes what becomes of a request, or it is refused by name. A field that is
//! read and then forgotten would be believed to work.

use super::{Plan, compile};
use serde_json::{Value, json};
use shared::config::{Limits, Strictness, read};

#[derive(Debug, PartialEq)]
enum Effect {
    /// The plan differs from one without the field.
    Plan,
    /// It is handed to whoever builds the provider's request.
    Placed,
    /// Requests that meet it are told that it is not supported yet.
    Refused,
    /// Read and kept for others: nothing of routing depends on it.
    Elsewhere,
}

fn plan(config: &Value) -> Plan {
    compile(
        &read(config, Strictness::Saved, &Limits::default()).unwrap_or_else(|faults| panic!("{config}: {faults:?}")),
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

#[test]
fn every_field_of_a_target_has_an_effect_or_is_refused() {
    let plain = format!("{:?}", plan(&at_target("name", &json!("a"))));
    let breaker = json!({ "failure_threshold": 1, "cooldown_interval": 30000 });
    for (field, value, effect) in [
        ("provider", json!("@x"), Effect::Plan),
        ("virtual_key", json!("x"), Effect::Plan),
        ("passthrough", json!(true), Effect::Plan),
        ("api_key", json!("other"), Effect::Placed),
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
        ("openai_organization", json!("o"), Effect::Placed),
        ("openai_project", json!("p"), Effect::Placed),
        ("anthropic_beta", json!("b"), Effect::Placed),
        ("anthropic_version", json!("v"), Effect::Placed),
        ("azure_resource_name", json!("r"), Effect::Placed),
        ("aws_region", json!("r"), Effect::Placed),
        ("vertex_region", json!("r"), Effect::Placed),
        ("prompt_id", json!("p"), Effect::Refused),
        ("input_guardrails", json!(["g"]), Effect::Refused),
        ("output_guardrails", json!(["g"]), Effect::Refused),
        ("before_request_hooks", json!([{ "type": "guardrail", "id": "g", "checks": [] }]), Effect::Refused),
        ("after_request_hooks", json!([{ "type": "guardrail", "id": "g", "checks": [] }]), Effect::Refused),
        ("input_mutators", json!(["m"]), Effect::Refused),
        ("output_mutators", json!(["m"]), Effect::Refused),
        // The answer's header says that nothing is cached.
        ("cache", json!({ "mode": "simple" }), Effect::Elsewhere),
        ("id", json!("i"), Effect::Elsewhere),
        ("strict_open_ai_compliance", json!(false), Effect::Elsewhere),
        ("fetch_integrated_models", json!(true), Effect::Elsewhere),
    ] {
        let plan = plan(&at_target(field, &value));
        let is_refused = plan.leaves().any(|leaf| leaf.unsupported.is_some());
        match effect {
            Effect::Plan => assert!(format!("{plan:?}") != plain && !is_refused, "{field} changes nothing"),
            Effect::Placed => {
                let placed = plan.leaves().next().and_then(|leaf| leaf.placement.text(field));
                assert!(placed == value.as_str() && !is_refused, "{field} is not handed on");
            }
            Effect::Refused => assert!(is_refused, "{field} is not refused"),
            Effect::Elsewhere => assert!(!is_refused, "{field} is refused"),
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
