//! Images that a guardrail puts into a request: fetched under the rules for addresses that callers name, and within bounds.

use crate::routing::{asked, client, target};
use crate::upstream::RawUpstream;
use harness::Stack;
use serde_json::{Value, json};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const DATA: &str = "data:image/png;base64,iVBORw0KGgpyZXN0";

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut whole = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    whole.extend_from_slice(body);
    whole
}

fn png() -> Vec<u8> {
    answer("200 OK\r\nContent-Type: image/png", PNG)
}

fn place(host: &RawUpstream, path: &str) -> String {
    format!("{}{path}", host.url().strip_suffix("/v1").unwrap())
}

fn looking_at(url: &str) -> Value {
    let parts =
        json!([{ "type": "text", "text": "What is it?" }, { "type": "image_url", "image_url": { "url": url } }]);
    json!({ "model": "m", "messages": [{ "role": "user", "content": parts }] })
}

fn config(stack: &Stack, parameters: Value) -> Value {
    target(stack, json!({ "input_guardrails": [{ "default.inlineImageUrls": parameters, "deny": true }] }))
}

fn sent_image(stack: &Stack) -> Value {
    let request = stack.mock.requests().pop().expect("the provider was asked");
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    body["messages"][0]["content"][1]["image_url"]["url"].clone()
}

#[tokio::test]
async fn an_image_by_address_reaches_the_provider_as_part_of_the_request() {
    let stack = Stack::start().await;
    let host = RawUpstream::start().await;
    let client = client(&stack, &config(&stack, json!({}))).with("authorization", "Bearer sk-own");
    host.answer(answer("302 Found\r\nLocation: /b.png", b""));
    host.answer(png());
    let got = client.post("/chat/completions", &looking_at(&place(&host, "/a.png"))).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert_eq!(sent_image(&stack), DATA);
    let check = &got.json()["hook_results"]["before_request_hooks"][0];
    assert_eq!((&check["transformed"], &check["checks"][0]["data"]["images"]), (&json!(true), &json!(1)), "{check}");
    let fetched = String::from_utf8_lossy(&host.take().concat()).to_ascii_lowercase();
    assert!(fetched.starts_with("get /a.png http/1.1\r\n"), "{fetched}");
    assert!(!fetched.contains("sk-own") && !fetched.contains("x-gateway"), "{fetched}");
    let elsewhere = crate::routing::client(&stack, &config(&stack, json!({ "providers": ["anthropic"] })));
    let url = place(&host, "/a.png");
    assert_eq!(elsewhere.post("/chat/completions", &looking_at(&url)).await.status, 200);
    assert_eq!(sent_image(&stack), json!(url), "another provider's requests are left as they are");
    assert!(host.take().is_empty());
}

#[tokio::test]
async fn one_that_cannot_be_had_is_an_error_and_the_request_stays_as_it_was() {
    let stack = Stack::start().await;
    let host = RawUpstream::start().await;
    let url = place(&host, "/a.png?sig=s3cret");
    for (response, says) in [
        (answer("200 OK\r\nContent-Type: text/html", b"<html>"), "no image"),
        (answer("200 OK\r\nContent-Type: image/png", &[0; 2000]), "longer"),
        (answer("404 Not Found", b""), "404"),
        (answer("302 Found\r\nLocation: https://169.254.169.254/latest/meta-data", b""), "metadata"),
        (answer("302 Found\r\nLocation: https://10.0.0.1/", b""), "not public"),
    ] {
        for (fails, status) in [(false, 200), (true, 446)] {
            host.answer(response.clone());
            let before = asked(&stack);
            let config = config(&stack, json!({ "maxSizeBytes": 1000, "failOnError": fails }));
            let got = client(&stack, &config).post("/chat/completions", &looking_at(&url)).await;
            assert_eq!(
                (got.status.as_u16(), asked(&stack) - before),
                (status, u64::from(!fails)),
                "{says}: {}",
                got.text()
            );
            let check = &got.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
            assert_eq!(check["error"]["name"], "ImageNotFetched", "{check}");
            // A denial does not say what was found.
            assert!(fails || check["error"]["message"].as_str().unwrap().contains(says), "{says}: {check}");
            assert!(!check.to_string().contains("s3cret"), "{check}");
        }
        assert_eq!(sent_image(&stack), json!(url));
    }
    host.take();
    for address in ["https://10.1.2.3/a.png", "https://169.254.169.254/a.png", "http://localhost:1/a.png"] {
        let config = config(&stack, json!({ "failOnError": true }));
        let got = client(&stack, &config).post("/chat/completions", &looking_at(address)).await;
        assert_eq!(got.status, 446, "{address}: {}", got.text());
    }
    assert!(host.take().is_empty());
}
