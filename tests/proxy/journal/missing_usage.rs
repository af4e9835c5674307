//! Answers on paid routes that do not say what they used, on both lanes and in every length: each is estimated, marked,
//! charged and counted by a metric; a strict budget does not let through what it could not bound.

use super::calls::{rows, tokens};
use crate::limits::{limited, patient};
use crate::raw::{Wire, credentials_for, post};
use crate::upstream::RawUpstream;
use harness::chat;
use rust_decimal::Decimal;
use serde_json::{Value, json};

const MODEL: &str = "gpt-4o";

fn answered(kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

#[tokio::test]
async fn what_does_not_say_what_it_used_is_estimated_and_charged() {
    let stack = patient().await;
    let upstream = RawUpstream::start().await;
    let said = "word ".repeat(400);
    // Longer than what is held whole, so that it comes in pieces.
    let long = "word ".repeat(200_000);
    let message = |text: &str| {
        json!({ "model": MODEL, "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": text } }] })
    };
    let run = |text: &str| json!({ "object": "thread.run", "model": MODEL, "content": text });
    let vector = json!({ "model": "text-embedding-3-small", "data": [{ "embedding": vec![0.123; 40_000] }] });
    let body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": said }], "content": said });
    let embed = json!({ "model": "text-embedding-3-small", "input": said });
    let json_type = "application/json";
    let cases: Vec<(&str, &str, &str, Value, String, u64)> = vec![
        ("a chat", "/v1/chat/completions", json_type, body.clone(), message(&said).to_string(), 100),
        ("a long chat", "/v1/chat/completions", json_type, body.clone(), message(&long).to_string(), 10_000),
        ("embeddings", "/v1/embeddings", json_type, embed, vector.to_string(), 0),
        ("a run", "/v1/threads/t-1/runs", json_type, body.clone(), run(&said).to_string(), 100),
        ("a long run", "/v1/threads/t-1/runs", json_type, body.clone(), run(&long).to_string(), 10_000),
    ];
    for (what, path, kind, asked, answer, _) in &cases {
        upstream.answer(answered(kind, answer));
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(post(path, &credentials_for(&stack, &upstream.url()), &asked.to_string())).await;
        let got = wire.answer().await.unwrap();
        assert!(got.status == 200 && got.body.len() == answer.len(), "{what}: {}", got.status);
    }
    for (row, (what, _, _, _, _, least)) in rows(&stack, cases.len()).await.iter().zip(&cases) {
        let (prompt, completion) = tokens(row);
        assert!(row.get::<_, bool>("usage_estimated"), "{what}");
        assert!((300..1500).contains(&prompt), "{what}: {prompt}");
        assert!(completion >= i64::try_from(*least).unwrap(), "{what}: {completion}");
        assert!(row.get::<_, Option<Decimal>>("cost").is_some_and(|cost| cost > 0.into()), "{what}");
    }
    for (path, count) in [("/chat/completions", 2.0), ("/embeddings", 1.0), ("/threads/*/runs", 2.0)] {
        let name = format!(r#"gateway_usage_missing_total{{path="{path}",provider="openai"}}"#);
        stack.until_metric(&name, count).await;
    }
}

#[tokio::test]
async fn a_path_without_a_known_price_is_counted_by_its_form() {
    let stack = patient().await;
    for path in ["/threads/thread_1/messages", "/threads/thread_2/messages", "/threads"] {
        assert_eq!(stack.client().post(path, &json!({})).await.status, 200, "{path}");
    }
    assert_eq!(stack.client().get("/threads/thread_1").await.status, 200);
    for (path, count) in [("/v1/threads/*/messages", Some(2.0)), ("/v1/threads", Some(1.0)), ("/v1/threads/*", None)] {
        let name = format!(r#"gateway_unpriced_calls_total{{path="{path}",provider="openai"}}"#);
        assert_eq!(stack.metric(&name).await, count, "{name}");
    }
}

#[tokio::test]
async fn a_default_budget_ends_by_estimates_and_a_strict_one_lets_no_unbounded_call_pass() {
    let stack = patient().await;
    let silent = json!({ "mock": { "no_usage": true, "words": 3000 } }).to_string();
    let client = limited(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 5000 } })).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(client.post("/chat/completions", &chat(&silent)).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 412, 412]);
    let strict = limited(&stack, json!({ "usage_limits": { "credit_limit": 100, "strict": true } })).await;
    for path in ["/threads/t/runs", "/batches", "/threads"] {
        assert_eq!(strict.post(path, &json!({ "model": MODEL })).await.status, 412, "{path}");
    }
}
