//! `gateway-admin limits verify`: counters of every kind are the sums of their logs; what is not is told with its difference, and
//! mended while logs are stored.

use super::{limited_key, patient, policy};
use crate::families::{application, integrate};
use crate::routing::target;
use harness::{Client, Process, Stack, chat};
use serde_json::{Value, json};
use std::time::Duration;

async fn verify(stack: &Stack, more: &[&str]) -> (Option<i32>, String) {
    let environment = [("DATABASE_URL".to_owned(), stack.database.url())];
    let arguments = [&["limits", "verify"], more].concat();
    let mut process = Process::start("gateway-admin", &arguments, &environment, stack.folder.path());
    let status = process.ended_within(Duration::from_secs(60)).await;
    (status.code(), process.log())
}

/// Waits until so many chats are in the logs.
async fn logged(stack: &Stack, count: i64) {
    const CHATS: &str = "SELECT count(*) FROM request_logs WHERE request_url = '/v1/chat/completions'";
    let database = stack.database.client().await;
    let is_there = async || database.query_one(CHATS, &[]).await.unwrap().get::<_, i64>(0) >= count;
    stack.until("the calls are in the logs", is_there).await;
}

fn said(user: &str) -> Value {
    let mut body = chat("Hello");
    body["user"] = json!(user);
    body
}

/// Sets everything that is counted for a workspace; the client is limited by all of it.
async fn limited_by_everything(stack: &Stack) -> Client {
    let budget = |kind: &str| json!({ "type": kind, "credit_limit": 100_000 });
    integrate(stack, "prod", "openai").await;
    let workspace = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let change = json!({ "usage_limits": [budget("cost")] });
    let changed = stack.administrator().put(&workspace, &change).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    let of_users = json!({ "name": "users", "type": "cost", "credit_limit": 1000,
        "conditions": [{ "key": "metadata._user", "value": "*" }], "group_by": [{ "key": "metadata._user" }] });
    policy(stack, "/policies/usage-limits", of_users).await;
    let of_models = json!({ "name": "models", "type": "requests", "credit_limit": 1000,
        "conditions": [{ "key": "model", "value": "*" }], "group_by": [{ "key": "model" }] });
    policy(stack, "/policies/usage-limits", of_models).await;
    let of_requests = json!({ "name": "requests", "type": "requests", "credit_limit": 1000,
        "conditions": [{ "key": "workspace_id", "value": stack.home.workspace_id }], "group_by": [{ "key": "api_key" }] });
    policy(stack, "/policies/usage-limits", of_requests).await;
    let provider = application(stack).put("/providers/prod", &json!({ "usage_limits": budget("tokens") })).await;
    assert_eq!(provider.status, 200, "{}", provider.text());
    let (key, _) = limited_key(stack, json!({ "usage_limits": budget("tokens") })).await;
    stack.anonymous().with_key(&key)
}

#[tokio::test]
async fn every_counter_is_the_sum_of_its_logs_and_what_differs_is_told_and_mended() {
    let stack = patient().await;
    let client = limited_by_everything(&stack).await;
    let by = |config: Value| client.with("x-gateway-config", config.to_string());
    let plain = || target(&stack, json!({}));
    // A plain call, a stored provider, a stream, a hit, and a target that another one replaces.
    let calls = [
        (by(plain()), said("ann")),
        (client.with("x-gateway-provider", "@prod"), said("bob")),
        (
            by(plain()),
            json!({ "stream": true, "model": "gpt-4o-mini", "user": "ann", "messages": chat("Hi")["messages"] }),
        ),
        (by(target(&stack, json!({ "cache": { "mode": "simple" } }))), said("ann")),
        (by(target(&stack, json!({ "cache": { "mode": "simple" } }))), said("ann")),
        (
            by(json!({ "strategy": { "mode": "fallback" }, "targets": [target(&stack, json!({ "override_params":
            { "model": "fault/status=503" } })), plain()] })),
            said("bob"),
        ),
    ];
    for (client, body) in &calls {
        let answer = client.post("/chat/completions", body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    logged(&stack, calls.len() as i64 + 1).await;
    let (code, said) = verify(&stack, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("0 left"), "{said}");

    let database = stack.database.client().await;
    const WRONG: &str = "UPDATE usage_counters SET value = value + 7 WHERE scope = $1 AND starts_at > '-infinity'
        AND period = $2 AND (period = 'total' OR starts_at = date_trunc('day', now(), 'UTC'))";
    for (scope, period) in [
        ("api_key", "total"),
        ("workspace", "total"),
        ("provider", "total"),
        ("policy", "total"),
        ("organisation", "day"),
    ] {
        let wrong = database.execute(WRONG, &[&scope, &period]).await.unwrap();
        assert!(wrong > 0, "{scope} has counters");
        let (code, said) = verify(&stack, &[]).await;
        assert_eq!(code, Some(1), "{scope}: {said}");
        let told = said.lines().filter(|line| line.starts_with(scope) && line.contains(", difference 7")).count();
        assert_eq!(told as u64, wrong, "{scope}: {said}");
        let (code, said) = verify(&stack, &["--mend"]).await;
        assert_eq!(code, Some(0), "{scope}: {said}");
        assert!(said.contains(&format!("{wrong} mended")), "{scope}: {said}");
        assert_eq!(verify(&stack, &[]).await.0, Some(0), "{scope}");
    }
    const TRAIL: &str = "SELECT count(*) FROM audit_logs WHERE resource_type = 'limits' AND action = 'mend'";
    assert!(database.query_one(TRAIL, &[]).await.unwrap().get::<_, i64>(0) > 5, "each is in the trail");
    let other = stack.organisation().await;
    let (code, said) = verify(&stack, &["--organisation", &other.id.to_string()]).await;
    assert_eq!((code, said.contains("0 counters verified")), (Some(0), true), "{said}");
}

#[tokio::test]
async fn what_expired_logs_and_late_calls_explain_is_told_and_left_alone() {
    let stack = patient().await;
    let (key, _) = limited_key(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 100_000 } })).await;
    let client = stack.anonymous().with_key(&key).with("x-gateway-config", target(&stack, json!({})).to_string());
    client.post("/chat/completions", &chat("Hello")).await;
    logged(&stack, 1).await;
    let database = stack.database.client().await;
    const OLDER: &str = "UPDATE usage_counters SET starts_at = starts_at - interval '40 days', value = value + 7
        WHERE scope = 'api_key' AND period = 'total' AND starts_at > '-infinity'";
    const LATER: &str = "UPDATE usage_counters SET starts_at = now() + interval '1 second'
        WHERE scope = 'api_key' AND period = 'total' AND starts_at > '-infinity'";
    const BEHIND: &str = "UPDATE usage_counters SET value = value - 1
        WHERE scope = 'api_key' AND period = 'total' AND starts_at > '-infinity'";
    for (change, why) in
        [(BEHIND, "right after the reset"), (LATER, "under way when the period began"), (OLDER, "have expired")]
    {
        assert_eq!(database.execute(change, &[]).await.unwrap(), 1);
        let (code, said) = verify(&stack, &["--mend"]).await;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains(why) && said.contains("0 mended"), "{why}: {said}");
    }
}

#[tokio::test]
async fn mending_under_load_loses_nothing() {
    let stack = patient().await;
    let (key, _) =
        limited_key(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 10_000_000 } })).await;
    let client = stack.anonymous().with_key(&key).with("x-gateway-config", target(&stack, json!({})).to_string());
    let calling = tokio::spawn(async move {
        for _ in 0..200 {
            client.post("/chat/completions", &chat("Hello")).await;
        }
    });
    let database = stack.database.client().await;
    const WRONG: &str = "UPDATE usage_counters SET value = value + 1000000
        WHERE scope = 'api_key' AND period = 'total' AND starts_at > '-infinity'";
    let mut mended = 0;
    while !calling.is_finished() || mended == 0 {
        if database.execute(WRONG, &[]).await.unwrap() > 0 {
            let (code, said) = verify(&stack, &["--mend"]).await;
            assert_eq!(code, Some(0), "{said}");
            mended += 1;
        }
    }
    calling.await.unwrap();
    logged(&stack, 200).await;
    let (code, said) = verify(&stack, &[]).await;
    assert_eq!(code, Some(0), "{said}");
}
