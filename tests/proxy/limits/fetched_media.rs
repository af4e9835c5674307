//! Limits of providers and images that the gateway fetches for them: nothing is fetched for a request that may not be made, also
//! where a cache is asked in between, and what a kept answer did not use is given back.

use super::{patient, requests};
use crate::families::application;
use crate::upstream::RawUpstream;
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn response(kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn google_answer() -> Vec<u8> {
    let whole = json!({ "candidates": [{ "content": { "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" }] });
    response("application/json", whole.to_string().as_bytes())
}

fn base(upstream: &RawUpstream) -> String {
    upstream.url().strip_suffix("/v1").unwrap().to_owned()
}

fn looking_at(url: &str) -> Value {
    let parts =
        json!([{ "type": "text", "text": "What is it?" }, { "type": "image_url", "image_url": { "url": url } }]);
    json!({ "model": "gemini-2.0-flash", "messages": [{ "role": "user", "content": parts }] })
}

fn say(text: &str) -> Value {
    let mut body = chat(text);
    body["model"] = "gemini-2.0-flash".into();
    body
}

/// Google behind a provider of the workspace with this limit, which takes images as bytes alone.
async fn google(stack: &Stack, upstream: &RawUpstream, most: u64) -> Client {
    let body = json!({
        "name": "goog", "slug": "goog", "ai_provider_id": "google", "key": "k", "default_provider_slug": "goog",
        "workspace_id": stack.home.workspace_id.to_string(), "configurations": { "custom_host": base(upstream) },
    });
    let made = stack.administrator().post("/integrations", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let limits = json!({ "rate_limits": requests("rpd", most) });
    let limited = application(stack).put("/providers/goog", &limits).await;
    assert_eq!(limited.status, 200, "{}", limited.text());
    application(stack).with("x-gateway-provider", "@goog")
}

async fn answered(client: &Client, upstream: &RawUpstream, body: &Value) -> Answer {
    upstream.answer(google_answer());
    client.post("/chat/completions", body).await
}

#[tokio::test]
async fn nothing_is_fetched_for_a_request_that_its_provider_may_not_be_asked() {
    let stack = patient().await;
    let (provider, host) = (RawUpstream::start().await, RawUpstream::start().await);
    let client = google(&stack, &provider, 1).await;
    let is_used_up = async || answered(&client, &provider, &say("Hello")).await.status == 429;
    stack.until("the limit is used up", is_used_up).await;
    let body = looking_at(&format!("{}/a.png", base(&host)));
    for client in [client.with("x-gateway-cache", "simple"), client] {
        let refused = client.post("/chat/completions", &body).await;
        assert_eq!(refused.status, 429, "{}", refused.text());
    }
    assert!(host.take().is_empty());
}

#[tokio::test]
async fn a_kept_answer_gives_back_what_was_taken_for_the_images_of_its_request() {
    let stack = patient().await;
    let (provider, host) = (RawUpstream::start().await, RawUpstream::start().await);
    let client = google(&stack, &provider, 1000).await;
    let left = |answer: &Answer| answer.header("x-ratelimit-remaining-requests").parse::<u64>().ok();
    let is_known = async || left(&answered(&client, &provider, &say("Hello")).await).is_some();
    stack.until("the limit is known", is_known).await;
    let before = left(&answered(&client, &provider, &say("Hello")).await).unwrap();
    let keeping = client.with("x-gateway-cache", "simple");
    let body = looking_at(&format!("{}/a.png", base(&host)));
    for status in ["MISS", "HIT", "HIT"] {
        host.answer(response("image/png", PNG));
        let answer = answered(&keeping, &provider, &body).await;
        let told = (answer.status.as_u16(), answer.header("x-gateway-cache-status"));
        assert_eq!(told, (200, status), "{}", answer.text());
    }
    assert_eq!(left(&answered(&client, &provider, &say("Hello")).await), Some(before - 2));
}
