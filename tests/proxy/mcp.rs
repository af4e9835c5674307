//! MCP servers through a running proxy, against the mock's: whole conversations, what may not be seen, whose sessions are,
//! and what a client hears when something fails.

mod attacks;
mod batches;
mod bridged;
mod budgets;
mod calls;
mod conversations;
mod credentials;
mod endless;
mod faults;
mod foreign_tokens;
mod guard_headers;
mod judged;
mod listeners;
mod merged;
mod newest;
mod people;
mod pins;
mod restarts;
mod same_ids;
mod stolen_sessions;

use harness::client::whole;
use harness::{Answer, Client, Stack};
use http::Method;
use serde_json::{Value, json};

/// A client of MCP servers: paths are from the root of the proxy.
pub fn client(stack: &Stack, key: &str) -> Client {
    let accept = "application/json, text/event-stream";
    stack.anonymous().at(stack.base_url.trim_end_matches("/v1")).with_key(key).with("accept", accept)
}

/// Registers the mock's server that behaves in this way, and waits until the proxy knows it.
pub async fn serve(stack: &Stack, slug: &str, way: &str, more: Value) -> Client {
    let url = format!("{}/mcp/{way}", stack.mock.origin());
    serve_at(stack, slug, &url, more).await
}

pub async fn serve_at(stack: &Stack, slug: &str, url: &str, more: Value) -> Client {
    let mut integration = json!({
        "name": slug, "slug": slug, "url": url, "auth_type": "none", "transport": "http",
        "workspace_id": stack.home.workspace_id,
    });
    integration.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stack.home.create("/mcp-integrations", integration).await;
    let server = json!({
        "name": slug, "slug": slug, "mcp_integration_id": slug, "workspace_id": stack.home.workspace_id,
    });
    stack.home.create("/mcp-servers", server).await;
    let client = client(stack, &stack.home.workspace_key);
    let ending = format!("/{slug}/mcp");
    stack.until("the proxy knows the server", async || client.delete(&ending).await.status != 404).await;
    until_synced(stack).await;
    stack.mock.reset();
    client
}

/// Until admin has asked every server what it offers, which it does once: tests count who asks.
pub async fn until_synced(stack: &Stack) {
    const PENDING: &str = "SELECT count(*) FROM mcp_integrations
                           WHERE sync_status = 'pending' AND auth_type NOT IN ('oauth', 'oauth_auto')";
    let database = stack.database.client().await;
    let is_synced = async || database.query_one(PENDING, &[]).await.unwrap().get::<_, i64>(0) == 0;
    stack.until("admin has asked the servers", is_synced).await;
}

pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

pub fn greeting() -> Value {
    let info = json!({ "name": "test", "version": "1" });
    request(0, "initialize", json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info }))
}

pub fn call(id: u64, tool: &str, message: &str) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": { "message": message } }))
}

/// Greets the server; what comes after goes on in its session.
pub async fn session(client: &Client, path: &str) -> Client {
    let answer = client.post(path, &greeting()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.header("mcp-session-id").to_owned();
    assert!(!id.is_empty(), "{:?}", answer.headers);
    client.with("mcp-session-id", id).with("mcp-protocol-version", "2025-06-18")
}

/// The session of a client that `session` made.
pub fn session_id(client: &Client) -> String {
    let request = client.request(Method::GET, "/").build().unwrap();
    request.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

pub async fn listen(client: &Client, path: &str, last: &str) -> Answer {
    whole(client.request(Method::GET, path).header("last-event-id", last)).await
}

/// The messages of an event stream.
pub fn messages(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| panic!("{text}"))).collect()
}

/// Names in a list, in its order.
pub fn names(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(|entry| entry["name"].as_str()).collect()
}
