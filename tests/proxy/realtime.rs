//! Realtime sessions: named in every way a provider can be named, with a browser's key, and with the ends that both
//! sides chose.

mod limits;
mod past_the_gateway;
mod sessions;

use crate::families::{KEY, integrate};
use crate::raw::{RawAnswer, Wire};
use crate::relay::websocket::{CLOSE, HANDSHAKE, TEXT, masked, read_frame};
use harness::Stack;
use serde_json::json;

pub async fn handshake(stack: &Stack, query: &str, headers: &str) -> (Wire, RawAnswer) {
    let mut wire = Wire::open(stack.proxy_port).await;
    let host = "Host: gateway.test\r\n";
    wire.send(format!("GET /v1/realtime{query} HTTP/1.1\r\n{host}{headers}{HANDSHAKE}\r\n")).await;
    let answer = wire.answer_to("GET").await.expect("an answer");
    (wire, answer)
}

#[tokio::test]
async fn a_session_reaches_its_provider_however_that_is_named() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    let key = format!("x-gateway-api-key: {}\r\n", stack.home.workspace_key);
    let bearer = format!("Authorization: Bearer {}\r\n", stack.home.workspace_key);
    let config = json!({ "provider": "@prod", "override_params": { "model": "gpt-realtime" } });
    let config = format!("{key}x-gateway-config: {config}\r\n");
    let header = format!("{key}x-gateway-provider: @prod\r\nx-gateway-openai-beta: realtime=v1\r\n");
    let browser = format!("Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.{}\r\n", stack.home.workspace_key);
    for (what, query, headers, expected) in [
        ("model", "?model=%40prod%2Fgpt-realtime&x=%20", &bearer, "model=gpt-realtime&x=%20"),
        ("header", "?model=gpt-realtime", &header, "model=gpt-realtime"),
        ("config", "?model=anything", &config, "model=gpt-realtime"),
        ("browser", "?model=@prod/gpt-realtime", &browser, "model=gpt-realtime"),
    ] {
        stack.mock.reset();
        let (mut wire, answer) = handshake(&stack, query, headers).await;
        assert_eq!(answer.status, 101, "{what}: {answer:?}");
        assert_eq!(answer.header("x-gateway-provider"), "openai", "{what}");
        assert_eq!(answer.header("sec-websocket-protocol"), if what == "browser" { "realtime" } else { "" });
        let arrived = &stack.mock.requests()[0];
        assert_eq!((&*arrived.path, arrived.query.as_deref()), ("/v1/realtime", Some(expected)), "{what}");
        assert_eq!(arrived.header("authorization"), format!("Bearer {KEY}"), "{what}");
        assert_eq!(arrived.header("openai-beta"), if what == "header" { "realtime=v1" } else { "" }, "{what}");
        assert!(
            !format!("{:?}", arrived.headers).contains(&stack.home.workspace_key),
            "{what}: the key left the gateway"
        );
        let event = json!({ "type": "response.create", "é": 1.0 }).to_string();
        wire.send(masked(TEXT, event.as_bytes())).await;
        assert_eq!(read_frame(&mut wire).await, Some((TEXT, event.into_bytes())), "{what}");
        // A code of the application's own, with its reason.
        let end = [&4001u16.to_be_bytes()[..], "genug".as_bytes()].concat();
        wire.send(masked(CLOSE, &end)).await;
        assert_eq!(read_frame(&mut wire).await, Some((CLOSE, end)), "{what}");
        assert!(wire.is_closed().await, "{what}");
        assert_eq!(stack.mock.until(|counts| counts.in_flight == 0).await.served("realtime", "ok"), 1, "{what}");
    }
}

#[tokio::test]
async fn a_providers_own_key_among_the_subprotocols_becomes_its_credential() {
    let stack = Stack::start().await;
    let headers = format!(
        "x-gateway-api-key: {}\r\nx-gateway-provider: openai\r\nx-gateway-custom-host: {}\r\n\
         Sec-WebSocket-Protocol: openai-insecure-api-key.sk-own\r\n",
        stack.home.workspace_key,
        stack.mock.url()
    );
    let (_wire, answer) = handshake(&stack, "?model=m", &headers).await;
    assert_eq!(answer.status, 101, "{answer:?}");
    let arrived = &stack.mock.requests()[0];
    assert_eq!((arrived.header("authorization"), arrived.header("sec-websocket-protocol")), ("Bearer sk-own", ""));
}

#[tokio::test]
async fn what_goes_wrong_before_the_upgrade_is_an_ordinary_error() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    let key = format!("x-gateway-api-key: {}\r\n", stack.home.workspace_key);
    let foreign = "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.pk_unknown\r\n".to_owned();
    let adapted = format!("{key}x-gateway-provider: anthropic\r\nx-gateway-custom-host: {}\r\n", stack.mock.url());
    let nowhere = format!("{key}x-gateway-provider: openai\r\nx-gateway-custom-host: http://127.0.0.1:1/v1\r\n");
    for (what, query, headers, status, code) in [
        ("no provider", "?model=m", &key, 400, "missing_provider"),
        ("no such slug", "?model=@nobody/m", &key, 400, "invalid_provider"),
        ("unknown key", "?model=@prod/m", &foreign, 401, "invalid_api_key"),
        ("two models", "?model=@prod/m&model=@prod/other", &key, 400, "invalid_query"),
        ("two spellings of it", "?model=@prod/m&mod%65l=other", &key, 400, "invalid_query"),
        ("another wire format", "?model=m", &adapted, 400, "endpoint_not_supported"),
        ("nobody there", "?model=m", &nowhere, 503, "upstream_unreachable"),
    ] {
        let (_, answer) = handshake(&stack, query, headers).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (status, &json!(code)), "{what}: {answer:?}");
        assert_ne!(answer.header("x-gateway-request-id"), "", "{what}");
    }
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", "@prod");
    let arrived = stack.mock.requests().len();
    for path in ["/realtime/client_secrets", "/realtime/sessions", "/realtime/calls"] {
        let answer = client.post(path, &json!({})).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["code"]),
            (400, &json!("endpoint_not_supported")),
            "{path}"
        );
    }
    assert_eq!(stack.mock.requests().len(), arrived, "no credential is made from a stored one");
    stack.mock.script(json!([{ "status": 403 }])).unwrap();
    let (_, refused) = handshake(&stack, "?model=@prod/m", &key).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(refused.json()["error"]["message"], "mock error, as asked", "the provider's own words");
}
