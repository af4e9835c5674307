//! What bounds a body: its own size, the memory of all bodies together, the time it may take, and what the provider
//! or the client says about it on the way.

use crate::bodies::chat_of;
use crate::http2::Http2;
use crate::raw::{Wire, credentials, find, post};
use bytes::Bytes;
use futures::stream::{FuturesUnordered, StreamExt as _};
use harness::{Stack, chat};
use http::Request;
use serde_json::json;

const ENGINE: &str = "/v1/chat/completions";

fn head(common: &str, framing: &str) -> String {
    format!("POST {ENGINE} HTTP/1.1\r\n{common}Content-Type: application/json\r\n{framing}\r\n\r\n")
}

#[tokio::test]
async fn a_body_above_the_limit_is_413_and_the_connection_goes_on() {
    let stack = Stack::builder().proxy("MAX_BODY_BYTES", "100000").start().await;
    let common = credentials(&stack);
    let (fits, large) = (chat_of(100_000), chat_of(100_001));
    let chunk = |body: &[u8]| [format!("{:x}\r\n", body.len()).as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
    let huge = "x".repeat(5_000_000);
    for (what, framing, body, status) in [
        ("as long as it may be", format!("Content-Length: {}", fits.len()), fits.to_vec(), 200),
        ("as long as it may be, in chunks", "Transfer-Encoding: chunked".into(), chunk(&fits), 200),
        ("one byte longer", format!("Content-Length: {}", large.len()), large.to_vec(), 413),
        ("one byte longer, in chunks", "Transfer-Encoding: chunked".into(), chunk(&large), 413),
        ("much longer", format!("Content-Length: {}", huge.len()), huge.clone().into_bytes(), 413),
        ("much longer, in chunks", "Transfer-Encoding: chunked".into(), chunk(huge.as_bytes()), 413),
    ] {
        stack.mock.reset();
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(head(&common, &framing)).await;
        wire.send(&body).await;
        let answer = wire.answer().await.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        if status == 413 {
            assert_eq!(answer.json()["error"]["code"], "body_too_large", "{what}");
            assert!(stack.mock.requests().is_empty(), "{what}");
        }
        wire.send(post(ENGINE, &common, &chat("after").to_string())).await;
        assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200), "after {what}");
    }
    let http2 = Http2::open(stack.proxy_port).await;
    for (body, status) in [(fits, 200), (large, 413), (Bytes::from(huge), 413), (chat_of(1000), 200)] {
        let request = Request::post(format!("http://localhost{ENGINE}"))
            .header("x-gateway-api-key", &stack.home.workspace_key)
            .header("x-gateway-provider", "openai")
            .header("authorization", "Bearer sk-mock")
            .header("x-gateway-custom-host", stack.mock.url());
        let length = body.len();
        let answer = http2.exchange(request.body(()).unwrap(), body).await.unwrap();
        assert_eq!(answer.status, status, "{length} bytes over HTTP/2");
    }
}

#[tokio::test]
async fn bodies_beyond_the_memory_of_a_workspace_are_503_until_there_is_room() {
    let stack = Stack::builder().proxy("BODY_MEMORY_BYTES", "1000000").start().await;
    let other = stack.organisation().await;
    let common = credentials(&stack);
    let body = chat_of(450_000);
    let mut first = Wire::open(stack.proxy_port).await;
    first.send(head(&common, &format!("Content-Length: {}", body.len()))).await;
    first.send(&body[..400_000]).await;
    let held = "gateway_request_body_bytes";
    stack.until("the first body is held", async || stack.metric(held).await >= Some(400_000.0)).await;

    let second = stack.client().post("/chat/completions", &chat(&"x".repeat(400_000))).await;
    assert_eq!((second.status.as_u16(), second.json()["error"]["code"].as_str()), (503, Some("overloaded")));
    assert_eq!(second.header("retry-after"), "1");
    // Small ones still fit, as do others', and the relay lane holds nothing.
    assert_eq!(stack.client().post("/chat/completions", &chat("small")).await.status, 200);
    let others =
        stack.as_application(&other.workspace_key).post("/chat/completions", &chat(&"x".repeat(250_000))).await;
    assert_eq!(others.status, 200, "{}", others.text());
    assert_eq!(stack.client().post("/rerank", &chat(&"x".repeat(2_000_000))).await.status, 200);

    first.send(&body[400_000..]).await;
    assert_eq!(first.answer().await.map(|answer| answer.status), Some(200));
    stack.until("the memory is given back", async || stack.metric(held).await == Some(0.0)).await;
    assert_eq!(stack.client().post("/chat/completions", &chat(&"x".repeat(400_000))).await.status, 200);
}

/// However many of its own a workspace begins.
#[tokio::test]
async fn uploads_that_stall_leave_room_for_another_workspace() {
    let stack = Stack::builder().proxy("BODY_MEMORY_BYTES", "3000000").start().await;
    let other = stack.organisation().await;
    let common = credentials(&stack);
    let body = chat_of(1_000_000);
    let mut uploads = Vec::new();
    for _ in 0..11 {
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(head(&common, &format!("Content-Length: {}", body.len()))).await;
        wire.send(&body[..900_000]).await;
        uploads.push(wire);
    }
    // Whichever is read first has the room, and stalls; there is none for a second one.
    let mut answers: FuturesUnordered<_> = uploads.iter_mut().map(Wire::answer).collect();
    for _ in 0..10 {
        let answer = answers.next().await.flatten().expect("there is no room for a second one");
        assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (503, Some("overloaded")));
    }
    let client = stack.as_application(&other.workspace_key);
    let answer = client.post("/chat/completions", &chat(&"x".repeat(400_000))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Its own limit would let it hold what it has sent for a minute.
#[tokio::test]
async fn a_large_body_that_comes_too_slowly_is_408() {
    let stack =
        Stack::builder().proxy("BODY_RATE_PERIOD_MS", "400").proxy("BODY_MIN_BYTES_PER_S", "100000").start().await;
    let common = credentials(&stack);
    let body = chat_of(1_000_000);
    for (what, piece) in [("nothing more", 0), ("a little now and then", 100)] {
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(head(&common, &format!("Content-Length: {}", body.len()))).await;
        wire.send(&body[..200_000]).await;
        let mut more = body[200_000..].chunks(piece.max(1)).filter(|_| piece > 0);
        while !wire.is_heard_within(std::time::Duration::from_millis(50)).await {
            wire.send(more.next().unwrap_or_default()).await;
        }
        let answer = wire.answer().await.unwrap_or_else(|| panic!("{what}: no answer"));
        assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (408, Some("body_timeout")), "{what}");
    }
    stack.until_metric("gateway_request_body_bytes", 0.0).await;
}

/// Pingora has no such limit for HTTP/2 (trap T5).
#[tokio::test]
async fn a_body_that_does_not_come_is_408() {
    let stack = Stack::builder().proxy("BODY_TIMEOUT_MS", "300").start().await;
    let common = credentials(&stack);
    for framing in ["Content-Length: 1000", "Transfer-Encoding: chunked"] {
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(head(&common, framing)).await;
        let answer = wire.answer().await.unwrap_or_else(|| panic!("{framing}: no answer"));
        assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (408, Some("body_timeout")), "{framing}");
    }
    let http2 = crate::frames::Frames::open(stack.proxy_port).await;
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", ENGINE),
        (":authority", "gateway.test"),
        ("x-gateway-api-key", &stack.home.workspace_key),
        ("x-gateway-provider", "openai"),
        ("x-gateway-custom-host", &stack.mock.url()),
    ];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
    let mut http2 = http2;
    http2.begin(1, &headers).await;
    // 408 is not in HPACK's static table.
    assert_eq!(http2.ending(1).await, crate::frames::Ending::Answered(0));
    assert!(stack.mock.requests().is_empty());
    let refused = stack.metric(r#"gateway_refused_total{reason="body_timeout"}"#).await;
    assert_eq!(refused, Some(3.0));
}

#[tokio::test]
async fn a_client_that_asks_before_sending_is_told_to_or_refused_at_once() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    let body = chat("Hello").to_string();
    let framing = format!("Content-Length: {}\r\nExpect: 100-continue", body.len());
    for lane in [ENGINE, "/v1/rerank"] {
        let mut wire = Wire::open(stack.proxy_port).await;
        let head = head(&common, &framing).replacen(ENGINE, lane, 1);
        wire.send(head).await;
        assert_eq!(wire.head().await.map(|(status, _)| status), Some(100), "{lane}");
        wire.send(&body).await;
        assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200), "{lane}");
        // The engine answers for itself; on the relay lane it is the provider who is asked.
        let expected = if lane == ENGINE { "" } else { "100-continue" };
        let arrived = stack.mock.requests();
        assert_eq!(arrived.last().map(|request| request.header("expect")), Some(expected), "{lane}");
        // The connection can go on.
        wire.send(post(ENGINE, &common, &body)).await;
        assert_eq!(wire.answer().await.map(|answer| answer.status), Some(200), "after {lane}");
    }
    let unknown = common.replace(&stack.home.workspace_key, "pk_unknown");
    let mut wire = Wire::open(stack.proxy_port).await;
    wire.send(head(&unknown, &framing)).await;
    // No 100 came before it, and whether the body still comes is unknown: the connection ends.
    assert_eq!(wire.head().await.map(|(status, _)| status), Some(401));
    let rest = wire.rest().await;
    assert!(find(&rest, b"HTTP/1.1").is_none(), "{}", String::from_utf8_lossy(&rest));
}

/// The provider answers and stops reading; its words must reach the client, not a broken pipe.
#[tokio::test]
async fn an_answer_that_comes_before_the_body_is_read_reaches_the_client() {
    let stack = Stack::start().await;
    let body = String::from_utf8(chat_of(20 << 20).to_vec()).unwrap();
    for lane in [ENGINE, "/v1/rerank"] {
        for status in [413, 401] {
            stack.mock.script(json!([{ "early_answer": true, "status": status }])).unwrap();
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(post(lane, &credentials(&stack), &body)).await;
            let answer = wire.answer().await.unwrap_or_else(|| panic!("{lane} {status}: no answer"));
            assert_eq!(answer.status, status, "{lane}: {answer:?}");
            assert_eq!(answer.json()["error"]["message"], "mock error, as asked", "{lane} {status}");
        }
    }
}

/// A client that only keeps a connection must not keep it for ever.
#[tokio::test]
async fn a_connection_without_a_request_is_closed_in_time_and_one_with_a_slow_answer_is_not() {
    let stack = Stack::builder().proxy("CLIENT_IDLE_TIMEOUT_S", "2").start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    // The wait that begins after the slow one would be over during the last.
    for latency_ms in [3000, 800, 800, 800] {
        stack.mock.script(json!([{ "latency_ms": latency_ms }])).unwrap();
        let request = post(ENGINE, &credentials(&stack), &chat("Hello").to_string());
        wire.send(&request).await;
        assert_eq!(wire.answer().await.expect("an answer").status, 200, "{latency_ms}");
    }
    assert!(wire.is_closed().await);
}

/// Nor one that never asks for anything.
#[tokio::test]
async fn a_connection_that_never_had_a_request_is_closed_in_time() {
    let stack = Stack::builder().proxy("CLIENT_IDLE_TIMEOUT_S", "1").start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    assert!(wire.is_closed().await);
}

/// Nor one that has begun a head, however it goes on: the first of a connection, which may look like HTTP/2, or another.
#[tokio::test]
async fn a_connection_whose_head_never_ends_is_closed_in_time() {
    let stack = Stack::builder().proxy("CLIENT_HEAD_TIMEOUT_S", "1").start().await;
    let request = post(ENGINE, &credentials(&stack), &chat("Hello").to_string());
    let third = &request[..request.len() / 3];
    for (what, before, begun) in [
        ("a first head", 0, third),
        ("a first head that might be HTTP/2", 0, "PRI * HTTP/2.0"),
        ("a second head", 1, third),
    ] {
        let mut wire = Wire::open(stack.proxy_port).await;
        for _ in 0..before {
            wire.send(&request).await;
            assert_eq!(wire.answer().await.expect("an answer").status, 200, "{what}");
        }
        let (beginning, drops) = begun.split_at(begun.len() / 2);
        wire.send(beginning).await;
        // One byte after the other, for as long as they are taken.
        let mut drops = drops.bytes();
        let is_cut = loop {
            match wire.is_heard_within(std::time::Duration::from_millis(100)).await {
                true => break true,
                false => match drops.next() {
                    Some(byte) => wire.send([byte]).await,
                    None => break wire.is_closed().await,
                },
            }
        };
        assert!(is_cut, "{what}");
    }
}

/// Whether HTTP/2 is spoken is known from the first byte that differs.
#[tokio::test]
async fn a_request_shorter_than_what_http2_begins_with_is_answered() {
    let stack = Stack::start().await;
    let mut wire = Wire::open(stack.proxy_port).await;
    wire.send("GET / HTTP/1.0\r\n\r\n").await;
    assert_eq!(wire.answer_to("GET").await.map(|answer| answer.status), Some(200));
}
