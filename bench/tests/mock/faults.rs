//! Faults that show in what an answer says.

use serde_json::{Value, json};

use crate::{chat, events, mock, post, post_json, streamed};

#[tokio::test]
async fn a_status_comes_with_its_error_body_and_retry_headers() {
    let mock = mock();
    let fault = json!({ "status": 429, "retry_after": "2", "retry_after_ms": 1500, "headers": { "x-extra": "1" } });
    let response = post(&mock, "/chat/completions", &chat(fault)).await;
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "2");
    assert_eq!(response.headers()["retry-after-ms"], "1500");
    assert_eq!(response.headers()["x-extra"], "1");
    assert_eq!(response.json::<Value>().await.unwrap()["error"]["code"], "rate_limit_exceeded");
    let overloaded = post_json(&mock, "/messages", &chat(json!({ "status": 529 }))).await;
    assert_eq!(overloaded["error"]["type"], "overloaded_error");
}

#[tokio::test]
async fn a_body_of_any_kind_can_be_dictated() {
    let mock = mock();
    let fault = json!({ "status": 502, "body": "<html>", "content_type": "text/html" });
    let response = post(&mock, "/chat/completions", &chat(fault)).await;
    assert_eq!((response.status().as_u16(), &response.headers()["content-type"]), (502, &"text/html".parse().unwrap()));
    assert_eq!(response.text().await.unwrap(), "<html>");
}

#[tokio::test]
async fn an_error_can_hide_in_a_200() {
    let mock = mock();
    let response = post(&mock, "/chat/completions", &chat(json!({ "error_in_200": true }))).await;
    assert_eq!(response.status(), 200);
    assert!(response.json::<Value>().await.unwrap()["error"].is_object());
    for (path, fault, content_events) in [
        ("/chat/completions", json!({ "error_in_200": true }), 0),
        ("/chat/completions", json!({ "error_after_chunks": 2, "chunks": 5 }), 2),
        ("/messages", json!({ "error_in_200": true }), 0),
        ("/messages", json!({ "error_after_chunks": 1, "chunks": 5 }), 1),
        ("/completions", json!({ "error_after_chunks": 1, "chunks": 5 }), 1),
    ] {
        let mut body = streamed(chat(fault));
        if path == "/completions" {
            // No messages here: the model names the fault.
            body = json!({ "model": "fault/error_after_chunks=1,chunks=5", "prompt": "x", "stream": true });
        }
        let response = post(&mock, path, &body).await;
        assert_eq!(response.status(), 200);
        let events = events(&response.text().await.unwrap());
        let last: Value = serde_json::from_str(events.last().unwrap()).unwrap();
        assert!(last["error"].is_object(), "{path}: {last}");
        assert_eq!(events.iter().filter(|data| data.contains("word0")).count(), content_events, "{path}");
    }
}

#[tokio::test]
async fn bad_json_is_not_json() {
    let mock = mock();
    let text = post(&mock, "/chat/completions", &chat(json!({ "bad_json": true }))).await.text().await.unwrap();
    assert!(serde_json::from_str::<Value>(&text).is_err());
    let body = streamed(chat(json!({ "bad_json": true, "chunks": 3 })));
    let text = post(&mock, "/chat/completions", &body).await.text().await.unwrap();
    let broken = events(&text).iter().filter(|data| serde_json::from_str::<Value>(data).is_err()).count();
    assert_eq!(broken, 2, "the broken event and [DONE]");
}

#[tokio::test]
async fn usage_can_be_left_out() {
    let mock = mock();
    for path in ["/chat/completions", "/messages", "/embeddings"] {
        let mut body = chat(json!({ "no_usage": true }));
        if path == "/embeddings" {
            body = json!({ "model": "fault/no_usage", "input": "x" });
        }
        assert!(post_json(&mock, path, &body).await.get("usage").is_none(), "{path}");
        body["stream"] = json!(true);
        body["stream_options"] = json!({ "include_usage": true });
        let text = post(&mock, path, &body).await.text().await.unwrap();
        assert!(!text.contains("_tokens"), "{path}: {text}");
    }
}

#[tokio::test]
async fn the_text_and_its_length_can_be_dictated() {
    let mock = mock();
    let answer = post_json(&mock, "/chat/completions", &chat(json!({ "reply": "a \"quoted\"\nline" }))).await;
    assert_eq!(answer["choices"][0]["message"]["content"], "a \"quoted\"\nline");
    let answer = post_json(&mock, "/chat/completions", &chat(json!({ "reply_bytes": 2_000_000 }))).await;
    assert_eq!(answer["choices"][0]["message"]["content"].as_str().unwrap().len(), 2_000_000);
    let body = streamed(chat(json!({ "chunks": 40 })));
    let text = post(&mock, "/chat/completions", &body).await.text().await.unwrap();
    assert_eq!(events(&text).iter().filter(|data| data.contains("word0")).count(), 40);
}

#[tokio::test]
async fn small_writes_lose_nothing() {
    let mock = mock();
    for fault in [json!({ "chunk_bytes": 1, "reply": "häagen" }), json!({ "split_utf8": true })] {
        let text = post(&mock, "/chat/completions", &streamed(chat(fault.clone()))).await.text().await.unwrap();
        let plain = post_json(&mock, "/chat/completions", &chat(fault)).await;
        let chunks = events(&text).into_iter().filter_map(|data| serde_json::from_str::<Value>(&data).ok());
        let said: String =
            chunks.filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str().map(str::to_owned)).collect();
        assert_eq!(said, plain["choices"][0]["message"]["content"]);
        assert!(!said.is_ascii());
    }
}

#[tokio::test]
async fn stamps_tell_when_each_event_left() {
    let mock = mock();
    let body = streamed(chat(json!({ "stamp": true, "chunks": 5, "chunk_delay_ms": 2 })));
    let text = post(&mock, "/chat/completions", &body).await.text().await.unwrap();
    let chunks = events(&text).into_iter().filter_map(|data| serde_json::from_str::<Value>(&data).ok());
    let times: Vec<u64> = chunks.filter_map(|chunk| chunk["mock_sent_ns"].as_u64()).collect();
    assert_eq!(times.len(), 7, "role, five pieces, finish");
    assert!(times.is_sorted_by(|earlier, later| earlier < later), "{times:?}");
}

#[tokio::test]
async fn a_misspelt_fault_is_answered_with_400() {
    let mock = mock();
    assert_eq!(post(&mock, "/chat/completions", &chat(json!({ "sttaus": 500 }))).await.status(), 400);
    assert_eq!(post(&mock, "/chat/completions?mock=sttaus%3D500", &chat(json!({}))).await.status(), 400);
    assert!(mock.script(json!([{ "sttaus": 500 }])).is_err());
}

#[tokio::test]
async fn a_scripted_conversation_serves_the_requests_that_it_is_for() {
    let mock = mock();
    let run = json!({ "name": "run", "arguments": { "command": "date" } });
    mock.script(json!([
        { "contains": ["\"run\"", "today"], "call": run },
        { "contains": ["Thursday"], "reply": "It is Thursday." },
        { "contains": ["Thursday", "never"], "status": 500 },
    ]))
    .unwrap();
    let ask = |texts: &[&str], tools: Value| {
        let messages: Vec<Value> = texts.iter().map(|text| json!({ "role": "user", "content": text })).collect();
        json!({ "model": "gpt-4o", "messages": messages, "tools": tools })
    };
    let tools = json!([{ "type": "function", "function": { "name": "run", "parameters": {} } }]);
    for (path, body, place, expected) in [
        ("/chat/completions", ask(&["title?"], json!([])), "/choices/0/message/tool_calls", Value::Null),
        (
            "/chat/completions",
            ask(&["what day is today"], tools.clone()),
            "/choices/0/message/tool_calls/0/function/name",
            json!("run"),
        ),
        (
            "/chat/completions",
            ask(&["what day is today", "Thursday"], tools.clone()),
            "/choices/0/message/content",
            json!("It is Thursday."),
        ),
        ("/chat/completions", ask(&["what day is today"], tools), "/choices/0/message/tool_calls", Value::Null),
    ] {
        let answer = post_json(&mock, path, &body).await;
        assert_eq!(answer.pointer(place).cloned().unwrap_or_default(), expected, "{body}: {answer}");
    }
}
