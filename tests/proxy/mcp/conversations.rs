//! Whole conversations: as JSON and as events, under both addresses of a server, and across proxies.

use super::{call, greeting, listen, messages, names, request, serve, session};
use harness::Stack;
use serde_json::{Value, json};

#[tokio::test]
async fn a_client_speaks_with_a_server_under_both_addresses_and_its_key_stays_here() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    for path in ["/tools/mcp", "/mcp/tools"] {
        let greeted = client.post(path, &greeting()).await;
        assert_eq!(greeted.json()["result"]["serverInfo"]["name"], "mock", "{}", greeted.text());
        assert!(!greeted.header("mcp-session-id").contains("mock-session"), "the server's own id is nobody's");
        let client = client.with("mcp-session-id", greeted.header("mcp-session-id"));
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let accepted = client.post(path, &ready).await;
        assert_eq!((accepted.status.as_u16(), accepted.text().as_str()), (202, ""));
        let listed = client.post(path, &request(1, "tools/list", json!({}))).await.json();
        assert_eq!(names(&listed["result"]["tools"]), ["echo", "delete", "fail"]);
        let called = client.post(path, &call(2, "echo", "hello")).await.json();
        assert_eq!(called["result"]["content"][0]["text"], "hello", "{called}");
        assert_eq!(called["id"], 2);
        assert_eq!(listen(&client, path, "").await.status, 405, "this server has no stream");
        assert_eq!(client.delete(path).await.status, 200);
    }
    let asked = stack.mock.requests();
    for one in asked {
        let is_greeting = String::from_utf8_lossy(&one.body).contains(r#""method":"initialize""#);
        let session = one.header("mcp-session-id");
        assert!(is_greeting || session.starts_with("mock-session-"), "{}: {session}", one.method);
        let all = format!("{:?}", one.headers);
        assert!(!all.contains(&stack.home.workspace_key) && !all.contains("x-gateway"), "{all}");
    }
}

#[tokio::test]
async fn events_pass_as_they_come_and_a_stream_can_be_asked_for_again() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "events", json!({})).await;
    let client = session(&client, "/tools/mcp").await;
    let answer = client.post("/tools/mcp", &call(7, "echo", "hello")).await;
    assert!(answer.header("content-type").starts_with("text/event-stream"), "{:?}", answer.headers);
    let said = messages(&answer);
    assert_eq!(said[0]["method"], "notifications/progress");
    assert_eq!((&said[1]["id"], &said[1]["result"]["content"][0]["text"]), (&json!(7), &json!("hello")));
    assert!(answer.text().contains("id: p-2"), "{}", answer.text());
    let heard = messages(&listen(&client, "/tools/mcp", "p-1").await);
    assert_eq!(heard[0]["params"]["data"], "p-1");
    assert_eq!(heard.len(), 2);
}

/// As the hosted MCP tools of OpenAI and Anthropic ask: the key as a bearer token, a revision of their own, ids of both kinds.
#[tokio::test]
async fn clients_of_model_vendors_are_understood() {
    let stack = Stack::start().await;
    serve(&stack, "tools", "events", json!({})).await;
    let root = stack.anonymous().at(stack.base_url.trim_end_matches("/v1"));
    for (agent, name, revision, id) in [
        ("openai-mcp/1.0.0", "openai-mcp", "2025-03-26", json!(0)),
        ("python-httpx/0.28.1", "Anthropic/ClaudeAI", "2025-11-25", json!("req-1")),
        ("node", "claude-code", "2025-06-18", json!(-7)),
    ] {
        let client = root
            .with("authorization", format!("Bearer {}", stack.home.workspace_key))
            .with("accept", "application/json,text/event-stream")
            .with("user-agent", agent);
        let info = json!({ "name": name, "version": "1.0.0" });
        let params = json!({ "protocolVersion": revision, "capabilities": { "roots": {} }, "clientInfo": info });
        let message =
            |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let greeted = client.post("/tools/mcp", &message("initialize", params)).await;
        assert_eq!(messages(&greeted)[1]["result"]["protocolVersion"], revision, "{name}: {}", greeted.text());
        let session = client.with("mcp-session-id", greeted.header("mcp-session-id"));
        // Some name the revision from here on, and some do not.
        let session = if revision == "2025-03-26" { session } else { session.with("mcp-protocol-version", revision) };
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(session.post("/tools/mcp", &ready).await.status, 202, "{name}");
        let listed = messages(
            &session.post("/tools/mcp", &message("tools/list", json!({ "_meta": { "progressToken": 1 } }))).await,
        );
        assert_eq!(names(&listed[1]["result"]["tools"]).len(), 3, "{name}: {listed:?}");
        let call = json!({ "name": "echo", "arguments": { "message": name }, "_meta": { "openai/userAgent": agent } });
        let said = messages(&session.post("/tools/mcp", &message("tools/call", call)).await);
        assert_eq!((&said[1]["id"], &said[1]["result"]["content"][0]["text"]), (&id, &json!(name)), "{said:?}");
    }
}

#[tokio::test]
async fn a_session_goes_on_at_another_proxy() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let client = session(&client, "/tools/mcp").await;
    let replica = stack.replica().await;
    let elsewhere = client.at(replica.base_url.trim_end_matches("/v1"));
    stack
        .until("the other proxy knows the server", async || {
            elsewhere.post("/tools/mcp", &request(1, "ping", json!({}))).await.status == 200
        })
        .await;
    let called = elsewhere.post("/tools/mcp", &call(2, "echo", "there")).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "there", "{called}");
}

#[tokio::test]
async fn a_server_without_sessions_needs_none() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "stateless", json!({})).await;
    let greeted = client.post("/tools/mcp", &greeting()).await;
    assert_eq!(greeted.header("mcp-session-id"), "");
    let called = client.post("/tools/mcp", &call(1, "echo", "hello")).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "hello", "{called}");
    let unknown = client.post("/tools/mcp", &request(2, "made/up", json!({}))).await.json();
    assert_eq!(unknown["error"]["code"], -32601, "what we do not know is the server's to say: {unknown}");
}
