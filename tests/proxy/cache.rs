//! Answers that are kept: what meets, what is told of it, and what never is kept. The mock numbers its answers, so that one
//! that was given before is known by its id.

mod dialects;
mod guarded;
mod money;
mod never_kept;
mod private;
mod tenants;
mod together;

use crate::journal::calls::{rows, text};
use crate::routing::{asked, client, target};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

/// An application whose config keeps answers.
pub fn cached(stack: &Stack) -> Client {
    client(stack, &target(stack, json!({ "cache": { "mode": "simple" } })))
}

/// What the cache did, by the header of an answer that must be a good one.
pub fn cache_status(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("x-gateway-cache-status").to_owned()
}

pub async fn ask(client: &Client, body: &Value) -> Answer {
    client.post("/chat/completions", body).await
}

#[tokio::test]
async fn an_equal_request_gets_the_same_answer_and_no_provider_is_asked() {
    let stack = Stack::start().await;
    let client = cached(&stack);
    let first = ask(&client, &chat("Hello")).await;
    assert_eq!(cache_status(&first), "MISS");
    let turned: Value = serde_json::from_str(
        &json!({ "stream": false, "messages": chat("Hello")["messages"], "model": chat("Hello")["model"] }).to_string(),
    )
    .unwrap();
    for body in [chat("Hello"), turned] {
        let again = ask(&client, &body).await;
        assert_eq!(cache_status(&again), "HIT", "{body}");
        assert_eq!(again.text(), first.text());
        assert_eq!(again.header("content-type"), first.header("content-type"));
        assert_eq!(again.header("x-gateway-attempt-count"), "0");
        assert_ne!(again.header("x-gateway-request-id"), first.header("x-gateway-request-id"));
    }
    assert_eq!(asked(&stack), 1);
    for (what, body) in [
        ("another text", chat("Hello!")),
        ("another parameter", json!({ "model": chat("")["model"], "messages": chat("Hello")["messages"], "seed": 1 })),
        ("another model", json!({ "model": "gpt-4o", "messages": chat("Hello")["messages"] })),
    ] {
        assert_eq!(cache_status(&ask(&client, &body).await), "MISS", "{what}");
    }
    // Rows of one millisecond have no order.
    let mut statuses: Vec<_> =
        rows(&stack, 6).await.iter().map(|row| text(row, "cache_status").unwrap().to_owned()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, ["HIT", "HIT", "MISS", "MISS", "MISS", "MISS"]);
    let hits = stack.metric(r#"gateway_cache_lookups_total{status="HIT"}"#).await;
    assert_eq!(hits, Some(2.0));
}

#[tokio::test]
async fn headers_say_what_the_config_does_not() {
    let stack = Stack::start().await;
    let plain = client(&stack, &target(&stack, json!({})));
    let body = chat("By header");
    assert_eq!(cache_status(&ask(&plain, &body).await), "DISABLED");
    let simple = plain.with("x-gateway-cache", "simple");
    assert_eq!(cache_status(&ask(&simple, &body).await), "MISS");
    let object = plain.with("x-gateway-cache", r#"{"mode":"simple","max_age":90}"#);
    assert_eq!(cache_status(&ask(&object, &body).await), "HIT", "an age is no part of the key");
    let refresh = object.with("x-gateway-cache-force-refresh", "true");
    let refreshed = ask(&refresh, &body).await;
    assert_eq!(cache_status(&refreshed), "REFRESH");
    let again = ask(&simple, &body).await;
    assert_eq!((cache_status(&again), again.text()), ("HIT".to_owned(), refreshed.text()), "it was replaced");
    let unforced = object.with("x-gateway-cache-force-refresh", "false");
    assert_eq!(cache_status(&ask(&unforced, &body).await), "HIT");
    let alone = plain.with("x-gateway-cache-force-refresh", "true");
    assert_eq!(cache_status(&ask(&alone, &body).await), "DISABLED");
    for (header, value) in [
        ("x-gateway-cache", "yes"),
        ("x-gateway-cache", "{"),
        ("x-gateway-cache", r#"{"mode":"fuzzy"}"#),
        ("x-gateway-cache", r#"{"mode":"simple","max_age":0}"#),
        ("x-gateway-cache-namespace", " "),
    ] {
        let refused = ask(&plain.with(header, value), &body).await;
        assert_eq!(refused.status, 400, "{header}: {value}");
        assert_eq!(refused.json()["error"]["param"], header, "{}", refused.text());
    }
}

#[tokio::test]
async fn who_wants_nothing_kept_gets_nothing_kept() {
    let stack = Stack::start().await;
    let untracked = cached(&stack).with("x-gateway-debug", "false");
    for _ in 0..2 {
        assert_eq!(cache_status(&ask(&untracked, &chat("Private")).await), "DISABLED");
    }
    assert_eq!(asked(&stack), 2);
}

#[tokio::test]
async fn other_families_are_kept_too_and_speech_to_the_byte() {
    let stack = Stack::start().await;
    let client = cached(&stack);
    for (path, body) in [
        ("/embeddings", json!({ "model": "text-embedding-3-small", "input": "a" })),
        ("/images/generations", json!({ "model": "gpt-image-1", "prompt": "a" })),
        ("/moderations", json!({ "model": "omni-moderation-latest", "input": "a" })),
        ("/audio/speech", json!({ "model": "tts-1", "voice": "alloy", "input": "a" })),
    ] {
        let first = client.post(path, &body).await;
        assert_eq!(cache_status(&first), "MISS", "{path}");
        let again = client.post(path, &body).await;
        assert_eq!(cache_status(&again), "HIT", "{path}");
        assert_eq!(again.text(), first.text(), "{path}");
        assert_eq!(again.header("content-type"), first.header("content-type"), "{path}");
    }
}

#[tokio::test]
async fn a_status_is_told_with_errors_too() {
    let stack = Stack::start().await;
    let client = cached(&stack);
    stack.mock.script(json!([{ "status": 500 }])).unwrap();
    let failed = ask(&client, &chat("Fails")).await;
    assert_eq!((failed.status.as_u16(), failed.header("x-gateway-cache-status")), (500, "MISS"));
    assert_eq!(cache_status(&ask(&client, &chat("Fails")).await), "MISS", "an error is not kept");
    let row = &rows(&stack, 2).await[0];
    assert_eq!((text(row, "cache_status"), text(row, "cache_type")), (Some("MISS"), Some("simple")));
}
