//! The newest revision: no sessions and no greeting, headers that repeat the body, results that want more input, streams that
//! are subscribed to, and versions that a server does not have.

use super::{client, messages, names, serve_at};
use crate::journal::calls::{rows, status, text};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use harness::{Client, Stack};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const REVISION: &str = "2026-07-28";

/// The heads that the server got.
type Heads = Arc<Mutex<Vec<HeaderMap>>>;

async fn answer(State(heads): State<Heads>, head: HeaderMap, Json(asked): Json<Value>) -> Response {
    heads.lock().unwrap().push(head.clone());
    let params = &asked["params"];
    if head.get("mcp-protocol-version").is_none_or(|version| version != REVISION) {
        let data = json!({ "supported": [REVISION], "requested": "1900-01-01" });
        let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
        return (StatusCode::BAD_REQUEST, Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error })))
            .into_response();
    }
    let result = match asked["method"].as_str().unwrap() {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": [REVISION], "capabilities": { "tools": {} }, "ttlMs": 0,
            "cacheScope": "private", "serverInfo": { "name": "newest", "version": "1" },
        }),
        "tools/list" => json!({ "resultType": "complete", "ttlMs": 1000, "cacheScope": "private", "tools": [
            { "name": "greet", "inputSchema": { "type": "object" } }, { "name": "delete", "inputSchema": { "type": "object" } },
        ] }),
        "tools/call" if params.get("inputResponses").is_none() => json!({
            "resultType": "input_required", "requestState": "signed",
            "inputRequests": { "name": { "method": "elicitation/create", "params": { "message": "Who?" } } },
        }),
        "tools/call" => json!({
            "resultType": "complete",
            "content": [{ "type": "text", "text": params["inputResponses"]["name"]["content"]["name"] }],
        }),
        _ => {
            let notice = |method: &str| json!({ "jsonrpc": "2.0", "method": method, "params": {} });
            let events = ["notifications/subscriptions/acknowledged", "notifications/tools/list_changed"].map(notice);
            let end = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "resultType": "complete" } });
            let events = events.iter().chain([&end]).map(|event| format!("data: {event}\n\n")).collect::<String>();
            return ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response();
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).into_response()
}

async fn start(stack: &Stack) -> Heads {
    let heads = Heads::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(answer)).with_state(heads.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    serve_at(stack, "newest", &url, json!({})).await;
    heads.lock().unwrap().clear();
    heads
}

/// As clients of this revision send it.
async fn ask(client: &Client, id: u64, method: &str, mut params: Value) -> harness::Answer {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let client = client.with("mcp-protocol-version", REVISION).with("mcp-method", method);
    let client = match params["name"].as_str() {
        Some(name) => client.with("mcp-name", name),
        None => client,
    };
    client.post("/newest/mcp", &super::request(id, method, params)).await
}

#[tokio::test]
async fn a_conversation_needs_neither_session_nor_greeting() {
    let stack = Stack::start().await;
    let heads = start(&stack).await;
    let client = client(&stack, &stack.home.workspace_key);
    let discovered = ask(&client, 1, "server/discover", json!({})).await.json();
    assert_eq!(discovered["result"]["supportedVersions"], json!([REVISION]), "{discovered}");

    let wanting = ask(&client, 2, "tools/call", json!({ "name": "greet", "arguments": {} })).await.json();
    assert_eq!(wanting["result"]["resultType"], "input_required", "{wanting}");
    let given = json!({ "name": { "action": "accept", "content": { "name": "Ada" } } });
    let retried = json!({ "name": "greet", "arguments": {}, "inputResponses": given, "requestState": "signed" });
    let done = ask(&client, 3, "tools/call", retried).await.json();
    assert_eq!(done["result"]["content"][0]["text"], "Ada", "{done}");
    let told = |name: &str| {
        let heads = heads.lock().unwrap();
        heads.last().unwrap().get(name).map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(told("mcp-protocol-version").as_deref(), Some(REVISION));
    assert_eq!((told("mcp-method").as_deref(), told("mcp-name").as_deref()), (Some("tools/call"), Some("greet")));
    let found = rows(&stack, 2).await;
    assert!(found.iter().all(|row| text(row, "ai_model") == Some("newest/greet") && status(row) == 200));

    let heard = messages(&ask(&client, 4, "subscriptions/listen", json!({ "notifications": {} })).await);
    assert_eq!(heard[0]["method"], "notifications/subscriptions/acknowledged", "{heard:?}");
    assert_eq!(heard[1]["method"], "notifications/tools/list_changed");
    assert_eq!(heard[2]["id"], 4);

    let off = json!({ "capabilities": [{ "name": "delete", "type": "tool", "enabled": false }] });
    assert_eq!(stack.administrator().put("/mcp-integrations/newest/capabilities", &off).await.status, 200);
    let list = async || ask(&client, 5, "tools/list", json!({})).await.json();
    let is_gone = async || names(&list().await["result"]["tools"]) == ["greet"];
    stack.until("it is in the list no more", is_gone).await;
    assert_eq!(list().await["result"]["ttlMs"], 1000, "the rest is as it was");
    let refused = ask(&client, 6, "tools/call", json!({ "name": "delete", "arguments": {} })).await.json();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn a_version_that_the_server_does_not_have_is_told_with_those_that_it_has() {
    let stack = Stack::start().await;
    start(&stack).await;
    let client = client(&stack, &stack.home.workspace_key).with("mcp-protocol-version", "1900-01-01");
    let answer = client.post("/newest/mcp", &super::request(1, "server/discover", json!({}))).await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status.as_u16(), &error["code"]), (400, &json!(-32022)), "{}", answer.text());
    assert_eq!(error["data"]["supported"], json!([REVISION]), "by which a client chooses another");
}
