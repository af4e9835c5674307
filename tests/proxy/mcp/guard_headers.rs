//! What guardrails of calls know of the client's headers: as much as those of any request, and no secret.

use super::{call, serve, session};
use harness::{GuardService, Says, Stack};
use serde_json::{Value, json};

#[tokio::test]
async fn services_are_told_the_headers_that_a_check_lists_and_no_secret() {
    let stack = Stack::start().await;
    let service = GuardService::start(Says::Json(json!({ "verdict": true }))).await;
    let client = serve(&stack, "tools", "events", json!({})).await;
    let client = session(&client, "/tools/mcp").await;
    let listed = ["x-team", "authorization", "x-gateway-api-key", "mcp-session-id", "cookie"];
    let hook = json!({ "default.webhook": { "webhookURL": service.url(), "forwardHeaders": listed } });
    let config = json!({ "provider": "openai", "input_guardrails": [hook], "output_guardrails": [hook] });
    let sent =
        client.with("x-gateway-config", config.to_string()).with("x-team", "red").with("cookie", "session=s3cret");
    let answer = sent.post("/tools/mcp", &call(1, "echo", "hello")).await;
    assert!(answer.text().contains("hello"), "{}", answer.text());
    let asked = service.asked();
    assert_eq!(asked.len(), 2);
    for one in asked {
        let head = one.head.to_ascii_lowercase();
        assert!(head.contains("x-team: red"), "{head}");
        let is_secret = |name: &str| head.lines().any(|line| line.starts_with(&format!("{name}:")));
        assert!(!listed[1..].iter().any(|name| is_secret(name)), "{head}");
        assert!(!head.contains(&stack.home.workspace_key.to_ascii_lowercase()), "{head}");
    }
}

#[tokio::test]
async fn a_check_of_the_arguments_reads_a_token_and_those_of_the_result_hear_what_it_claims() {
    let stack = Stack::start().await;
    let issuer = GuardService::start(Says::Json(json!({ "active": true, "sub": "ada" }))).await;
    let service = GuardService::start(Says::Json(json!({ "verdict": true }))).await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let token = json!({
        "introspectEndpoint": issuer.url(), "headerKey": "x-user-token", "extractClaims": ["sub"], "failOnError": true,
    });
    let webhook = json!({ "webhookURL": service.url(), "forwardHeaders": ["x-jwt-sub"] });
    let config = json!({
        "provider": "openai",
        "input_guardrails": [{ "default.jwt": token, "deny": true }],
        "output_guardrails": [{ "default.webhook": webhook }],
    });
    let client = session(&client, "/tools/mcp").await.with("x-gateway-config", config.to_string());
    let without = client.post("/tools/mcp", &call(1, "echo", "hello")).await.json();
    assert_eq!(without["error"]["data"]["type"], "hooks_failed", "{without}");
    let sent = client.with("x-user-token", "opaque").with("x-jwt-sub", "forged");
    let said = sent.post("/tools/mcp", &call(2, "echo", "hello")).await.json();
    assert_eq!(said["error"], Value::Null, "{said}");
    let head = service.asked().pop().unwrap().head.to_ascii_lowercase();
    assert!(head.contains("x-jwt-sub: ada"), "{head}");
}
