//! Limits of providers and of what they ask about: per attempt, so that a fallback goes on after them.

use super::{patient, policy, requests};
use crate::families::{application, integrate};
use harness::{Stack, chat};
use serde_json::{Value, json};

fn fallback() -> String {
    json!({ "strategy": { "mode": "fallback", "on_status_codes": [412, 429] },
            "targets": [{ "provider": "@first" }, { "provider": "@second" }] })
    .to_string()
}

async fn limit(stack: &Stack, slug: &str, limits: Value) {
    let answer = application(stack).put(&format!("/providers/{slug}"), &limits).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn a_provider_at_its_limit_is_passed_over_on_both_lanes() {
    let stack = patient().await;
    integrate(&stack, "first", "openai").await;
    integrate(&stack, "second", "openai").await;
    limit(&stack, "first", json!({ "rate_limits": requests("rpd", 1) })).await;
    let direct = application(&stack).with("x-gateway-provider", "@first");
    let refused = async || direct.post("/chat/completions", &chat("Hello")).await.status == 429;
    stack.until("the limit is known", refused).await;
    let answer = direct.post("/chat/completions", &chat("Hello")).await;
    assert!(answer.text().contains("@first"), "{}", answer.text());
    assert_eq!(answer.header("x-gateway-ratelimit-scope"), "virtual_key");
    let client = application(&stack).with("x-gateway-config", fallback());
    for path in ["/chat/completions", "/assistants"] {
        let answer = client.post(path, &chat("Hello")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{path}");
    }
    assert_eq!(direct.post("/assistants", &json!({})).await.status, 429, "on the relay lane too");
}

#[tokio::test]
async fn a_policy_about_a_model_holds_for_the_attempt_that_asks_it() {
    let stack = patient().await;
    integrate(&stack, "first", "openai").await;
    let body = json!({
        "type": "requests", "unit": "rpd", "value": 1, "group_by": [{ "key": "model" }],
        "conditions": [{ "key": "model", "value": "@first/gpt-4o-mini" }],
    });
    policy(&stack, "/policies/rate-limits", body).await;
    let client = application(&stack).with("x-gateway-provider", "@first");
    let refused = async || client.post("/chat/completions", &chat("Hello")).await.status == 429;
    stack.until("the policy is known", refused).await;
    let mut other = chat("Hello");
    other["model"] = json!("gpt-4o");
    assert_eq!(client.post("/chat/completions", &other).await.status, 200);
}

#[tokio::test]
async fn the_second_targets_limits_hold_also_where_calls_are_not_logged() {
    let stack = Stack::builder().proxy("JOURNAL", "OFF").start().await;
    integrate(&stack, "first", "openai").await;
    integrate(&stack, "second", "openai").await;
    limit(&stack, "first", json!({ "rate_limits": requests("rpd", 1000) })).await;
    limit(&stack, "second", json!({ "rate_limits": requests("rpd", 1) })).await;
    let first = application(&stack).with("x-gateway-provider", "@first");
    let is_counted = async || {
        first.post("/chat/completions", &chat("Hello")).await.headers.contains_key("x-ratelimit-limit-requests")
    };
    stack.until("the wide limit is known", is_counted).await;
    let second = application(&stack).with("x-gateway-provider", "@second");
    let refused = async || second.post("/chat/completions", &chat("Hello")).await.status == 429;
    stack.until("the narrow limit is known and used up", refused).await;
    let config = json!({ "strategy": { "mode": "fallback", "on_status_codes": [500] },
                         "targets": [{ "provider": "@first" }, { "provider": "@second" }] });
    stack.mock.script(json!([{ "status": 500, "times": 1 }])).unwrap();
    let client = application(&stack).with("x-gateway-config", config.to_string());
    let answer = client.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 429, "{}", answer.text());
}
