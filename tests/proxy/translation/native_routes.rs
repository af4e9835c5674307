//! Google's and Bedrock's own clients at providers of any wire: the model stands in their paths, streams come in their
//! frames, errors in their words. At their own vendor their bytes pass.

use super::wires::{answer, crc, frame};
use super::{client, events, sent};
use crate::families::{application, integrate};
use crate::journal::calls::{rows, tokens};
use crate::upstream::RawUpstream;
use harness::{Client, Stack};
use serde_json::{Value, json};

const GEMINI: &str = "/v1beta/models/gpt-4o-mini:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/gpt-4o-mini:streamGenerateContent";
const CONVERSE: &str = "/model/gpt-4o-mini/converse";
const CONVERSE_STREAM: &str = "/model/gpt-4o-mini/converse-stream";

fn contents(text: &str) -> Value {
    json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }],
            "systemInstruction": { "parts": [{ "text": "Be brief." }] }, "generationConfig": { "maxOutputTokens": 50 } })
}

fn messages(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": [{ "text": text }] }], "system": [{ "text": "Be brief." }],
            "inferenceConfig": { "maxTokens": 50 } })
}

/// A client whose paths begin at the host, as the vendors' own have them.
fn at_root(stack: &Stack) -> Client {
    Client::new(stack.base_url.strip_suffix("/v1").unwrap())
}

fn raw(stack: &Stack, upstream: &RawUpstream, provider: &str) -> Client {
    let client = application(stack).with("authorization", "Bearer sk-own").with("x-gateway-provider", provider);
    client.with("x-gateway-custom-host", upstream.url().strip_suffix("/v1").unwrap())
}

/// The text of Google's chunks.
fn text_of(chunks: &[Value]) -> String {
    let parts = chunks.iter().flat_map(|chunk| chunk["candidates"][0]["content"]["parts"].as_array().cloned());
    parts.flatten().filter_map(|part| part["text"].as_str().map(str::to_owned)).collect()
}

/// The frames of an AWS event stream, each with its headers and its payload; every checksum is checked.
fn frames(mut bytes: &[u8]) -> Vec<(Vec<(String, String)>, Value)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (length, head) = (number(0), number(4));
        assert_eq!(
            (crc(&bytes[..8]), crc(&bytes[..length - 4])),
            (number_of(&bytes[8..12]), number_of(&bytes[length - 4..length]))
        );
        let mut headers = Vec::new();
        let mut rest = &bytes[12..12 + head];
        while !rest.is_empty() {
            let name = usize::from(rest[0]);
            let value = usize::from(u16::from_be_bytes([rest[name + 2], rest[name + 3]]));
            let text = |range: std::ops::Range<usize>| String::from_utf8(rest[range].to_vec()).unwrap();
            headers.push((text(1..name + 1), text(name + 4..name + 4 + value)));
            rest = &rest[name + 4 + value..];
        }
        found.push((headers, serde_json::from_slice(&bytes[12 + head..length - 4]).unwrap()));
        bytes = &bytes[length..];
    }
    found
}

fn number_of(bytes: &[u8]) -> [u8; 4] {
    bytes.try_into().unwrap()
}

fn name_of(headers: &[(String, String)]) -> &str {
    let named = headers.iter().find(|(name, _)| name == ":event-type" || name == ":exception-type");
    named.map(|(_, value)| value.as_str()).unwrap_or_default()
}

#[tokio::test]
async fn a_google_client_asks_openai_and_anthropic_whole_and_in_both_kinds_of_streams() {
    let stack = Stack::start().await;
    for (provider, path, system) in
        [("openai", "/v1/chat/completions", "/messages/0/content"), ("anthropic", "/v1/messages", "/system/0/text")]
    {
        stack.mock.reset();
        let client = client(&stack, provider);
        let whole = client.post(GEMINI, &contents("Hello")).await;
        assert_eq!(whole.status, 200, "{}", whole.text());
        let (asked_at, asked) = sent(&stack);
        assert_eq!((&*asked_at, &asked["model"]), (path, &json!("gpt-4o-mini")));
        assert_eq!(asked.pointer(system), Some(&json!("Be brief.")), "{asked}");
        assert_ne!(asked["stream"], json!(true));
        let whole = whole.json();
        let candidate = &whole["candidates"][0];
        assert_eq!((&candidate["finishReason"], &candidate["content"]["role"]), (&json!("STOP"), &json!("model")));
        let said = text_of(std::slice::from_ref(&whole));
        assert!(!said.is_empty() && whole["usageMetadata"]["promptTokenCount"].as_u64() > Some(0), "{whole}");
        let answer = client.post(&format!("{GEMINI_STREAM}?alt=sse"), &contents("Hello")).await;
        assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
        let stream = answer.text();
        let (chunks, names) = events(&stream);
        assert!(names.is_empty() && sent(&stack).1["stream"] == json!(true), "{stream}");
        let last = chunks.last().unwrap();
        assert_eq!((text_of(&chunks), &last["usageMetadata"]), (said.clone(), &whole["usageMetadata"]), "{stream}");
        let answer = client.post(GEMINI_STREAM, &contents("Hello")).await;
        assert_eq!(answer.header("content-type"), "application/json; charset=UTF-8");
        let list = answer.json();
        assert_eq!(text_of(list.as_array().unwrap()), said, "{list}");
    }
    let rows = rows(&stack, 6).await;
    assert_eq!(tokens(&rows[0]), tokens(&rows[2]));
    assert!(rows.iter().all(|row| !row.get::<_, bool>("usage_estimated")));
}

#[tokio::test]
async fn a_google_client_brings_the_gateways_key_in_its_own_header_and_a_slug_in_its_path() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    stack.mock.reset();
    let client = at_root(&stack).with("x-goog-api-key", &stack.home.workspace_key);
    for path in [
        "/v1beta/models/@prod/m:generateContent",
        "/v1beta/models/%40prod%2Fm:generateContent?key=of-nobody",
        "/v1/models/@prod/m:generateContent",
        "/v1/v1beta/models/@prod/m:generateContent",
    ] {
        let answer = client.post(path, &contents("Hello")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let requests = stack.mock.requests();
        let arrived = requests.last().unwrap();
        assert_eq!((arrived.header("x-goog-api-key"), &*arrived.path), ("", "/v1/chat/completions"), "{path}");
        assert_eq!(sent(&stack).1["model"], "m", "{path}");
    }
    for key in ["", "nobody's"] {
        let refused = at_root(&stack).with("x-goog-api-key", key).post(GEMINI, &contents("Hello")).await;
        let error = &refused.json()["error"];
        assert_eq!((&error["code"], &error["status"]), (&json!(401), &json!("UNAUTHENTICATED")), "{error}");
    }
}

#[tokio::test]
async fn functions_are_called_side_by_side_in_googles_and_in_awss_words() {
    let stack = Stack::start().await;
    let client = client(&stack, "openai");
    let calls = r#"{"mock":{"tool_calls":2}}"#;
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let mut asked = contents(calls);
    asked["tools"] = json!([{ "functionDeclarations": [{ "name": "weather", "parametersJsonSchema": schema }] }]);
    let called = |answer: &Value| -> Vec<(Value, Value)> {
        let parts = answer["candidates"][0]["content"]["parts"].as_array().cloned().unwrap_or_default();
        let calls = parts.into_iter().filter_map(|part| part.get("functionCall").cloned());
        calls.map(|call| (call["name"].clone(), call["args"].clone())).collect()
    };
    let expected = vec![(json!("weather"), json!({ "city": "Paris" })); 2];
    assert_eq!(called(&client.post(GEMINI, &asked).await.json()), expected);
    let list = client.post(GEMINI_STREAM, &asked).await.json();
    assert_eq!(list.as_array().unwrap().iter().flat_map(called).collect::<Vec<_>>(), expected, "{list}");
    let mut asked = messages(calls);
    asked["toolConfig"] =
        json!({ "tools": [{ "toolSpec": { "name": "weather", "inputSchema": { "json": schema } } }] });
    let whole = client.post(CONVERSE, &asked).await.json();
    let blocks = whole["output"]["message"]["content"].as_array().unwrap().clone();
    let used: Vec<_> = blocks.iter().filter_map(|block| block.get("toolUse")).collect();
    assert_eq!(used.iter().map(|tool| (tool["name"].clone(), tool["input"].clone())).collect::<Vec<_>>(), expected);
    assert_eq!(whole["stopReason"], "tool_use");
    let stream = frames(&client.post(CONVERSE_STREAM, &asked).await.body);
    let started = stream.iter().filter(|(headers, _)| name_of(headers) == "contentBlockStart").count();
    assert_eq!(started, 2, "{stream:?}");
}

#[tokio::test]
async fn a_bedrock_client_asks_openai_whole_and_in_frames() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    stack.mock.reset();
    let root = at_root(&stack).with("authorization", format!("Bearer {}", stack.home.workspace_key));
    let whole = root.post("/model/%40prod%2Fgpt-4o-mini/converse", &messages("Hello")).await;
    assert_eq!(whole.status, 200, "{}", whole.text());
    let (path, asked) = sent(&stack);
    assert_eq!((&*path, &asked["model"]), ("/v1/chat/completions", &json!("gpt-4o-mini")));
    assert_eq!(asked["messages"][0]["content"], "Be brief.");
    let whole = whole.json();
    let said = whole["output"]["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(whole["stopReason"], "end_turn");
    let answer = client(&stack, "openai").post(CONVERSE_STREAM, &messages("Hello")).await;
    assert_eq!(answer.header("content-type"), "application/vnd.amazon.eventstream");
    let stream = frames(&answer.body);
    let names: Vec<&str> = stream.iter().map(|(headers, _)| name_of(headers)).collect();
    assert_eq!((names.first(), names.last()), (Some(&"messageStart"), Some(&"metadata")), "{names:?}");
    let text: String = stream.iter().filter_map(|(_, event)| event["delta"]["text"].as_str()).collect();
    assert_eq!((text, &stream.last().unwrap().1["usage"]), (said, &whole["usage"]));
    let database = stack.database.client().await;
    let logged = async || {
        const LOGGED: &str = "SELECT * FROM request_logs WHERE request_url LIKE '%/model/%' ORDER BY request_url DESC";
        database.query(LOGGED, &[]).await.unwrap()
    };
    stack.until("both are logged", async || logged().await.len() == 2).await;
    let rows = logged().await;
    assert_eq!(tokens(&rows[0]), tokens(&rows[1]));
    let urls: Vec<&str> = rows.iter().map(|row| row.get("request_url")).collect();
    assert!(urls.contains(&"/v1/model/gpt-4o-mini/converse-stream"), "{urls:?}");
}

#[tokio::test]
async fn errors_are_told_in_the_words_of_the_routes_vendor() {
    let stack = Stack::start().await;
    let client = client(&stack, "openai");
    let refused = client.post(GEMINI, &contents(r#"{"mock":{"status":429}}"#)).await;
    let error = refused.json()["error"].clone();
    assert_eq!(
        (refused.status.as_u16(), &error["code"], &error["status"]),
        (429, &json!(429), &json!("RESOURCE_EXHAUSTED"))
    );
    let mut asked = contents("Hello");
    asked["cachedContent"] = json!("cachedContents/c");
    let refused = client.post(GEMINI, &asked).await.json()["error"].clone();
    assert_eq!((&refused["code"], &refused["status"]), (&json!(400), &json!("INVALID_ARGUMENT")), "{refused}");
    let info = &refused["details"][0];
    assert_eq!(
        (&info["reason"], &info["metadata"]["param"]),
        (&json!("unsupported_parameter"), &json!("cachedContent"))
    );
    let refused = client.post(CONVERSE, &messages(r#"{"mock":{"status":429}}"#)).await;
    assert_eq!((refused.status.as_u16(), refused.header("x-amzn-errortype")), (429, "ThrottlingException"));
    assert!(refused.json()["message"].is_string(), "{}", refused.text());
    let refused = client.post(CONVERSE, &json!({})).await;
    assert_eq!((refused.status.as_u16(), refused.header("x-amzn-errortype")), (400, "ValidationException"));
    assert!(refused.json()["message"].as_str().unwrap().contains("messages"), "{}", refused.text());
    let unknown = at_root(&stack).with("authorization", "Bearer nobody's").post(CONVERSE, &messages("x")).await;
    assert_eq!((unknown.status.as_u16(), unknown.header("x-amzn-errortype")), (401, "UnrecognizedClientException"));
}

#[tokio::test]
async fn at_google_itself_the_bytes_pass_and_only_the_frames_differ() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = raw(&stack, &upstream, "google");
    let body = r#"{ "contents" : [{"parts":[{"text":"\u00e9"}]}],  "labels":{"a":"b"} }"#;
    let send = |path: String| {
        let request = client.request(http::Method::POST, &path).header("content-type", "application/json").body(body);
        harness::client::whole(request)
    };
    let whole = json!({ "candidates": [{ "content": { "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13 }, "odd": [1] });
    upstream.answer(answer("application/json; charset=UTF-8", whole.to_string().as_bytes()));
    let got = send("/v1beta/models/gemini-x:generateContent".into()).await;
    assert_eq!((got.status.as_u16(), got.text()), (200, whole.to_string()));
    let asked = upstream.only();
    assert!(asked.starts_with("POST /v1beta/models/gemini-x:generateContent HTTP/1.1\r\n"), "{asked}");
    assert!(asked.ends_with(body) && asked.to_ascii_lowercase().contains("\r\nx-goog-api-key: sk-own\r\n"), "{asked}");
    let stream = format!("data: {whole}\r\n\r\n");
    for (query, expected) in [("?alt=sse", stream.clone()), ("", format!("[{whole}]"))] {
        upstream.answer(answer("text/event-stream", stream.as_bytes()));
        let got = send(format!("/models/gemini-x:streamGenerateContent{query}")).await;
        assert_eq!(got.text(), expected, "{query}");
        let asked = upstream.only();
        assert!(
            asked.starts_with("POST /v1beta/models/gemini-x:streamGenerateContent?alt=sse HTTP/1.1\r\n"),
            "{asked}"
        );
        assert!(asked.ends_with(body), "{asked}");
    }
    let list = format!("[{whole}\n,\r\n{whole}\n]");
    for (query, expected) in
        [("?alt=sse", format!("data: {whole}\n\n").repeat(2)), ("", format!("[{whole},\r\n{whole}]"))]
    {
        upstream.answer(answer("application/json; charset=UTF-8", list.as_bytes()));
        let got = send(format!("/models/gemini-x:streamGenerateContent{query}")).await;
        assert_eq!(got.text(), expected, "a list that nobody asked for");
        assert_eq!(got.header("content-type").starts_with("text/event-stream"), !query.is_empty());
    }
    let rows = rows(&stack, 5).await;
    assert!(rows.iter().all(|row| tokens(row) == (9, 4)));
}

#[tokio::test]
async fn at_bedrock_itself_bodies_pass_and_frames_are_written_anew() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = raw(&stack, &upstream, "bedrock");
    let usage = json!({ "inputTokens": 8, "outputTokens": 3, "totalTokens": 11 });
    let sent = [
        ("messageStart", json!({ "role": "assistant" })),
        ("contentBlockDelta", json!({ "contentBlockIndex": 0, "delta": { "text": "Hi" } })),
        ("messageStop", json!({ "stopReason": "end_turn" })),
        ("metadata", json!({ "usage": usage, "metrics": { "latencyMs": 9 } })),
    ];
    let bytes: Vec<u8> = sent.iter().flat_map(|(name, event)| frame("event", name, event)).collect();
    upstream.answer(answer("application/vnd.amazon.eventstream", &bytes));
    let got = client.post("/model/us.anthropic.x-v1%3A0/converse-stream", &messages("Hello")).await;
    let asked = upstream.only();
    assert!(asked.starts_with("POST /model/us.anthropic.x-v1%3A0/converse-stream HTTP/1.1\r\n"), "{asked}");
    assert!(asked.ends_with(&messages("Hello").to_string()), "{asked}");
    let found: Vec<_> =
        frames(&got.body).into_iter().map(|(headers, event)| (name_of(&headers).to_owned(), event)).collect();
    assert_eq!(found, sent.map(|(name, event)| (name.to_owned(), event)));
    assert_eq!(tokens(&rows(&stack, 1).await[0]), (8, 3));
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_well_formed_in_every_frame() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = raw(&stack, &upstream, "openai");
    let piece = json!({ "choices": [{ "index": 0, "delta": { "content": "Hi" }, "finish_reason": null }] });
    let cut = || upstream.answer(answer("text/event-stream", format!("data: {piece}\n\n").as_bytes()));
    cut();
    let list = client.post(GEMINI_STREAM, &contents("Hello")).await.json();
    let list = list.as_array().unwrap();
    assert_eq!((text_of(list), &list.last().unwrap()["error"]["status"]), ("Hi".to_owned(), &json!("UNAVAILABLE")));
    cut();
    let stream = client.post(&format!("{GEMINI_STREAM}?alt=sse"), &contents("Hello")).await.text();
    let (chunks, _) = events(&stream);
    assert_eq!(chunks.last().unwrap()["error"]["code"], 502);
    cut();
    let stream = frames(&client.post(CONVERSE_STREAM, &messages("Hello")).await.body);
    let (headers, event) = stream.last().unwrap();
    assert_eq!(name_of(headers), "serviceUnavailableException", "{stream:?}");
    assert!(event["message"].is_string() && headers.contains(&(":message-type".to_owned(), "exception".to_owned())));
}

#[tokio::test]
async fn what_would_become_of_a_native_call_is_explained() {
    let stack = Stack::start().await;
    for (path, provider, url, translated_to) in [
        (
            "/v1beta/models/m:streamGenerateContent",
            "openai",
            "https://api.openai.com/v1/chat/completions",
            json!("chat"),
        ),
        (
            "/v1/models/m:streamGenerateContent",
            "google",
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
            Value::Null,
        ),
        ("/model/a.b%3A0/converse", "anthropic", "https://api.anthropic.com/v1/messages", json!("messages")),
    ] {
        let question =
            json!({ "path": path, "headers": { "x-gateway-provider": provider }, "body": { "contents": [] } });
        let told = application(&stack).post("/explain", &question).await.json();
        let target = &told["plan"][0]["target"];
        assert_eq!((&target["url"], &target["translated_to"]), (&json!(url), &translated_to), "{told}");
        assert_eq!(told["lane"], "engine");
    }
}
