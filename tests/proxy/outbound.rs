//! What leaves the gateway towards a provider: never our own headers, never the service key, never a cookie; the
//! provider's credential in the provider's own form.

use bench::mock::Recorded;
use harness::{Client, Stack, chat};
use http::Method;
use serde_json::json;

const LANES: [&str; 2] = ["/chat/completions", "/rerank"];

fn sent_only(arrived: &Recorded, allowed: &[&str]) {
    let names: Vec<&str> = arrived.headers.keys().map(|name| name.as_str()).collect();
    assert!(names.iter().all(|name| allowed.contains(name)), "{names:?}");
}

async fn only_request(stack: &Stack, client: &Client, path: &str) -> Recorded {
    stack.mock.reset();
    let answer = client.post(path, &chat("Hello")).await;
    let arrived = stack.mock.requests();
    assert_eq!(arrived.len(), 1, "{path}: {} {}", answer.status, answer.text());
    arrived.into_iter().next().unwrap()
}

#[tokio::test]
async fn nothing_that_is_ours_reaches_the_provider() {
    let stack = Stack::builder().proxy("HEADER_PREFIX_ALIASES", "x-acme-").start().await;
    let key = &stack.home.workspace_key;
    let client = stack
        .client()
        .with("x-acme-api-key", key)
        .with("x-gateway-metadata", r#"{"team":"a"}"#)
        .with("x-gateway-trace-id", "t")
        .with("x-gateway-default-input-guardrails", "[]")
        .with("x-acme-gateway-exception", "true")
        .with("x-gateway-anything-new", "1")
        .with("cookie", "session=1")
        .with("cookie", "other=2")
        .with("x-custom", "kept on the relay lane");
    for path in LANES {
        let arrived = only_request(&stack, &client, path).await;
        for (name, value) in &arrived.headers {
            let name = name.as_str();
            assert!(
                !name.starts_with("x-gateway-") && !name.starts_with("x-acme-") && name != "cookie",
                "{path}: {name}"
            );
            assert!(!value.as_bytes().windows(key.len()).any(|window| window == key.as_bytes()), "{path}: {name}");
        }
        assert_eq!(arrived.header("authorization"), "Bearer sk-mock", "{path}");
        assert_eq!(arrived.header("host"), stack.mock.address().to_string(), "{path}");
        assert_eq!(arrived.query, None, "{path}");
    }
    // The engine sends its own few headers and nothing else of the client's.
    let arrived = only_request(&stack, &client, LANES[0]).await;
    sent_only(&arrived, &["host", "content-type", "content-length", "accept-encoding", "authorization"]);
    assert_eq!(arrived.header("accept-encoding"), "identity");
    let arrived = only_request(&stack, &client, LANES[1]).await;
    assert_eq!(arrived.header("x-custom"), "kept on the relay lane");
}

/// Clients put the service key in odd places; wherever it is, it stays here.
#[tokio::test]
async fn the_service_key_never_leaves_whatever_header_carries_it() {
    let stack = Stack::start().await;
    let key = &stack.home.workspace_key;
    let base = stack.anonymous().with("x-gateway-custom-host", stack.mock.url());
    for (what, client) in [
        ("x-api-key alone", base.with("x-gateway-provider", "openai").with("x-api-key", key)),
        (
            "its own header and Authorization",
            base.with("x-gateway-provider", "openai").with_key(key).with("authorization", format!("Bearer {key}")),
        ),
        (
            "its own header and a bare Authorization",
            base.with("x-gateway-provider", "openai").with_key(key).with("authorization", key),
        ),
        (
            "its own header and x-api-key",
            base.with("x-gateway-provider", "openai").with_key(key).with("x-api-key", key),
        ),
        ("x-api-key of Anthropic's SDK", base.with("x-gateway-provider", "anthropic").with("x-api-key", key)),
        (
            "forwarding asked for",
            base.with("x-gateway-provider", "openai")
                .with("x-api-key", key)
                .with("x-gateway-forward-headers", "x-api-key, authorization"),
        ),
    ] {
        // Anthropic's chats need translating; its own endpoint goes as it is.
        let lanes = if what.contains("Anthropic") { ["/messages", "/rerank"] } else { LANES };
        for path in lanes {
            let arrived = only_request(&stack, &client, path).await;
            for (name, value) in &arrived.headers {
                assert!(
                    !value.as_bytes().windows(key.len()).any(|part| part == key.as_bytes()),
                    "{what} {path}: {name}"
                );
            }
        }
    }
}

#[tokio::test]
async fn the_credential_is_sent_in_the_providers_own_form() {
    let stack = Stack::start().await;
    let base = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-custom-host", stack.mock.url());
    for (provider, sent, authorization, x_api_key) in [
        ("openai", vec![("authorization", "Bearer sk-1")], "Bearer sk-1", ""),
        ("openai", vec![("authorization", "bearer sk-1")], "bearer sk-1", ""),
        ("openai", vec![("x-api-key", "sk-1")], "Bearer sk-1", ""),
        ("openai", vec![("authorization", "Bearer sk-1"), ("x-api-key", "sk-2")], "Bearer sk-1", ""),
        ("anthropic", vec![("authorization", "Bearer sk-1")], "", "sk-1"),
        ("anthropic", vec![("x-api-key", "sk-1")], "", "sk-1"),
    ] {
        let client = sent
            .iter()
            .fold(base.with("x-gateway-provider", provider), |client, (name, value)| client.with(name, *value));
        let first = if provider == "anthropic" { "/messages" } else { "/chat/completions" };
        for path in [first, "/rerank", "/elsewhere"] {
            let arrived = only_request(&stack, &client, path).await;
            let found = (arrived.header("authorization"), arrived.header("x-api-key"));
            assert_eq!(found, (authorization, x_api_key), "{provider} {sent:?} {path}");
            let version = if provider == "anthropic" { "2023-06-01" } else { "" };
            assert_eq!(arrived.header("anthropic-version"), version, "{provider} {path}");
        }
    }
}

#[tokio::test]
async fn headers_are_forwarded_once_when_asked_for_and_never_the_forbidden_ones() {
    let stack = Stack::start().await;
    let client = stack.client().with("x-one", "1").with("x-two", "2").with("user-agent", "me").with("cookie", "c=1");
    for (list, expected) in [
        ("x-one, X-Two", vec![("x-one", "1"), ("x-two", "2"), ("user-agent", "")]),
        (r#"["x-one","user-agent"]"#, vec![("x-one", "1"), ("x-two", ""), ("user-agent", "me")]),
        ("content-type", vec![("content-type", "application/json")]),
        ("x-missing", vec![("x-missing", "")]),
    ] {
        let arrived = only_request(&stack, &client.with("x-gateway-forward-headers", list), LANES[0]).await;
        for (name, value) in expected {
            assert_eq!(arrived.header(name), value, "{list}: {name}");
            assert!(arrived.headers.get_all(name).iter().count() <= 1, "{list}: {name}");
        }
    }
    for list in [
        "cookie",
        "x-gateway-api-key",
        "x-gateway-forward-headers",
        "host",
        "Metadata-Flavor",
        "content_length",
        "accept-encoding",
    ] {
        stack.mock.reset();
        let answer = client.with("x-gateway-forward-headers", list).post(LANES[0], &chat("Hello")).await;
        let code = answer.json()["error"]["code"].clone();
        assert_eq!((answer.status.as_u16(), code), (400, json!("invalid_forward_headers")), "{list}");
        assert!(stack.mock.requests().is_empty(), "{list}");
    }
}

/// Pass-through keeps what a client says to its provider.
#[tokio::test]
async fn the_relay_lane_passes_the_clients_other_headers_on() {
    let stack = Stack::start().await;
    let client = stack
        .client()
        .with("accept", "text/html;q=0.1, */*")
        .with("accept-encoding", "gzip, br")
        .with("user-agent", "mine/1.0")
        .with("x-many", "1")
        .with("x-many", "2")
        .with("openai-beta", "assistants=v2")
        .with("idempotency-key", "once")
        .with("range", "bytes=0-1");
    stack.mock.reset();
    client.request(Method::GET, "/files/f/content").send().await.unwrap();
    let arrived = &stack.mock.requests()[0];
    for (name, value) in [
        ("accept", "text/html;q=0.1, */*"),
        ("accept-encoding", "gzip, br"),
        ("user-agent", "mine/1.0"),
        ("openai-beta", "assistants=v2"),
        ("idempotency-key", "once"),
        ("range", "bytes=0-1"),
    ] {
        assert_eq!(arrived.header(name), value, "{name}");
    }
    let many: Vec<_> = arrived.headers.get_all("x-many").iter().collect();
    assert_eq!(many, ["1", "2"]);
}
