//! A server of the older transport behind the gateway: a GET opens its session, a first event names where messages are sent
//! to, and answers come over the stream. Clients speak Streamable HTTP with it all the same.

use super::{call, client, greeting, messages, request, serve_at, session};
use crate::journal::calls::{rows, text};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use harness::Stack;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// The streams of sessions, by their number.
#[derive(Clone, Default)]
struct OldServer(Arc<Mutex<Vec<mpsc::UnboundedSender<String>>>>);

async fn open(State(server): State<OldServer>) -> Response {
    let (sender, receiver) = mpsc::unbounded_channel();
    let mut sessions = server.0.lock().unwrap();
    let _ = sender.send(format!("event: endpoint\ndata: /post?session={}\n\n", sessions.len()));
    sessions.push(sender);
    let events = stream::unfold(receiver, |mut receiver| async move {
        let event = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(Bytes::from(event)), receiver))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
}

async fn take(
    State(server): State<OldServer>,
    Query(query): Query<HashMap<String, usize>>,
    axum::Json(asked): axum::Json<Value>,
) -> StatusCode {
    let sessions = server.0.lock().unwrap();
    let Some(session) = query.get("session").and_then(|number| sessions.get(*number)) else {
        return StatusCode::NOT_FOUND;
    };
    if asked["method"] == "made/half" {
        // An event that never ends.
        let _ = session.send(format!("data: {}", "x".repeat(300_000)));
        return StatusCode::ACCEPTED;
    }
    let say = |message: Value| drop(session.send(format!("event: message\ndata: {message}\n\n")));
    let result = match asked["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let info = json!({ "name": "old", "version": "1" });
            json!({ "protocolVersion": "2024-11-05", "capabilities": { "tools": {} }, "serverInfo": info })
        }
        "tools/list" => json!({ "tools": [{ "name": "echo", "inputSchema": { "type": "object" } }] }),
        "tools/call" => {
            say(json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": 1 } }));
            json!({ "content": [{ "type": "text", "text": asked["params"]["arguments"]["message"] }] })
        }
        _ => json!({}),
    };
    if asked.get("id").is_some() {
        say(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
    }
    StatusCode::ACCEPTED
}

/// Names another host than its own for messages.
async fn astray() -> Response {
    let event = "event: endpoint\ndata: http://127.0.0.2:9/post\n\n";
    ([(header::CONTENT_TYPE, "text/event-stream")], event).into_response()
}

pub async fn start() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/sse", get(open)).route("/post", post(take)).route("/astray", get(astray));
    let router = router.with_state(OldServer::default());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    origin
}

#[tokio::test]
async fn a_client_of_the_new_transport_speaks_with_a_server_of_the_old_one() {
    // Sessions are held by one thread or the other, and found by both.
    let stack = Stack::start().await;
    let origin = start().await;
    let own = serve_at(&stack, "old", &format!("{origin}/sse"), json!({ "transport": "sse" })).await;
    let one = session(&own, "/old/mcp").await;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(one.post("/old/mcp", &ready).await.status, 202);
    for number in 1..5 {
        let said = messages(&one.post("/old/mcp", &call(number, "echo", "hello")).await);
        assert_eq!(said[0]["method"], "notifications/progress", "{said:?}");
        assert_eq!((&said[1]["id"], &said[1]["result"]["content"][0]["text"]), (&json!(number), &json!("hello")));
    }
    let found = rows(&stack, 4).await;
    assert!(found.iter().all(|row| text(row, "ai_model") == Some("old/echo")));
    let without = own.post("/old/mcp", &request(1, "ping", json!({}))).await;
    assert_eq!(without.status, 400, "{}", without.text());
    assert_eq!(one.delete("/old/mcp").await.status, 200);
    assert_eq!(one.post("/old/mcp", &call(9, "echo", "x")).await.status, 404, "the session is over");
    let other = client(&stack, &stack.key(&["mcp.invoke"]).await);
    let id = own.post("/old/mcp", &greeting()).await.header("mcp-session-id").to_owned();
    assert_eq!(other.with("mcp-session-id", id).post("/old/mcp", &call(1, "echo", "x")).await.status, 404);
}

#[tokio::test]
async fn admin_asks_such_a_server_what_it_offers_too() {
    let stack = Stack::start().await;
    let origin = start().await;
    serve_at(&stack, "old", &format!("{origin}/sse"), json!({ "transport": "sse" })).await;
    let admin = stack.administrator();
    let tested = admin.post("/mcp-integrations/old/test", &json!({})).await.json();
    assert_eq!((&tested["success"], &tested["server_name"]), (&json!(true), &json!("old")), "{tested}");
    let read = admin.get("/mcp-integrations/old").await.json();
    assert_eq!(read["metadata"]["sync_status"], "synced", "{read}");
    let listed = admin.get("/mcp-integrations/old/capabilities").await.json();
    assert_eq!((&listed["total"], &listed["data"][0]["name"]), (&json!(1), &json!("echo")), "{listed}");
    serve_at(&stack, "astray", &format!("{origin}/astray"), json!({ "transport": "sse" })).await;
    let tested = admin.post("/mcp-integrations/astray/test", &json!({})).await.json();
    assert!(tested["message"].as_str().unwrap().contains("another host"), "{tested}");
}

#[tokio::test]
async fn messages_go_to_no_other_host() {
    let stack = Stack::start().await;
    let origin = start().await;
    let own = serve_at(&stack, "astray", &format!("{origin}/astray"), json!({ "transport": "sse" })).await;
    let said = own.post("/astray/mcp", &greeting()).await.json();
    assert_eq!(said["error"]["code"], -32051, "{said}");
    assert!(said["error"]["message"].as_str().unwrap().contains("another host"), "{said}");
}

#[tokio::test]
async fn half_an_event_of_a_session_counts_until_the_session_is_over() {
    const HELD: &str = "gateway_request_body_bytes";
    let stack = Stack::start().await;
    let origin = start().await;
    let own = serve_at(&stack, "old", &format!("{origin}/sse"), json!({ "transport": "sse" })).await;
    let one = session(&own, "/old/mcp").await;
    let asking = one.clone();
    let call = tokio::spawn(async move { asking.post("/old/mcp", &request(1, "made/half", json!({}))).await });
    stack.until("it counts", async || stack.metric(HELD).await >= Some(300_000.0)).await;
    assert_eq!(one.delete("/old/mcp").await.status, 200);
    stack.until("it is given back", async || stack.metric(HELD).await == Some(0.0)).await;
    call.abort();
}
