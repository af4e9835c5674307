//! The dashboard and the alerts against what the processes really export: a panel about a metric that does not exist
//! is as misleading as a metric that nobody looks at.

use crate::routing::{ask, target};
use harness::{Client, Stack, chat};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const DASHBOARD: &str = include_str!("../../conf/grafana/dashboard.json");
const ALERTS: &str = include_str!("../../conf/prometheus/alerts.yaml");
/// Labels that Prometheus adds to every series.
const ADDED: [&str; 2] = ["job", "instance"];

#[tokio::test]
async fn panels_and_alerts_ask_for_metrics_and_labels_that_are_exported() {
    let exported = exported().await;
    for expression in dashboard().chain(alerts()) {
        let asked: Vec<_> = names_in(&expression).collect();
        assert!(!asked.is_empty(), "`{expression}` asks for no metric of ours");
        for name in &asked {
            assert!(exported.contains_key(family(name)), "`{name}` in `{expression}` is not exported");
        }
        let labels: BTreeSet<_> = asked.iter().filter_map(|name| exported.get(family(name))).flatten().collect();
        for label in labels_in(&expression) {
            let is_known = ADDED.contains(&label.as_str()) || labels.contains(&label);
            assert!(is_known, "`{label}` in `{expression}` is no label of {asked:?}, which have {labels:?}");
        }
    }
}

#[tokio::test]
async fn every_metric_of_ours_is_in_some_panel() {
    let shown: BTreeSet<String> = dashboard()
        .flat_map(|expression| names_in(&expression).map(|name| family(&name).to_owned()).collect::<Vec<_>>())
        .collect();
    for name in exported().await.keys().filter(|name| name.starts_with("gateway_")) {
        assert!(shown.contains(name), "no panel shows `{name}`");
    }
}

#[test]
fn panels_do_not_overlap_and_have_numbers_of_their_own() {
    let panels = panels();
    let mut cells = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for panel in &panels {
        assert!(numbers.insert(panel["id"].as_u64()), "two panels have number {}", panel["id"]);
        let place =
            |name: &str| panel["gridPos"][name].as_u64().unwrap_or_else(|| panic!("{name} of {}", panel["title"]));
        assert!(place("x") + place("w") <= 24, "{} is too wide", panel["title"]);
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(cells.insert((x, y)), "{} covers another panel", panel["title"]);
            }
        }
    }
}

/// Metric families of both processes, with the labels their series carry.
async fn exported() -> BTreeMap<String, BTreeSet<String>> {
    let stack = Stack::builder().proxy("METRICS_WORKSPACES", "10").start().await;
    // Series with labels appear with the first event that has them.
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    let first = json!({ "retry": { "attempts": 1 }, "hedge": { "after_ms": 50 } });
    let breaker = json!({ "failure_threshold": 9, "cooldown_interval": 60000 });
    let config = json!({ "strategy": { "mode": "fallback", "cb_config": breaker },
        "targets": [target(&stack, first), target(&stack, json!({}))] });
    stack.mock.script(json!([{ "status": 500, "times": 2 }])).unwrap();
    assert_eq!(ask(&stack, &config).await.status, 200);
    stack.mock.script(json!([{ "latency_ms": 3000 }])).unwrap();
    assert_eq!(ask(&stack, &config).await.status, 200);
    let silent = json!({ "mock": { "no_usage": true } }).to_string();
    assert_eq!(stack.client().post("/chat/completions", &chat(&silent)).await.status, 200);
    assert_eq!(stack.client().post("/threads", &json!({})).await.status, 200);
    let spent = "gateway_cost_cents_total{model=\"gpt-4o-mini\",provider=\"openai\"}";
    stack.until("costs are counted", async || stack.metric(spent).await.is_some()).await;
    assert_ne!(stack.anonymous().get("/api-keys/self").await.status, 200);
    let proxy = Client::new(&stack.metrics_url).get("/metrics").await.text();
    let admin = Client::new(stack.admin_url.trim_end_matches("/v1")).get("/metrics").await.text();
    let mut families = BTreeMap::<String, BTreeSet<String>>::new();
    for line in proxy.lines().chain(admin.lines()).filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap_or_default();
        let labels = families.entry(family(name).to_owned()).or_default();
        if let Some((_, series)) = line.split_once('{') {
            labels.extend(series.split("\",").filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())));
        }
    }
    assert!(families.len() > 20, "{families:?}");
    families
}

/// A histogram is asked for by its parts.
fn family(name: &str) -> &str {
    ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("the dashboard is JSON");
    dashboard["panels"].as_array().expect("the dashboard has panels").clone()
}

fn dashboard() -> impl Iterator<Item = String> {
    let targets = panels().into_iter().flat_map(|panel| panel["targets"].as_array().cloned().unwrap_or_default());
    targets.map(|target| target["expr"].as_str().expect("a target has an expression").to_owned())
}

/// `up` comes from Prometheus itself.
fn alerts() -> impl Iterator<Item = String> {
    let lines = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("expr: "));
    lines.filter(|expression| !expression.starts_with("up{")).map(str::to_owned)
}

fn names_in(expression: &str) -> impl Iterator<Item = String> {
    let words = expression.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    words.filter(|word| word.starts_with("gateway_") || word.starts_with("process_")).map(str::to_owned)
}

/// Labels that are matched in braces or grouped by.
fn labels_in(expression: &str) -> Vec<String> {
    let within = |open: &str, close: char| {
        let parts = expression.split(open).skip(1);
        parts.filter_map(|part| part.split_once(close)).map(|(inside, _)| inside.to_owned()).collect::<Vec<_>>()
    };
    let matched = within("{", '}').into_iter().flat_map(|inside| {
        let pairs = inside.split("\",").map(|pair| pair.split(['=', '!']).next().unwrap_or_default().to_owned());
        pairs.collect::<Vec<_>>()
    });
    let grouped = within("by (", ')')
        .into_iter()
        .flat_map(|inside| inside.split(',').map(|label| label.trim().to_owned()).collect::<Vec<_>>());
    matched.chain(grouped).collect()
}
