//! Ids that occur twice: a server's own request with the id of the call that it answers, calls with one id at the same time, and
//! answers that come twice. Each is told apart, and one call has one answer and one row.

use super::{call, client, messages, request, serve, serve_at, session, session_id};
use crate::journal::calls::{rows, status};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use futures::future::join_all;
use harness::Stack;
use http::header;
use serde_json::{Value, json};

/// Before each answer it asks the client something, with the id of the client's own request; and it answers twice.
async fn confusing(Json(asked): Json<Value>) -> Response {
    let id = &asked["id"];
    if asked["method"] == "initialize" || id.is_null() || asked.get("method").is_none() {
        let info = json!({ "name": "confusing", "version": "1" });
        let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": info });
        return ([("mcp-session-id", "one")], Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })))
            .into_response();
    }
    let said = json!({ "content": [{ "type": "text", "text": asked["params"]["arguments"]["message"] }] });
    let result = if asked["method"] == "tools/list" { json!({ "tools": [{ "name": "echo" }] }) } else { said };
    let events: String = [
        json!({ "jsonrpc": "2.0", "id": id, "method": "sampling/createMessage", "params": { "messages": [] } }),
        json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        json!({ "jsonrpc": "2.0", "id": id, "result": { "content": [{ "type": "text", "text": "a second answer" }] } }),
    ]
    .iter()
    .map(|message| format!("data: {message}\n\n"))
    .collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
}

async fn start(stack: &Stack) -> harness::Client {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = Router::new().route("/mcp", post(confusing));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    serve_at(stack, "confusing", &url, json!({})).await
}

#[tokio::test]
async fn a_request_of_the_server_with_the_same_id_is_no_answer_and_only_the_first_answer_counts() {
    let stack = Stack::start().await;
    let client = session(&start(&stack).await, "/confusing/mcp").await;
    let said = messages(&client.post("/confusing/mcp", &call(1, "echo", "hello")).await);
    assert_eq!((&said[0]["id"], &said[0]["method"]), (&json!(1), &json!("sampling/createMessage")), "{said:?}");
    let answers: Vec<&Value> = said.iter().filter(|one| one.get("result").is_some()).collect();
    assert_eq!(answers[0]["result"]["content"][0]["text"], "hello", "{said:?}");
    // The client's answer to the server's request is passed on and is no call.
    let sampled = json!({ "jsonrpc": "2.0", "id": 1, "result": { "role": "assistant", "content": [] } });
    let passed = client.post("/confusing/mcp", &sampled).await;
    assert!(passed.status.is_success(), "{}", passed.text());
    let found = rows(&stack, 1).await;
    assert_eq!((found.len(), status(&found[0])), (1, 200));
}

#[tokio::test]
async fn calls_of_one_id_at_the_same_time_get_each_their_own_answer() {
    let stack = Stack::start().await;
    for way in ["json", "events"] {
        serve(&stack, way, way, json!({})).await;
    }
    for way in ["json", "events"] {
        let path = format!("/{way}/mcp");
        let client = session(&client(&stack, &stack.home.workspace_key), &path).await;
        let answers = join_all((0..20).map(|n| {
            let (client, path) = (client.clone(), path.clone());
            async move { (n, client.post(&path, &call(1, "echo", &format!("message {n}"))).await) }
        }));
        for (n, answer) in answers.await {
            let said = if way == "json" { vec![answer.json()] } else { messages(&answer) };
            let last = said.last().unwrap();
            assert_eq!(
                (&last["id"], &last["result"]["content"][0]["text"]),
                (&json!(1), &json!(format!("message {n}")))
            );
        }
    }
}

#[tokio::test]
async fn a_batch_with_one_id_twice_mixes_nothing_up() {
    let stack = Stack::start().await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    let id = session_id(&session(&own, "/tools/mcp").await);
    let old = own.with("mcp-session-id", id).with("mcp-protocol-version", "2025-03-26");
    let batch = json!([call(1, "echo", "one"), call(1, "echo", "two"), request(2, "ping", json!({}))]);
    let answer = old.post("/tools/mcp", &batch).await;
    match answer.status.as_u16() {
        // Refused as a whole, with the protocol's own error: which answer is which could not be told.
        400 => assert_eq!(answer.json()["error"]["code"], -32600, "{}", answer.text()),
        // Or each message has its answer, in their order.
        _ => {
            let said = messages(&answer);
            let texts: Vec<&Value> = said.iter().map(|one| &one["result"]["content"][0]["text"]).collect();
            assert_eq!(texts, [&json!("one"), &json!("two"), &Value::Null], "{}", answer.text());
        }
    }
}
