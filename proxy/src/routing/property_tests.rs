//! What holds for every plan and every luck, not only for those somebody thought of.

use super::clock::Still;
use super::course::RoutingInputs;
use super::{AfterAttempt, AttemptResult, Course, RequestFacts};
use crate::request::body::Fields;
use crate::routing::plan::{Plan, compile};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use shared::config::{Strictness, parse_config};
use shared::settings::config_limits::ConfigLimits;
use std::time::{Duration, Instant};

fn plan(config: &Value) -> Plan {
    compile(
        &parse_config(config, Strictness::Inline, &ConfigLimits::default())
            .unwrap_or_else(|faults| panic!("{faults:?}")),
    )
}

/// One request: the targets called, in order, and how often the last was tried again.
fn walk(plan: &Plan, user: &str, luck: f64, now: Instant, mut status: impl FnMut() -> u16) -> Vec<String> {
    let metadata: Map<String, Value> = [("user".to_owned(), json!(user))].into_iter().collect();
    let params = Fields::default();
    let mut chance = || luck;
    let facts = RequestFacts { metadata: &metadata, params: &params, pathname: "/" };
    let clock = Still::at(now);
    let mut moment = RoutingInputs { facts, scope: b"w", clock: &clock, chance: &mut chance };
    let mut course = Course::begin(plan, &mut moment).unwrap();
    let mut called = Vec::new();
    loop {
        called.push(course.node().path.to_string());
        let outcome = AttemptResult { status: status(), ..AttemptResult::default() };
        match course.after(&outcome, &mut moment).unwrap() {
            AfterAttempt::Deliver => return called,
            AfterAttempt::Again(_) | AfterAttempt::Elsewhere => {}
        }
    }
}

/// Plans of every strategy, some levels deep.
fn a_config() -> impl Strategy<Value = Value> {
    let leaf = (0u8..3, 0.1f64..9.0).prop_map(
        |(attempts, weight)| json!({ "provider": "@p", "weight": weight, "retry": { "attempts": attempts } }),
    );
    leaf.prop_recursive(3, 24, 4, |inner| {
        let mode = prop_oneof![Just("fallback"), Just("loadbalance"), Just("single")];
        (mode, prop::collection::vec(inner, 1..4), 0.1f64..9.0).prop_map(
            |(mode, targets, weight)| json!({ "strategy": { "mode": mode }, "targets": targets, "weight": weight }),
        )
    })
}

proptest! {
    #[test]
    fn weights_converge(weights in prop::collection::vec(0u32..10, 1..6)) {
        prop_assume!(weights.iter().sum::<u32>() > 0);
        let targets: Vec<Value> = weights.iter().map(|weight| json!({ "provider": "@p", "weight": weight })).collect();
        let plan = plan(&json!({ "strategy": { "mode": "loadbalance" }, "targets": targets }));
        let (turns, now) = (1000, Instant::now());
        let mut counts = vec![0u32; weights.len()];
        for turn in 0..turns {
            let called = walk(&plan, "u", f64::from(turn) / f64::from(turns), now, || 500);
            let index: usize = called[0]["config.targets[".len()..].trim_end_matches(']').parse().unwrap();
            counts[index] += 1;
        }
        let total: u32 = weights.iter().sum();
        for (count, weight) in counts.iter().zip(&weights) {
            let share = f64::from(turns) * f64::from(*weight) / f64::from(total);
            prop_assert!((f64::from(*count) - share).abs() <= 1.0, "{counts:?} for {weights:?}");
        }
    }

    #[test]
    fn a_sticky_key_stays_whatever_luck_and_failure_say(
        user in "[a-z]{1,8}", lucks in prop::collection::vec((0.0f64..1.0, 200u16..600), 1..20), targets in 2usize..6,
    ) {
        let targets: Vec<Value> = (0..targets).map(|_| json!({ "provider": "@p" })).collect();
        let sticky = json!({ "enabled": true, "hash_fields": ["metadata.user"] });
        let plan = plan(&json!({ "strategy": { "mode": "loadbalance", "sticky": sticky }, "targets": targets }));
        let now = Instant::now();
        let first = walk(&plan, &user, 0.5, now, || 200);
        for (luck, status) in lucks {
            prop_assert_eq!(&walk(&plan, &user, luck, now, || status), &first);
        }
    }

    #[test]
    fn a_fallback_neither_skips_nor_repeats(count in 1usize..12, fails in 0usize..14) {
        let targets: Vec<Value> = (0..count).map(|_| json!({ "provider": "@p" })).collect();
        let plan = plan(&json!({ "strategy": { "mode": "fallback" }, "targets": targets }));
        let mut script = std::iter::repeat_n(500, fails).chain(std::iter::repeat(200));
        let called = walk(&plan, "u", 0.0, Instant::now(), || script.next().unwrap_or(200));
        let expected: Vec<String> = (0..count.min(fails + 1)).map(|index| format!("config.targets[{index}]")).collect();
        prop_assert_eq!(called, expected);
    }

    #[test]
    fn nothing_is_called_after_a_success_and_no_target_is_met_again(
        config in a_config(), luck in 0.0f64..1.0, statuses in prop::collection::vec(prop_oneof![Just(200u16), Just(500), Just(429), Just(404)], 1..40),
    ) {
        let plan = plan(&config);
        let mut given = Vec::new();
        let mut script = statuses.into_iter().chain(std::iter::repeat(503));
        let called = walk(&plan, "u", luck, Instant::now(), || {
            let status = script.next().unwrap_or(503);
            given.push(status);
            status
        });
        let success = given.iter().position(|status| *status == 200);
        prop_assert!(success.is_none_or(|at| at + 1 == given.len()), "{:?}", given);
        let mut met: Vec<&String> = called.iter().collect();
        met.dedup();
        let visits = met.len();
        met.sort();
        met.dedup();
        prop_assert_eq!(met.len(), visits, "a target was left and met again: {:?}", called);
    }

    #[test]
    fn retries_stay_within_their_budget(percent in 0.0f64..=100.0, attempts in 1u8..=5, requests in 1usize..400, pause_ms in 0u64..50) {
        let plan = plan(&json!({ "provider": "@p", "retry": { "attempts": attempts, "budget_percent": percent } }));
        let start = Instant::now();
        let mut calls = 0;
        for turn in 0..requests {
            let now = start + Duration::from_millis(pause_ms * turn as u64);
            calls += walk(&plan, "u", 0.0, now, || 500).len();
        }
        let seconds = (pause_ms as f64 * requests as f64) / 1000.0;
        let most = 10.0 + requests as f64 * percent / 100.0 + seconds + 1.0;
        prop_assert!((calls - requests) as f64 <= most, "{} retries of {requests}", calls - requests);
    }
}
