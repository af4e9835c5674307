//! Requests that cannot be served: each gets its documented status and code as JSON, and the connection goes on
//! wherever it may.

mod unreachable;

use crate::raw::{Wire, credentials, find, post};
use harness::{Stack, chat};
use std::fmt::Write as _;

const ENGINE: &str = "/v1/chat/completions";

/// Sends a bad request and, on the same connection, a good one.
async fn assert_refused(stack: &Stack, what: &str, request: &[u8], status: u16, code: &str) {
    stack.mock.reset();
    let mut wire = Wire::open(stack.proxy_port).await;
    wire.send(request).await;
    let answer = wire.answer().await.unwrap_or_else(|| panic!("{what}: no answer"));
    let body = answer.json();
    assert_eq!((answer.status, body["error"]["code"].as_str()), (status, Some(code)), "{what}: {body}");
    assert!(body["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{what}: {body}");
    assert_eq!(answer.header("content-type"), "application/json", "{what}");
    assert_ne!(answer.header("x-gateway-request-id"), "", "{what}");
    assert!(stack.mock.requests().is_empty(), "{what}: {:?}", stack.mock.requests());
    assert!(!answer.says_close(), "{what}: the connection is given up");
    wire.send(post(ENGINE, &credentials(stack), &chat("after").to_string())).await;
    let next = wire.answer().await.unwrap_or_else(|| panic!("after {what}: the connection is gone"));
    assert_eq!(next.status, 200, "after {what}: {next:?}");
}

#[tokio::test]
async fn a_body_that_is_no_unambiguous_json_object_is_400() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    for (what, body) in [
        ("nothing", ""),
        ("no JSON", "Hello"),
        ("half an object", r#"{"model":"m","messages":["#),
        ("an array", r#"[{"model":"m"}]"#),
        ("a string", r#""model""#),
        ("null", "null"),
        ("two objects", "{}{}"),
        ("a field twice", r#"{"model":"a","messages":[],"model":"b"}"#),
        ("the same field in other letters of JSON", r#"{"model":"a","messages":[],"mod\u0065l":"b"}"#),
        ("a stream that is no boolean", r#"{"model":"m","stream":"true"}"#),
        ("a model that is no text", r#"{"model":{"a":1}}"#),
        ("a comma too many", r#"{"model":"m",}"#),
        ("single quotes", "{'model':'m'}"),
        ("a byte order mark", "\u{feff}{\"model\":\"m\"}"),
    ] {
        assert_refused(&stack, what, post(ENGINE, &common, body).as_bytes(), 400, "invalid_json").await;
    }
    let mut latin = post(ENGINE, &common, "{\"model\":\"M\"}").into_bytes();
    let at = find(&latin, b"\"M\"").expect("it is there") + 1;
    latin[at] = 0xe9;
    assert_refused(&stack, "no UTF-8", &latin, 400, "invalid_json").await;
}

#[tokio::test]
async fn a_head_that_cannot_be_served_is_refused_with_its_code() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    let body = chat("x").to_string();
    let of = |from: &str, to: &str| post(ENGINE, &common.replacen(from, to, 1), &body);
    let with = |more: &str| post(ENGINE, &format!("{common}{more}\r\n"), &body);
    let provider = "x-gateway-provider: openai\r\n";
    let large = format!("x-large: {}", "x".repeat(100_000));
    let many = (0..200).fold(String::new(), |mut many, number| {
        write!(many, "x-{number}: {}\r\n", "y".repeat(500)).unwrap();
        many
    });
    for (what, request, status, code) in [
        ("a large header", with(&large), 431, "headers_too_large"),
        ("many headers", with(many.trim_end()), 431, "headers_too_large"),
        ("a long target", post(&format!("/v1/x?{}", "q".repeat(65_400)), &common, &body), 431, "headers_too_large"),
        ("another method", format!("TRACE /v1/models HTTP/1.1\r\n{common}\r\n"), 405, "method_not_allowed"),
        ("a method nobody knows", format!("BREW {ENGINE} HTTP/1.1\r\n{common}\r\n"), 405, "method_not_allowed"),
        ("text", post(ENGINE, &common, &body).replace("application/json", "text/plain"), 400, "invalid_content_type"),
        (
            "a form",
            post(ENGINE, &common, &body).replace("application/json", "multipart/form-data; boundary=x"),
            400,
            "invalid_content_type",
        ),
        ("no provider", of(provider, ""), 400, "missing_provider"),
        ("an unknown provider", of(provider, "x-gateway-provider: nobody\r\n"), 400, "invalid_provider"),
        ("an empty provider", of(provider, "x-gateway-provider:\r\n"), 400, "invalid_provider"),
        ("two providers", with("x-gateway-provider: anthropic"), 400, "invalid_header"),
        ("two credentials", with("Authorization: Bearer other"), 400, "invalid_header"),
        ("metadata that is no JSON", with("x-gateway-metadata: {"), 400, "invalid_metadata"),
        ("metadata that nests", with("x-gateway-metadata: {\"a\":{}}"), 400, "invalid_metadata"),
        ("no time at all", with("x-gateway-request-timeout: 0"), 400, "invalid_header"),
        ("a time that is no number", with("x-gateway-request-timeout: soon"), 400, "invalid_header"),
        ("a config that is nowhere", with("x-gateway-config: pc-1"), 400, "AB01_INVALID_CONFIG"),
        ("a virtual key that is nowhere", with("x-gateway-virtual-key: v"), 400, "invalid_provider"),
        ("a provider that is nowhere", of(provider, "x-gateway-provider: @nobody\r\n"), 400, "invalid_provider"),
        ("no key", of("x-gateway-api-key", "x-nothing"), 401, "missing_api_key"),
    ] {
        assert_refused(&stack, what, request.as_bytes(), status, code).await;
    }
}

/// Even with loopback trusted, as `make run` does.
#[tokio::test]
async fn a_custom_host_that_could_reach_inside_is_400_in_both_lanes() {
    let stack = Stack::start().await;
    let mine = stack.mock.url();
    let common = credentials(&stack);
    let port = stack.mock.address().port();
    for host in [
        "http://10.0.0.1/v1".to_owned(),
        "http://192.168.1.1/v1".to_owned(),
        "http://169.254.169.254/latest".to_owned(),
        "http://[fd00:ec2::254]/latest".to_owned(),
        "http://metadata.google.internal/computeMetadata/v1".to_owned(),
        "http://kubernetes/api".to_owned(),
        "http://0.0.0.0/v1".to_owned(),
        format!("http://127.0.0.2:{port}/v1"),
        format!("http://2130706433:{port}/v1"),
        format!("http://0x7f.1:{port}/v1"),
        format!("http://[::ffff:127.0.0.1]:{port}/v1"),
        format!("http://127.0.0.1.nip.io:{port}/v1"),
        format!("http://user:pass@127.0.0.1:{port}/v1"),
        format!("http://127.0.0.1:{port}@evil.test/v1"),
        format!("http://127.0.0.1%2f:{port}/v1"),
        format!("http://127.0.0.1.:{port}/v1"),
        "http://127.0.0.1:99999/v1".to_owned(),
        "ftp://127.0.0.1/v1".to_owned(),
        "127.0.0.1/v1".to_owned(),
        format!("{mine}?x=1"),
        format!("{mine}#x"),
        "http://host.internal/v1".to_owned(),
        // A public one, without TLS.
        "http://api.example.com/v1".to_owned(),
        "http://8.8.8.8/v1".to_owned(),
        "https://".to_owned(),
    ] {
        for path in [ENGINE, "/v1/rerank"] {
            let request = post(path, &common.replacen(&mine, &host, 1), &chat("x").to_string());
            assert_refused(&stack, &format!("{host} to {path}"), request.as_bytes(), 400, "invalid_custom_host").await;
        }
    }
}

/// Beyond these bounds Pingora gives up by itself: 400 without a body of ours, and the connection closed (trap T11).
#[tokio::test]
async fn a_head_beyond_every_bound_is_refused_and_the_connection_closed() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    let many = (0..300).fold(String::new(), |mut many, number| {
        write!(many, "x-{number}: y\r\n").unwrap();
        many
    });
    for more in [many, format!("x-large: {}\r\n", "x".repeat(2 << 20))] {
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(format!("GET /v1/models HTTP/1.1\r\n{common}{more}\r\n")).await;
        // Bytes that nobody reads any more may turn the end into a reset, which can overtake the answer.
        if let Some(answer) = wire.answer_to("GET").await {
            assert_eq!(answer.status, 400);
        }
        assert!(wire.is_closed().await);
    }
    assert!(stack.mock.requests().is_empty());
}

/// `Connection` names headers to drop; these it may not.
#[tokio::test]
async fn a_connection_header_that_drops_what_routing_stands_on_is_400() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    for named in ["host", "x-forwarded-for", "\"quoted\""] {
        stack.mock.reset();
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(format!("GET /v1/files HTTP/1.1\r\n{common}Connection: {named}\r\n\r\n")).await;
        let answer = wire.answer_to("GET").await.unwrap_or_else(|| panic!("{named}: no answer"));
        assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (400, Some("invalid_header")), "{named}");
        assert!(wire.is_closed().await, "{named}");
        assert!(stack.mock.requests().is_empty(), "{named}");
    }
}
