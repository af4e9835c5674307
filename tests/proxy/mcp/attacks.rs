//! Those who try: other keys' sessions, other tenants' servers, pages of other origins, messages that two readers would read
//! differently, lists and bodies without end.

use super::{call, client, greeting, request, serve, session};
use harness::Stack;
use harness::client::whole;
use http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_session_is_of_the_key_and_the_server_that_opened_it() {
    let stack = Stack::start().await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    serve(&stack, "others", "json", json!({})).await;
    let id = own.post("/tools/mcp", &greeting()).await.header("mcp-session-id").to_owned();
    let other_key = stack.key(&["mcp.invoke"]).await;
    stack.mock.reset();
    let with = |key: &str, id: &str| client(&stack, key).with("mcp-session-id", id);
    let altered = format!("{}{}", &id[..id.len() - 1], if id.ends_with('0') { '1' } else { '0' });
    let key = &stack.home.workspace_key;
    for (who, path) in [
        (with(&other_key, &id), "/tools/mcp"),
        (with(key, &id), "/others/mcp"),
        (with(key, &altered), "/tools/mcp"),
        (with(key, "mock-session-1"), "/tools/mcp"),
        (with(key, &id[..id.len() / 2]), "/tools/mcp"),
        (with(key, "ff"), "/tools/mcp"),
    ] {
        let answer = who.post(path, &call(1, "echo", "x")).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (404, &json!(-32001)),
            "{}",
            answer.text()
        );
        assert_eq!(who.get(path).await.status, 404);
        assert_eq!(who.delete(path).await.status, 404);
    }
    assert!(stack.mock.requests().is_empty(), "no server was asked");
    assert_eq!(with(key, &id).post("/tools/mcp", &call(1, "echo", "x")).await.status, 200);
}

#[tokio::test]
async fn who_has_no_key_is_told_where_to_get_one_and_nothing_else() {
    let stack = Stack::builder().proxy("MCP_AUTHORIZATION_SERVERS", "https://login.example.com").start().await;
    serve(&stack, "tools", "json", json!({})).await;
    let root = stack.anonymous().at(stack.base_url.trim_end_matches("/v1"));
    let answer = root.post("/tools/mcp", &greeting()).await;
    assert_eq!(answer.status, 401, "{}", answer.text());
    assert_eq!(answer.json()["jsonrpc"], "2.0");
    let challenge = answer.header("www-authenticate").to_owned();
    let url = challenge.split('"').nth(1).unwrap();
    let path = url.strip_prefix(stack.base_url.trim_end_matches("/v1")).unwrap();
    let document = root.get(path).await.json();
    assert_eq!(document["resource"], format!("{}/tools/mcp", stack.base_url.trim_end_matches("/v1")));
    assert_eq!(document["authorization_servers"], json!(["https://login.example.com"]));
    assert_eq!(document["scopes_supported"], json!(["mcp.invoke"]));
    let unknown = root.post("/nobody/mcp", &greeting()).await;
    assert_eq!(
        (unknown.status.as_u16(), unknown.json()),
        (401, answer.json()),
        "nobody learns which servers there are"
    );
}

#[tokio::test]
async fn keys_without_the_scope_and_other_tenants_have_no_server() {
    let stack = Stack::start().await;
    serve(&stack, "tools", "json", json!({})).await;
    let without = client(&stack, &stack.key(&["completions.write"]).await);
    let answer = without.post("/tools/mcp", &greeting()).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(answer.text().contains("mcp.invoke"), "{}", answer.text());
    let stranger = stack.organisation().await;
    let stranger = client(&stack, &stranger.workspace_key);
    for path in ["/tools/mcp", "/mcp/tools", "/made-up/mcp"] {
        let answer = stranger.post(path, &greeting()).await;
        assert_eq!(answer.status, 404, "{}", answer.text());
    }
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn pages_of_other_origins_are_refused() {
    let stack = Stack::builder().proxy("MCP_ALLOWED_ORIGINS", "https://app.example.com").start().await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    for (origin, status) in [("https://evil.example", 403), ("null", 403), ("https://app.example.com", 200)] {
        let answer = own.with("origin", origin).post("/tools/mcp", &greeting()).await;
        assert_eq!(answer.status, status, "{origin}: {}", answer.text());
    }
}

#[tokio::test]
async fn what_is_no_message_reaches_no_server() {
    let stack = Stack::start().await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    let own = session(&own, "/tools/mcp").await;
    stack.mock.reset();
    let send = async |body: String| {
        let request = own.request(Method::POST, "/tools/mcp").header("content-type", "application/json");
        whole(request.body(body)).await
    };
    for (body, code) in [
        ("{".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#.to_owned(), -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}"#.to_owned(), -32600),
        (format!("[{}]", call(1, "echo", "x")), -32600),
        ("[".repeat(100_000), -32700),
    ] {
        let answer = send(body.clone()).await;
        let start = &body[..body.len().min(80)];
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!(code)), "{start}");
    }
    let doubled = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","Name":"delete"}}"#;
    assert_eq!(send(doubled.to_owned()).await.json()["error"]["code"], -32602);
    let huge = call(1, "echo", &"x".repeat(5 << 20)).to_string();
    assert_eq!(send(huge).await.status, 413);
    let text = own.request(Method::POST, "/tools/mcp").header("content-type", "text/plain").body("{}");
    assert_eq!(whole(text).await.status, 400);
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn lists_without_end_and_answers_for_others_are_not_passed_on() {
    let stack = Stack::start().await;
    let huge = serve(&stack, "huge", "huge", json!({})).await;
    let huge = session(&huge, "/huge/mcp").await;
    let said = huge.post("/huge/mcp", &request(1, "tools/list", json!({}))).await;
    assert!(said.body.len() < 1000);
    assert_eq!((&said.json()["id"], &said.json()["error"]["code"]), (&json!(1), &json!(-32051)), "{}", said.text());
    let astray = serve(&stack, "astray", "astray", json!({})).await;
    let astray = session(&astray, "/astray/mcp").await;
    let said = astray.post("/astray/mcp", &call(1, "echo", "x")).await.json();
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!(1), &json!(-32051)), "{said}");
    assert_eq!(said["result"], Value::Null);
}

#[tokio::test]
async fn headers_that_say_something_else_than_the_body_are_refused() {
    let stack = Stack::start().await;
    let own = serve(&stack, "tools", "stateless", json!({})).await;
    let echo = call(1, "echo", "x");
    for (method, name, status) in
        [("tools/call", "echo", 200), ("tools/call", "delete", 400), ("tools/list", "echo", 400)]
    {
        let answer = own.with("mcp-method", method).with("mcp-name", name).post("/tools/mcp", &echo).await;
        assert_eq!(answer.status, status, "{method} {name}: {}", answer.text());
    }
    let asked = stack.mock.requests();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].header("mcp-method"), asked[0].header("mcp-name")), ("tools/call", "echo"));
}
