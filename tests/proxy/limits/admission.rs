//! Rate limits of keys, workspaces and policies, as applications meet them. Windows of a day: a minute could end inside a
//! test.

use super::{limited, patient, policy, requests};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

async fn ask(client: &Client) -> Answer {
    client.post("/chat/completions", &chat("Hello")).await
}

async fn statuses(client: &Client, times: usize) -> Vec<u16> {
    let mut statuses = Vec::new();
    for _ in 0..times {
        statuses.push(ask(client).await.status.as_u16());
    }
    statuses
}

/// Until the policy, whose first refusal is worth waiting for, is known to the proxy.
async fn until_refused(stack: &Stack, client: &Client) -> Answer {
    stack.until("a policy is known", async || ask(client).await.status == 429).await;
    ask(client).await
}

#[tokio::test]
async fn a_key_may_make_as_many_requests_as_its_limit_says_and_is_told_where_it_stands() {
    let stack = patient().await;
    let client = limited(&stack, json!({ "rate_limits": requests("rpd", 3) })).await;
    for left in ["2", "1", "0"] {
        let answer = ask(&client).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-ratelimit-limit-requests"), "3");
        assert_eq!(answer.header("x-ratelimit-remaining-requests"), left);
        assert!(answer.header("x-ratelimit-reset-requests").ends_with('s'));
    }
    let refused = ask(&client).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    let error = &refused.json()["error"];
    assert_eq!((&error["code"], &error["type"]), (&json!("rate_limit_exceeded"), &json!("rate_limit_error")));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("this API key") && message.contains("3 requests per day"), "{message}");
    assert_eq!(refused.header("x-gateway-ratelimit-scope"), "api_key");
    assert_eq!(refused.header("x-ratelimit-remaining-requests"), "0");
    let seconds: u64 = refused.header("retry-after").parse().unwrap();
    let millis: u64 = refused.header("retry-after-ms").parse().unwrap();
    assert!((1..=86_400).contains(&seconds) && millis.div_ceil(1000) <= seconds, "{seconds} {millis}");
    assert_eq!(stack.mock.requests().len(), 3, "the provider was not asked again");
    assert_eq!(ask(&stack.client()).await.status, 200, "another key is not meant");
    let other = stack.organisation().await;
    assert_eq!(ask(&stack.as_application(&other.workspace_key)).await.status, 200, "nor another tenant");
}

#[tokio::test]
async fn tokens_count_as_the_provider_says_and_one_request_may_go_over() {
    let stack = patient().await;
    let limits = json!([{ "type": "tokens", "unit": "rpd", "value": 1 }]);
    let client = limited(&stack, json!({ "rate_limits": limits })).await;
    assert_eq!(ask(&client).await.status, 200);
    let refused = ask(&client).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(refused.header("x-ratelimit-limit-tokens"), "1");
}

#[tokio::test]
async fn a_workspace_limits_all_its_keys_together() {
    let stack = patient().await;
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let answer = stack.administrator().put(&path, &json!({ "rate_limits": requests("rpd", 2) })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (one, other) = (limited(&stack, json!({})).await, limited(&stack, json!({})).await);
    let known = async || !ask(&one).await.header("x-ratelimit-limit-requests").is_empty();
    stack.until("the limit is known", known).await;
    assert_eq!(statuses(&other, 2).await, [200, 429]);
    assert_eq!(ask(&one).await.header("x-gateway-ratelimit-scope"), "workspace");
}

#[tokio::test]
async fn a_policy_counts_each_group_apart_and_names_itself() {
    let stack = patient().await;
    let id = policy(
        &stack,
        "/policies/rate-limits",
        json!({
            "name": "two-each", "type": "requests", "unit": "rpd", "value": 2,
            "conditions": [{ "key": "metadata._user", "value": "*", "excludes": "vip" }],
            "group_by": [{ "key": "metadata._user" }],
        }),
    )
    .await;
    let as_user = |name: &str| stack.client().with("x-gateway-metadata", json!({ "_user": name }).to_string());
    let refused = until_refused(&stack, &as_user("probe")).await;
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("two-each") && message.contains(&id), "{message}");
    assert_eq!(refused.header("x-gateway-ratelimit-scope"), "policy");
    assert_eq!(statuses(&as_user("alice"), 3).await, [200, 200, 429]);
    assert_eq!(statuses(&as_user("bob"), 2).await, [200, 200]);
    assert_eq!(statuses(&as_user("vip"), 4).await, [200; 4], "excluded");
    assert_eq!(statuses(&stack.client(), 4).await, [200; 4], "without the value");
    let in_body = |name: &str| {
        let mut body = chat("Hello");
        body["user"] = Value::from(name);
        body
    };
    for expected in [200, 200, 429] {
        let answer = stack.client().post("/chat/completions", &in_body("carol")).await;
        assert_eq!(answer.status, expected, "the body's user is the user");
    }
    let other = stack.organisation().await;
    let foreign = stack.as_application(&other.workspace_key).with("x-gateway-metadata", r#"{"_user":"alice"}"#);
    assert_eq!(statuses(&foreign, 3).await, [200; 3], "another tenant's requests are not meant");
    assert_eq!(stack.administrator().delete(&format!("/policies/rate-limits/{id}")).await.status, 200);
    stack.until("an archived policy is forgotten", async || ask(&as_user("alice")).await.status == 200).await;
}

#[tokio::test]
async fn a_dry_run_counts_and_refuses_nobody_and_policies_can_be_switched_off() {
    let stack = patient().await;
    let body = json!({
        "type": "requests", "unit": "rpd", "value": 1, "dry_run": true, "group_by": [{ "key": "workspace_id" }],
        "conditions": [{ "key": "workspace_id", "value": stack.home.workspace_id.to_string() }],
    });
    let id = policy(&stack, "/policies/rate-limits", body).await;
    let client = stack.client();
    let used = async || {
        assert_eq!(ask(&client).await.status, 200);
        let entities = stack.administrator().get(&format!("/policies/rate-limits/{id}/entities")).await.json();
        entities["data"][0]["current_usage"].as_f64().unwrap_or(0.0) > 2.0
    };
    stack.until("the dry run is counted", used).await;
    let hits = stack.metric("gateway_limits_dry_run_hits_total{kind=\"rate\"}").await;
    assert!(hits.is_some_and(|hits| hits >= 1.0), "and what it would have refused: {hits:?}");

    let stack = Stack::builder().proxy("USAGE_LIMITS_ENABLED", "OFF").start().await;
    let client = limited(&stack, json!({ "rate_limits": requests("rpd", 0) })).await;
    assert_eq!(ask(&client).await.status, 200, "limits on things are off");
}
