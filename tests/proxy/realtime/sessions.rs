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
pub async fn session(stack: &Stack) -> (Wire, TcpStream) {
    let (wire, provider, _) = session_of(stack, &stack.home.workspace_key, "", "").await;
    (wire, provider)
}

/// The same for another key, with headers of its own on both sides; also the head that the provider gets and the one that
/// the client gets.
pub async fn session_of(stack: &Stack, key: &str, asked: &str, answered: &str) -> (Wire, TcpStream, [String; 2]) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = format!("http://{}/v1", listener.local_addr().unwrap());
    let mut wire = Wire::open(stack.proxy_port).await;
    let head = credentials_for(stack, &host).replace(&stack.home.workspace_key, key);
    wire.send(format!("GET /v1/realtime?model=gpt-realtime HTTP/1.1\r\n{head}{asked}{HANDSHAKE}\r\n")).await;
    let (mut provider, _) = listener.accept().await.unwrap();
    let mut got = Vec::new();
    while !got.ends_with(b"\r\n\r\n") {
        assert_ne!(provider.read_buf(&mut got).await.unwrap(), 0, "the whole head comes");
    }
    let accepted = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         {answered}Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
    );
    provider.write_all(accepted.as_bytes()).await.unwrap();
    let answer = wire.answer_to("GET").await.expect("an answer");
    assert_eq!(answer.status, 101, "{answer:?}");
    (wire, provider, [String::from_utf8(got).unwrap(), format!("{answer:?}")])
}

/// A server's frame.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    match u8::try_from(payload.len()) {
        Ok(length @ 0..126) => [&[first, length][..], payload].concat(),
        _ => [&[first, 126][..], &u16::try_from(payload.len()).unwrap().to_be_bytes(), payload].concat(),
    }
}

pub fn done(input: u64, output: u64) -> String {
    json!({ "type": "response.done", "response": { "object": "realtime.response", "status": "completed", "usage": {
        "total_tokens": input + output, "input_tokens": input, "output_tokens": output,
        "input_token_details": { "text_tokens": input, "cached_tokens": 1 }, "output_token_details": { "text_tokens": output },
    } } })
    .to_string()
}

#[tokio::test]
async fn what_each_response_of_a_session_used_stands_in_a_log_of_its_own() {
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
    let id = answer.header("x-gateway-request-id");
    let rows = rows(&stack, 2).await;
    for (row, used) in rows.iter().zip([(10, 3), (20, 4)]) {
        assert_eq!((status(row), text(row, "error_code"), tokens(row)), (200, None, used));
        assert_eq!(row.get::<_, Value>("usage")["input_token_details"]["cached_tokens"], 1);
        assert_eq!((text(row, "ai_model"), row.get::<_, bool>("usage_estimated")), (Some("gpt-realtime"), false));
        assert!(row.get::<_, Decimal>("cost") > Decimal::ZERO);
        assert_eq!(row.get::<_, uuid::Uuid>("internal_trace_id").to_string(), id);
    }
    assert_eq!(rows[0].get::<_, uuid::Uuid>("id").to_string(), id, "the first has the id that the client was told");
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
    let mut wire = wire;
    provider.write_all(&frame(TEXT, event.as_bytes())).await.unwrap();
    assert_eq!(read_frame(&mut wire).await, Some((TEXT, event.into_bytes())));
    drop(wire);
    let ended = provider.read(&mut [0; 16]).await;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    let rows = rows(&stack, 2).await;
    assert_eq!((status(&rows[0]), tokens(&rows[0])), (200, (5, 2)), "what was used is used");
    assert_eq!((status(&rows[1]), tokens(&rows[1])), (499, (0, 0)), "and used once");
}

#[tokio::test]
async fn a_client_that_leaves_before_a_response_is_over_pays_for_what_it_heard() {
    let stack = Stack::start().await;
    let (mut wire, mut provider) = session(&stack).await;
    let said = json!({ "type": "response.output_text.delta", "delta": "x".repeat(398) }).to_string();
    for event in [json!({ "type": "response.created", "response": {} }).to_string(), said] {
        provider.write_all(&frame(TEXT, event.as_bytes())).await.unwrap();
        assert_eq!(read_frame(&mut wire).await, Some((TEXT, event.into_bytes())));
    }
    drop(wire);
    let row = &rows(&stack, 1).await[0];
    assert_eq!((status(row), tokens(row), row.get::<_, bool>("usage_estimated")), (499, (0, 100), true));
    assert!(row.get::<_, Decimal>("cost") > Decimal::ZERO);
}

#[tokio::test]
async fn no_side_hears_of_an_extension_that_would_hide_what_is_said() {
    let stack = Stack::start().await;
    let deflate = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n";
    let (_wire, _provider, heads) = session_of(&stack, &stack.home.workspace_key, deflate, deflate).await;
    for head in heads {
        let head = head.to_ascii_lowercase();
        assert!(head.contains("upgrade") && !head.contains("deflate"), "{head}");
    }
}

/// What waits for the rest of a message counts like everything else that is held for a client or provider.
#[tokio::test]
async fn fragments_of_messages_count_while_they_are_held() {
    const HELD: &str = "gateway_request_body_bytes";
    const PIECE: usize = 60_000;
    const PIECES: usize = 4;
    let stack = Stack::start().await;
    let piece = vec![b'x'; PIECE];
    for from_client in [true, false] {
        let (mut wire, mut provider) = session(&stack).await;
        for number in 0..PIECES {
            // A text that is never said to be over.
            let first = if number == 0 { 0x01 } else { 0x00 };
            if from_client {
                let sent = masked(first, &piece);
                let length = sent.len();
                wire.send(sent).await;
                provider.read_exact(&mut vec![0; length]).await.unwrap();
            } else {
                provider.write_all(&frame(first, &piece)).await.unwrap();
                assert_eq!(read_frame(&mut wire).await, Some((first, piece.clone())));
            }
        }
        let is_held = async || stack.metric(HELD).await >= Some((PIECE * PIECES) as f64);
        stack.until(&format!("fragments count, of the client: {from_client}"), is_held).await;
        if from_client {
            drop(wire);
        } else {
            provider.write_all(&frame(0x80, b"!")).await.unwrap();
            assert_eq!(read_frame(&mut wire).await, Some((0x80, b"!".to_vec())));
        }
        stack.until("they are given back", async || stack.metric(HELD).await == Some(0.0)).await;
    }
}
