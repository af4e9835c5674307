//! The rule over all places: whatever method, path and framing a text comes in, no provider gets it past a guardrail that denies it.

use super::lanes::{guarded, until_held};
use crate::raw::{Wire, credentials_for, find};
use harness::Stack;
use std::time::Duration;

const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "PROPFIND"];

/// Of the engine's lane, of the relay's, of other dialects, and of what the gateway answers itself.
const PATHS: [&str; 14] = [
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/v1/embeddings",
    "/v1/models",
    "/v1/models/m",
    "/v1/files",
    "/v1/batches",
    "/v1/threads/runs",
    "/v1/api/chat",
    "/v1/elsewhere/deep",
    "/v1beta/models/gemini-2.5-flash:generateContent",
    "/model/anthropic.claude/converse",
    "/model/anthropic.claude/invoke",
];

/// For an answer or the end of its connection.
const PATIENCE: Duration = Duration::from_secs(30);

/// The body in every way that HTTP/1.1 has to send one.
fn framings(body: &str) -> [(&'static str, String, String); 4] {
    let (first, second) = body.split_at(body.len() / 2);
    let length = format!("Content-Length: {}\r\n", body.len());
    let chunked = "Transfer-Encoding: chunked\r\n".to_owned();
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    [
        ("length", length.clone(), body.to_owned()),
        ("length, announced", format!("{length}Expect: 100-continue\r\n"), body.to_owned()),
        ("one chunk", chunked.clone(), format!("{}0\r\n\r\n", chunk(body))),
        ("two chunks", chunked, format!("{}{}0\r\n\r\n", chunk(first), chunk(second))),
    ]
}

/// How many requests reached the provider with the word.
async fn reach(stack: &Stack, path: &str, word: &str) -> usize {
    let credentials = credentials_for(stack, &stack.mock.url());
    let body =
        format!(r#"{{"model":"m","max_tokens":5,"messages":[{{"role":"user","content":"{word}"}}],"input":"{word}"}}"#);
    stack.mock.reset();
    for method in METHODS {
        for (name, framing, sent) in framings(&body) {
            let mut wire = Wire::open(stack.proxy_port).await;
            let head =
                format!("{method} {path} HTTP/1.1\r\n{credentials}Content-Type: application/json\r\n{framing}\r\n");
            wire.send(head + &sent).await;
            let answer = tokio::time::timeout(PATIENCE, wire.answer_to(method)).await;
            assert!(answer.is_ok(), "{method} {path}, {name}: neither an answer nor an end");
        }
    }
    stack.mock.requests().iter().filter(|one| find(&one.body, word.as_bytes()).is_some()).count()
}

#[tokio::test]
async fn no_method_path_or_framing_takes_a_text_past_a_guardrail() {
    let (stack, client) = guarded(&["input_guardrails"]).await;
    until_held(&stack, &client).await;
    for path in PATHS {
        assert_eq!(reach(&stack, path, "forbidden").await, 0, "{path}");
    }
    // The same requests arrive where nothing in them is forbidden, or the walk would show nothing.
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/elsewhere/deep"] {
        assert!(reach(&stack, path, "harmless").await >= 4, "{path}");
    }
}
