//! Explanations of past requests, strategy by strategy.

use super::*;
use serde_json::{Value, json};
use shared::config::{Strictness, parse_config};
use shared::settings::config_limits::ConfigLimits;

fn config(value: &Value) -> ConfigNode {
    parse_config(value, Strictness::Inline, &ConfigLimits::default()).unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn tried(all: &[(&str, i64)]) -> Vec<TriedTarget> {
    all.iter().map(|(option, status)| TriedTarget { option: (*option).to_owned(), status: *status }).collect()
}

fn shown(config: &ConfigNode, all: &[(&str, i64)]) -> Vec<(String, Option<usize>, String)> {
    let stops = explain_routing(config, &tried(all));
    stops.iter().map(|stop| (stop.option.clone(), stop.tried, stop.why.join("; "))).collect()
}

#[test]
fn what_was_tried_comes_first_and_in_its_order_and_the_rest_says_why_it_was_not() {
    let config = config(&json!({ "strategy": { "mode": "fallback", "on_status_codes": [429] }, "targets": [
        { "provider": "@a" }, { "provider": "@b" }, { "provider": "@c" }, { "provider": "@d" },
    ] }));
    let stops = shown(&config, &[("config.targets[1]", 429), ("config.targets[2]", 200)]);
    let whys: Vec<(&str, &str)> = stops.iter().map(|(option, _, why)| (option.as_str(), why.as_str())).collect();
    let expected = [
        ("config.targets[1]", "config: a fallback begins with its first healthy target"),
        ("config.targets[2]", "config: the next after config.targets[1] ended with 429, which is one of [429]"),
        ("config.targets[0]", "config: it was passed over: its circuit was open, or it could not be asked"),
        ("config.targets[3]", "config: it was not needed, or the status before it was not one to go on with"),
    ];
    assert_eq!(whys, expected);
    assert_eq!(stops.iter().map(|stop| stop.1).collect::<Vec<_>>(), [Some(0), Some(1), None, None]);
}

#[test]
fn each_strategy_gives_its_own_reason() {
    let targets = json!([{ "name": "a", "provider": "@a", "weight": 3 }, { "name": "b", "provider": "@b" },
                         { "name": "c", "provider": "@c", "weight": 0 }]);
    let with = |strategy: Value| config(&json!({ "strategy": strategy, "targets": targets }));
    let sticky = json!({ "enabled": true, "hash_fields": ["metadata.user"] });
    let conditions =
        json!([{ "query": { "metadata.t": 1 }, "then": "b" }, { "query": { "metadata.t": 2 }, "then": "a" }]);
    for (strategy, option, why) in [
        (json!({ "mode": "loadbalance" }), 0, "config: drawn by its weight, 75.0 % of the group's"),
        (
            json!({ "mode": "loadbalance", "sticky": sticky }),
            1,
            "config: chosen by metadata.user, which stays with one target",
        ),
        (
            json!({ "mode": "conditional", "conditions": conditions, "default": "a" }),
            0,
            "config: reached by condition 1, or the default, when no condition holds",
        ),
        (
            json!({ "mode": "conditional", "conditions": conditions, "default": "a" }),
            1,
            "config: reached by condition 0",
        ),
        (json!({ "mode": "single" }), 0, "config: single asks its first healthy target"),
    ] {
        let asked = format!("config.targets[{option}]");
        let stops = shown(&with(strategy.clone()), &[(&asked, 200)]);
        assert_eq!((stops[0].0.as_str(), stops[0].2.as_str()), (asked.as_str(), why), "{strategy}");
    }
    let unlucky = shown(&with(json!({ "mode": "loadbalance" })), &[("config.targets[0]", 200)]);
    assert_eq!(unlucky[1].2, "config: another target of the group was chosen");
    assert_eq!(unlucky[2].2, "config: it has no weight");
}

#[test]
fn reasons_and_settings_gather_on_the_way_down() {
    let config = config(&json!({
        "strategy": { "mode": "fallback" }, "retry": { "attempts": 2 }, "request_timeout": 100,
        "targets": [
            { "strategy": { "mode": "loadbalance" }, "targets": [{ "provider": "@a" }, { "provider": "@b", "request_timeout": 50 }] },
            { "provider": "@c" },
        ],
    }));
    let all = tried(&[("config.targets[0].targets[1]", 500), ("config.targets[1]", 200)]);
    let stops = explain_routing(&config, &all);
    assert_eq!(stops[0].why.len(), 2, "{:?}", stops[0].why);
    assert_eq!((stops[0].settings.request_timeout, stops[0].share), (Some(50), 0.5));
    assert_eq!(stops[0].settings.retry.as_ref().map(|retry| retry.attempts), Some(2));
    assert_eq!(stops[1].why, ["config: the next after config.targets[0] ended with 500"]);
    assert_eq!(stops[2].option, "config.targets[0].targets[0]");
}

#[test]
fn a_request_that_asked_nobody_says_so_of_every_target() {
    let config = config(&json!({ "strategy": { "mode": "single" }, "targets": [{ "provider": "@a" }] }));
    assert_eq!(shown(&config, &[])[0].2, "config: no target of this group was asked");
    let one = self::config(&json!({ "provider": "@a" }));
    assert_eq!(shown(&one, &[("config", 200)]), [("config".to_owned(), Some(0), String::new())]);
}

#[test]
fn a_place_is_not_taken_for_another_that_begins_alike() {
    let targets: Vec<Value> = (0..11).map(|n| json!({ "provider": format!("@p{n}") })).collect();
    let config = config(&json!({ "strategy": { "mode": "fallback" }, "targets": targets }));
    let stops = explain_routing(&config, &tried(&[("config.targets[10]", 200)]));
    assert_eq!(stops.iter().filter(|stop| stop.tried.is_some()).count(), 1);
}
