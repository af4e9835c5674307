//! An MCP server over Streamable HTTP, at `/mcp/{way}`. It remembers nothing: every session that looks like one of its own
//! is one. The way says how it behaves:
//!
//! | Way | Behaviour |
//! |---|---|
//! | `json` | answers are JSON; there is no stream to listen to |
//! | `events` | answers are streams with a notification before the answer, and events have ids |
//! | `stateless` | no sessions |
//! | `idle` | no sessions; a stream to listen to says one thing and then nothing |
//! | `closed` | wants `x-key: open-sesame` or `authorization: Bearer open-sesame` |
//! | `huge` | its list of tools has 5 MiB |
//! | `silent` | its streams end without an answer |
//! | `astray` | it answers for another id |

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::shape::Payload;

const SESSION: &str = "mock-session-";

pub struct McpReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub payload: Payload,
    /// A stream that does not end by itself.
    pub stays_open: bool,
}

impl McpReply {
    fn new(status: u16, payload: Payload) -> Self {
        Self { status, headers: Vec::new(), payload, stays_open: false }
    }

    fn error(status: u16, code: i64, message: &str) -> Self {
        let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
        Self::new(status, Payload::whole(error.to_string().into_bytes()))
    }
}

pub fn answer(head: &Parts, body: &[u8], id: u64) -> McpReply {
    let way = head.uri.path().rsplit('/').next().unwrap_or_default();
    if way == "closed" && !is_let_in(&head.headers) {
        return McpReply::error(401, -32000, "who is there?");
    }
    let asked: Value = serde_json::from_slice(body).unwrap_or_default();
    let is_greeting = asked["method"] == "initialize";
    let has_sessions = !matches!(way, "stateless" | "idle");
    if has_sessions && !is_greeting {
        match head.headers.get("mcp-session-id").and_then(|session| session.to_str().ok()) {
            None => return McpReply::error(400, -32000, "Bad Request: no session"),
            Some(session) if !session.starts_with(SESSION) => return McpReply::error(404, -32001, "Session not found"),
            Some(_) => {}
        }
    }
    match head.method {
        Method::GET if way == "events" => {
            let resumed = head.headers.get("last-event-id").and_then(|id| id.to_str().ok()).unwrap_or("nothing");
            let heard = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": resumed } });
            // A stream that is resumed may hold an answer.
            let list = json!({ "jsonrpc": "2.0", "id": 99, "result": { "tools": tools() } });
            return McpReply::new(200, Payload::Events(vec![event(Some("g-1"), &heard), event(Some("g-2"), &list)]));
        }
        Method::GET if way == "idle" => {
            let heard = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "data": "hello" } });
            return McpReply { stays_open: true, ..McpReply::new(200, Payload::Events(vec![event(None, &heard)])) };
        }
        Method::GET => return McpReply::error(405, -32000, "Method not allowed"),
        Method::DELETE => return McpReply::new(200, Payload::Whole(Bytes::new())),
        _ => {}
    }
    let Some(asked_id) = asked.get("id").filter(|_| asked.get("method").is_some()) else {
        return McpReply::new(202, Payload::Whole(Bytes::new()));
    };
    let asked_id = if way == "astray" && !is_greeting { json!("another") } else { asked_id.clone() };
    let message = match respond(&asked, way) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": asked_id, "result": result }),
        Err((code, why)) => json!({ "jsonrpc": "2.0", "id": asked_id, "error": { "code": code, "message": why } }),
    };
    let mut reply = match way {
        "events" | "silent" => {
            let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progress": 1 } });
            let ids = if way == "events" { [Some("p-1"), Some("p-2")] } else { [None, None] };
            let mut events = vec![event(ids[0], &progress)];
            if way == "events" || is_greeting {
                events.push(event(ids[1], &message));
            }
            McpReply::new(200, Payload::Events(events))
        }
        _ => McpReply::new(200, Payload::whole(message.to_string().into_bytes())),
    };
    if is_greeting && has_sessions {
        reply.headers.push(("mcp-session-id".into(), format!("{SESSION}{id}")));
    }
    reply
}

fn respond(asked: &Value, way: &str) -> Result<Value, (i64, String)> {
    let params = &asked["params"];
    let name = params["name"].as_str().unwrap_or_default();
    match asked["method"].as_str().unwrap_or_default() {
        "initialize" => Ok(json!({
            "protocolVersion": params["protocolVersion"].as_str().unwrap_or("2025-06-18"),
            "capabilities": { "tools": { "listChanged": true }, "prompts": {}, "resources": {} },
            "serverInfo": { "name": "mock", "version": "1" },
        })),
        "ping" => Ok(json!({})),
        "tools/list" if way == "huge" => Ok(json!({ "tools": [{ "name": "a", "description": "x".repeat(5 << 20) }] })),
        "tools/list" => Ok(json!({ "tools": tools() })),
        "prompts/list" => Ok(json!({ "prompts": [{ "name": "greet" }, { "name": "scold" }] })),
        "resources/list" => Ok(json!({ "resources": [
            { "name": "readme", "uri": "mock://readme" }, { "name": "secret", "uri": "mock://secret" },
        ] })),
        "resources/templates/list" => {
            Ok(json!({ "resourceTemplates": [{ "name": "note", "uriTemplate": "mock://notes/{id}" }] }))
        }
        "tools/call" if name == "fail" => {
            Ok(json!({ "content": [{ "type": "text", "text": "it failed" }], "isError": true }))
        }
        "tools/call" if tools().iter().any(|tool| tool["name"] == name) => {
            let message = params["arguments"]["message"].as_str().unwrap_or(name);
            Ok(json!({ "content": [{ "type": "text", "text": message }] }))
        }
        "prompts/get" => Ok(json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": name } }] })),
        "resources/read" => Ok(json!({ "contents": [{ "uri": params["uri"], "text": "contents" }] })),
        "tools/call" => Err((-32602, format!("Unknown tool: {name}"))),
        other => Err((-32601, format!("Method not found: {other}"))),
    }
}

fn tools() -> Vec<Value> {
    let tool = |name: &str| json!({ "name": name, "description": name, "inputSchema": { "type": "object" } });
    ["echo", "delete", "fail"].map(tool).to_vec()
}

fn event(id: Option<&str>, message: &Value) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}event: message\ndata: {message}\n\n"))
}

fn is_let_in(headers: &HeaderMap) -> bool {
    let is = |name: &str, wanted: &str| headers.get(name).is_some_and(|value| value == wanted);
    is("x-key", "open-sesame") || is("authorization", "Bearer open-sesame")
}
