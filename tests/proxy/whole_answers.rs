//! An answer reaches the client whole and readable, or the client hears that it does not: answers that are compressed
//! against our wish, plain ones after heartbeats, and streams that end in the middle as if that were their end.

use crate::journal::calls::{rows, text, tokens};
use crate::routing::{client, target};
use crate::upstream::RawUpstream;
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A gzip file whose content is stored as it is (RFC 1952, RFC 1951 §3.2.4).
fn gzip(content: &[u8]) -> Vec<u8> {
    let crc = content.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    let length = u16::try_from(content.len()).expect("test answers are small");
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend_from_slice(&length.to_le_bytes());
    file.extend_from_slice(&(!length).to_le_bytes());
    file.extend_from_slice(content);
    file.extend_from_slice(&(!crc).to_le_bytes());
    file.extend_from_slice(&u32::from(length).to_le_bytes());
    file
}

fn answer(status: u16, kind: &str, encoding: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Encoding: {encoding}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

fn application(stack: &Stack, provider: &str, host: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", provider);
    client.with("authorization", "Bearer sk-mock").with("x-gateway-custom-host", host)
}

#[tokio::test]
async fn an_answer_that_is_compressed_against_our_wish_reaches_the_client_in_plain_and_is_counted() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = application(&stack, "openai", &upstream.url());
    let usage = json!({ "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18 });
    let whole = json!({ "id": "c", "object": "chat.completion", "choices": [], "usage": usage }).to_string();
    let error = json!({ "error": { "message": "too hot", "type": "invalid_request_error" } }).to_string();
    let event = json!({ "choices": [{ "delta": { "content": "a" }, "finish_reason": "stop" }], "usage": usage });
    let stream = format!("data: {event}\n\ndata: [DONE]\n\n");
    for (status, kind, body) in
        [(200, "application/json", &whole), (400, "application/json", &error), (200, "text/event-stream", &stream)]
    {
        upstream.answer(answer(status, kind, "gzip", &gzip(body.as_bytes())));
        let mut asked = chat("Hello");
        asked["stream"] = json!(kind != "application/json");
        asked["stream_options"] = json!({ "include_usage": true });
        let got = client.post("/chat/completions", &asked).await;
        assert_eq!((got.status.as_u16(), got.text()), (status, body.clone()), "{kind}");
        assert_eq!(got.header("content-encoding"), "", "{kind}");
    }
    let counted: Vec<_> = rows(&stack, 3).await.iter().map(tokens).collect();
    assert_eq!((counted[0], counted[2]), ((11, 7), (11, 7)));
}

#[tokio::test]
async fn an_answer_that_nobody_can_read_is_a_502_that_says_so() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = application(&stack, "openai", &upstream.url());
    for (encoding, body) in
        [("compress", gzip(b"{}")), ("gzip", b"no gzip".to_vec()), ("gzip", gzip(b"{}")[..15].to_vec())]
    {
        upstream.answer(answer(200, "application/json", encoding, &body));
        let got = client.post("/chat/completions", &chat("Hello")).await;
        assert_eq!(got.status, 502, "{encoding}: {}", got.text());
        assert!(got.text().contains("compress"), "{}", got.text());
    }
}

#[tokio::test]
async fn a_plain_answer_after_heartbeats_is_whole_or_visibly_broken_off() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "stream_heartbeat": 100 }));
    let mut asked = chat("Hello");
    asked["stream"] = json!(true);
    for (length, is_whole) in [(1_500_000, true), (6_000_000, false)] {
        let body = json!({ "id": "c", "object": "chat.completion", "text": "x".repeat(length) }).to_string();
        let fault = json!({ "latency_ms": 400, "body": body, "content_type": "application/json" });
        stack.mock.script(json!([fault])).unwrap();
        let got = client(&stack, &config).post("/chat/completions", &asked).await.text();
        assert!(got.starts_with(": heartbeat\n\n"), "{length} bytes");
        let is_told = got.contains("\"invalid_upstream_response\"");
        assert_eq!((got.contains(&body), is_told), (is_whole, !is_whole), "{length} bytes: {} came", got.len());
        assert!(got.ends_with("data: [DONE]\n\n"), "{length} bytes");
    }
}

async fn streamed(client: &Client, path: &str) -> Answer {
    let mut asked = chat("Hello");
    asked["stream"] = json!(true);
    asked["max_tokens"] = json!(100);
    client.post(path, &asked).await
}

fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[tokio::test]
async fn a_stream_that_ends_without_its_end_marker_is_told_as_an_error_in_its_dialect() {
    let stack = Stack::start().await;
    let openai = application(&stack, "openai", &stack.mock.url());
    let anthropic = application(&stack, "anthropic", &stack.mock.url());
    let said = |reason: Value| json!({ "choices": [{ "delta": { "content": "a" }, "finish_reason": reason }] });
    let chat = events(&[said(Value::Null), said(Value::Null)]);
    let message = events(&[
        json!({ "type": "message_start", "message": {} }),
        json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "a" } }),
    ]);
    let response = events(&[
        json!({ "type": "response.created", "response": {} }),
        json!({ "type": "response.output_text.delta", "delta": "a" }),
    ]);
    let cases = [
        (&openai, "/chat/completions", &chat, events(&[said(json!("stop"))]), "data: {\"status\":\"failure\""),
        (&openai, "/completions", &chat, "data: [DONE]\n\n".into(), "data: {\"status\":\"failure\""),
        (&anthropic, "/messages", &message, events(&[json!({ "type": "message_stop" })]), "event: error\n"),
        (
            &openai,
            "/responses",
            &response,
            events(&[json!({ "type": "response.completed" })]),
            "event: response.failed\n",
        ),
    ];
    let id = |answer: &Answer| answer.header("x-gateway-request-id").to_owned();
    let mut broken_off = BTreeMap::new();
    for (client, path, begun, end, told) in &cases {
        let fault = |body: &str| json!([{ "body": body, "content_type": "text/event-stream" }]);
        stack.mock.script(fault(&format!("{begun}{end}"))).unwrap();
        let got = streamed(client, path).await;
        assert_eq!(got.text(), format!("{begun}{end}"), "{path}: this one is whole");
        broken_off.insert(id(&got), false);
        for half in ["", "data: {\"cho"] {
            stack.mock.script(fault(&format!("{begun}{half}"))).unwrap();
            let got = streamed(client, path).await;
            broken_off.insert(id(&got), true);
            let rest = got.text().strip_prefix(begun.as_str()).map(str::to_owned);
            let rest = rest.unwrap_or_else(|| panic!("{path}: {}", got.text()));
            assert!(rest.starts_with(told) && rest.contains("before it was complete"), "{path}: {rest:?}");
        }
    }
    let rows = rows(&stack, 3 * cases.len()).await;
    let is_told = |row| text(row, "error_code") == Some("invalid_upstream_response");
    let told: BTreeMap<_, _> = rows.iter().map(|row| (row.get::<_, Uuid>("id").to_string(), is_told(row))).collect();
    assert_eq!(told, broken_off);
}
