//! What a tenant sends past the guardrails of its own workspace. Each says a word that is denied there, in a place or a form in
//! which somebody might not look: whatever is answered with success has passed.

use super::Attacker;
use crate::prove::client::whole;
use http::{HeaderValue, Method, header};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// How the outcome of what passed begins.
pub const PASSED: &str = "PASSED";
const WORD: &str = "forbidden";

/// One of them after the other.
pub async fn past_guardrails(by: Arc<Attacker>) -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let ways = ways();
    let (method, path, kind, body) = &ways[NEXT.fetch_add(1, Relaxed) % ways.len()];
    let mut request = by.guarded.request(method.clone(), &format!("/v1{path}"), whole(body.clone()));
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    match by.guarded.status(request).await {
        Ok(status) if status.is_success() => format!("{PASSED} {method} {path} {body}"),
        Ok(status) => status.as_u16().to_string(),
        Err(error) => error.to_string(),
    }
}

type Way = (Method, &'static str, &'static str, String);

fn ways() -> Vec<Way> {
    const JSON: &str = "application/json";
    let messages = json!([{ "role": "user", "content": WORD }, { "role": "user", "content": "hi" }]);
    let harmless = json!([{ "role": "user", "content": "hi" }]);
    let chat = |more: Value| {
        let mut body = json!({ "model": "gpt-4o-mini", "messages": harmless });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        body.to_string()
    };
    let tool = json!([{ "type": "function", "function": { "name": "f", "description": WORD, "parameters": {} } }]);
    let schema = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": { "description": WORD } } });
    let post = |path: &'static str, body: String| (Method::POST, path, JSON, body);
    let engine = "/chat/completions";
    let mut ways = vec![
        post(engine, chat(json!({ "messages": messages }))),
        post(engine, chat(json!({ "messages": messages, "stream": true }))),
        post(engine, chat(json!({ "tools": tool }))),
        post(engine, chat(json!({ "response_format": schema }))),
        post(engine, chat(json!({ "prediction": { "type": "content", "content": WORD } }))),
        post(engine, chat(json!({ "Messages": messages }))),
        post(engine, chat(json!({})).replace("\"hi\"", "\"hi\\u0020f\\u006frbidden\"")),
        post(engine, chat(json!({})).replace("\"hi\"", &format!("\"{WORD}\",\"x\":1e999"))),
        post(engine, chat(json!({})).replace("\"hi\"", &format!("\"{WORD}\",\"content\":\"hi\""))),
        post("/completions", json!({ "model": "gpt-4o-mini", "prompt": WORD }).to_string()),
        post("/completions", json!({ "model": "llama", "prompt": [1, 2, 3] }).to_string()),
        post("/embeddings", json!({ "model": "m", "input": ["hi", WORD] }).to_string()),
        post("/images/generations", json!({ "model": "m", "prompt": WORD }).to_string()),
        post("/audio/speech", json!({ "model": "m", "input": WORD, "voice": "alloy" }).to_string()),
        post("/rerank", json!({ "model": "m", "query": "x", "documents": [WORD] }).to_string()),
        post("/moderations", json!({ "model": "m", "input": WORD }).to_string()),
        post("/responses", json!({ "model": "m", "instructions": WORD, "input": "hi" }).to_string()),
        post("/messages", json!({ "model": "m", "max_tokens": 5, "system": WORD, "messages": harmless }).to_string()),
        post("/deployments/gpt-4o/chat/completions", json!({ "messages": messages }).to_string()),
        post("/threads/runs", json!({ "thread": { "messages": messages } }).to_string()),
        post("/api/chat", json!({ "model": "m", "messages": messages }).to_string()),
        post("/elsewhere", format!(r#"{{"a":"hi","a":"{WORD}"}}"#)),
        post("/elsewhere", format!(r#"{{"a":"{WORD}","b":"\ud800"}}"#)),
        post("/elsewhere", json!({ "pad": "x".repeat(900 << 10), "last": WORD }).to_string()),
        post("/elsewhere", json!({ "pad": "x".repeat(2 << 20), "last": WORD }).to_string()),
    ];
    for (method, kind) in [
        (Method::PUT, JSON),
        (Method::PATCH, JSON),
        (Method::DELETE, JSON),
        (Method::POST, "text/plain"),
        (Method::POST, "application/x-www-form-urlencoded"),
        (Method::PUT, "application/octet-stream"),
    ] {
        ways.push((method, "/elsewhere", kind, format!(r#"{{"text":"{WORD}"}}"#)));
    }
    ways
}
