//! Providers that cannot be reached, cannot prove who they are, or do not answer in time.

use crate::raw::{Wire, credentials, credentials_for, post};
use bench::mock::{self, Authority, Mock};
use bench::ports::Reservation;
use harness::{Stack, chat};
use serde_json::json;

const LANES: [&str; 2] = ["/v1/chat/completions", "/v1/rerank"];

fn with_certificate(authority: &Authority, names: &[&str], is_expired: bool) -> Mock {
    let identity = if is_expired { authority.issue_expired(names) } else { authority.issue(names) };
    let tls = mock::Tls { port: 0, identity: identity.unwrap(), h2: true };
    Mock::start(mock::Options { tls: Some(tls), ..mock::Options::default() })
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_or_proven_is_503_in_both_lanes() {
    let (known, unknown) = (Authority::new().unwrap(), Authority::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, known.pem().unwrap()).unwrap();
    let stack = Stack::builder()
        .proxy("UPSTREAM_CA_FILE", file.to_str().unwrap())
        .proxy("UPSTREAM_CONNECT_TIMEOUT_MS", "2000")
        .start()
        .await;
    let closed = Reservation::any().unwrap();
    let good = with_certificate(&known, &["localhost"], false);
    let self_signed = with_certificate(&unknown, &["localhost"], false);
    let other_name = with_certificate(&known, &["other.test"], false);
    let expired = with_certificate(&known, &["localhost"], true);
    let tls_url = |mock: &Mock| mock.tls_url().unwrap();
    for (what, url, reached) in [
        ("everything in order", tls_url(&good), true),
        ("a closed port", format!("http://127.0.0.1:{}/v1", closed.port()), false),
        ("a closed port, with TLS", format!("https://localhost:{}/v1", closed.port()), false),
        ("an unknown authority", tls_url(&self_signed), false),
        ("a certificate of somebody else", tls_url(&other_name), false),
        ("an expired certificate", tls_url(&expired), false),
        (
            "a name where the certificate has none for the address",
            tls_url(&good).replace("localhost", "127.0.0.1"),
            false,
        ),
        ("no TLS behind https", format!("https://{}/v1", stack.mock.address()), false),
        ("TLS behind http", format!("http://{}/v1", good.tls_address().unwrap()), false),
        ("a name that nobody has", "http://nobody.localhost:1/v1".to_owned(), false),
    ] {
        for path in LANES {
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(post(path, &credentials_for(&stack, &url), &chat("x").to_string())).await;
            let answer = wire.answer().await.unwrap_or_else(|| panic!("{what} {path}: no answer"));
            if reached {
                assert_eq!(answer.status, 200, "{what} {path}: {answer:?}");
                continue;
            }
            let body = answer.json();
            // A server that speaks something else than HTTP was reached; its answer cannot be used.
            let expected = if what == "TLS behind http" {
                vec!["invalid_upstream_response", "upstream_unreachable"]
            } else {
                vec!["upstream_unreachable"]
            };
            let code = body["error"]["code"].as_str().unwrap_or_default();
            assert!(expected.contains(&code), "{what} {path}: {body}");
            assert_eq!(answer.status, if code == "upstream_unreachable" { 503 } else { 502 }, "{what} {path}");
            assert_ne!(answer.header("x-gateway-request-id"), "", "{what} {path}");
            assert!(!body.to_string().contains(&stack.home.workspace_key), "{what} {path}");
            keeps_its_word(&stack, &mut wire, answer.says_close(), &format!("{what} {path}")).await;
        }
    }
    for mock in [&self_signed, &other_name, &expired] {
        assert!(mock.requests().is_empty(), "{:?}", mock.requests());
    }
}

/// What the answer says about the connection is true (trap T3: Pingora closes it after a failed relay).
async fn keeps_its_word(stack: &Stack, wire: &mut Wire, says_close: bool, what: &str) {
    if says_close {
        assert!(wire.is_closed().await, "{what}");
        return;
    }
    wire.send(post(LANES[0], &credentials(stack), &chat("after").to_string())).await;
    assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200), "after {what}");
}

#[tokio::test]
async fn the_engine_lane_keeps_the_connection_after_an_unreachable_provider() {
    let stack = Stack::start().await;
    let closed = Reservation::any().unwrap();
    let mut wire = Wire::open(stack.proxy_port).await;
    let common = credentials_for(&stack, &format!("http://127.0.0.1:{}/v1", closed.port()));
    wire.send(post(LANES[0], &common, &chat("x").to_string())).await;
    let answer = wire.answer().await.expect("an answer");
    assert_eq!((answer.status, answer.says_close()), (503, false));
    keeps_its_word(&stack, &mut wire, false, "a closed port").await;
}

#[tokio::test]
async fn a_provider_that_does_not_answer_within_the_callers_time_is_408() {
    let stack = Stack::start().await;
    for path in LANES {
        stack.mock.reset();
        stack.mock.script(json!([{ "latency_ms": 3_600_000 }])).unwrap();
        let mut wire = Wire::open(stack.proxy_port).await;
        let common = format!("{}x-gateway-request-timeout: 200\r\n", credentials(&stack));
        wire.send(post(path, &common, &chat("x").to_string())).await;
        let answer = wire.answer().await.unwrap_or_else(|| panic!("{path}: no answer"));
        let body = answer.json();
        assert_eq!((answer.status, &body["error"]["type"]), (408, &json!("timeout_error")), "{path}: {body}");
        assert!(body["error"]["message"].as_str().is_some_and(|text| text.contains("200 ms")), "{path}: {body}");
        keeps_its_word(&stack, &mut wire, answer.says_close(), path).await;
        // The provider is not left working for nobody.
        let counts = stack.mock.until(|counts| counts.in_flight == 0);
        let counts = tokio::time::timeout(std::time::Duration::from_secs(30), counts).await.expect("it is cancelled");
        assert_eq!(counts.cancelled, 1, "{path}");
    }
}

/// No caller chose that time, so it is not a caller's timeout.
#[tokio::test]
async fn a_provider_that_does_not_answer_within_the_gateways_time_is_504() {
    let stack = Stack::builder().proxy("UPSTREAM_FIRST_BYTE_TIMEOUT_MS", "300").start().await;
    let mut stream = chat("x");
    stream["stream"] = json!(true);
    for (path, body, fault) in [
        (LANES[0], chat("x"), json!({ "latency_ms": 3_600_000 })),
        (LANES[1], chat("x"), json!({ "latency_ms": 3_600_000 })),
        (LANES[0], stream, json!({ "stall_after_bytes": 0 })),
    ] {
        stack.mock.script(json!([fault])).unwrap();
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(post(path, &credentials(&stack), &body.to_string())).await;
        let answer = wire.answer().await.unwrap_or_else(|| panic!("{path}: no answer"));
        let error = &answer.json()["error"];
        assert_eq!((answer.status, &error["code"]), (504, &json!("gateway_timeout")), "{path} {fault}: {error}");
    }
}
