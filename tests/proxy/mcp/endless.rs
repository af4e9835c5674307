//! A server whose streams never end: whoever waits for an answer is not kept for ever, and nothing grows.

use super::{client, greeting, names, request, serve, serve_at, session};
use crate::raw::Wire;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::{StreamExt as _, stream};
use harness::Stack;
use http::{Method, header};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many streams are open.
type Open = Arc<AtomicUsize>;

struct Counted(Open);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn answer(State(open): State<Open>, Json(asked): Json<Value>) -> Response {
    if asked["method"] == "initialize" || asked.get("id").is_none() {
        let info = json!({ "name": "endless", "version": "1" });
        let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": info });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        return ([("mcp-session-id", "one")], Json(answer)).into_response();
    }
    open.fetch_add(1, Ordering::SeqCst);
    let notice =
        json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "x".repeat(60_000) } });
    let event = Bytes::from(format!("data: {notice}\n\n"));
    let events = stream::unfold(Counted(open), move |held| {
        let event = event.clone();
        async move {
            tokio::task::yield_now().await;
            Some((Ok::<_, std::io::Error>(event), held))
        }
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

async fn start(stack: &Stack) -> Open {
    let open = Open::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(answer)).with_state(open.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    serve_at(stack, "endless", &url, json!({})).await;
    open
}

#[tokio::test]
async fn a_merged_list_does_without_it() {
    let stack = Stack::start().await;
    start(&stack).await;
    let own = serve(&stack, "one", "json", json!({})).await;
    let greeted = own.post("/mcp", &greeting()).await;
    let merged = own.with("mcp-session-id", greeted.header("mcp-session-id"));
    let listed = merged.post("/mcp", &request(1, "tools/list", json!({}))).await.json();
    assert_eq!(names(&listed["result"]["tools"]), ["one__echo", "one__delete", "one__fail"], "{listed}");
}

#[tokio::test]
async fn a_client_that_leaves_ends_it() {
    let stack = Stack::start().await;
    let open = start(&stack).await;
    let client = session(&client(&stack, &stack.home.workspace_key), "/endless/mcp").await;
    let request = client.request(Method::POST, "/endless/mcp").json(&request(1, "tools/list", json!({})));
    let mut answer = request.send().await.unwrap();
    let mut length = 0;
    while length < 8 << 20 {
        length += answer.chunk().await.unwrap().unwrap().len();
    }
    drop(answer);
    stack.until("the server's stream has ended", async || open.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test]
async fn a_batch_is_told_that_there_is_no_answer() {
    let stack = Stack::start().await;
    let open = start(&stack).await;
    let opened = session(&client(&stack, &stack.home.workspace_key), "/endless/mcp").await;
    let id = opened.request(Method::GET, "/").build().unwrap().headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let old =
        client(&stack, &stack.home.workspace_key).with("mcp-session-id", id).with("mcp-protocol-version", "2025-03-26");
    let answer = old.post("/endless/mcp", &json!([request(1, "made/up", json!({}))])).await;
    let said = super::messages(&answer);
    assert_eq!((said.len(), &said[0]["error"]["code"]), (1, &json!(-32051)), "{}", said[0]);
    stack.until("the server's stream has ended", async || open.load(Ordering::SeqCst) == 0).await;
}

/// Once it is set the other half of an event never comes. Before, lists are empty: the control plane asks for them when a
/// server is registered, and would wait for the rest as long as it may.
type SendsHalves = Arc<AtomicBool>;

async fn half(State(sends_halves): State<SendsHalves>, Json(asked): Json<Value>) -> Response {
    if asked["method"] == "initialize" || asked.get("id").is_none() {
        return answer(State(Open::default()), Json(asked)).await;
    }
    if !sends_halves.load(Ordering::SeqCst) {
        let result = json!({ "tools": [], "prompts": [], "resources": [], "resourceTemplates": [] });
        return Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).into_response();
    }
    let begun = Bytes::from(format!("data: {}", "x".repeat(300_000)));
    let events = stream::iter([Ok::<_, std::io::Error>(begun)]).chain(stream::pending());
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// Begins at once and is never finished.
async fn listened_to() -> Response {
    let begun = Bytes::from(format!("data: {}", "x".repeat(300_000)));
    let events = stream::iter([Ok::<_, std::io::Error>(begun)]).chain(stream::pending());
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

/// In every place where a server's or a client's message is put together, with guardrails that read it and without.
#[tokio::test]
async fn half_a_message_counts_in_the_memory_of_bodies_while_it_is_held() {
    const HELD: &str = "gateway_request_body_bytes";
    let stack = Stack::start().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let sends_halves = SendsHalves::default();
    let router = Router::new().route("/mcp", post(half).get(listened_to)).with_state(sends_halves.clone());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    serve_at(&stack, "half", &url, json!({})).await;
    sends_halves.store(true, Ordering::SeqCst);
    let plain = session(&client(&stack, &stack.home.workspace_key), "/half/mcp").await;
    let hook = json!({ "default.contains": { "words": ["forbidden"], "operator": "none" }, "deny": true });
    let config = json!({ "provider": "openai", "input_guardrails": [hook.clone()], "output_guardrails": [hook] });
    let judging = plain.with("x-gateway-config", config.to_string());
    let counts = async |what: &str, call: tokio::task::JoinHandle<()>| {
        stack.until(&format!("{what} counts"), async || stack.metric(HELD).await >= Some(300_000.0)).await;
        call.abort();
        stack.until(&format!("{what} is given back"), async || stack.metric(HELD).await == Some(0.0)).await;
    };
    for (who, client) in [("plain", &plain), ("judged", &judging)] {
        for (what, asked) in [
            ("an answer", request(1, "tools/call", json!({ "name": "x", "arguments": {} }))),
            ("a list", request(2, "tools/list", json!({}))),
            ("another list", request(3, "prompts/list", json!({}))),
        ] {
            let client = client.clone();
            let call = async move { drop(client.post("/half/mcp", &asked).await) };
            counts(&format!("{what}, {who}"), tokio::spawn(call)).await;
        }
        let client = client.clone();
        let call = async move { drop(client.get("/half/mcp").await) };
        counts(&format!("a listened stream, {who}"), tokio::spawn(call)).await;
    }
    let old = client(&stack, &stack.home.workspace_key)
        .with("mcp-session-id", super::session_id(&plain))
        .with("mcp-protocol-version", "2025-03-26");
    let call = async move { drop(old.post("/half/mcp", &json!([request(1, "made/up", json!({}))])).await) };
    counts("an answer to a batch", tokio::spawn(call)).await;

    let merged = client(&stack, &stack.home.workspace_key);
    let greeted = merged.post("/mcp", &greeting()).await;
    let merged = merged.with("mcp-session-id", greeted.header("mcp-session-id"));
    let call = async move { drop(merged.post("/mcp", &request(1, "tools/list", json!({}))).await) };
    counts("a list of the merged server", tokio::spawn(call)).await;

    // What the client begins and does not end.
    let mut wire = Wire::open(stack.proxy_port).await;
    let head = format!(
        "POST /half/mcp HTTP/1.1\r\nHost: gateway.test\r\nx-gateway-api-key: {}\r\naccept: application/json, \
         text/event-stream\r\ncontent-type: application/json\r\ncontent-length: 400000\r\n\r\n{{\"jsonrpc\":\"",
        stack.home.workspace_key
    );
    wire.send(format!("{head}{}", "x".repeat(300_000))).await;
    let call = tokio::spawn(async move {
        let _ = wire.answer().await;
    });
    counts("a request", call).await;
}
