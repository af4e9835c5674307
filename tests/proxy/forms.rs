//! Uploads as forms: what their fields decide, what a config changes in them, and what happens to those too large to
//! be held.

use crate::families::{application, integrate};
use harness::client::whole;
use harness::{Answer, Client, Stack};
use http::Method;
use serde_json::json;

const TYPE: &str = "multipart/form-data; boundary=\"x Yz\"";
const MAX: usize = 25 << 20;

fn form(fields: &[(&str, &str)], file: &[u8]) -> Vec<u8> {
    let mut body = b"--x Yz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n".to_vec();
    body.extend_from_slice(file);
    for (name, value) in fields {
        let part = format!("\r\n--x Yz\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}");
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(b"\r\n--x Yz--\r\n");
    body
}

async fn upload(client: &Client, body: Vec<u8>) -> Answer {
    whole(client.request(Method::POST, "/audio/transcriptions").header("content-type", TYPE).body(body)).await
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_config_steers_a_form_by_its_fields_and_changes_them() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    let config = json!({
        "strategy": { "mode": "conditional", "default": "other",
            "conditions": [{ "query": { "params.language": { "$eq": "de" } }, "then": "german" }] },
        "targets": [
            { "name": "german", "provider": "@prod",
              "override_params": { "model": "whisper-de", "temperature": 0 }, "drop_params": ["prompt"] },
            { "name": "other", "provider": "@prod", "default_params": { "language": "en", "model": "unused" } },
        ],
    });
    let client = application(&stack).with("x-gateway-config", config.to_string());
    let file: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    for (sent, expected, option) in [
        (
            vec![("model", "whisper-1"), ("prompt", "drop me"), ("language", "de")],
            vec![("model", "whisper-de"), ("language", "de"), ("temperature", "0")],
            "config.targets[0]",
        ),
        (vec![("model", "@prod/m")], vec![("model", "m"), ("language", "en")], "config.targets[1]"),
    ] {
        let answer = upload(&client, form(&sent, &file)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), option);
        let arrived = stack.mock.requests().pop().unwrap();
        assert!(arrived.body == form(&expected, &file), "{}", String::from_utf8_lossy(&arrived.body[100_000..]));
        assert_eq!(arrived.header("content-type"), TYPE);
    }
}

#[tokio::test]
async fn a_form_is_sent_again_whole_when_the_config_says_so() {
    let stack = Stack::start().await;
    let client = stack.client().with("x-gateway-config", json!({ "retry": { "attempts": 2 } }).to_string());
    stack.mock.script(json!([{ "status": 500 }, { "status": 429, "retry_after_ms": 1 }])).unwrap();
    let body = form(&[("model", "whisper-1"), ("stream", "true")], b"sound");
    let answer = upload(&client, body.clone()).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-gateway-retry-attempt-count")), (200, "2"));
    assert!(answer.text().contains("transcript.text.done"), "{}", answer.text());
    let arrived = stack.mock.requests();
    assert!(arrived.len() == 3 && arrived.iter().all(|request| request.body == body));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_too_large_to_hold_goes_to_the_provider_its_headers_name() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    let body = form(&[("model", "whisper-1")], &vec![7; MAX]);
    let hash = bench::mock::pattern::hex(&openssl::sha::sha256(&body));
    for client in [stack.client(), application(&stack).with("x-gateway-provider", "@prod")] {
        let answer = upload(&client, body.clone()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(stack.mock.requests().pop().unwrap().body_sha256, hash);
    }
    let asked = stack.mock.requests().len();
    let nameless = form(&[("model", "@prod/whisper-1")], &vec![7; MAX]);
    assert_eq!(code(&upload(&application(&stack), nameless).await), (400, "missing_provider".into()));
    assert_eq!(stack.mock.requests().len(), asked);
    stack.until_metric("gateway_request_body_bytes", 0.0).await;
}

#[tokio::test]
async fn a_form_that_is_none_is_told_so_and_other_kinds_pass() {
    let stack = Stack::start().await;
    let mut cut = form(&[("model", "whisper-1")], b"sound");
    cut.truncate(cut.len() - 12);
    assert_eq!(code(&upload(&stack.client(), cut).await), (400, "invalid_form".into()));
    let twice = form(&[("model", "a"), ("model", "b")], b"");
    assert_eq!(code(&upload(&stack.client(), twice).await), (400, "invalid_json".into()));
    assert_eq!(
        code(&upload(&application(&stack), form(&[("model", "m")], b"")).await),
        (400, "missing_provider".into())
    );
    assert_eq!(
        code(&upload(&application(&stack), form(&[("model", "@no/m")], b"")).await),
        (400, "invalid_provider".into())
    );
    assert!(stack.mock.requests().is_empty());
    let request = stack.client().request(Method::POST, "/audio/transcriptions").header("content-type", "audio/wav");
    assert_eq!(whole(request.body("RIFF")).await.status, 200);
    assert_eq!(stack.mock.requests().pop().unwrap().header("content-type"), "audio/wav");
}
