//! No route escapes: whatever goes to a provider meets its limits, on both lanes, websockets included.

use super::{limited_key, patient, requests};
use crate::families::{Body, FORM_TYPE, ROWS, body};
use crate::realtime::handshake;
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::json;

/// What keeps, deletes or stops something: it costs nothing, and whoever has used up a budget may still tidy up.
fn is_free(method: &str, path: &str) -> bool {
    method == "DELETE"
        || path.ends_with("/cancel")
        || (method == "POST" && (path == "/files" || path.starts_with("/uploads")))
}

async fn walk(stack: &Stack, client: &Client, expected: u16, code: &str, passes: fn(&str, &str) -> bool) {
    let mut passed = 0;
    for (method, path, kind, provider) in ROWS {
        let mut request = client.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
        let content_type = match kind {
            Body::None => "",
            Body::Json | Body::Plain => "application/json",
            Body::Form => FORM_TYPE,
            Body::Binary => "application/octet-stream",
        };
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let answer = whole(request.header("x-gateway-provider", *provider).body(body(*kind, "m"))).await;
        if passes(method, path) {
            assert_ne!(answer.status, expected, "{method} {path}: {}", answer.text());
            passed += 1;
            continue;
        }
        assert_eq!(answer.status, expected, "{method} {path}: {}", answer.text());
        assert!(answer.text().contains(code), "{method} {path}: {}", answer.text());
    }
    assert!(stack.mock.requests().len() <= passed, "no other call reached a provider");
}

/// Without a provider: each row names its own.
fn bare(stack: &Stack, key: &str) -> Client {
    let client = stack.anonymous().with_key(key).with("authorization", "Bearer sk-mock");
    client.with("x-gateway-custom-host", stack.mock.url())
}

#[tokio::test]
async fn every_route_meets_a_rate_of_zero() {
    let stack = patient().await;
    let key = limited_key(&stack, json!({ "rate_limits": requests("rpm", 0) })).await.0;
    walk(&stack, &bare(&stack, &key), 429, "rate_limit_exceeded", |_, _| false).await;
    let head = credentials(&stack, &key);
    let (_wire, answer) = handshake(&stack, "?model=gpt-realtime", &head).await;
    assert_eq!(answer.status, 429, "{answer:?}");
}

#[tokio::test]
async fn every_route_meets_an_exhausted_budget() {
    let stack = patient().await;
    let limits = json!({ "usage_limits": { "type": "tokens", "credit_limit": 10 } });
    let key = limited_key(&stack, limits).await.0;
    let database = stack.database.client().await;
    let spent = database
        .execute(
            "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
             SELECT organisation_id, 'api_key', id::text, 'tokens', 'total', (usage_limits ->> 'last_reset_at')::timestamptz, 10
             FROM api_keys WHERE usage_limits IS NOT NULL",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(spent, 1);
    walk(&stack, &bare(&stack, &key), 412, "budget_exhausted", is_free).await;
    let head = credentials(&stack, &key);
    let (_wire, answer) = handshake(&stack, "?model=gpt-realtime", &head).await;
    assert_eq!(answer.status, 412, "{answer:?}");
}

fn credentials(stack: &Stack, key: &str) -> String {
    let host = stack.mock.url();
    format!(
        "x-gateway-api-key: {key}\r\nx-gateway-provider: openai\r\nauthorization: Bearer sk-mock\r\n\
         x-gateway-custom-host: {host}\r\n"
    )
}
