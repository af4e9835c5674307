//! Sessions in the wrong hands: ids that a client chose itself, those of another tenant whose server has the same name, and those
//! of another person of the same workspace.

use super::{call, client, greeting, request, serve, session, session_id, until_synced};
use crate::tokens::accept;
use harness::issuer::{Issuer, claims};
use harness::{Client, Stack};
use serde_json::{Value, json};

/// Nothing that a session is for: calls, streams and its end.
async fn is_of_no_use(client: &Client, path: &str) {
    let called = client.post(path, &call(1, "echo", "x")).await;
    assert_eq!((called.status.as_u16(), &called.json()["error"]["code"]), (404, &json!(-32001)), "{}", called.text());
    assert_eq!(client.get(path).await.status, 404);
    assert_eq!(client.delete(path).await.status, 404);
}

#[tokio::test]
async fn an_id_that_a_client_chose_becomes_no_session() {
    let stack = Stack::start().await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    for path in ["/tools/mcp", "/mcp"] {
        let known = session(&own, path).await;
        for chosen in ["mock-session-1", "chosen-by-an-attacker", &session_id(&known)] {
            stack.mock.reset();
            let greeted = own.with("mcp-session-id", chosen).post(path, &greeting()).await;
            assert_ne!(greeted.header("mcp-session-id"), chosen, "{path}: a greeting begins a session of its own");
            let told = stack.mock.requests();
            assert!(told.iter().all(|one| one.header("mcp-session-id") != chosen), "{path}: no server hears of it");
        }
        for chosen in ["mock-session-1", "chosen-by-an-attacker"] {
            is_of_no_use(&own.with("mcp-session-id", chosen), path).await;
        }
    }
}

#[tokio::test]
async fn another_tenant_with_a_server_of_the_same_name_cannot_go_on_in_a_session() {
    let stack = Stack::start().await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    let (single, merged) = (session(&own, "/tools/mcp").await, session(&own, "/mcp").await);
    let other = stack.organisation().await;
    let url = format!("{}/mcp/json", stack.mock.origin());
    let integration = json!({ "name": "tools", "slug": "tools", "url": url, "auth_type": "none", "transport": "http",
        "workspace_id": other.workspace_id });
    other.create("/mcp-integrations", integration).await;
    let server = json!({ "name": "tools", "slug": "tools", "mcp_integration_id": "tools",
        "workspace_id": other.workspace_id });
    other.create("/mcp-servers", server).await;
    let stranger = client(&stack, &other.workspace_key);
    stack.until("their server is known", async || stranger.delete("/tools/mcp").await.status != 404).await;
    until_synced(&stack).await;
    stack.mock.reset();
    is_of_no_use(&stranger.with("mcp-session-id", session_id(&single)), "/tools/mcp").await;
    is_of_no_use(&stranger.with("mcp-session-id", session_id(&merged)), "/mcp").await;
    assert!(stack.mock.requests().is_empty(), "no server was asked");
    assert_eq!(single.post("/tools/mcp", &call(1, "echo", "x")).await.status, 200);
}

#[tokio::test]
async fn a_session_of_a_token_is_of_its_subject_and_no_key_goes_on_in_it() {
    let (stack, issuer) = (Stack::start().await, Issuer::start().await);
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    let token = |subject: &str, age: i64| {
        let mut claims = claims(stack.home.id, &stack.home.workspace_id.to_string(), "mcp.invoke");
        claims["sub"] = json!(subject);
        claims["iat"] = json!(chrono::Utc::now().timestamp() - age);
        client(&stack, &issuer.token(&claims))
    };
    let ada = session(&token("ada", 5), "/tools/mcp").await;
    let id = session_id(&ada);
    stack.mock.reset();
    is_of_no_use(&token("bob", 5).with("mcp-session-id", &id), "/tools/mcp").await;
    is_of_no_use(&own.with("mcp-session-id", &id), "/tools/mcp").await;
    assert!(stack.mock.requests().is_empty(), "no server was asked");
    // A token that was renewed is of the same person.
    let renewed = token("ada", 4).with("mcp-session-id", &id);
    let called = renewed.post("/tools/mcp", &call(1, "echo", "x")).await.json();
    assert_eq!(called["error"], Value::Null, "{called}");
    assert_eq!(ada.post("/tools/mcp", &request(2, "ping", json!({}))).await.status, 200);
}
