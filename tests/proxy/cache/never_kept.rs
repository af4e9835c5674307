//! What is never kept: errors, answers that were cut, those that were made for one person, and what is too large.

use super::{ask, cache_status, cached};
use crate::journal::calls::rows;
use crate::routing::asked;
use futures::StreamExt as _;
use harness::{Stack, chat};
use http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn what_is_no_whole_and_common_answer_is_asked_for_again() {
    let stack = Stack::builder().proxy("CACHE_MAX_BYTES", "1048576").start().await;
    let client = cached(&stack);
    for (what, fault, is_stream) in [
        ("an error", json!({ "status": 429 }), false),
        ("an error in a 200", json!({ "error_in_200": true }), false),
        ("an error in a stream", json!({ "error_after_chunks": 2 }), true),
        ("a plain answer that was cut", json!({ "cut_at": 40 }), false),
        ("a stream that was cut", json!({ "cut_at": 700, "chunks": 40 }), true),
        ("a stream with an event that is no JSON", json!({ "bad_json": true }), true),
        ("another status", json!({ "status": 201 }), false),
        ("a cookie of one person", json!({ "headers": { "set-cookie": "session=1" } }), false),
        ("too large for so little memory", json!({ "reply_bytes": 400_000 }), false),
    ] {
        let mut body = chat(what);
        body["stream"] = json!(is_stream);
        stack.mock.script(json!([fault])).unwrap();
        let before = asked(&stack);
        let first = ask(&client, &body).await;
        assert_ne!(first.header("x-gateway-cache-status"), "HIT", "{what}");
        let again = ask(&client, &body).await;
        assert_eq!(cache_status(&again), "MISS", "{what}");
        assert_eq!(asked(&stack), before + 2, "{what}");
        assert_eq!(cache_status(&ask(&client, &body).await), "HIT", "{what}: the good one is kept");
    }
}

#[tokio::test]
async fn cookies_of_networks_are_nobodys() {
    let stack = Stack::start().await;
    let client = cached(&stack);
    stack.mock.script(json!([{ "headers": { "set-cookie": "__cf_bm=abc; path=/" } }])).unwrap();
    assert_eq!(cache_status(&ask(&client, &chat("Network")).await), "MISS");
    let again = ask(&client, &chat("Network")).await;
    assert_eq!((cache_status(&again).as_str(), again.header("set-cookie")), ("HIT", ""));
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_leaves_nothing_behind() {
    let stack = Stack::start().await;
    let client = cached(&stack);
    let mut body: Value = chat("Left");
    body["stream"] = json!(true);
    stack.mock.script(json!([{ "words": 50, "chunk_delay_ms": 50 }])).unwrap();
    let answer = client.request(Method::POST, "/chat/completions").json(&body).send().await.unwrap();
    let mut events = answer.bytes_stream();
    assert!(events.next().await.is_some());
    drop(events);
    // Its log is written when it is over.
    rows(&stack, 1).await;
    assert_eq!(cache_status(&ask(&client, &body).await), "MISS");
}

#[tokio::test]
async fn forms_and_edits_of_images_are_not_kept() {
    let stack = Stack::start().await;
    let client = cached(&stack);
    for _ in 0..2 {
        let edited =
            client.post("/images/edits", &json!({ "model": "gpt-image-1", "prompt": "a", "images": [] })).await;
        assert_eq!(edited.header("x-gateway-cache-status"), "DISABLED", "{}", edited.text());
    }
}
