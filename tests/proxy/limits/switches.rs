//! The two switches: one for limits on keys, workspaces and providers, one for policies; neither touches the other.

use super::{limited, policy, requests};
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

async fn status(client: &Client) -> u16 {
    client.post("/chat/completions", &chat("Hello")).await.status.as_u16()
}

fn rate(stack: &Stack) -> Value {
    json!({
        "type": "requests", "unit": "rpd", "value": 1, "group_by": [{ "key": "workspace_id" }],
        "conditions": [{ "key": "workspace_id", "value": stack.home.workspace_id.to_string() }],
    })
}

/// Waits until the proxy has seen all that was written so far.
async fn seen(stack: &Stack) {
    const LAST: &str = "SELECT greatest((SELECT max(changed_xid::text::bigint) FROM rate_limits_policies),
        (SELECT max(changed_xid::text::bigint) FROM usage_limits_policies))::float8";
    let last: f64 = stack.database.client().await.query_one(LAST, &[]).await.unwrap().get(0);
    let arrived = async || stack.metric("gateway_snapshot_cursor").await.is_some_and(|cursor| cursor > last);
    stack.until("the policies have arrived", arrived).await;
}

#[tokio::test]
async fn without_policies_limits_on_things_hold_alone() {
    let stack = Stack::builder().proxy("POLICY_ENABLED", "OFF").proxy("LIMITS_WAIT_MS", "20000").start().await;
    policy(&stack, "/policies/rate-limits", rate(&stack)).await;
    let budget = json!({
        "type": "requests", "credit_limit": 1, "group_by": [{ "key": "workspace_id" }],
        "conditions": [{ "key": "workspace_id", "value": stack.home.workspace_id.to_string() }],
    });
    policy(&stack, "/policies/usage-limits", budget).await;
    seen(&stack).await;
    for _ in 0..3 {
        assert_eq!(status(&stack.client()).await, 200, "no policy speaks");
    }
    let key = limited(&stack, json!({ "rate_limits": requests("rpd", 1) })).await;
    assert_eq!([status(&key).await, status(&key).await], [200, 429], "its own limit does");
    let spent = limited(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 1 } })).await;
    assert_eq!([status(&spent).await, status(&spent).await], [200, 412]);
}

#[tokio::test]
async fn without_limits_on_things_policies_hold_alone() {
    let builder = Stack::builder().proxy("USAGE_LIMITS_ENABLED", "OFF").proxy("LIMITS_WAIT_MS", "20000");
    let stack = builder.start().await;
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let answer = stack.administrator().put(&path, &json!({ "rate_limits": requests("rpd", 1) })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    for limits in [
        json!({ "rate_limits": requests("rpd", 0) }),
        json!({ "usage_limits": { "type": "tokens", "credit_limit": 1 } }),
        json!({ "usage_limits": { "credit_limit": 1, "strict": true } }),
    ] {
        let key = limited(&stack, limits.clone()).await;
        assert_eq!([status(&key).await, status(&key).await], [200, 200], "{limits}");
    }
    policy(&stack, "/policies/rate-limits", rate(&stack)).await;
    stack.until("a policy refuses", async || status(&stack.client()).await == 429).await;
}
