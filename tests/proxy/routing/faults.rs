//! Whatever a provider does wrong before it has said anything, the next target takes its place, and the client sees an
//! answer as if nothing had been.

use super::{asked, client, target};
use harness::{Stack, chat};
use serde_json::{Value, json};

fn faults() -> Vec<(&'static str, Value)> {
    let early = r#"data: {"choices":[{"delta":{"role":"assistant"}}]}"#;
    vec![
        ("closes without an answer", json!({ "no_answer": true })),
        ("resets", json!({ "no_answer": true, "reset": true })),
        ("is too slow", json!({ "latency_ms": 60_000 })),
        ("is busy", json!({ "status": 429 })),
        ("fails", json!({ "status": 500 })),
        ("reports an error inside a 200", json!({ "error_in_200": true })),
        ("cuts its answer off at once", json!({ "cut_at": 0 })),
        ("cuts its answer off", json!({ "cut_at": 10 })),
        ("resets inside its answer", json!({ "cut_at": 10, "reset": true })),
        ("stalls inside its answer", json!({ "stall_after_bytes": 10 })),
        ("sends broken JSON", json!({ "body": "{\"choices\":[", "content_type": "application/json" })),
        (
            "is cut after the role",
            json!({ "body": format!("{early}\n\n"), "content_type": "text/event-stream", "cut_at": early.len() + 2, "no_content_length": true }),
        ),
        (
            "ends a stream with nothing in it",
            json!({ "body": "", "content_type": "text/event-stream", "no_content_length": true }),
        ),
    ]
}

#[tokio::test]
async fn whatever_goes_wrong_before_the_answer_the_next_target_answers() {
    let stack = Stack::builder().proxy("UPSTREAM_STREAM_IDLE_TIMEOUT_MS", "2000").start().await;
    let fallback = json!({ "strategy": { "mode": "fallback" },
        "targets": [target(&stack, json!({})), target(&stack, json!({}))] });
    let retry = json!({ "attempts": 1, "jitter": "full", "on_status_codes": [408, 429, 500, 502, 503] });
    let retry = target(&stack, json!({ "retry": retry }));
    for (how, config) in [("fallback", fallback), ("retry", retry)] {
        for (what, fault) in faults() {
            let mut config = config.clone();
            // Of the others, a busy machine would make slow ones.
            if what == "is too slow" {
                config["request_timeout"] = json!(2000);
            }
            for is_stream in [false, true] {
                stack.mock.script(json!([fault])).unwrap();
                let mut body = chat("Hello");
                body["stream"] = json!(is_stream);
                let answer = client(&stack, &config).post("/chat/completions", &body).await;
                let text = answer.text();
                assert_eq!(answer.status, 200, "{how}, {what}, stream {is_stream}: {text}");
                let is_whole = match is_stream {
                    true => text.ends_with("data: [DONE]\n\n") && !text.contains("\"error\""),
                    false => answer.json()["object"] == "chat.completion",
                };
                assert!(is_whole, "{how}, {what}, stream {is_stream}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_is_passed_over() {
    let stack = Stack::start().await;
    for host in ["http://127.0.0.1:1/v1".to_owned(), format!("https://{}/v1", stack.mock.address())] {
        let config = json!({ "strategy": { "mode": "fallback" },
            "targets": [target(&stack, json!({ "custom_host": host })), target(&stack, json!({}))] });
        let answer = client(&stack, &config).post("/chat/completions", &chat("Hello")).await;
        assert_eq!(answer.status, 200, "{host} {}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{host}");
    }
}

#[tokio::test]
async fn a_relayed_call_goes_to_the_next_target_only_while_nothing_was_sent() {
    let stack = Stack::start().await;
    let upload = vec![b'x'; 300_000];
    for (what, first) in [
        ("refused", json!({ "custom_host": "http://127.0.0.1:1/v1" })),
        ("no TLS", json!({ "custom_host": format!("https://{}/v1", stack.mock.address()) })),
        ("no such name", json!({ "custom_host": "https://nowhere.example.invalid.example/v1" })),
        ("no such provider", json!({ "provider": "@nobody" })),
    ] {
        let config = json!({ "strategy": { "mode": "fallback" },
            "targets": [target(&stack, first), target(&stack, json!({}))] });
        let request = client(&stack, &config).request(http::Method::POST, "/files").body(upload.clone());
        let answer = harness::client::whole(request.header("content-type", "application/octet-stream")).await;
        assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{what} {}", answer.text());
        assert_eq!(stack.mock.requests().pop().unwrap().body.len(), upload.len(), "{what}");
    }
    let before = asked(&stack);
    stack.mock.script(json!([{ "status": 500 }])).unwrap();
    let config = json!({ "strategy": { "mode": "fallback" }, "retry": { "attempts": 3 },
        "targets": [target(&stack, json!({})), target(&stack, json!({}))] });
    let answer = client(&stack, &config).get("/models").await;
    assert_eq!((answer.status.as_u16(), asked(&stack) - before), (500, 1), "an answer is an answer");
}

#[tokio::test]
async fn a_client_that_leaves_while_a_retry_waits_ends_everything() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "retry": { "attempts": 5 } }));
    stack.mock.script(json!([{ "status": 500, "times": 9 }])).unwrap();
    let request = client(&stack, &config).request(http::Method::POST, "/chat/completions").json(&chat("Hello"));
    let waiting = tokio::spawn(request.send());
    stack.mock.until(|counts| !counts.served.is_empty()).await;
    waiting.abort();
    stack
        .until("the request is over", async || {
            stack.metric(r#"gateway_in_flight_requests{lane="engine"}"#).await == Some(0.0)
        })
        .await;
    assert_eq!(asked(&stack), 1);
}
