//! Websockets elsewhere than at a realtime session: nobody can read what is said on them, so they are refused wherever a
//! stored credential would pay for it or somebody counts it.

use super::websocket::HANDSHAKE;
use crate::families::integrate;
use crate::limits::{limited_key, patient};
use crate::raw::{Wire, credentials_for};
use crate::upstream::RawUpstream;
use serde_json::json;

const SWITCHED: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                        Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

#[tokio::test]
async fn a_websocket_that_nobody_can_read_is_refused_where_somebody_pays_or_counts() {
    let stack = patient().await;
    integrate(&stack, "prod", "openai").await;
    let upstream = RawUpstream::start().await;
    let key = format!("Host: gateway.test\r\nx-gateway-api-key: {}\r\n", stack.home.workspace_key);
    let own = credentials_for(&stack, &upstream.url());
    let mut limited = Vec::new();
    for limits in [
        json!({ "usage_limits": { "credit_limit": 1 } }),
        json!({ "usage_limits": { "credit_limit": 1, "strict": true } }),
        json!({ "usage_limits": { "type": "tokens", "credit_limit": 1000 } }),
        json!({ "rate_limits": [{ "type": "tokens", "unit": "rpm", "value": 1000 }] }),
        json!({ "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 1000 }] }),
    ] {
        let (secret, _) = limited_key(&stack, limits).await;
        limited.push(own.replace(&stack.home.workspace_key, &secret));
    }
    let stored = format!("{key}x-gateway-provider: @prod\r\n");
    for (what, path, headers, status) in [
        ("a key alone", "/v1/responses", &key, 426),
        ("a stored credential", "/v1/responses", &stored, 426),
        ("a path of no family", "/v1/proxy/anything", &stored, 426),
        ("a vendor's own path", "/v1beta/models/m:bidiGenerateContent", &stored, 426),
        ("a session", "/v1/realtime?model=gpt-realtime", &stored, 101),
        ("a budget of money", "/v1/responses", &limited[0], 426),
        ("a strict budget", "/v1/responses", &limited[1], 426),
        ("a budget of tokens", "/v1/responses", &limited[2], 426),
        ("a rate of tokens", "/v1/responses", &limited[3], 426),
        ("a rate of requests", "/v1/responses", &limited[4], 101),
        ("one's own credential", "/v1/responses", &own, 101),
        ("one's own credential at a provider's own path", "/v1/proxy/collections/main/events", &own, 101),
    ] {
        let is_passed = status == 101 && !path.contains("realtime");
        if is_passed {
            upstream.answer(SWITCHED);
        }
        stack.mock.reset();
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(format!("GET {path} HTTP/1.1\r\n{headers}{HANDSHAKE}\r\n")).await;
        let answer = wire.answer_to("GET").await.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert_eq!(upstream.take().len(), usize::from(is_passed), "{what}");
        if status == 426 {
            assert!(answer.text().contains("upgrade_refused"), "{what}: {}", answer.text());
            assert_eq!(answer.header("upgrade"), "HTTP/1.1", "{what}");
            assert!(stack.mock.requests().is_empty(), "{what}: the provider was asked");
        }
    }
}

#[tokio::test]
async fn no_other_protocol_is_passed_on() {
    let stack = patient().await;
    let upstream = RawUpstream::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    let own = credentials_for(&stack, &upstream.url());
    wire.send(format!("GET /v1/x HTTP/1.1\r\n{own}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n")).await;
    assert_eq!(wire.answer_to("GET").await.map(|answer| answer.status), Some(200));
    assert!(!upstream.only().to_ascii_lowercase().contains("\r\nupgrade:"));
}
