//! Servers whose operators want a token of another issuer besides the gateway's own key (`jwt_validation`).

use super::{call, greeting, serve};
use harness::{GuardService, Issuer, Says, Stack};
use serde_json::json;

#[tokio::test]
async fn a_token_must_be_of_the_issuer_and_claim_what_is_wanted() {
    let stack = Stack::start().await;
    let (issuer, stranger) = (Issuer::start().await, Issuer::start().await);
    let rules = json!({
        "jwksUri": issuer.url(), "algorithms": ["RS256"], "headerKey": "x-user-token",
        "requiredClaims": ["sub"], "claimValues": { "role": ["admin"] },
    });
    let own = serve(&stack, "theirs", "stateless", json!({ "configurations": { "jwt_validation": rules } })).await;
    let now = chrono::Utc::now().timestamp();
    let claims = |role: &str, ends: i64| json!({ "sub": "ada", "role": role, "iat": now - 60, "exp": ends });
    for (token, status) in [
        (issuer.token(&claims("admin", now + 300)), 200),
        (String::new(), 401),
        ("rubbish".into(), 401),
        (stranger.token(&claims("admin", now + 300)), 401),
        (issuer.token(&claims("guest", now + 300)), 401),
        (issuer.token(&claims("admin", now - 60)), 401),
    ] {
        stack.mock.reset();
        let sent = if token.is_empty() { own.clone() } else { own.with("x-user-token", &*token) };
        let answer = sent.post("/theirs/mcp", &call(1, "echo", "hello")).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        assert!(token.is_empty() || !answer.text().contains(&token), "nothing of it is repeated");
        if status == 200 {
            assert_eq!(answer.json()["result"]["content"][0]["text"], "hello");
        } else {
            assert_eq!((&answer.json()["id"], &answer.json()["error"]["code"]), (&json!(1), &json!(-32050)));
            assert!(stack.mock.requests().is_empty(), "the server was not asked");
            assert_eq!(sent.get("/theirs/mcp").await.status, 401, "neither to listen");
        }
    }
    let merged = own.post("/mcp", &greeting()).await.json();
    assert!(merged["result"]["instructions"].as_str().unwrap().contains("theirs does not answer"), "{merged}");
}

#[tokio::test]
async fn an_issuer_is_asked_about_tokens_and_never_told_the_key_of_the_gateway() {
    let stack = Stack::start().await;
    let issuer = GuardService::start(Says::Json(json!({ "active": true, "sub": "ada" }))).await;
    let rules = json!({ "introspection": { "endpoint": issuer.url() } });
    let own = serve(&stack, "theirs", "stateless", json!({ "configurations": { "jwt_validation": rules } })).await;
    let asks = async |token: &str| {
        let answer =
            own.with("authorization", format!("Bearer {token}")).post("/theirs/mcp", &call(1, "echo", "x")).await;
        (answer.status.as_u16(), issuer.asked().len())
    };
    assert_eq!(asks("opaque").await, (200, 1));
    issuer.says(Says::Json(json!({ "active": false })));
    assert_eq!(asks("opaque").await, (401, 2));
    issuer.says(Says::Status(500, String::new()));
    assert_eq!(asks("opaque").await, (401, 3), "who cannot be asked admits nobody");
    issuer.says(Says::Json(json!({ "active": true })));
    assert_eq!(asks(&stack.home.workspace_key).await, (401, 3));
    assert!(!issuer.asked().iter().any(|asked| asked.text.contains(&stack.home.workspace_key)));
}

#[tokio::test]
async fn rules_that_nobody_could_follow_are_refused() {
    let stack = Stack::start().await;
    for (rules, place) in [
        (json!({ "jwksUrl": "https://a.test" }), "configurations.jwt_validation.jwksUrl"),
        (json!({}), "configurations.jwt_validation.jwks"),
        (json!({ "jwksUri": "http://169.254.169.254/keys" }), "configurations.jwt_validation.jwksUri"),
        (json!({ "introspection": "http://10.0.0.1/x" }), "configurations.jwt_validation.introspection"),
    ] {
        let integration = json!({
            "name": "t", "url": "https://mcp.example.com/mcp", "auth_type": "none", "transport": "http",
            "configurations": { "jwt_validation": rules },
        });
        let answer = stack.administrator().post("/mcp-integrations", &integration).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert!(answer.text().contains(place), "{place}: {}", answer.text());
    }
}
