//! A stored prompt that is published anew between two tries of a target: what is sent then was never judged, so hooks look again.

use crate::engine::lab::{ask, services};
use crate::net::dial::lab::{End, Server};
use crate::snapshot::Snapshot;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use uuid::Uuid;

/// Publishes a version that says this.
fn publish(snapshot: &Snapshot, number: u32, text: &str) {
    let id = |n: u128| Uuid::from_u128(n);
    let (organisation, version) = (id(9), id(100 + u128::from(number)));
    let prompt = json!({
        "id": id(50), "organisation_id": organisation, "workspace_id": id(1), "slug": "pp-one", "status": "active",
        "version_id": version, "latest_version_id": version, "latest_version": number, "revision": number.to_string(),
    });
    let version = json!({
        "id": version, "organisation_id": organisation, "prompt_id": id(50), "number": number,
        "template": json!([{ "role": "user", "content": text }]).to_string(), "parameters": {}, "model": "m",
        "virtual_key": "main", "is_raw": false,
    });
    snapshot.publish(serde_json::from_value(prompt).unwrap(), serde_json::from_value(version).unwrap());
}

/// The status that the client gets, and how often the provider was asked, where `second` is published during the first try.
async fn retried(first: &str, second: &str) -> (u16, usize, Value) {
    let services = services(None, |_| ());
    publish(&services.snapshot, 1, first);
    let (snapshot, second) = (services.snapshot.clone(), second.to_owned());
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let server = Server::start(move |stream, _| {
        let (snapshot, count, second) = (snapshot.clone(), count.clone(), second.clone());
        async move {
            let mut end = End::new(stream);
            if end.request().await.is_none() {
                return;
            }
            let (status, body) = match count.fetch_add(1, SeqCst) {
                0 => {
                    publish(&snapshot, 2, &second);
                    (500, "{}")
                }
                _ => (200, r#"{"choices":[{"index":0,"message":{"content":"fine"},"finish_reason":"stop"}]}"#),
            };
            let head = format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close");
            end.say(&format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
        }
    })
    .await;
    let config = json!({
        "provider": "openai", "api_key": "k", "custom_host": format!("http://{}/v1", server.address), "prompt_id": "pp-one",
        "retry": { "attempts": 1, "on_status_codes": [500] },
        "input_guardrails": [{ "default.contains": { "words": ["bad"], "operator": "none" }, "deny": true }],
    });
    let body = json!({ "model": "m", "messages": [] });
    let client = ask(&services, "/v1/chat/completions", &body, &config).await;
    (client.status(), asked.load(SeqCst), serde_json::from_str(&client.text()).unwrap())
}

#[tokio::test]
async fn a_prompt_that_changed_before_a_retry_is_judged_again() {
    let (status, asked, body) = retried("good", "bad").await;
    assert_eq!((status, asked), (446, 1), "{body}");
    let (status, asked, body) = retried("good", "also good").await;
    assert_eq!((status, asked), (200, 2), "{body}");
    assert_eq!(body["hook_results"]["before_request_hooks"].as_array().map(Vec::len), Some(1), "{body}");
}
