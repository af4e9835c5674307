//! Websockets through the relay lane: a handshake, then bytes both ways until both sides have said goodbye.

use crate::raw::{Wire, credentials};
use harness::{Stack, chat};

pub const HANDSHAKE: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
pub const TEXT: u8 = 0x81;
const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;

/// A client's frame: masked, as clients must.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        length @ 0..126 => frame.push(0x80 | length as u8),
        length @ 126..65_536 => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(0x80 | 127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    let mask = [7, 99, 200, 31];
    frame.extend_from_slice(&mask);
    frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    frame
}

pub async fn read_frame(wire: &mut Wire) -> Option<(u8, Vec<u8>)> {
    let head = wire.exactly(2).await?;
    let length = match head[1] {
        126 => u64::from(u16::from_be_bytes(wire.exactly(2).await?.try_into().unwrap())),
        127 => u64::from_be_bytes(wire.exactly(8).await?.try_into().unwrap()),
        short => u64::from(short),
    };
    Some((head[0], wire.exactly(length as usize).await?))
}

#[tokio::test]
async fn messages_pass_both_ways_until_both_sides_have_closed() {
    let stack = Stack::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    wire.send(format!("GET /v1/realtime?model=m HTTP/1.1\r\n{}{HANDSHAKE}\r\n", credentials(&stack))).await;
    let answer = wire.answer_to("GET").await.expect("an answer");
    assert_eq!((answer.status, answer.header("sec-websocket-accept")), (101, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(answer.header("upgrade").to_ascii_lowercase(), "websocket");
    assert_ne!(answer.header("x-gateway-request-id"), "");
    for (sent, payload, expected) in [
        (TEXT, "Grüße".as_bytes().to_vec(), TEXT),
        (BINARY, vec![0; 0], BINARY),
        (BINARY, (0..=255).cycle().take(70_000).collect(), BINARY),
        (PING, b"are you there".to_vec(), PONG),
    ] {
        wire.send(masked(sent, &payload)).await;
        assert!(read_frame(&mut wire).await == Some((expected, payload)), "{sent:x}");
    }
    // Many at once, and one in two pieces.
    let (one, two) = (masked(TEXT, b"one"), masked(TEXT, b"two"));
    wire.send([&one[..], &two[..3]].concat()).await;
    assert_eq!(read_frame(&mut wire).await, Some((TEXT, b"one".to_vec())));
    wire.send(&two[3..]).await;
    assert_eq!(read_frame(&mut wire).await, Some((TEXT, b"two".to_vec())));
    wire.send(masked(CLOSE, &[3, 232])).await;
    assert_eq!(read_frame(&mut wire).await, Some((CLOSE, vec![3, 232])));
    assert!(wire.is_closed().await);
    let counts = stack.mock.until(|counts| counts.in_flight == 0).await;
    assert_eq!(counts.served("realtime", "ok"), 1, "{counts:?}");
    let arrived = &stack.mock.requests()[0];
    assert_eq!((arrived.query.as_deref(), arrived.header("authorization")), (Some("model=m"), "Bearer sk-mock"));
}

#[tokio::test]
async fn a_client_that_drops_its_websocket_ends_the_providers() {
    let stack = Stack::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    wire.send(format!("GET /v1/realtime HTTP/1.1\r\n{}{HANDSHAKE}\r\n", credentials(&stack))).await;
    assert_eq!(wire.answer_to("GET").await.map(|answer| answer.status), Some(101));
    wire.send(masked(TEXT, b"hello")).await;
    assert_eq!(read_frame(&mut wire).await, Some((TEXT, b"hello".to_vec())));
    drop(wire);
    let ended = stack.mock.until(|counts| counts.in_flight == 0);
    assert_eq!(tokio::time::timeout(std::time::Duration::from_secs(30), ended).await.expect("it ends").cancelled, 1);
}

#[tokio::test]
async fn a_handshake_without_a_key_or_a_willing_provider_is_an_ordinary_answer() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    let unknown = common.replace(&stack.home.workspace_key, "pk_unknown");
    for (what, request, status) in [
        ("an unknown key", format!("GET /v1/realtime HTTP/1.1\r\n{unknown}{HANDSHAKE}\r\n"), 401),
        ("no websocket there", format!("GET /v1/models HTTP/1.1\r\n{common}{HANDSHAKE}\r\n"), 200),
        (
            "another protocol",
            format!("GET /v1/realtime HTTP/1.1\r\n{common}Connection: upgrade\r\nUpgrade: h2c\r\n\r\n"),
            426,
        ),
    ] {
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(request).await;
        let answer = wire.answer_to("GET").await.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(answer.status, status, "{what}: {answer:?}");
    }
    // A chat that asks for an upgrade is a chat.
    let mut wire = Wire::open(stack.proxy_port).await;
    let body = chat("Hello").to_string();
    wire.send(crate::raw::post("/v1/chat/completions", &format!("{common}{HANDSHAKE}"), &body)).await;
    assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200));
}
