//! Workspaces that share an integration whose providers limit their concurrency: nobody's crowd keeps another out, the
//! lowest priority goes first when no more can wait, and places come back however calls end.

use crate::families::KEY;
use harness::{Answer, Client, Stack};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A call that does not end by itself.
const FOREVER: u64 = 3_600_000;

/// An integration of the organisation, with a provider `@shared` in each of these workspaces by their priority; an
/// application of each.
async fn workspaces(stack: &Stack, concurrency: &Value, priorities: &[u8]) -> Vec<Client> {
    let keys = keys(stack, concurrency, priorities).await;
    keys.iter().map(|key| application(stack, key)).collect()
}

pub fn application(stack: &Stack, key: &str) -> Client {
    stack.anonymous().with_key(key).with("x-gateway-provider", "@shared")
}

/// The same as the keys of these applications.
pub async fn keys(stack: &Stack, concurrency: &Value, priorities: &[u8]) -> Vec<String> {
    let admin = stack.administrator();
    let made = async |path: &str, body: Value| {
        let answer = admin.post(path, &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let account = json!({
        "name": "Shared", "slug": "shared", "ai_provider_id": "openai", "key": KEY,
        "configurations": { "custom_host": stack.mock.url() },
    });
    made("/integrations", account).await;
    let mut keys = Vec::new();
    for (index, priority) in priorities.iter().enumerate() {
        let slug = format!("w{index}");
        let workspace = made("/admin/workspaces", json!({ "name": slug, "slug": slug, "priority": priority })).await;
        let id = workspace["id"].clone();
        let grant = json!({ "workspaces": [{ "id": id, "enabled": true, "create_default_provider": false }] });
        assert_eq!(admin.put("/integrations/shared/workspaces", &grant).await.status, 200);
        let provider = json!({
            "name": "Shared", "slug": "shared", "integration_id": "shared", "workspace_id": id, "concurrency": concurrency,
        });
        made("/providers", provider).await;
        let key = json!({ "name": "app", "workspace_id": id, "scopes": ["completions.write"] });
        let key = made("/api-keys/workspace/service", key).await["key"].as_str().unwrap().to_owned();
        let client = application(stack, &key);
        stack.until("the provider is known", async || client.get("/anything").await.status == 200).await;
        keys.push(key);
    }
    stack.mock.reset();
    keys
}

/// A chat of somebody that takes so long.
fn chat(who: &str, latency_ms: u64) -> Value {
    let fault = json!({ "mock": { "latency_ms": latency_ms } }).to_string();
    json!({ "model": "gpt-4o-mini", "messages": [{ "role": "system", "content": who }, { "role": "user", "content": fault }] })
}

fn send(client: &Client, body: Value) -> JoinHandle<Answer> {
    let client = client.clone();
    tokio::spawn(async move { client.post("/chat/completions", &body).await })
}

async fn until_waiting(stack: &Stack, number: f64) {
    let waits = async || stack.metric("gateway_fairness_waiting").await == Some(number);
    stack.until(&format!("{number} wait"), waits).await;
}

async fn until_under_way(stack: &Stack, number: f64) {
    let runs = async || stack.metric("gateway_fairness_in_use").await == Some(number);
    stack.until(&format!("{number} are under way"), runs).await;
}

#[tokio::test]
async fn a_crowd_of_one_workspace_does_not_keep_another_out() {
    let stack = Stack::start().await;
    let clients = workspaces(&stack, &json!({ "max_in_flight": 2, "max_wait_ms": 60_000 }), &[10, 10]).await;
    let holding: Vec<_> = (0..2).map(|_| send(&clients[0], chat("crowd", FOREVER))).collect();
    until_under_way(&stack, 2.0).await;
    let crowd: Vec<_> = (0..16).map(|_| send(&clients[0], chat("crowd", 30))).collect();
    until_waiting(&stack, 16.0).await;
    let few: Vec<_> = (0..4).map(|_| send(&clients[1], chat("few", 30))).collect();
    until_waiting(&stack, 20.0).await;
    assert_eq!(stack.mock.counts().in_flight, 2, "no more than may");
    // Clients that leave give their places back.
    for call in &holding {
        call.abort();
    }
    for call in crowd.into_iter().chain(few) {
        let answer = call.await.unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let order: Vec<bool> = stack
        .mock
        .requests()
        .iter()
        .skip(2)
        .map(|asked| asked.body.windows(5).any(|part| part == b"\"few\""))
        .collect();
    assert_eq!((order.len(), order.iter().filter(|few| **few).count()), (20, 4));
    let last = order.iter().rposition(|few| *few).unwrap();
    assert!(last < 14, "those few came last, though half of the places were theirs: {order:?}");
    until_under_way(&stack, 0.0).await;
    stack.until_metric("gateway_fairness_waiting", 0.0).await;
}

#[tokio::test]
async fn when_no_more_can_wait_the_lowest_priority_is_refused_first() {
    let stack = Stack::start().await;
    let clients = workspaces(&stack, &json!({ "max_in_flight": 1, "max_wait_ms": 60_000 }), &[10, 1, 100]).await;
    let [usual, low, high] = &clients[..] else { panic!("three workspaces") };
    let holding = send(usual, chat("holder", FOREVER));
    until_under_way(&stack, 1.0).await;
    let mut lows: Vec<_> = (0..10).map(|_| send(low, chat("low", 0))).collect();
    until_waiting(&stack, 10.0).await;
    let highs = send(high, chat("high", 0));
    let displaced = async || stack.metric("gateway_fairness_shed_total{reason=\"displaced\"}").await == Some(1.0);
    stack.until("one made room", displaced).await;
    let refused = low.post("/chat/completions", &chat("low", 0)).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    stack.until_metric("gateway_fairness_shed_total{reason=\"full\"}", 1.0).await;
    assert_eq!((refused.header("retry-after"), refused.header("retry-after-ms")), ("1", "1000"));
    assert_eq!(refused.header("x-gateway-ratelimit-scope"), "virtual_key");
    let error = &refused.json()["error"];
    assert_eq!((&error["code"], &error["type"]), (&json!("rate_limit_exceeded"), &json!("rate_limit_error")));
    assert!(error["message"].as_str().unwrap().contains("`@shared` takes 1 calls at once"), "{error}");
    holding.abort();
    assert_eq!(highs.await.unwrap().status, 200);
    let mut statuses = Vec::new();
    for call in lows.drain(..) {
        statuses.push(call.await.unwrap().status.as_u16());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [vec![200; 9], vec![429]].concat());
    let first = stack.mock.requests()[1].body.clone();
    assert!(first.windows(6).any(|part| part == b"\"high\""), "and the highest was next");
}

#[tokio::test]
async fn a_target_without_a_free_place_is_passed_over_on_both_lanes() {
    let stack = Stack::start().await;
    let clients = workspaces(&stack, &json!({ "max_in_flight": 1, "max_wait_ms": 0 }), &[10, 10]).await;
    let other = json!({ "provider": "openai", "api_key": "sk-mock", "custom_host": stack.mock.url() });
    let config = json!({ "strategy": { "mode": "fallback", "on_status_codes": [429] }, "targets": [{ "provider": "@shared" }, other] });
    let rescued = clients[1].with("x-gateway-config", config.to_string());
    // Held on either lane.
    for path in ["/chat/completions", "/assistants?mock=latency_ms%3D3600000"] {
        let client = clients[0].clone();
        let holding = tokio::spawn(async move { client.post(path, &chat("holder", FOREVER)).await });
        until_under_way(&stack, 1.0).await;
        for asked in ["/chat/completions", "/assistants"] {
            let what = format!("{asked} while {path} runs");
            let refused = clients[1].post(asked, &chat("late", 0)).await;
            assert_eq!(refused.status, 429, "{what}: {}", refused.text());
            let answer = rescued.post(asked, &chat("rescued", 0)).await;
            assert_eq!(answer.status, 200, "{what}: {}", answer.text());
            assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{what}");
        }
        holding.abort();
        let passes = async || clients[1].post("/assistants", &json!({})).await.status == 200;
        stack.until("its place came back", passes).await;
        assert_eq!(clients[1].post("/chat/completions", &chat("next", 0)).await.status, 200, "after {path}");
    }
    until_under_way(&stack, 0.0).await;
}

#[tokio::test]
async fn a_place_is_held_until_a_stream_has_ended_and_a_shed_call_uses_no_limit_up() {
    let stack = Stack::builder().proxy("LIMITS_WAIT_MS", "20000").start().await;
    let clients = workspaces(&stack, &json!({ "max_in_flight": 1, "max_wait_ms": 0 }), &[10]).await;
    let limits = json!({ "rate_limits": [{ "type": "requests", "unit": "rpd", "value": 3 }] });
    let changed = stack.administrator().put("/providers/shared?workspace_id=w0", &limits).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let limited = async || {
        let answer = clients[0].post("/chat/completions", &chat("known", 0)).await;
        answer.header("x-ratelimit-limit-requests") == "3"
    };
    stack.until("the limit is known", limited).await;
    let mut stream = chat("streams", 0);
    stream["stream"] = json!(true);
    stream["messages"][1]["content"] = json!(json!({ "mock": { "stall_after_bytes": 600 } }).to_string());
    let begun = clients[0].request(Method::POST, "/chat/completions").json(&stream).send().await.unwrap();
    assert_eq!(begun.status(), 200, "its head has come, its end has not");
    let other = json!({ "provider": "openai", "api_key": "sk-mock", "custom_host": stack.mock.url() });
    let config = json!({ "strategy": { "mode": "fallback", "on_status_codes": [429] }, "targets": [{ "provider": "@shared" }, other] });
    let rescued = clients[0].with("x-gateway-config", config.to_string());
    for _ in 0..3 {
        for path in ["/chat/completions", "/assistants"] {
            let elsewhere = rescued.post(path, &chat("rescued", 0)).await;
            let used = elsewhere.header("x-gateway-last-used-option-index");
            assert_eq!(used, "config.targets[1]", "{path}: {}", elsewhere.text());
        }
        let shed = clients[0].post("/chat/completions", &chat("late", 0)).await;
        assert!(
            shed.text().contains("calls at once"),
            "its limits had something left: {} {}",
            shed.status,
            shed.text()
        );
    }
    drop(begun);
    until_under_way(&stack, 0.0).await;
    assert_eq!(clients[0].post("/chat/completions", &chat("third", 0)).await.status, 200);
    let last = clients[0].post("/chat/completions", &chat("fourth", 0)).await;
    assert!(last.status == 429 && last.text().contains("the rate limit of"), "{} {}", last.status, last.text());
}
