//! A healthy provider's answers.

use bench::mock::pattern;
use serde_json::{Value, json};

use crate::{chat, events, mock, post, post_json, streamed};

#[tokio::test]
async fn a_chat_answer_has_the_shape_and_usage_of_openai() {
    let mock = mock();
    let body = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "12345678" }] });
    let answer = post_json(&mock, "/chat/completions", &body).await;
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], "gpt-4o-mini");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let said = text.len().div_ceil(4) as u64;
    assert_eq!(answer["usage"]["prompt_tokens"], 2);
    assert_eq!(answer["usage"]["completion_tokens"], said);
    assert_eq!(answer["usage"]["total_tokens"], 2 + said);
}

#[tokio::test]
async fn a_chat_stream_says_what_the_plain_answer_says() {
    let mock = mock();
    let plain = post_json(&mock, "/chat/completions", &chat(json!({}))).await;
    let response = post(&mock, "/chat/completions", &streamed(chat(json!({})))).await;
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    assert!(response.headers().get("content-length").is_none());
    let events = events(&response.text().await.unwrap());
    assert_eq!(events.last().unwrap(), "[DONE]");
    let chunks: Vec<Value> =
        events[..events.len() - 1].iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(chunks.last().unwrap()["choices"][0]["finish_reason"], "stop");
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    let text: String = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, plain["choices"][0]["message"]["content"]);
}

#[tokio::test]
async fn the_usage_chunk_comes_only_when_asked_for() {
    let mock = mock();
    let mut body = streamed(chat(json!({})));
    body["stream_options"] = json!({ "include_usage": true });
    let text = post(&mock, "/chat/completions", &body).await.text().await.unwrap();
    let events = events(&text);
    let usage: Value = serde_json::from_str(&events[events.len() - 2]).unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert!(usage["usage"]["total_tokens"].as_u64().unwrap() > 0);
}

#[tokio::test]
async fn anthropic_messages_come_plain_and_as_typed_events() {
    let mock = mock();
    let body = json!({ "model": "claude", "max_tokens": 9, "system": "1234", "messages": [{ "role": "user", "content": "1234" }] });
    let plain = post_json(&mock, "/messages", &body).await;
    assert_eq!(plain["type"], "message");
    assert_eq!(plain["usage"]["input_tokens"], 2);
    let text = post(&mock, "/messages", &streamed(body.clone())).await.text().await.unwrap();
    let events: Vec<Value> = events(&text).iter().map(|data| serde_json::from_str(data).unwrap()).collect();
    let kinds: Vec<_> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(kinds[..3], ["message_start", "content_block_start", "ping"]);
    assert_eq!(kinds[kinds.len() - 3..], ["content_block_stop", "message_delta", "message_stop"]);
    for event in &events {
        assert!(text.contains(&format!("event: {}\ndata: ", event["type"].as_str().unwrap())));
    }
    let streamed: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(streamed, plain["content"][0]["text"]);
    assert_eq!(events[events.len() - 2]["usage"]["output_tokens"], plain["usage"]["output_tokens"]);
    assert_eq!(post_json(&mock, "/messages/count_tokens", &body).await, json!({ "input_tokens": 2 }));
}

#[tokio::test]
async fn completions_answer_plain_and_streamed() {
    let mock = mock();
    let body = json!({ "model": "m", "prompt": "1234" });
    let plain = post_json(&mock, "/completions", &body).await;
    assert_eq!(plain["object"], "text_completion");
    let text = post(&mock, "/completions", &streamed(body)).await.text().await.unwrap();
    let events = events(&text);
    let chunks = events.iter().filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let streamed: String = chunks.filter_map(|chunk| chunk["choices"][0]["text"].as_str().map(str::to_owned)).collect();
    assert_eq!(streamed, plain["choices"][0]["text"]);
    assert_eq!(events.last().unwrap(), "[DONE]");
}

#[tokio::test]
async fn base64_embeddings_hold_the_same_numbers() {
    let mock = mock();
    let body = json!({ "model": "m", "input": ["one", "two"], "dimensions": 40 });
    let plain = post_json(&mock, "/embeddings", &body).await;
    assert_eq!(plain["data"].as_array().unwrap().len(), 2);
    assert_ne!(plain["data"][0]["embedding"], plain["data"][1]["embedding"]);
    let mut body = body;
    body["encoding_format"] = json!("base64");
    let encoded = post_json(&mock, "/embeddings", &body).await;
    let bytes = openssl::base64::decode_block(encoded["data"][1]["embedding"].as_str().unwrap()).unwrap();
    let numbers: Vec<f32> = bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect();
    assert_eq!(json!(numbers), plain["data"][1]["embedding"]);
    assert_eq!(numbers.len(), 40);
}

#[tokio::test]
async fn models_are_listed_and_found_by_id() {
    let mock = mock();
    let get = |path: &str| reqwest::Client::new().get(mock.url() + path).header("x-api-key", "k").send();
    let list: Value = get("/models").await.unwrap().json().await.unwrap();
    let id = list["data"][0]["id"].as_str().unwrap();
    let one: Value = get(&format!("/models/{id}")).await.unwrap().json().await.unwrap();
    assert_eq!(one, list["data"][0]);
    let missing = get("/models/nonesuch").await.unwrap();
    assert_eq!(missing.status(), 404);
    assert_eq!(missing.json::<Value>().await.unwrap()["error"]["code"], "model_not_found");
}

#[tokio::test]
async fn a_request_without_a_credential_is_refused() {
    let mock = mock();
    let client = reqwest::Client::new();
    for (path, header, kind) in [
        ("/chat/completions", None, "/error/type"),
        ("/chat/completions", Some(("authorization", "Bearer sk-bad")), "/error/code"),
        ("/chat/completions", Some(("authorization", "Basic eDp5")), "/error/code"),
        ("/messages", None, "/error/type"),
        ("/anything", None, "/error/code"),
    ] {
        let mut request = client.post(mock.url() + path).json(&chat(json!({})));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401, "{path} {header:?}");
        let body: Value = response.json().await.unwrap();
        assert!(body.pointer(kind).is_some_and(Value::is_string), "{body}");
    }
    assert_eq!(mock.counts().served("chat", "error"), 3);
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let mock = mock();
    let request = reqwest::Client::new().post(mock.url() + "/chat/completions").bearer_auth("k").body("{nope");
    assert_eq!(request.send().await.unwrap().status(), 400);
    assert_eq!(post(&mock, "/chat/completions", &json!({ "model": "m" })).await.status(), 400);
}

#[tokio::test]
async fn the_echo_tells_what_arrived() {
    let mock = mock();
    let mut upload = vec![0; 3_000_000];
    pattern::fill(0, &mut upload);
    let request = reqwest::Client::new().put(mock.url() + "/files/x?a=1&b=2").bearer_auth("k").body(upload);
    let echo: Value = request.header("x-custom", "yes").send().await.unwrap().json().await.unwrap();
    assert_eq!(echo["method"], "PUT");
    assert_eq!(echo["path"], "/v1/files/x");
    assert_eq!(echo["query"], "a=1&b=2");
    assert_eq!(echo["headers"]["x-custom"], "yes");
    assert_eq!(echo["headers"]["authorization"], "Bearer k");
    assert_eq!(echo["body_bytes"], 3_000_000);
    assert_eq!(echo["body_sha256"], pattern::sha256(3_000_000));
}

#[tokio::test]
async fn the_pattern_arrives_whole_over_both_protocols() {
    let mock = mock();
    for client in [reqwest::Client::new(), reqwest::Client::builder().http2_prior_knowledge().build().unwrap()] {
        let response = client.get(mock.url() + "/bytes/1000003").bearer_auth("k").send().await.unwrap();
        assert_eq!(response.content_length(), Some(1_000_003));
        let body = response.bytes().await.unwrap();
        assert_eq!(pattern::hex(&openssl::sha::sha256(&body)), pattern::sha256(1_000_003));
    }
    assert_eq!(mock.requests().iter().map(|request| request.version).collect::<Vec<_>>(), ["HTTP/1.1", "HTTP/2"]);
}
