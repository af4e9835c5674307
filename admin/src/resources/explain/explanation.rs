//! A past request as `POST /explain` shows it. Values of parameters and credentials of its config are left out: names
//! suffice to see what was changed.

use super::request::{ConfigVersion, LoggedAttempt, LoggedRequest};
use crate::log_data::row;
use crate::logs::routing_story::{self, StoryTarget, TriedTarget};
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use shared::config::{ConfigNode, Hedge, Inherited, Retry};

pub fn explanation(request: &LoggedRequest, version: Option<&ConfigVersion>) -> Value {
    let (Some(first), Some(latest)) = (request.attempts.first(), request.attempts.last()) else { return Value::Null };
    let lane = if latest.log["is_proxy_call"] == true { "relay" } else { "engine" };
    json!({
        "object": "explanation",
        "lane": lane,
        "metadata": latest.log["metadata"],
        "config": config(&first.log, version),
        "plan": plan(request, version.and_then(|version| version.config.as_ref())),
        // No log says which limits were asked, or which guardrails; an empty list would say that there were none.
        "limits": null,
        "guardrails": null,
        "outcome": request.last().map(|last| outcome(request, last)),
    })
}

/// A log does not say whether the request, its key or its workspace named the config.
fn config(log: &Value, version: Option<&ConfigVersion>) -> Value {
    let source = match (log["config"].as_str(), &log["config_id"]) {
        (None, _) => "none",
        (Some(_), Value::Null) => "inline",
        (Some(_), _) => "saved",
    };
    json!({
        "source": source,
        "id": log["config_id"],
        "slug": if source == "saved" { &log["config"] } else { &Value::Null },
        "version_id": log["config_version_id"],
        "version": version.map(|version| version.number),
    })
}

fn plan(request: &LoggedRequest, config: Option<&ConfigNode>) -> Vec<Value> {
    // A request that was refused before it had a target tried none.
    let asked: Vec<&LoggedAttempt> = request.attempts.iter().filter(|one| one.log["ai_org"].is_string()).collect();
    let tried: Vec<TriedTarget> = asked
        .iter()
        .map(|one| TriedTarget {
            option: option(one).to_owned(),
            status: one.log["response_status_code"].as_i64().unwrap_or(0),
        })
        .collect();
    match config {
        Some(config) => routing_story::explain_routing(config, &tried)
            .iter()
            .map(|stop| entry(stop, stop.tried.and_then(|index| asked.get(index)).copied()))
            .collect(),
        None => asked.iter().enumerate().map(|(index, one)| without_config(one, index, &tried)).collect(),
    }
}

fn entry(stop: &StoryTarget<'_>, attempt: Option<&LoggedAttempt>) -> Value {
    let mut why = stop.why.clone();
    why.extend(attempt.and_then(|attempt| of_retries(&attempt.log)));
    json!({
        "option": stop.option,
        "is_reached": attempt.is_some(),
        "share": stop.share,
        "why": why,
        "settings": settings(&stop.settings),
        "target": attempt.map_or_else(|| planned(stop.target), asked),
        "outcome": attempt.map(|attempt| outcome_of(&attempt.log)),
    })
}

/// Of a config that came with the request only its strategy is known, and its reasons are not.
fn without_config(attempt: &LoggedAttempt, index: usize, tried: &[TriedTarget]) -> Value {
    let log = &attempt.log;
    let (mode, is_inline) = (log["mode"].as_str().unwrap_or_default(), log["config"].is_string());
    let first = match (index.checked_sub(1).and_then(|before| tried.get(before)), is_inline) {
        (Some(before), _) => format!("the next after {} ended with {}", before.option, before.status),
        (None, true) => format!("the first target of a config that is not kept; its strategy was {mode}"),
        (None, false) => "the request followed no config".to_owned(),
    };
    json!({
        "option": option(attempt),
        "is_reached": true,
        "share": null,
        "why": std::iter::once(first).chain(of_retries(log)).collect::<Vec<_>>(),
        "settings": null,
        "target": asked(attempt),
        "outcome": outcome_of(log),
    })
}

fn of_retries(log: &Value) -> Option<String> {
    match log["retry_success_count"].as_i64()? {
        0 => None,
        1 => Some("it was retried once".to_owned()),
        -1 => Some("its retries were used up".to_owned()),
        count => Some(format!("it was retried {count} times")),
    }
}

fn option(attempt: &LoggedAttempt) -> &str {
    attempt.log["last_used_option_index"].as_str().unwrap_or("config")
}

/// Whom a target asked. Where that was reached is not logged.
fn asked(attempt: &LoggedAttempt) -> Value {
    let log = &attempt.log;
    let model = if log["requested_model"].is_null() { &log["ai_model"] } else { &log["requested_model"] };
    let mut asked = target(&log["ai_org"], &log["virtual_key"], model);
    asked["dropped_params"] = log["dropped_params"].clone();
    asked
}

/// Whom a target would have asked, as its config names it.
fn planned(config: &ConfigNode) -> Value {
    let named = config.provider.as_deref();
    let slug = config.virtual_key.as_deref().or(named.filter(|name| name.starts_with('@')));
    let slug = slug.map(|slug| slug.trim_start_matches('@'));
    target(&json!(named.filter(|name| !name.starts_with('@'))), &json!(slug), &Value::Null)
}

fn target(provider: &Value, slug: &Value, model: &Value) -> Value {
    json!({
        "provider": provider, "virtual_key": slug, "url": null, "model": model, "translated_to": null, "request_timeout": null,
        "stream_idle_timeout": null, "refusal": null,
    })
}

/// Those of the plan's settings that a config gives a target; how its circuit stood then is not known.
fn settings(given: &Inherited) -> Value {
    let hedge = given.hedge.map(|hedge| match hedge {
        Hedge::AfterMs(delay) => json!({ "after_ms": delay }),
        Hedge::Percentile(percent) => json!({ "percentile": percent }),
    });
    let names = |params: &Map<String, Value>| params.keys().cloned().collect::<Vec<_>>();
    json!({
        "request_timeout": given.request_timeout,
        "total_timeout": given.total_timeout,
        "stream_idle_timeout": given.stream_idle,
        "stream_heartbeat": given.heartbeat,
        "retry": given.retry.as_ref().map(Retry::shown),
        "hedge": hedge,
        "circuit": null,
        "custom_host": given.custom_host,
        "forward_headers": given.forward_headers,
        "override_params": names(&given.overrides),
        "default_params": names(&given.defaults),
        "drop_params": given.drops.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// The fields that each try and the request as a whole have.
const FIELDS: &[(&str, &str)] = &[
    ("status", "response_status_code"),
    ("is_success", "is_success"),
    ("error_code", "error_code"),
    ("retries", "retry_success_count"),
    ("response_time", "response_time"),
    ("time_to_first_token", "time_to_first_token"),
    ("req_units", "req_units"),
    ("res_units", "res_units"),
    ("usage_estimated", "usage_estimated"),
    ("cost", "cost"),
    ("cost_unit", "cost_unit"),
];

fn outcome_of(log: &Value) -> Value {
    let mut outcome = json!({ "log_id": log["id"] });
    for (name, column) in FIELDS {
        outcome[*name] = log[*column].clone();
    }
    outcome
}

/// Every target costs, not only the one that answered.
fn outcome(request: &LoggedRequest, last: &LoggedAttempt) -> Value {
    let log = &last.log;
    let mut outcome = outcome_of(log);
    if let Value::Object(outcome) = &mut outcome {
        outcome.shift_remove("log_id");
    }
    let known: Vec<Decimal> = request.attempts.iter().filter_map(|one| one.cost).collect();
    let units =
        |name: &str| request.attempts.iter().filter_map(|one| one.log[name].as_i64()).fold(0, i64::saturating_add);
    outcome["cost"] = if known.is_empty() { Value::Null } else { row::number(known.iter().sum()) };
    outcome["req_units"] = units("req_units").into();
    outcome["res_units"] = units("res_units").into();
    let is_answered = log["ai_org"].is_string();
    for (name, value) in [
        ("request_id", &log["internal_trace_id"]),
        ("trace_id", &log["trace_id"]),
        ("created_at", &log["created_at"]),
        ("method", &log["request_method"]),
        ("path", &log["request_url"]),
        ("cost_currency", &log["cost_currency"]),
        ("answered_by", &if is_answered { json!(option(last)) } else { Value::Null }),
        ("targets_tried", &json!(request.attempts.iter().filter(|one| one.log["ai_org"].is_string()).count())),
    ] {
        outcome[name] = value.clone();
    }
    outcome
}
