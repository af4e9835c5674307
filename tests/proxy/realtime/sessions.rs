//! What a realtime session used and how it ended, as its log says it, and what a client hears when its provider is gone.

use super::handshake;
use crate::journal::calls::{rows, status, text, tokens};
use crate::raw::{Wire, credentials_for};
use crate::relay::websocket::{CLOSE, HANDSHAKE, TEXT, masked, read_frame};
use harness::Stack;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// A session with a provider of the test's own: the client's end, and the provider's.
async fn session(stack: &Stack) -> (Wire, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("http://{}/v1", listener.local_addr().unwrap());
    let mut wire = Wire::open(stack.proxy_port).await;
    let head = credentials_for(stack, &host);
    wire.send(format!("GET /v1/realtime?model=gpt-realtime HTTP/1.1\r\n{head}{HANDSHAKE}\r\n")).await;
    let (mut provider, _) = listener.accept().await.unwrap();
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        assert_ne!(provider.read_buf(&mut asked).await.unwrap(), 0, "the whole head comes");
    }
    let accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    provider.write_all(accepted.as_bytes()).await.unwrap();
    assert_eq!(wire.answer_to("GET").await.map(|answer| answer.status), Some(101));
    (wire, provider)
}

/// A server's frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    [&[first, u8::try_from(payload.len()).unwrap()][..], payload].concat()
}

fn done(input: u64, output: u64) -> String {
    json!({ "type": "response.done", "response": { "object": "realtime.response", "status": "completed", "usage": {
        "total_tokens": input + output, "input_tokens": input, "output_tokens": output,
        "input_token_details": { "text_tokens": input, "cached_tokens": 1 }, "output_token_details": { "text_tokens": output },
    } } })
    .to_string()
}

#[tokio::test]
async fn what_all_responses_of_a_session_used_stands_in_its_one_log() {
    let stack = Stack::start().await;
    let head = credentials_for(&stack, &stack.mock.url());
    let (mut wire, answer) =
        handshake(&stack, "?model=gpt-realtime", &head.replace("Host: gateway.test\r\n", "")).await;
    assert_eq!(answer.status, 101, "{answer:?}");
    // The provider sends everything back as it is.
    let (first, second) = (done(10, 3), done(20, 4));
    wire.send(masked(TEXT, first.as_bytes())).await;
    assert_eq!(read_frame(&mut wire).await, Some((TEXT, first.into_bytes())));
    let (start, end) = second.as_bytes().split_at(40);
    wire.send([masked(0x01, start), masked(0x89, b"ping"), masked(0x80, end)].concat()).await;
    for expected in [(0x01, start.to_vec()), (0x8a, b"ping".to_vec()), (0x80, end.to_vec())] {
        assert_eq!(read_frame(&mut wire).await, Some(expected));
    }
    wire.send(masked(CLOSE, &[3, 232])).await;
    assert_eq!(read_frame(&mut wire).await, Some((CLOSE, vec![3, 232])));
    assert!(wire.is_closed().await);
    let row = &rows(&stack, 1).await[0];
    assert_eq!((status(row), text(row, "error_code"), tokens(row)), (200, None, (30, 7)));
    assert_eq!(row.get::<_, Value>("usage")["input_token_details"]["cached_tokens"], 2);
    assert_eq!((text(row, "ai_model"), row.get::<_, bool>("usage_estimated")), (Some("gpt-realtime"), false));
    assert!(row.get::<_, Decimal>("cost") > Decimal::ZERO);
    assert_eq!(row.get::<_, uuid::Uuid>("id").to_string(), answer.header("x-gateway-request-id"));
}

#[tokio::test]
async fn a_client_whose_provider_is_lost_is_told_so_in_the_words_of_its_protocol() {
    let stack = Stack::start().await;
    for (count, is_reset) in [(1, false), (2, true)] {
        let (mut wire, mut provider) = session(&stack).await;
        provider.write_all(&frame(TEXT, b"hello")).await.unwrap();
        assert_eq!(read_frame(&mut wire).await, Some((TEXT, b"hello".to_vec())));
        if is_reset {
            provider.set_zero_linger().unwrap();
        }
        drop(provider);
        let (first, payload) = read_frame(&mut wire).await.expect("a last word");
        assert_eq!((first, &payload[..2]), (CLOSE, &1011u16.to_be_bytes()[..]), "reset: {is_reset}");
        assert!(String::from_utf8_lossy(&payload[2..]).contains("lost"), "{payload:?}");
        assert!(wire.is_closed().await);
        let row = &rows(&stack, count).await[count - 1];
        assert_eq!(
            (status(row), text(row, "error_code")),
            (502, Some("invalid_upstream_response")),
            "reset: {is_reset}"
        );
    }
}

#[tokio::test]
async fn nothing_is_put_into_a_frame_that_its_sender_left_unfinished() {
    let stack = Stack::start().await;
    let (mut wire, mut provider) = session(&stack).await;
    provider.write_all(&frame(TEXT, b"hello")[..4]).await.unwrap();
    assert_eq!(wire.exactly(4).await, Some(vec![TEXT, 5, b'h', b'e']));
    drop(provider);
    assert!(wire.is_closed().await);
    assert_eq!(status(&rows(&stack, 1).await[0]), 502);
}

#[tokio::test]
async fn a_session_that_cannot_be_listened_to_has_no_price() {
    let stack = Stack::start().await;
    let (mut wire, mut provider) = session(&stack).await;
    // Compressed, as the third bit of the first byte says.
    provider.write_all(&[frame(0xc1, &[1, 2, 3]), frame(CLOSE, &[3, 232])].concat()).await.unwrap();
    assert_eq!(read_frame(&mut wire).await, Some((0xc1, vec![1, 2, 3])));
    assert_eq!(read_frame(&mut wire).await, Some((CLOSE, vec![3, 232])));
    wire.send(masked(CLOSE, &[3, 232])).await;
    drop(provider);
    assert!(wire.is_closed().await);
    let row = &rows(&stack, 1).await[0];
    assert_eq!((status(row), tokens(row), row.get::<_, bool>("usage_estimated")), (200, (0, 0), true));
    assert_eq!(row.get::<_, Option<Decimal>>("cost"), None);
}

#[tokio::test]
async fn a_client_that_goes_without_a_word_leaves_a_log_that_says_so_and_ends_the_provider() {
    let stack = Stack::start().await;
    let (wire, mut provider) = session(&stack).await;
    let event = done(5, 2);
    let long = [&[TEXT, 126][..], &u16::try_from(event.len()).unwrap().to_be_bytes(), event.as_bytes()].concat();
    let mut wire = wire;
    provider.write_all(&long).await.unwrap();
    assert_eq!(read_frame(&mut wire).await, Some((TEXT, event.into_bytes())));
    drop(wire);
    let ended = provider.read(&mut [0; 16]).await;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    let row = &rows(&stack, 1).await[0];
    assert_eq!((status(row), tokens(row)), (499, (5, 2)), "what was used is used");
}
