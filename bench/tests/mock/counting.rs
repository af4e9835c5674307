//! What the mock remembers.

use serde_json::{Value, json};

use crate::{Raw, chat, mock, post, streamed, within};

#[tokio::test]
async fn every_ending_is_counted_as_what_it_was() {
    let mock = mock();
    post(&mock, "/chat/completions", &chat(json!({}))).await.text().await.unwrap();
    post(&mock, "/chat/completions", &chat(json!({ "status": 500 }))).await.text().await.unwrap();
    assert!(post(&mock, "/chat/completions", &chat(json!({ "cut_at": 5 }))).await.text().await.is_err());
    post(&mock, "/chat/completions", &streamed(chat(json!({})))).await.text().await.unwrap();
    let counts = within(mock.until(|counts| counts.in_flight == 0)).await;
    assert_eq!(json!(counts.served), json!({ "chat": { "ok": 2, "error": 1, "cut": 1 } }));
    mock.reset();
    assert_eq!(mock.counts().total(), 0);
    assert!(mock.requests().is_empty());
}

#[tokio::test]
async fn a_client_that_leaves_mid_stream_is_counted_as_cancelled() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.ask(&streamed(chat(json!({ "stall_after_bytes": 300 })))).await;
    assert!(raw.sees("data: ").await);
    assert_eq!(mock.counts().cancelled, 0);
    drop(raw);
    let counts = within(mock.until(|counts| counts.cancelled == 1)).await;
    assert_eq!(counts.in_flight, 0);
    assert!(counts.last_cancelled_us > 0);
    within(mock.until(|counts| counts.connections_open == 0)).await;
}

#[tokio::test]
async fn a_client_that_leaves_before_the_answer_is_counted_as_cancelled() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.ask(&chat(json!({ "latency_ms": 3_600_000 }))).await;
    within(mock.until(|counts| counts.in_flight == 1)).await;
    drop(raw);
    within(mock.until(|counts| counts.cancelled == 1)).await;
}

#[tokio::test]
async fn queued_faults_serve_the_next_requests_in_order() {
    let mock = mock();
    mock.script(json!([{ "status": 500 }, {}, { "status": 429, "times": 2 }])).unwrap();
    for expected in [500, 200, 429, 429, 200] {
        assert_eq!(post(&mock, "/chat/completions", &chat(json!({}))).await.status(), expected);
    }
}

#[tokio::test]
async fn a_fault_in_the_header_leaves_the_queue_alone() {
    let mock = mock();
    mock.script(json!([{ "status": 500 }])).unwrap();
    let request = reqwest::Client::new().post(mock.url() + "/x").bearer_auth("k").header("x-mock-fault", "status=418");
    assert_eq!(request.send().await.unwrap().status(), 418);
    assert_eq!(post(&mock, "/x", &json!({})).await.status(), 500);
}

#[tokio::test]
async fn the_control_endpoints_say_the_same_over_http() {
    let mock = mock();
    let client = reqwest::Client::new();
    let control = |path: &str| format!("{}/__mock/{path}", mock.origin());
    client.post(control("script")).json(&json!([{ "status": 503 }])).send().await.unwrap();
    assert_eq!(post(&mock, "/one", &json!({})).await.status(), 503);
    post(&mock, "/two", &json!({ "a": 1 })).await;
    let seen: Value = client.get(control("requests?limit=1")).send().await.unwrap().json().await.unwrap();
    assert_eq!(seen.as_array().unwrap().len(), 1);
    assert_eq!(seen[0]["path"], "/v1/two");
    assert_eq!(seen[0]["body_bytes"], 7);
    let counts: Value = client.get(control("counts")).send().await.unwrap().json().await.unwrap();
    assert_eq!(counts["served"]["echo"], json!({ "ok": 1, "error": 1 }));
    assert_eq!(client.post(control("script")).body("[{\"x\":1}]").send().await.unwrap().status(), 400);
    client.post(control("reset")).send().await.unwrap();
    let seen: Value = client.get(control("requests")).send().await.unwrap().json().await.unwrap();
    assert_eq!(seen, json!([]));
}

#[tokio::test]
async fn requests_are_remembered_byte_for_byte() {
    let mock = mock();
    let body = chat(json!({}));
    post(&mock, "/chat/completions?x=%20y", &body).await;
    let seen = &mock.requests()[0];
    assert_eq!(seen.body, body.to_string());
    assert_eq!(seen.query.as_deref(), Some("x=%20y"));
    assert_eq!(seen.header("authorization"), "Bearer sk-test");
    assert_eq!(seen.connection, 1);
}
