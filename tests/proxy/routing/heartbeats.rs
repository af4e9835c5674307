//! Heartbeats in streams, where a config asks for them: comments that say nothing, also before there is an answer, and
//! whatever happens then is told as events.

use super::{client, target};
use harness::{Answer, Stack, chat};
use serde_json::{Value, json};

async fn stream(stack: &Stack, config: &Value) -> Answer {
    let mut body = chat("Hello");
    body["stream"] = json!(true);
    client(stack, config).post("/chat/completions", &body).await
}

/// The stream without its comments, and whether it had any.
fn without_comments(answer: &Answer) -> (String, bool) {
    let text = answer.text();
    let kept: Vec<&str> = text.split_inclusive("\n\n").filter(|event| !event.starts_with(':')).collect();
    (kept.concat(), text.contains(": heartbeat\n\n"))
}

#[tokio::test]
async fn silences_are_filled_and_nothing_else_changes() {
    let stack = Stack::start().await;
    let (plain, beating) = (target(&stack, json!({})), target(&stack, json!({ "stream_heartbeat": 100 })));
    let content = |text: &str| {
        text.split("\"content\":").skip(1).map(|rest| rest.split('"').nth(1).unwrap().to_owned()).collect::<String>()
    };
    stack.mock.script(json!([{}])).unwrap();
    let expected = content(&stream(&stack, &plain).await.text());
    for (what, fault, beats) in [
        ("no silence", json!({}), false),
        ("before the answer", json!({ "latency_ms": 400 }), true),
        ("inside the answer", json!({ "chunk_delay_ms": 250 }), true),
    ] {
        stack.mock.script(json!([fault.clone()])).unwrap();
        let answer = stream(&stack, &beating).await;
        let (text, has_beaten) = without_comments(&answer);
        assert_eq!(
            (answer.status.as_u16(), answer.header("content-type").split(';').next()),
            (200, Some("text/event-stream")),
            "{what}"
        );
        assert_eq!((content(&text), has_beaten), (expected.clone(), beats), "{what} {text}");
        assert!(text.ends_with("data: [DONE]\n\n"), "{what} {text}");
        stack.mock.script(json!([fault])).unwrap();
        assert!(!without_comments(&stream(&stack, &plain).await).1, "{what}: nobody asked for heartbeats");
    }
}

#[tokio::test]
async fn after_a_heartbeat_another_target_may_still_answer_and_a_failure_is_an_event() {
    let stack = Stack::start().await;
    let config = json!({ "strategy": { "mode": "fallback" }, "stream_heartbeat": 100, "request_timeout": 2000,
        "targets": [target(&stack, json!({})), target(&stack, json!({}))] });
    stack.mock.script(json!([{ "latency_ms": 400, "status": 500 }])).unwrap();
    let (text, has_beaten) = without_comments(&stream(&stack, &config).await);
    assert!(has_beaten && text.ends_with("data: [DONE]\n\n") && !text.contains("\"error\""), "{text}");
    for fault in [json!({ "latency_ms": 400, "status": 429 }), json!({ "latency_ms": 400, "error_in_200": true })] {
        stack.mock.script(json!([{ "status": 500 }, fault.clone()])).unwrap();
        let (text, has_beaten) = without_comments(&stream(&stack, &config).await);
        let (error, end) = text.strip_prefix("data: ").and_then(|text| text.split_once("\n\n")).unwrap();
        let error: Value = serde_json::from_str(error).unwrap();
        assert!(has_beaten && error["error"]["message"].is_string(), "{fault} {text}");
        assert_eq!(end, "data: [DONE]\n\n", "{fault}");
    }
}

#[tokio::test]
async fn a_plain_answer_has_no_heartbeats() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "latency_ms": 400 }])).unwrap();
    let config = target(&stack, json!({ "stream_heartbeat": 100 }));
    let answer = client(&stack, &config).post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.json()["object"], "chat.completion");
}
