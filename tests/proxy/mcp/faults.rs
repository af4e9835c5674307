//! Servers that are away, slow or broken: a client hears of it as the answer to its request, and nothing hangs.

use super::{call, messages, request, serve, serve_at, session};
use bench::ports::Reservation;
use harness::Stack;
use serde_json::{Value, json};

#[tokio::test]
async fn a_server_that_is_away_is_told_with_the_id_of_the_request() {
    let stack = Stack::start().await;
    let port = Reservation::any().unwrap();
    let client = serve_at(&stack, "away", &format!("http://127.0.0.1:{}/mcp", port.port()), json!({})).await;
    for id in 1..8 {
        let answer = client.post("/away/mcp", &call(id, "echo", "x")).await;
        let said = answer.json();
        assert_eq!(
            (answer.status.as_u16(), &said["id"], &said["error"]["code"]),
            (200, &json!(id), &json!(-32051)),
            "{said}"
        );
    }
    let said = client.post("/away/mcp", &call(9, "echo", "x")).await.json();
    assert!(said["error"]["message"].as_str().unwrap().contains("left alone"), "{said}");
    let told = client.post("/away/mcp", &json!({ "jsonrpc": "2.0", "method": "notifications/x" })).await;
    assert_eq!(told.status, 503, "a notification has no other way to fail: {}", told.text());
}

#[tokio::test]
async fn lists_are_asked_for_again_and_calls_are_not() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let client = session(&client, "/tools/mcp").await;
    stack.mock.script(json!([{ "status": 503 }])).unwrap();
    let listed = client.post("/tools/mcp", &request(1, "tools/list", json!({}))).await.json();
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    stack.mock.script(json!([{ "status": 503 }])).unwrap();
    let called = client.post("/tools/mcp", &call(2, "echo", "x")).await.json();
    assert_eq!(called["error"]["code"], -32051, "{called}");
    let again = client.post("/tools/mcp", &call(3, "echo", "x")).await.json();
    assert_eq!(again["error"], Value::Null, "{again}");
}

#[tokio::test]
async fn a_server_that_restarts_has_forgotten_the_session_and_the_client_begins_anew() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let client = session(&client, "/tools/mcp").await;
    let forgotten =
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32001, "message": "Session not found" } });
    stack.mock.script(json!([{ "status": 404, "body": forgotten.to_string() }])).unwrap();
    let answer = client.post("/tools/mcp", &call(1, "echo", "x")).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (404, &json!(-32001)), "{}", answer.text());
}

#[tokio::test]
async fn a_stream_that_ends_without_its_answer_ends_with_an_error() {
    let stack = Stack::start().await;
    let client = serve(&stack, "silent", "silent", json!({})).await;
    let client = session(&client, "/silent/mcp").await;
    let said = messages(&client.post("/silent/mcp", &call(1, "echo", "x")).await);
    assert_eq!(said[0]["method"], "notifications/progress");
    assert_eq!((&said[1]["id"], &said[1]["error"]["code"]), (&json!(1), &json!(-32051)), "{said:?}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let stack = Stack::builder().proxy("MCP_CALL_TIMEOUT_MS", "3000").start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let client = session(&client, "/tools/mcp").await;
    stack.mock.script(json!([{ "latency_ms": 60_000 }])).unwrap();
    let said = client.post("/tools/mcp", &call(1, "echo", "x")).await.json();
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!(1), &json!(-32051)), "{said}");
}
