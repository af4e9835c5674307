//! A whole request with its rates in Redis: those of its key and of a policy are taken together or not at all, and budgets
//! beside them stay in Postgres.

use super::rates::Server;
use super::{limited_key, policy, requests};
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

async fn status(client: &Client) -> u16 {
    client.post("/chat/completions", &chat("Hello")).await.status.as_u16()
}

fn of_workspace(stack: &Stack, more: Value) -> Value {
    let mut body = json!({
        "group_by": [{ "key": "workspace_id" }],
        "conditions": [{ "key": "metadata.counted", "value": "yes" }, { "key": "workspace_id", "value": stack.home.workspace_id.to_string() }],
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn counted(client: &Client) -> Client {
    client.with("x-gateway-metadata", r#"{"counted":"yes"}"#)
}

/// Waits until the proxy has seen the policies.
async fn seen(stack: &Stack) {
    const LAST: &str = "SELECT max(changed_xid::text::bigint)::float8 FROM rate_limits_policies";
    let last: f64 = stack.database.client().await.query_one(LAST, &[]).await.unwrap().get(0);
    let arrived = async || stack.metric("gateway_snapshot_cursor").await.is_some_and(|cursor| cursor > last);
    stack.until("the policies have arrived", arrived).await;
}

#[tokio::test]
async fn a_refused_request_takes_nothing_of_the_limits_that_had_room() {
    let server = Server::start(false).await;
    let stack = Stack::builder().proxy("LIMITS_WAIT_MS", "20000").proxy("REDIS_URL", &server.url).start().await;
    let (_, tight) = limited_key(
        &stack,
        json!({ "rate_limits": requests("rpd", 3), "usage_limits": { "type": "tokens", "credit_limit": 1_000_000 } }),
    )
    .await;
    let spent = limited_key(
        &stack,
        json!({ "rate_limits": requests("rpd", 100), "usage_limits": { "type": "tokens", "credit_limit": 1 } }),
    )
    .await
    .1;
    let five = of_workspace(&stack, json!({ "name": "five", "type": "requests", "unit": "rpd", "value": 5 }));
    policy(&stack, "/policies/rate-limits", five).await;
    let many = of_workspace(&stack, json!({ "name": "many", "type": "tokens", "unit": "rpd", "value": 1_000_000 }));
    policy(&stack, "/policies/rate-limits", many).await;
    seen(&stack).await;
    // One that its budget refuses: known to be used up by a call that no policy counts.
    assert_eq!([status(&spent).await, status(&counted(&spent)).await], [200, 412]);
    let tight = counted(&tight);
    for left in ["2", "1", "0"] {
        let answer = tight.post("/chat/completions", &chat("Hello")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-ratelimit-remaining-requests"), left, "the key's, which has the least left");
        assert_eq!(answer.header("x-ratelimit-limit-tokens"), "1000000");
    }
    for _ in 0..4 {
        let refused = tight.post("/chat/completions", &chat("Hello")).await;
        assert_eq!((refused.status.as_u16(), refused.header("x-gateway-ratelimit-scope")), (429, "api_key"));
    }
    let wide = counted(&stack.client());
    assert_eq!([status(&wide).await, status(&wide).await], [200, 200], "three of five were used and no more");
    let refused = wide.post("/chat/completions", &chat("Hello")).await;
    assert_eq!((refused.status.as_u16(), refused.header("x-gateway-ratelimit-scope")), (429, "policy"));
    assert!(refused.text().contains("five"), "{}", refused.text());
}
