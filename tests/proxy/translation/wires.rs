//! Gemini, Converse and Cohere as chat clients meet them: real paths, real frames, recorded by a provider that answers
//! with any bytes.

use super::{events, said};
use crate::journal::calls::{rows, tokens};
use crate::upstream::RawUpstream;
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

pub fn client(stack: &Stack, upstream: &RawUpstream, provider: &str) -> Client {
    client_at(stack, upstream.url().strip_suffix("/v1").unwrap(), provider)
}

pub fn client_at(stack: &Stack, host: &str, provider: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-own");
    client.with("x-gateway-provider", provider).with("x-gateway-custom-host", host)
}

pub fn answer(kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The first line of the request, a header of it, and its body.
pub fn asked(upstream: &RawUpstream, header: &str) -> (String, String, Value) {
    let text = upstream.only();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let first = head.lines().next().unwrap().to_owned();
    let found = head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{header}:")));
    let value = found.and_then(|line| line.split_once(": ")).map(|(_, value)| value.to_owned());
    (first, value.unwrap_or_default(), serde_json::from_str(body).unwrap())
}

fn streamed() -> Value {
    let mut asked = chat("Hello");
    asked["stream"] = json!(true);
    asked["stream_options"] = json!({ "include_usage": true });
    asked
}

#[tokio::test]
async fn gemini_is_asked_at_its_own_path_and_answers_as_a_chat() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "google");
    let usage =
        json!({ "promptTokenCount": 9, "candidatesTokenCount": 4, "thoughtsTokenCount": 2, "totalTokenCount": 15 });
    let whole = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" }],
        "usageMetadata": usage, "modelVersion": "gemini-x", "responseId": "r" });
    upstream.answer(answer("application/json; charset=UTF-8", whole.to_string().as_bytes()));
    let got = client.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let (first, key, body) = asked(&upstream, "x-goog-api-key");
    assert_eq!(first, "POST /v1beta/models/gpt-4o-mini:generateContent HTTP/1.1");
    assert_eq!((&*key, &body["contents"][0]["parts"][0]["text"]), ("sk-own", &json!("Hello")));
    assert_eq!(body.get("model"), None);
    assert_eq!(got.json()["choices"][0]["message"]["content"], "Hi");
    assert_eq!(got.json()["usage"]["completion_tokens"], 6);
    let piece = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "H" }] } }] });
    let stream = format!("data: {piece}\r\n\r\ndata: {whole}\r\n\r\n");
    upstream.answer(answer("text/event-stream", stream.as_bytes()));
    let got = client.post("/chat/completions", &streamed()).await.text();
    assert_eq!(asked(&upstream, "x").0, "POST /v1beta/models/gpt-4o-mini:streamGenerateContent?alt=sse HTTP/1.1");
    assert_eq!(said(&events(&got).0), "HHi", "{got}");
    assert!(got.ends_with("data: [DONE]\n\n"), "{got}");
    let rows = rows(&stack, 2).await;
    assert_eq!((tokens(&rows[0]), tokens(&rows[1])), ((9, 6), (9, 6)));
}

#[tokio::test]
async fn a_gemini_stream_without_a_finish_reason_was_cut() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let piece = json!({ "candidates": [{ "content": { "parts": [{ "text": "H" }] } }] });
    upstream.answer(answer("text/event-stream", format!("data: {piece}\r\n\r\n").as_bytes()));
    let got = client(&stack, &upstream, "google").post("/chat/completions", &streamed()).await.text();
    let (chunks, _) = events(&got);
    assert_eq!(said(&chunks), "H", "{got}");
    assert!(chunks.iter().any(|chunk| chunk["error"]["code"] == "invalid_upstream_response"), "{got}");
}

pub fn crc(bytes: &[u8]) -> [u8; 4] {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 })
    });
    (!crc).to_be_bytes()
}

/// One frame of an AWS event stream.
pub fn frame(kind: &str, name: &str, payload: &Value) -> Vec<u8> {
    frame_of(kind, name, payload.to_string().as_bytes())
}

/// The same of any payload.
pub fn frame_of(kind: &str, name: &str, payload: &[u8]) -> Vec<u8> {
    let mut headers = Vec::new();
    let named = if kind == "exception" { ":exception-type" } else { ":event-type" };
    for (header, value) in [(":message-type", kind), (named, name)] {
        headers.push(header.len() as u8);
        headers.extend_from_slice(header.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&(value.len() as u16).to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let mut frame = ((16 + headers.len() + payload.len()) as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&(headers.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc(&frame));
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc(&frame));
    frame
}

fn converse_stream(ending: &[Vec<u8>]) -> Vec<u8> {
    let text = json!({ "contentBlockIndex": 0, "delta": { "text": "Hi" } });
    let begin =
        [frame("event", "messageStart", &json!({ "role": "assistant" })), frame("event", "contentBlockDelta", &text)];
    answer("application/vnd.amazon.eventstream", &begin.iter().chain(ending).flatten().copied().collect::<Vec<u8>>())
}

#[tokio::test]
async fn converse_is_asked_at_its_own_path_and_its_frames_become_chunks() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "bedrock");
    let usage = json!({ "inputTokens": 8, "outputTokens": 3, "totalTokens": 61, "cacheReadInputTokens": 50 });
    let whole = json!({ "output": { "message": { "role": "assistant", "content": [{ "text": "Hi" }] } },
        "stopReason": "end_turn", "usage": usage });
    upstream.answer(answer("application/json", whole.to_string().as_bytes()));
    let mut body = chat("Hello");
    body["model"] = json!("us.anthropic.claude-x-v1:0");
    let got = client.post("/chat/completions", &body).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let (first, key, sent) = asked(&upstream, "authorization");
    assert_eq!(first, "POST /model/us.anthropic.claude-x-v1%3A0/converse HTTP/1.1");
    assert_eq!((&*key, &sent["messages"][0]["content"][0]["text"]), ("Bearer sk-own", &json!("Hello")));
    assert_eq!(
        (&got.json()["choices"][0]["message"]["content"], &got.json()["usage"]["prompt_tokens"]),
        (&json!("Hi"), &json!(58))
    );
    let ending = [
        frame("event", "contentBlockStop", &json!({ "contentBlockIndex": 0 })),
        frame("event", "messageStop", &json!({ "stopReason": "end_turn" })),
        frame("event", "metadata", &json!({ "usage": usage, "metrics": { "latencyMs": 9 } })),
    ];
    upstream.answer(converse_stream(&ending));
    let got = client.post("/chat/completions", &streamed()).await;
    assert_eq!(asked(&upstream, "x").0, "POST /model/gpt-4o-mini/converse-stream HTTP/1.1");
    assert_eq!(got.header("content-type"), "text/event-stream; charset=utf-8");
    let text = got.text();
    let (chunks, _) = events(&text);
    assert_eq!(said(&chunks), "Hi", "{text}");
    assert_eq!(chunks[chunks.len() - 2]["usage"]["prompt_tokens"], 58, "{text}");
    let rows = rows(&stack, 2).await;
    assert_eq!((tokens(&rows[0]), tokens(&rows[1])), ((58, 3), (58, 3)));
    assert!(!rows[1].get::<_, bool>("usage_estimated"));
}

#[tokio::test]
async fn an_exception_a_wrong_checksum_or_a_cut_in_a_converse_stream_reaches_the_client_as_an_error() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "bedrock");
    let mut broken = frame("event", "messageStop", &json!({ "stopReason": "end_turn" }));
    let last = broken.len() - 1;
    broken[last] ^= 1;
    for ending in [vec![frame("exception", "throttlingException", &json!({ "message": "slow" }))], vec![broken], vec![]]
    {
        upstream.answer(converse_stream(&ending));
        let got = client.post("/chat/completions", &streamed()).await.text();
        let (chunks, _) = events(&got);
        assert_eq!(chunks.iter().filter(|chunk| chunk.get("error").is_some()).count(), 1, "{got}");
        assert!(got.ends_with("data: [DONE]\n\n") && !got.contains("finish_reason\":\"stop"), "{got}");
    }
    let refused = "HTTP/1.1 429 X\r\nContent-Type: application/json\r\nx-amzn-errortype: ThrottlingException:http://x/\r\n\
                   Content-Length: 18\r\n\r\n{\"message\":\"slow\"}";
    upstream.answer(refused);
    let got = client
        .post("/messages", &json!({ "model": "m", "max_tokens": 5, "messages": [{ "role": "user", "content": "x" }] }))
        .await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]["type"]),
        (429, &json!("rate_limit_error")),
        "{}",
        got.text()
    );
}

#[tokio::test]
async fn cohere_is_asked_at_its_own_path_and_streams_as_messages() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "cohere");
    let usage = json!({ "billed_units": { "input_tokens": 5.0, "output_tokens": 2.0 }, "tokens": { "input_tokens": 70.0, "output_tokens": 2.0 } });
    let whole = json!({ "id": "c", "finish_reason": "COMPLETE", "message": { "role": "assistant",
        "content": [{ "type": "text", "text": "Hi" }] }, "usage": usage });
    upstream.answer(answer("application/json", whole.to_string().as_bytes()));
    let got = client.post("/chat/completions", &chat("Hello")).await;
    let (first, key, body) = asked(&upstream, "authorization");
    assert_eq!((&*first, &*key), ("POST /v2/chat HTTP/1.1", "Bearer sk-own"));
    assert_eq!(body["messages"][0]["role"], "user");
    assert_eq!(got.json()["choices"][0]["message"]["content"], "Hi", "{}", got.text());
    let pieces = [
        json!({ "type": "message-start", "id": "c", "delta": { "message": { "role": "assistant" } } }),
        json!({ "type": "content-start", "index": 0, "delta": { "message": { "content": { "type": "text", "text": "" } } } }),
        json!({ "type": "content-delta", "index": 0, "delta": { "message": { "content": { "text": "Hi" } } } }),
        json!({ "type": "content-end", "index": 0 }),
        json!({ "type": "message-end", "delta": { "finish_reason": "COMPLETE", "usage": usage } }),
    ];
    let stream: String =
        pieces.iter().map(|piece| format!("event: {}\ndata: {piece}\n\n", piece["type"].as_str().unwrap())).collect();
    upstream.answer(answer("text/event-stream", stream.as_bytes()));
    let body =
        json!({ "model": "m", "max_tokens": 5, "stream": true, "messages": [{ "role": "user", "content": "x" }] });
    let got = client.post("/messages", &body).await.text();
    let (data, names) = events(&got);
    assert_eq!((names.first(), names.last()), (Some(&"message_start"), Some(&"message_stop")), "{got}");
    assert_eq!(data.iter().filter_map(|event| event["delta"]["text"].as_str()).collect::<String>(), "Hi", "{got}");
    assert_eq!(tokens(&rows(&stack, 2).await[1]), (5, 2), "what is billed");
}

#[tokio::test]
async fn azure_takes_the_callers_bytes_at_the_path_of_its_deployment() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let body = r#"{ "model" : "gpt-4o",  "messages":[{"role":"user","content":"\u00e9"}] }"#;
    let client = client(&stack, &upstream, "azure-openai").with("x-gateway-azure-api-version", "2025-01-01");
    let send = |client: &Client| {
        client.request(http::Method::POST, "/chat/completions").header("content-type", "application/json").body(body)
    };
    harness::client::whole(send(&client)).await;
    let text = upstream.only();
    assert!(
        text.starts_with("POST /deployments/gpt-4o/chat/completions?api-version=2025-01-01 HTTP/1.1\r\n"),
        "{text}"
    );
    assert!(text.ends_with(body) && text.to_ascii_lowercase().contains("\r\napi-key: sk-own\r\n"), "{text}");
    harness::client::whole(send(&client.with("x-gateway-azure-deployment-id", "mine/own"))).await;
    assert!(upstream.only().starts_with("POST /deployments/mine%2Fown/chat/completions?"));
}

#[tokio::test]
async fn a_row_may_exclude_rename_and_bound_parameters() {
    let stack = Stack::start().await;
    let client = super::client(&stack, "mistral-ai");
    let mut body = chat("Hello");
    body.as_object_mut().unwrap().extend([
        ("user".to_owned(), json!("u")),
        ("seed".to_owned(), json!(7)),
        ("temperature".to_owned(), json!(1.5)),
        ("tool_choice".to_owned(), json!("required")),
    ]);
    client.post("/chat/completions", &body).await;
    let sent: Value = serde_json::from_slice(&stack.mock.requests()[0].body).unwrap();
    assert_eq!(
        (&sent["random_seed"], &sent["temperature"], &sent["tool_choice"]),
        (&json!(7), &json!(1.0), &json!("any"))
    );
    assert_eq!((sent.get("user"), sent.get("seed")), (None, None));
    assert_eq!(rows(&stack, 1).await[0].get::<_, Value>("dropped_params"), json!(["user"]));
}

#[tokio::test]
async fn embeddings_of_gemini_take_openais_form() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "google");
    upstream.answer(answer("application/json", br#"{"embeddings":[{"values":[0.5,1]},{"values":[2,3]}]}"#));
    let body = json!({ "model": "gemini-embedding-001", "input": ["a", "b"] });
    let got = client.post("/embeddings", &body).await;
    let (first, _, sent) = asked(&upstream, "x");
    assert_eq!(first, "POST /v1beta/models/gemini-embedding-001:batchEmbedContents HTTP/1.1");
    assert_eq!(sent["requests"][1]["content"]["parts"][0]["text"], "b");
    assert_eq!((got.status.as_u16(), &got.json()["data"][0]["embedding"]), (200, &json!([0.5, 1])), "{}", got.text());
    upstream.answer("HTTP/1.1 400 X\r\nContent-Type: application/json\r\nContent-Length: 42\r\n\r\n{\"error\":{\"code\":400,\"message\":\"no such\"}}");
    let got = client.post("/embeddings", &body).await;
    assert_eq!(
        (got.status.as_u16(), &got.json()["error"]["message"]),
        (400, &json!("google error: no such")),
        "{}",
        got.text()
    );
}
