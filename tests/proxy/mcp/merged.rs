//! The merged server of a workspace: names with slugs before them, calls that find their server, servers that are away.

use super::{call, client, greeting, names, request, serve, serve_at};
use crate::journal::calls::{rows, text};
use bench::ports::Reservation;
use harness::{Client, Stack};
use http::Method;
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
        (request(5, "resources/read", json!({ "uri": "mock://readme" })), -32002),
        (request(5, "resources/read", json!({ "uri": "mcp://three/mock://readme" })), -32002),
        (request(5, "resources/subscribe", json!({ "uri": "mcp://one/mock://readme" })), -32601),
    ] {
        assert_eq!(session.post("/mcp", &message).await.json()["error"]["code"], code, "{message}");
    }
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(session.post("/mcp", &ready).await.status, 202);
    assert_eq!(session.put("/mcp", &json!({})).await.status, 405);
    assert_eq!(session.delete("/mcp").await.status, 200);
    let found = rows(&stack, 2).await;
    let told: Vec<_> = found.iter().map(|row| text(row, "ai_model").unwrap()).collect();
    assert_eq!(told, ["one/echo", "two/echo"]);
}

#[tokio::test]
async fn resources_of_all_servers_are_listed_read_and_switched_off() {
    let stack = Stack::start().await;
    serve(&stack, "one", "json", json!({})).await;
    let own = serve(&stack, "two", "stateless", json!({})).await;
    let (session, greeted) = merged(&own).await;
    assert!(greeted["result"]["capabilities"]["resources"].is_object(), "{greeted}");
    let list = async |method: &str| session.post("/mcp", &request(1, method, json!({}))).await.json();
    let listed = list("resources/list").await;
    let resources = &listed["result"]["resources"];
    assert_eq!(names(resources), ["one__readme", "one__secret", "two__readme", "two__secret"], "{listed}");
    assert_eq!(resources[2]["uri"], "mcp://two/mock://readme");
    let templates = list("resources/templates/list").await;
    let templates = &templates["result"]["resourceTemplates"];
    assert_eq!((names(templates).len(), &templates[0]["uriTemplate"]), (2, &json!("mcp://one/mock://notes/{id}")));
    let read =
        async |uri: &str| session.post("/mcp", &request(2, "resources/read", json!({ "uri": uri }))).await.json();
    for (uri, theirs) in [
        ("mcp://two/mock://readme", "mock://readme"),
        ("mcp://one/mock://secret", "mock://secret"),
        ("mcp://one/mock://notes/7", "mock://notes/7"),
    ] {
        let said = read(uri).await;
        assert_eq!((&said["id"], &said["result"]["contents"][0]["uri"]), (&json!(2), &json!(theirs)), "{said}");
    }
    let about =
        json!({ "ref": { "type": "ref/prompt", "name": "two__greet" }, "argument": { "name": "a", "value": "b" } });
    let completed = session.post("/mcp", &request(3, "completion/complete", about)).await.json();
    assert_eq!(
        completed["error"]["message"], "Method not found: completion/complete",
        "the server was asked: {completed}"
    );
    let asked = stack.mock.requests();
    let body: Value = serde_json::from_slice(&asked.last().unwrap().body).unwrap();
    assert_eq!(body["params"]["ref"]["name"], "greet");

    let off = json!({ "capabilities": [{ "name": "secret", "type": "resource", "enabled": false }] });
    assert_eq!(stack.administrator().put("/mcp-integrations/one/capabilities", &off).await.status, 200);
    let is_gone = async || names(&list("resources/list").await["result"]["resources"]).len() == 3;
    stack.until("it is in the list no more", is_gone).await;
    assert_eq!(read("mcp://one/mock://secret").await["error"]["code"], -32002);
    assert_eq!(read("mcp://two/mock://secret").await["error"], Value::Null);
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

#[tokio::test]
async fn a_client_that_listens_hears_that_the_lists_changed() {
    let stack = Stack::start().await;
    let own = serve(&stack, "one", "json", json!({})).await;
    let (session, greeted) = merged(&own).await;
    assert_eq!(greeted["result"]["capabilities"]["tools"]["listChanged"], true, "{greeted}");
    let mut stream = session.request(Method::GET, "/mcp").send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert!(stream.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let mut heard = String::new();
    let mut hear = async |times: usize| {
        while heard.matches("notifications/tools/list_changed").count() < times {
            heard.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
        }
    };
    serve(&stack, "two", "stateless", json!({})).await;
    hear(1).await;
    let off = json!({ "capabilities": [{ "name": "echo", "type": "tool", "enabled": false }] });
    let switched = stack.administrator().put("/mcp-servers/one/capabilities", &off).await;
    assert_eq!(switched.status, 200, "{}", switched.text());
    hear(2).await;
    assert!(heard.contains("notifications/prompts/list_changed"), "{heard}");
    assert!(heard.contains("notifications/resources/list_changed"), "{heard}");
}
