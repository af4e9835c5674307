//! Each answer equals what a slow reference makes of the same calls, over random filters and times.

use super::get;
use super::questions::{Question, close, question, rounds};
use super::reference::{self, LoggedCall, World, average, beginning, cents, percentile, share};
use crate::document::Document;
use crate::service::Service;
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use http::Method;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use serde_json::{Value, json};
use shared::db::usage_slots::{self, DayVerdict};
use std::collections::{BTreeMap, HashMap, HashSet};
use uuid::Uuid;

/// A figure as a graph's points and its summary have it.
type Figure = (&'static str, fn(&[&LoggedCall]) -> f64);

fn latency(share: f64) -> impl Fn(&[&LoggedCall]) -> f64 {
    move |calls| percentile(calls, share)
}

fn by(calls: &[&LoggedCall], holds: fn(&LoggedCall) -> bool) -> usize {
    calls.iter().filter(|call| holds(call)).count()
}

fn per_user(calls: &[&LoggedCall]) -> f64 {
    let users = reference::users(calls).len();
    if users == 0 { 0.0 } else { by(calls, |call| call.user.is_some()) as f64 / users as f64 }
}

fn hit_latency(calls: &[&LoggedCall]) -> f64 {
    let hits: Vec<i64> = calls.iter().filter(|call| call.is_hit()).map(|call| call.millis).collect();
    average(hits.into_iter())
}

/// Graphs, and the figures of their summaries and points.
fn graphs() -> Vec<(&'static str, Vec<Figure>, Vec<Figure>)> {
    let total: Vec<Figure> = vec![("total", |calls| calls.len() as f64)];
    let cost: Vec<Figure> = vec![
        ("total", reference::cost),
        ("avg", |calls| if calls.is_empty() { 0.0 } else { reference::cost(calls) / calls.len() as f64 }),
    ];
    let tokens: Vec<Figure> = vec![
        ("total", reference::tokens),
        ("avg", |calls| if calls.is_empty() { 0.0 } else { reference::tokens(calls) / calls.len() as f64 }),
    ];
    let times: Vec<Figure> = vec![
        ("avg", |calls| average(calls.iter().map(|call| call.millis))),
        ("p50", |calls| latency(0.5)(calls)),
        ("p90", |calls| latency(0.9)(calls)),
        ("p99", |calls| latency(0.99)(calls)),
    ];
    let users: Vec<Figure> = vec![("total", |calls| reference::users(calls).len() as f64)];
    let of_users: Vec<Figure> = vec![
        ("total", |calls| by(calls, |call| call.user.is_some()) as f64),
        ("unique", |calls| reference::users(calls).len() as f64),
        ("avg", per_user),
    ];
    let errors: Vec<Figure> = vec![("total", |calls| by(calls, |call| !call.is_success()) as f64)];
    let rate: Vec<Figure> = vec![("rate", |calls| share(by(calls, |call| !call.is_success()), calls.len()))];
    let hits: Vec<Figure> = vec![
        ("total", |calls| by(calls, LoggedCall::is_hit) as f64),
        ("rate", |calls| share(by(calls, LoggedCall::is_hit), calls.len())),
    ];
    let kinds: Vec<Figure> = vec![
        ("simple_hits", |calls| by(calls, |call| call.cache == "HIT") as f64),
        ("semantic_hits", |calls| by(calls, |call| call.cache == "SEMANTIC HIT") as f64),
        ("rate", |calls| share(by(calls, LoggedCall::is_hit), calls.len())),
    ];
    vec![
        ("requests", total.clone(), total),
        ("cost", cost.clone(), cost),
        ("tokens", tokens.clone(), tokens),
        ("latency", times.clone(), times),
        ("users", users.clone(), users),
        ("users/requests", of_users, vec![("avg", per_user)]),
        ("errors", errors.clone(), errors),
        ("errors/rate", rate.clone(), rate),
        ("cache/hit-rate", hits, kinds),
        ("cache/latency", vec![], vec![("avg", hit_latency)]),
    ]
}

struct Truth {
    service: Service,
    world: World,
    document: Document,
}

impl Truth {
    async fn start() -> Self {
        let service = Service::start().await;
        // `make prove-analytics-truth` takes more of them.
        let calls = std::env::var("ANALYTICS_CALLS").ok().and_then(|calls| calls.parse().ok()).unwrap_or(1500);
        let world = World::at_random(24, calls);
        world.store(&service).await;
        let document = Document::of(&service).await;
        Self { service, world, document }
    }

    async fn ask(&self, path: &str, query: &str) -> Value {
        let answer = self.service.administrator().get(&format!("{path}?{query}")).await;
        assert_eq!(answer.status, 200, "{path}?{query}: {}", answer.text());
        let faults = self.document.faults(&Method::GET, path, &answer);
        assert!(faults.is_empty(), "{path}: {faults:?}");
        answer.json()
    }

    /// A call counts under every guardrail that it passed, once.
    async fn check_guardrails(&self, asked: &Question, calls: &[&LoggedCall]) {
        let path = "/analytics/groups/guardrail";
        let list = self.ask(path, &format!("{}&columns=cost,total_tokens,p95_latency", asked.query)).await;
        let mut expected: BTreeMap<&str, Vec<&LoggedCall>> = BTreeMap::new();
        for call in calls {
            call.passed().into_iter().for_each(|id| expected.entry(id).or_default().push(call));
        }
        assert_eq!(list["total"], expected.len(), "{list}");
        for group in list["data"].as_array().unwrap() {
            let of = &expected[group["guardrail"].as_str().unwrap()];
            assert_eq!(group["requests"], of.len(), "{group}");
            close(&group["cost"], reference::cost(of), "cost");
            close(&group["total_tokens"], reference::tokens(of), "tokens");
            close(&group["p95_latency"], percentile(of, 0.95), "p95");
        }
        let divided = self.ask("/analytics/graphs/tokens", &format!("{}&group_by=guardrail", asked.query)).await;
        for group in divided["groups"].as_array().unwrap() {
            let of = &expected[group["value"].as_str().unwrap()];
            close(&group["summary"]["total"], reference::tokens(of), "tokens of a guardrail");
        }
    }

    /// By two dimensions: a row for each pair that calls have, in order, whichever of slots and logs has them.
    async fn check_pairs(&self, asked: &Question, calls: &[&LoggedCall]) {
        type Value0 = fn(&LoggedCall) -> String;
        let workspace: (&str, Value0) = ("workspace", |call| call.is_elsewhere.to_string());
        let model: (&str, Value0) = ("model", |call| call.model.to_owned());
        let user: (&str, Value0) = ("user", |call| call.user.unwrap_or_default().to_owned());
        let status: (&str, Value0) = ("status_code", |call| call.status.to_string());
        let home = self.service.home.workspace_id.to_string();
        for ((first, first_value), (second, second_value)) in
            [(workspace, model), (user, workspace), (model, status), (status, user)]
        {
            let query = format!("{}&then_by={second}&columns=cost,total_tokens,p95_latency&page_size=100", asked.query);
            let list = self.ask(&format!("/analytics/groups/{first}"), &query).await;
            let mut expected: BTreeMap<(String, String), Vec<&LoggedCall>> = BTreeMap::new();
            for call in calls {
                expected.entry((first_value(call), second_value(call))).or_default().push(call);
            }
            assert_eq!(list["total"], expected.len(), "{first} {second} {}", asked.query);
            let groups = list["data"].as_array().unwrap();
            assert!(groups.iter().map(|one| one["requests"].as_i64().unwrap()).rev().is_sorted(), "{list}");
            for group in groups {
                let value = |name: &str| match &group[name] {
                    Value::String(id) if name == "workspace" => (*id != home).to_string(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let pair = (value(first), value(second));
                let of = expected.remove(&pair).unwrap_or_else(|| panic!("{pair:?} is no {first} and {second}"));
                assert_eq!(group["requests"], of.len(), "{group}");
                close(&group["cost"], reference::cost(&of), "cost");
                close(&group["total_tokens"], reference::tokens(&of), "tokens");
                close(&group["p95_latency"], percentile(&of, 0.95), "p95");
            }
            assert!(expected.is_empty(), "{first} {second}: {expected:?}");
            let ordered = self.ask(&format!("/logs/groups/{first}"), &format!("{query}&order_by={second}")).await;
            let ordered = ordered["data"].as_array().unwrap();
            assert!(ordered.iter().map(|one| one[second].to_string()).rev().is_sorted(), "{ordered:?}");
            assert_eq!(ordered.len(), groups.len());
            let page = self.ask(&format!("/analytics/groups/{first}"), &format!("{query}&current_page=1")).await;
            assert_eq!((&page["total"], &page["data"]), (&list["total"], &json!([])), "a page beyond the last");
        }
    }

    /// By names of metadata, of which one is not always there, one is the user's and one is of no call.
    async fn check_metadata(&self, asked: &Question, calls: &[&LoggedCall]) {
        type Value0 = fn(&LoggedCall) -> &'static str;
        let names: [(&str, Value0); 3] = [
            ("plan", |call| call.plan.unwrap_or_default()),
            ("_user", |call| call.user.unwrap_or_default()),
            ("colour", |_| ""),
        ];
        let mut thoughts: HashMap<&str, Vec<i64>> = HashMap::new();
        self.world.feedback.iter().for_each(|given| thoughts.entry(&given.trace).or_default().push(given.value));
        let thoughts: HashMap<&str, f64> =
            thoughts.into_iter().map(|(trace, values)| (trace, average(values.into_iter()))).collect();
        for (name, value) in names {
            let path = format!("/analytics/groups/metadata/{name}");
            let list = self.ask(&path, &format!("{}&order_by=avg_weighted_feedback&page_size=100", asked.query)).await;
            let mut expected: BTreeMap<&str, Vec<&LoggedCall>> = BTreeMap::new();
            calls.iter().for_each(|call| expected.entry(value(call)).or_default().push(call));
            assert_eq!(list["total"], expected.len(), "{name} {}: {list}", asked.query);
            let groups = list["data"].as_array().unwrap();
            let order = groups.iter().map(|one| one["avg_weighted_feedback"].as_f64().unwrap());
            assert!(order.rev().is_sorted(), "{list}");
            for group in groups {
                let of = &expected[group["metadata_value"].as_str().unwrap()];
                assert_eq!(group["requests"], of.len(), "{name} {}: {group}", asked.query);
                close(&group["cost"], reference::cost(of), "cost");
                close(&group["avg_tokens"], reference::tokens(of) / of.len() as f64, "tokens of a call");
                let last = of.iter().map(|call| call.at).max().unwrap();
                assert_eq!(group["last_seen"], last.to_rfc3339_opts(SecondsFormat::Millis, true), "{name} {group}");
                let said: Vec<f64> = of.iter().filter_map(|call| thoughts.get(call.trace.as_str())).copied().collect();
                assert_eq!(group["requests_with_feedback"], said.len(), "{group}");
                let weighted = said.iter().sum::<f64>() / said.len().max(1) as f64;
                close(&group["avg_weighted_feedback"], weighted, "weighted");
            }
        }
    }

    /// By a name of metadata and a dimension: from slots where it is the workspace, from logs else, also where a call counts under
    /// each guardrail that it passed.
    async fn check_metadata_pairs(&self, asked: &Question, calls: &[&LoggedCall]) {
        type Values = fn(&LoggedCall) -> Vec<String>;
        let names: [(&str, Values); 2] = [
            ("plan", |call| vec![call.plan.unwrap_or_default().to_owned()]),
            ("_user", |call| vec![call.user.unwrap_or_default().to_owned()]),
        ];
        let dimensions: [(&str, Values); 4] = [
            ("workspace", |call| vec![call.is_elsewhere.to_string()]),
            ("model", |call| vec![call.model.to_owned()]),
            ("status_code", |call| vec![call.status.to_string()]),
            ("guardrail", |call| call.passed().into_iter().map(str::to_owned).collect()),
        ];
        let home = self.service.home.workspace_id.to_string();
        let mut given: HashMap<&str, Vec<i64>> = HashMap::new();
        self.world.feedback.iter().for_each(|one| given.entry(&one.trace).or_default().push(one.value));
        for (name, value) in names {
            for (second, second_value) in dimensions {
                let path = format!("/analytics/groups/metadata/{name}");
                let list = self.ask(&path, &format!("{}&then_by={second}&page_size=100", asked.query)).await;
                let mut expected: BTreeMap<(String, String), Vec<&LoggedCall>> = BTreeMap::new();
                for call in calls {
                    for other in second_value(call) {
                        expected.entry((value(call).concat(), other)).or_default().push(call);
                    }
                }
                assert_eq!(list["total"], expected.len(), "{name} {second} {}", asked.query);
                for group in list["data"].as_array().unwrap() {
                    let other = match &group[second] {
                        Value::String(id) if second == "workspace" => (*id != home).to_string(),
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    let pair = (group["metadata_value"].as_str().unwrap().to_owned(), other);
                    let of = expected.remove(&pair).unwrap_or_else(|| panic!("{pair:?} is no {name} and {second}"));
                    assert_eq!(group["requests"], of.len(), "{group}");
                    close(&group["cost"], reference::cost(&of), "cost");
                    close(&group["avg_tokens"], reference::tokens(&of) / of.len() as f64, "tokens of a call");
                    // All feedback is given in the first workspace.
                    let heard = of.iter().filter(|call| !call.is_elsewhere && given.contains_key(call.trace.as_str()));
                    assert_eq!(group["requests_with_feedback"], heard.count(), "{name} {second} {group}");
                    let has_name = group["workspace_name"].is_string();
                    assert_eq!(has_name, second == "workspace", "{group}");
                }
                assert!(expected.is_empty(), "{name} {second}: {expected:?}");
            }
        }
    }

    fn calls(&self, asked: &Question) -> Vec<&LoggedCall> {
        let is_in = |call: &&LoggedCall| call.at >= asked.from && call.at < asked.until;
        self.world.calls.iter().filter(is_in).filter(|call| (asked.holds)(call)).collect()
    }
}

/// The calls of each point: those from its time on, before the next one's.
fn slots<'c>(graph: &Value, calls: &[&'c LoggedCall]) -> Vec<Vec<&'c LoggedCall>> {
    let points = graph["data_points"].as_array().unwrap();
    let times: Vec<DateTime<Utc>> =
        points.iter().map(|point| point["timestamp"].as_str().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted() && !times.is_empty(), "{times:?}");
    let slots: Vec<Vec<&LoggedCall>> = times
        .iter()
        .enumerate()
        .map(|(n, from)| {
            let is_in = |call: &&&LoggedCall| call.at >= *from && times.get(n + 1).is_none_or(|next| call.at < *next);
            calls.iter().filter(is_in).copied().collect()
        })
        .collect();
    assert_eq!(slots.iter().map(Vec::len).sum::<usize>(), calls.len(), "every call is in a slot");
    slots
}

#[tokio::test]
async fn every_graph_says_what_the_calls_are() {
    let truth = Truth::start().await;
    let mut random = StdRng::seed_from_u64(7);
    for n in 0..rounds(8) {
        let asked = question(&mut random, n);
        let calls = truth.calls(&asked);
        for (name, summary, points) in graphs() {
            let graph = truth.ask(&format!("/analytics/graphs/{name}"), &asked.query).await;
            let told = |what: &str| format!("{name} {what} of {}", asked.query);
            for (field, figure) in &summary {
                close(&graph["summary"][field], figure(&calls), &told(field));
            }
            assert!(graph["data_points"].as_array().unwrap().len() <= 60, "{name}");
            for (point, calls) in graph["data_points"].as_array().unwrap().iter().zip(slots(&graph, &calls)) {
                for (field, figure) in &points {
                    close(&point[field], figure(&calls), &told(field));
                }
            }
        }
        let divided = truth.ask("/analytics/graphs/latency", &format!("{}&group_by=user", asked.query)).await;
        for group in divided["groups"].as_array().unwrap() {
            let user = group["value"].as_str().unwrap();
            let of: Vec<&LoggedCall> =
                calls.iter().filter(|call| call.user.unwrap_or_default() == user).copied().collect();
            close(&group["summary"]["avg"], average(of.iter().map(|call| call.millis)), "latency of a user");
            for (point, calls) in group["data_points"].as_array().unwrap().iter().zip(slots(group, &of)) {
                close(&point["p90"], percentile(&calls, 0.9), "p90 of a user");
            }
        }
        let graph = truth.ask("/analytics/graphs/cache/hit-rate", &asked.query).await;
        let last = graph["data_points"].as_array().unwrap().last().unwrap().clone();
        for (field, kind) in
            [("cumulative_simple_cache_savings", "HIT"), ("cumulative_semantic_cache_savings", "SEMANTIC HIT")]
        {
            let saved = calls.iter().filter(|call| call.cache == kind).filter_map(|call| call.saved).sum();
            close(&last[field], cents(saved), field);
        }
    }
}

#[tokio::test]
async fn errors_rescues_and_the_cache_are_told_in_their_own_way() {
    let truth = Truth::start().await;
    let mut random = StdRng::seed_from_u64(8);
    for n in 0..rounds(6) {
        let asked = question(&mut random, n + 8);
        let calls = truth.calls(&asked);
        let failed: Vec<&LoggedCall> = calls.iter().filter(|call| !call.is_success()).copied().collect();
        let mut codes: BTreeMap<i64, i64> = BTreeMap::new();
        failed.iter().for_each(|call| *codes.entry(call.status).or_default() += 1);

        let stacks = truth.ask("/analytics/graphs/errors/stacks", &asked.query).await;
        assert_eq!(stacks["summary"]["total"], failed.len());
        let mut stacked: BTreeMap<i64, i64> = BTreeMap::new();
        for stat in
            stacks["data_points"].as_array().unwrap().iter().flat_map(|point| point["stats"].as_array().unwrap())
        {
            *stacked.entry(stat["response_status_code"].as_i64().unwrap()).or_default() +=
                stat["count"].as_i64().unwrap();
        }
        assert_eq!(stacked, codes);

        let listed = truth.ask("/analytics/graphs/errors/status-codes", &asked.query).await;
        assert_eq!(listed["summary"], json!({ "total_errors": failed.len(), "unique_error_codes": codes.len() }));
        let points = listed["data_points"].as_array().unwrap().iter();
        let points: BTreeMap<i64, i64> =
            points.map(|one| (one["status_code"].as_i64().unwrap(), one["count"].as_i64().unwrap())).collect();
        assert_eq!(points, codes);

        let rescued = truth.ask("/analytics/graphs/requests/rescued", &asked.query).await;
        let retried = by(&calls, |call| call.is_success() && call.retries > 0);
        let fallen = by(&calls, |call| call.is_success() && call.attempt > 0);
        assert_eq!(rescued["summary"], json!({ "retry": retried, "fallback": fallen }), "{}", asked.query);
        let points = rescued["data_points"].as_array().unwrap();
        let in_points = points.iter().flat_map(|point| point["retry"].as_array().unwrap());
        assert_eq!(in_points.map(|one| one["count"].as_u64().unwrap()).sum::<u64>(), retried as u64);
        assert_eq!(points.iter().map(|point| point["fallback"].as_u64().unwrap()).sum::<u64>(), fallen as u64);

        let cache = truth.ask("/analytics/summary/cache", &asked.query).await;
        let summary = &cache["summary"];
        assert_eq!(
            (&summary["hits"], &summary["total_requests"]),
            (&json!(by(&calls, LoggedCall::is_hit)), &json!(calls.len()))
        );
        close(&summary["avg_latency"], hit_latency(&calls), "latency of hits");
    }
}

#[tokio::test]
async fn groups_are_what_their_calls_add_up_to() {
    let truth = Truth::start().await;
    let mut random = StdRng::seed_from_u64(9);
    type Value0 = fn(&LoggedCall) -> String;
    let dimensions: [(&str, Value0); 9] = [
        ("model", |call| call.model.to_owned()),
        ("ai_service", |call| call.service.to_owned()),
        ("provider", |call| call.provider.unwrap_or_default().to_owned()),
        ("config", |call| call.config.unwrap_or_default().to_owned()),
        ("status_code", |call| call.status.to_string()),
        ("user", |call| call.user.unwrap_or_default().to_owned()),
        ("api_key", |call| call.key.map(|key| Uuid::from_u128(key).to_string()).unwrap_or_default()),
        ("prompt", |call| call.prompt.unwrap_or_default().to_owned()),
        ("prompt_version", |call| call.version.map(|number| Uuid::from_u128(number).to_string()).unwrap_or_default()),
    ];
    const COLUMNS: &str = "columns=cost,total_tokens,avg_tokens,avg_input_tokens,avg_output_tokens,avg_latency,p95_latency,\
        p99_latency,success_rate,error_count,cache_hit_rate,last_seen,first_seen";
    for n in 0..rounds(4) {
        let asked = question(&mut random, n + 17);
        let calls = truth.calls(&asked);
        for (name, value) in dimensions {
            for path in [format!("/analytics/groups/{name}"), format!("/logs/groups/{name}")] {
                let list =
                    truth.ask(&path, &format!("{}&{COLUMNS}&include_total=true&page_size=100", asked.query)).await;
                let mut expected: BTreeMap<String, Vec<&LoggedCall>> = BTreeMap::new();
                calls.iter().for_each(|call| expected.entry(value(call)).or_default().push(call));
                assert_eq!(list["total"], expected.len(), "{path}");
                let groups = list["data"].as_array().unwrap();
                assert!(groups.iter().map(|one| one["requests"].as_i64().unwrap()).rev().is_sorted(), "{list}");
                for group in groups {
                    let key = group[name].as_str().map_or_else(|| group[name].to_string(), str::to_owned);
                    let of = expected.remove(&key).unwrap_or_else(|| panic!("{key} is none of {name}"));
                    assert_eq!(group["requests"], of.len(), "{group}");
                    close(&group["cost"], reference::cost(&of), "cost");
                    close(&group["total_tokens"], reference::tokens(&of), "tokens");
                    close(&group["avg_latency"], average(of.iter().map(|call| call.millis)), "latency");
                    close(&group["avg_tokens"], reference::tokens(&of) / of.len() as f64, "tokens of a call");
                    close(&group["avg_input_tokens"], average(of.iter().map(|call| call.tokens[0])), "input");
                    close(&group["avg_output_tokens"], average(of.iter().map(|call| call.tokens[1])), "output");
                    close(&group["p95_latency"], percentile(&of, 0.95), "p95");
                    close(&group["p99_latency"], percentile(&of, 0.99), "p99");
                    close(&group["success_rate"], share(by(&of, LoggedCall::is_success), of.len()), "success");
                    close(&group["cache_hit_rate"], share(by(&of, LoggedCall::is_hit), of.len()), "hits");
                    assert_eq!(group["error_count"], by(&of, |call| !call.is_success()));
                    let seen = |at: Option<DateTime<Utc>>| at.unwrap().to_rfc3339_opts(SecondsFormat::Millis, true);
                    assert_eq!(group["last_seen"], seen(of.iter().map(|call| call.at).max()));
                    assert_eq!(group["first_seen"], seen(of.iter().map(|call| call.at).min()));
                }
                assert!(expected.is_empty(), "{path}: {expected:?}");
                assert_eq!(list["totals"]["requests"], calls.len());
                close(&list["totals"]["cost"], reference::cost(&calls), "total cost");
            }
        }
        let models = truth.ask("/analytics/groups/ai-models", &asked.query).await;
        for model in models["data"].as_array().unwrap() {
            let of = calls.iter().filter(|call| model["ai_model"] == call.model).count();
            assert_eq!(model["requests"], of.to_string(), "{model}");
        }
        let workspaces = truth.ask("/analytics/groups/workspaces", &asked.query).await;
        let counted: u64 =
            workspaces["data"].as_array().unwrap().iter().map(|one| one["requests"].as_u64().unwrap()).sum();
        assert_eq!(counted, calls.len() as u64, "{workspaces}");
        let elsewhere = by(&calls, |call| call.is_elsewhere);
        for one in workspaces["data"].as_array().unwrap().iter().filter(|one| one["workspace"] == reference::ELSEWHERE)
        {
            assert_eq!(one["requests"], elsewhere, "{workspaces}");
        }
        truth.check_guardrails(&asked, &calls).await;
        truth.check_pairs(&asked, &calls).await;
        let users = truth.ask("/analytics/groups/users", &asked.query).await;
        let named = by(&calls, |call| call.user.is_some());
        let counted = users["data"].as_array().unwrap().iter();
        assert_eq!(
            counted.map(|one| one["requests"].as_str().unwrap().parse::<usize>().unwrap()).sum::<usize>(),
            named
        );
        truth.check_metadata(&asked, &calls).await;
        truth.check_metadata_pairs(&asked, &calls).await;
    }
}

#[tokio::test]
async fn feedback_is_counted_when_it_was_given() {
    let truth = Truth::start().await;
    let mut random = StdRng::seed_from_u64(10);
    for n in 0..rounds(8) {
        let asked = question(&mut random, n + 18);
        let matching = truth.world.calls.iter().filter(|call| !asked.is_of_calls || (asked.holds)(call));
        let matching: HashSet<(&str, &str)> = matching.map(|call| (call.trace.as_str(), call.model)).collect();
        let traces: HashSet<&str> = matching.iter().map(|(trace, _)| *trace).collect();
        let of_matching = |trace: &str| asked.is_of_home && (!asked.is_of_calls || traces.contains(trace));
        let given: Vec<_> = truth
            .world
            .feedback
            .iter()
            .filter(|given| given.at >= asked.from && given.at < asked.until && of_matching(&given.trace))
            .filter(|given| asked.least_said.is_none_or(|least| given.value >= least))
            .collect();
        let graph = truth.ask("/analytics/graphs/feedbacks", &asked.query).await;
        assert_eq!(graph["summary"]["total"], given.len(), "{}", asked.query);
        let points = graph["data_points"].as_array().unwrap().iter();
        assert_eq!(points.map(|point| point["total"].as_u64().unwrap()).sum::<u64>(), given.len() as u64);
        let weighted = truth.ask("/analytics/graphs/feedbacks/weighted", &asked.query).await;
        close(&weighted["summary"]["avg"], average(given.iter().map(|one| one.value)), "weighted");
        let scores = truth.ask("/analytics/graphs/feedbacks/scores", &asked.query).await;
        for score in scores["data_points"].as_array().unwrap() {
            let of = given.iter().filter(|one| json!(one.value) == score["score"]).count();
            assert_eq!(score["total"], of, "{score}");
        }
        let models = truth.ask("/analytics/graphs/feedbacks/ai-models", &asked.query).await;
        for model in models["data_points"].as_array().unwrap() {
            let speaks_of = |trace: &str| matching.contains(&(trace, model["ai_model"].as_str().unwrap()));
            let of = given.iter().filter(|one| speaks_of(&one.trace)).count();
            assert_eq!(model["total"], of, "{model}");
        }
    }
}

#[tokio::test]
async fn a_graph_can_be_compared_divided_and_opened_in_a_spreadsheet() {
    let truth = Truth::start().await;
    let client = truth.service.administrator();
    let half =
        "time_of_generation_min=2026-01-16T00:00:00Z&time_of_generation_max=2026-01-30T23:59:59.999Z&workspace_slug=*";
    let both = get(&client, "/analytics/graphs/requests", &format!("{half}&compare=previous&group_by=model")).await;
    let middle: DateTime<Utc> = "2026-01-16T00:00:00Z".parse().unwrap();
    let (before, after): (Vec<_>, Vec<_>) = truth.world.calls.iter().partition(|call| call.at < middle);
    assert_eq!(both["summary"]["total"], after.len());
    let from = middle - TimeDelta::days(15);
    assert_eq!(both["previous"]["summary"]["total"], before.iter().filter(|call| call.at >= from).count());
    let groups = both["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 3, "three models and no rest");
    let divided: u64 = groups.iter().map(|group| group["summary"]["total"].as_u64().unwrap()).sum();
    assert_eq!(divided, after.len() as u64);
    let by_trace = get(&client, "/analytics/graphs/requests", &format!("{half}&group_by=status_code")).await;
    assert!(by_trace["groups"].as_array().unwrap().iter().all(|group| group["is_rest"] == false), "{by_trace}");
    for path in super::COUNTING.iter().filter(|path| !path.contains("/groups/")) {
        let both = get(&client, path, &format!("{half}&compare=previous")).await;
        let before = "time_of_generation_min=2026-01-01T00:00:00Z&time_of_generation_max=2026-01-15T23:59:59.999Z&workspace_slug=*";
        let alone = get(&client, path, before).await;
        assert_eq!(both["previous"]["summary"], alone["summary"], "{path}");
        assert_eq!(both["previous"]["data_points"], alone["data_points"], "{path}");
    }
    let divided = client
        .with("accept", "text/csv")
        .get(&format!("/analytics/graphs/requests?{half}&compare=previous&group_by=model"))
        .await
        .text();
    let points = both["data_points"].as_array().unwrap().len();
    let before = both["previous"]["data_points"].as_array().unwrap().len();
    assert_eq!(divided.lines().count(), 1 + 3 * points + before, "{divided}");
    assert!(divided.contains("gpt-4o-mini") && divided.contains("previous"), "{divided}");
    let sheet = client.with("accept", "text/csv").get(&format!("/analytics/graphs/requests?{half}")).await;
    assert!(sheet.header("content-type").starts_with("text/csv"), "{}", sheet.header("content-type"));
    let text = sheet.text();
    let total: u64 =
        text.lines().skip(1).flat_map(|line| line.split(',').find_map(|cell| cell.parse::<u64>().ok())).sum();
    assert_eq!(total, after.len() as u64, "{text}");
}

#[tokio::test]
async fn figures_that_differ_from_their_logs_are_found_and_built_again() {
    let truth = Truth::start().await;
    let mut client = truth.service.database.client().await;
    let verify = async |client: &mut tokio_postgres::Client| {
        let mut mended = 0;
        // With two Sundays, which are the last days of weeks, and days of which minutes are kept.
        for day in 15..=24 {
            let tx = client.transaction().await.unwrap();
            let verdict = usage_slots::verify_day(&tx, beginning() + TimeDelta::days(day)).await.unwrap();
            tx.commit().await.unwrap();
            mended += usize::from(matches!(verdict, DayVerdict::Mended { .. }));
        }
        mended
    };
    assert_eq!(verify(&mut client).await, 0, "what is stale is known to be");
    for wrong in [
        "DELETE FROM usage_slots WHERE dimension = 'model' AND size = 1440",
        "DELETE FROM usage_slots WHERE dimension = 'metadata' AND size = 30",
        "DELETE FROM usage_slots WHERE dimension = 'trace'",
        "UPDATE usage_slots SET figures = '\\x0100' WHERE dimension = 'trace'",
        "UPDATE usage_slots SET figures = (SELECT figures FROM usage_slots WHERE dimension = 'user' AND size = 30 LIMIT 1)
         WHERE dimension = 'provider' AND size = 30",
        "UPDATE usage_slots SET figures = (SELECT figures FROM usage_slots WHERE dimension = 'user' AND size = 10080 LIMIT 1)
         WHERE dimension = 'model' AND size = 10080",
        "INSERT INTO usage_slots SELECT organisation_id, gen_random_uuid(), size, slot, dimension, figures FROM usage_slots
         WHERE dimension = '' AND size = 1",
    ] {
        reference::refresh(&mut client).await;
        client.batch_execute(wrong).await.unwrap();
        assert!(verify(&mut client).await > 0, "{wrong}");
        assert_eq!(verify(&mut client).await, 0, "{wrong}");
    }
}
