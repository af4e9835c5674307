//! The merged server of a workspace: names with slugs before them, calls that find their server, servers that are away.

use super::{call, client, greeting, names, request, serve, serve_at};
use crate::journal::calls::{rows, text};
use bench::ports::Reservation;
use harness::{Client, Stack};
use serde_json::{Value, json};

async fn merged(client: &Client) -> (Client, Value) {
    let answer = client.post("/mcp", &greeting()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    (client.with("mcp-session-id", answer.header("mcp-session-id")), answer.json())
}

#[tokio::test]
async fn all_servers_of_a_workspace_are_one() {
    let stack = Stack::start().await;
    serve(&stack, "one", "json", json!({})).await;
    let own = serve(&stack, "two", "events", json!({})).await;
    let (session, greeted) = merged(&own).await;
    assert_eq!(greeted["result"]["serverInfo"]["name"], "portcullis", "{greeted}");
    assert_eq!(greeted["result"]["protocolVersion"], "2025-06-18");
    let listed = session.post("/mcp", &request(1, "tools/list", json!({}))).await.json();
    let tools = &listed["result"]["tools"];
    assert_eq!(names(tools), ["one__echo", "one__delete", "one__fail", "two__echo", "two__delete", "two__fail"]);
    let prompts = session.post("/mcp", &request(2, "prompts/list", json!({}))).await.json();
    assert_eq!(names(&prompts["result"]["prompts"]), ["one__greet", "one__scold", "two__greet", "two__scold"]);
    let called = session.post("/mcp", &call(3, "one__echo", "hello")).await.json();
    assert_eq!((&called["id"], &called["result"]["content"][0]["text"]), (&json!(3), &json!("hello")), "{called}");
    let streamed = super::messages(&session.post("/mcp", &call(4, "two__echo", "there")).await);
    assert_eq!(streamed[1]["result"]["content"][0]["text"], "there", "{streamed:?}");
    for (message, code) in [
        (call(5, "three__echo", "x"), -32602),
        (call(5, "echo", "x"), -32602),
        (request(5, "resources/read", json!({ "uri": "mock://readme" })), -32601),
    ] {
        assert_eq!(session.post("/mcp", &message).await.json()["error"]["code"], code, "{message}");
    }
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(session.post("/mcp", &ready).await.status, 202);
    assert_eq!(session.get("/mcp").await.status, 405);
    assert_eq!(session.delete("/mcp").await.status, 200);
    let found = rows(&stack, 2).await;
    let told: Vec<_> = found.iter().map(|row| text(row, "ai_model").unwrap()).collect();
    assert_eq!(told, ["one/echo", "two/echo"]);
}

#[tokio::test]
async fn a_merged_session_is_of_its_key_and_what_is_switched_off_stays_so() {
    let stack = Stack::start().await;
    let own = serve(&stack, "one", "json", json!({})).await;
    let (session, _) = merged(&own).await;
    let id = own.post("/mcp", &greeting()).await.header("mcp-session-id").to_owned();
    let other = client(&stack, &stack.key(&["mcp.invoke"]).await).with("mcp-session-id", &*id);
    assert_eq!(other.post("/mcp", &call(1, "one__echo", "x")).await.status, 404);
    let off = json!({ "capabilities": [{ "name": "delete", "type": "tool", "enabled": false }] });
    let switched = stack.administrator().put("/mcp-integrations/one/capabilities", &off).await;
    assert_eq!(switched.status, 200, "{}", switched.text());
    let list = async || session.post("/mcp", &request(1, "tools/list", json!({}))).await.json();
    let is_gone = async || names(&list().await["result"]["tools"]) == ["one__echo", "one__fail"];
    stack.until("it is in the list no more", is_gone).await;
    assert_eq!(session.post("/mcp", &call(2, "one__delete", "x")).await.json()["error"]["code"], -32602);
}

#[tokio::test]
async fn a_server_that_is_away_costs_its_own_tools_alone() {
    let stack = Stack::start().await;
    let port = Reservation::any().unwrap();
    serve_at(&stack, "away", &format!("http://127.0.0.1:{}/mcp", port.port()), json!({})).await;
    let own = serve(&stack, "one", "json", json!({})).await;
    let (session, greeted) = merged(&own).await;
    assert!(greeted["result"]["instructions"].as_str().unwrap().contains("away does not answer"), "{greeted}");
    let listed = session.post("/mcp", &request(1, "tools/list", json!({}))).await.json();
    assert_eq!(names(&listed["result"]["tools"]), ["one__echo", "one__delete", "one__fail"]);
    let called = session.post("/mcp", &call(2, "away__echo", "x")).await.json();
    assert_eq!((&called["id"], &called["error"]["code"]), (&json!(2), &json!(-32051)), "{called}");
}
