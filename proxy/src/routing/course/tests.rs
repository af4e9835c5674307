//! Walks through whole plans, told by the targets they visit: fallbacks inside fallbacks, retries, weights, conditions,
//! open circuits, and what ends a walk at once.

use super::super::clock::Still;
use super::*;
use crate::request::body::Fields;
use crate::routing::plan::compile;
use serde_json::{Map, Value, json};
use shared::config::{Strictness, parse_config};
use shared::settings::config_limits::ConfigLimits;
use std::time::Instant;

fn plan(config: &Value) -> Plan {
    compile(
        &parse_config(config, Strictness::Inline, &ConfigLimits::default())
            .unwrap_or_else(|faults| panic!("{faults:?}")),
    )
}

/// Walks a plan with these statuses as outcomes and says which targets were tried, by their last digits.
fn walk_at(plan: &Plan, statuses: &[u16], chance: f64, metadata: &Value, now: Instant) -> Result<String, Refusal> {
    let (metadata, params) = (metadata.as_object().cloned().unwrap_or_default(), Fields::default());
    let (clock, mut chance) = (Still::at(now), || chance);
    let mut moment = RoutingInputs {
        facts: RequestFacts { metadata: &metadata, params: &params, pathname: "/v1/chat/completions" },
        scope: b"w",
        clock: &clock,
        chance: &mut chance,
    };
    let mut course = Course::begin(plan, &mut moment)?;
    let mut tried = vec![short(&course.node().path)];
    for status in statuses {
        let outcome = AttemptResult { status: *status, ..AttemptResult::default() };
        match course.after(&outcome, &mut moment)? {
            AfterAttempt::Deliver => return Ok(tried.join(" ") + "."),
            AfterAttempt::Again(wait) => tried.push(format!("+{}", wait.as_secs())),
            AfterAttempt::Elsewhere => tried.push(short(&course.node().path)),
        }
    }
    Ok(tried.join(" "))
}

fn walk(config: &Value, statuses: &[u16], chance: f64) -> String {
    walk_at(&plan(config), statuses, chance, &json!({}), Instant::now()).unwrap()
}

fn short(path: &str) -> String {
    path.chars().filter(char::is_ascii_digit).collect()
}

#[test]
fn a_fallback_goes_on_until_a_status_it_does_not_mind() {
    let any = json!({ "strategy": { "mode": "fallback" },
        "targets": [{ "provider": "@a" }, { "provider": "@b" }, { "provider": "@c" }] });
    assert_eq!(walk(&any, &[200], 0.0), "0.");
    assert_eq!(walk(&any, &[500, 404, 200], 0.0), "0 1 2.");
    assert_eq!(walk(&any, &[500, 500, 500], 0.0), "0 1 2.");
    assert_eq!(walk(&any, &[500, 246], 0.0), "0 1.");
    let some = json!({ "strategy": { "mode": "fallback", "on_status_codes": [429, 246] },
        "targets": [{ "provider": "@a" }, { "provider": "@b" }] });
    assert_eq!(walk(&some, &[500], 0.0), "0.");
    assert_eq!(walk(&some, &[429, 429], 0.0), "0 1.");
    assert_eq!(walk(&some, &[246, 200], 0.0), "0 1.");
}

#[test]
fn a_fallback_inside_another_hands_its_last_answer_up() {
    let config = json!({ "strategy": { "mode": "fallback" }, "targets": [
        { "strategy": { "mode": "fallback", "on_status_codes": [429] }, "targets": [{ "provider": "@a" }, { "provider": "@b" }] },
        { "provider": "@c" },
    ] });
    assert_eq!(walk(&config, &[429, 429, 200], 0.0), "00 01 1.");
    assert_eq!(walk(&config, &[500, 200], 0.0), "00 1.");
    assert_eq!(walk(&config, &[429, 200], 0.0), "00 01.");
}

#[test]
fn retries_of_a_target_come_before_the_next_target() {
    let config = json!({ "strategy": { "mode": "fallback" }, "retry": { "attempts": 2 }, "targets": [
        { "provider": "@a" }, { "provider": "@b", "retry": { "attempts": 1 } },
    ] });
    assert_eq!(walk(&config, &[500, 500, 500, 500, 500], 0.0), "0 +1 +2 1 +1.");
    assert_eq!(walk(&config, &[500, 400, 200], 0.0), "0 +1 1.");
}

#[test]
fn what_failed_in_a_balanced_group_is_final_unless_a_fallback_stands_above() {
    let group = json!({ "strategy": { "mode": "loadbalance" },
        "targets": [{ "provider": "@a", "weight": 1 }, { "provider": "@b", "weight": 3 }, { "provider": "@c", "weight": 0 }] });
    assert_eq!(walk(&group, &[500], 0.2), "0.");
    assert_eq!(walk(&group, &[500], 0.3), "1.");
    let above = json!({ "strategy": { "mode": "fallback" }, "targets": [group, { "provider": "@d" }] });
    assert_eq!(walk(&above, &[500, 200], 0.9), "01 1.");
}

#[test]
fn conditions_are_asked_in_order_and_then_the_default() {
    let config = json!({
        "strategy": { "mode": "conditional", "default": "rest", "conditions": [
            { "query": { "metadata.tier": "pro" }, "then": "big" },
            { "query": { "metadata.tier": { "$in": ["pro", "free"] } }, "then": "small" },
        ] },
        "targets": [{ "name": "small", "provider": "@a" }, { "name": "big", "provider": "@b" }, { "name": "rest", "provider": "@c" }],
    });
    let plan = plan(&config);
    for (metadata, target) in [(json!({ "tier": "pro" }), "1."), (json!({ "tier": "free" }), "0."), (json!({}), "2.")] {
        assert_eq!(walk_at(&plan, &[500], 0.0, &metadata, Instant::now()).unwrap(), target, "{metadata}");
    }
}

#[test]
fn a_target_with_an_open_circuit_is_passed_over_unless_all_are_open() {
    let config = json!({
        "strategy": { "mode": "fallback", "cb_config": { "failure_threshold": 2, "cooldown_interval": 30000 } },
        "targets": [{ "provider": "@a" }, { "strategy": { "mode": "loadbalance" }, "targets": [{ "provider": "@b" }, { "provider": "@c" }] }],
    });
    let plan = plan(&config);
    let start = Instant::now();
    let walk = |statuses: &[u16], chance| walk_at(&plan, statuses, chance, &json!({}), start).unwrap();
    assert_eq!(walk(&[500, 200], 0.0), "0 10.");
    assert_eq!(walk(&[500, 200], 0.0), "0 10.");
    assert_eq!(walk(&[200], 0.0), "10.");
    assert_eq!(walk(&[500], 0.0), "10.");
    assert_eq!(walk(&[500], 0.0), "10.");
    assert_eq!(walk(&[500], 0.0), "11.", "only the other target of the group is left");
    assert_eq!(walk(&[500], 0.0), "11.");
    assert_eq!(walk(&[200], 0.0), "0.", "all are open: the breaker is bypassed");
    let later = start + Duration::from_secs(31);
    assert_eq!(walk_at(&plan, &[200], 0.0, &json!({}), later).unwrap(), "0.");
}

#[test]
fn a_circuit_counts_a_target_once_however_often_it_was_tried() {
    let config = json!({
        "strategy": { "mode": "single", "cb_config": { "failure_threshold": 2, "cooldown_interval": 30000 } },
        "retry": { "attempts": 3 }, "targets": [{ "provider": "@a" }, { "provider": "@b" }],
    });
    let plan = plan(&config);
    let start = Instant::now();
    let walk = |statuses: &[u16]| walk_at(&plan, statuses, 0.0, &json!({}), start).unwrap();
    assert_eq!(walk(&[500, 500, 500, 500]), "0 +1 +2 +4.");
    assert_eq!(walk(&[500, 500, 200]), "0 +1 +2.", "what a retry mended is a success");
    assert_eq!(walk(&[500, 500, 500, 500]), "0 +1 +2 +4.");
    assert_eq!(walk(&[200]), "1.", "two of three failed: a single strategy takes the next that is healthy");
}

#[test]
fn our_own_refusal_is_not_repeated_and_not_held_against_the_target_but_another_may_serve() {
    let config = json!({
        "strategy": { "mode": "fallback", "cb_config": { "failure_threshold": 1, "cooldown_interval": 30000, "failure_status_codes": [429] } },
        "retry": { "attempts": 3 }, "targets": [{ "provider": "@a" }, { "provider": "@b" }],
    });
    let plan = plan(&config);
    let (metadata, params, now) = (Map::new(), Fields::default(), Instant::now());
    let mut chance = || 0.0;
    let facts = RequestFacts { metadata: &metadata, params: &params, pathname: "/" };
    let clock = Still::at(now);
    let mut moment = RoutingInputs { facts, scope: b"", clock: &clock, chance: &mut chance };
    let mut course = Course::begin(&plan, &mut moment).unwrap();
    let limited = AttemptResult { status: 429, speaker: Speaker::Gateway, ..AttemptResult::default() };
    assert_eq!(course.after(&limited, &mut moment).unwrap(), AfterAttempt::Elsewhere);
    assert_eq!(course.after(&limited, &mut moment).unwrap(), AfterAttempt::Deliver);
    assert!(plan.leaves().all(|leaf| !leaf.breaker.as_ref().unwrap().is_open(now)));
}

#[test]
fn a_drained_target_stays_drained_when_the_others_are_open() {
    let config = json!({
        "strategy": { "mode": "loadbalance", "cb_config": { "failure_threshold": 1, "cooldown_interval": 30000 } },
        "targets": [{ "provider": "@a" }, { "provider": "@b", "weight": 0 }],
    });
    let plan = plan(&config);
    let start = Instant::now();
    for _ in 0..3 {
        assert_eq!(walk_at(&plan, &[500], 0.5, &json!({}), start).unwrap(), "0.");
    }
}

#[test]
fn a_fault_of_our_own_and_the_end_of_the_time_end_everything() {
    let config = json!({ "strategy": { "mode": "fallback" }, "retry": { "attempts": 5 },
        "targets": [{ "provider": "@a" }, { "provider": "@b" }] });
    let plan = plan(&config);
    let (metadata, params) = (Map::new(), Fields::default());
    for outcome in [
        AttemptResult { status: 500, speaker: Speaker::Fault, ..AttemptResult::default() },
        AttemptResult { status: 500, left: Duration::ZERO, ..AttemptResult::default() },
    ] {
        let mut chance = || 0.0;
        let facts = RequestFacts { metadata: &metadata, params: &params, pathname: "/" };
        let clock = Still::at(Instant::now());
        let mut moment = RoutingInputs { facts, scope: b"", clock: &clock, chance: &mut chance };
        let mut course = Course::begin(&plan, &mut moment).unwrap();
        assert_eq!(course.after(&outcome, &mut moment).unwrap(), AfterAttempt::Deliver);
    }
}
