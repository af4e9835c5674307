//! Faults that show in how an answer is framed and how its connection ends, read from a bare socket.

use std::io::ErrorKind;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpSocket;

use crate::{Raw, chat, mock, parts, post, streamed, within};

async fn answer_to(body: &Value) -> std::io::Result<String> {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.ask(body).await;
    raw.rest().await
}

#[tokio::test]
async fn a_cut_ends_the_connection_after_exactly_that_many_bytes() {
    for cut_at in [0, 1, 120] {
        let response = answer_to(&chat(json!({ "cut_at": cut_at }))).await.unwrap();
        let (head, body) = parts(&response);
        assert!(head.contains("content-length: 60"), "the whole length is promised: {head}");
        assert_eq!(body.len(), cut_at);
    }
}

/// The reader is far slower than the mock and its socket holds little, so that the cut finds bytes left to send.
#[tokio::test]
async fn a_cut_waits_until_a_slow_reader_took_what_comes_before_it() {
    let mock = mock();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(1 << 15).unwrap();
    let mut raw = Raw { tcp: socket.connect(mock.address()).await.unwrap(), seen: Vec::new() };
    raw.send("GET /bytes/90000000?mock=cut_at%3D6000000 HTTP/1.1\r\nhost: m\r\nauthorization: Bearer k\r\n\r\n").await;
    let mut piece = vec![0; 1 << 16];
    loop {
        tokio::time::sleep(Duration::from_millis(2)).await;
        match raw.tcp.read(&mut piece).await.unwrap() {
            0 => break,
            count => raw.seen.extend_from_slice(&piece[..count]),
        }
    }
    let head = raw.seen.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert_eq!(raw.seen.len() - head, 6_000_000);
}

#[tokio::test]
async fn a_cut_stream_lacks_its_last_chunk() {
    let response = answer_to(&streamed(chat(json!({ "cut_at": 400 })))).await.unwrap();
    let (head, body) = parts(&response);
    assert!(head.contains("transfer-encoding: chunked"));
    let framing = body.len() - 400;
    assert!(framing > 0 && framing < 100, "{framing} bytes of chunk framing");
    assert!(!body.ends_with("0\r\n\r\n"));
}

#[tokio::test]
async fn a_reset_is_a_reset() {
    let mock = mock();
    for fault in [json!({ "cut_at": 10, "reset": true }), json!({ "no_answer": true, "reset": true })] {
        let mut raw = Raw::connect(&mock).await;
        raw.ask(&chat(fault)).await;
        assert_eq!(raw.rest().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn no_answer_means_not_one_byte() {
    assert_eq!(answer_to(&chat(json!({ "no_answer": true }))).await.unwrap(), "");
}

#[tokio::test]
async fn an_idle_connection_closes_without_a_warning() {
    let response = answer_to(&chat(json!({ "close_idle": true }))).await.unwrap();
    let (head, body) = parts(&response);
    assert!(!head.contains("connection:"), "{head}");
    assert!(serde_json::from_str::<Value>(body).is_ok(), "the answer itself is whole");
}

#[tokio::test]
async fn a_healthy_connection_stays_open() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    for _ in 0..3 {
        raw.ask(&chat(json!({}))).await;
        assert!(raw.sees("\"fp_mock\"}").await);
        raw.seen.clear();
    }
    assert_eq!(mock.counts().connections_accepted, 1);
}

#[tokio::test]
async fn an_early_answer_does_not_wait_for_the_body() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.send("POST /v1/chat/completions HTTP/1.1\r\nhost: m\r\nauthorization: Bearer k\r\n").await;
    raw.send("x-mock-fault: {\"early_answer\":true,\"status\":413}\r\ncontent-length: 1000000\r\n\r\nonly this").await;
    let response = raw.rest().await.unwrap();
    assert!(response.starts_with("HTTP/1.1 413"), "{response}");
    assert!(parts(&response).0.contains("connection: close"));
}

#[tokio::test]
async fn an_early_answer_survives_a_client_that_goes_on_sending() {
    let mock = mock();
    mock.script(json!([{ "early_answer": true, "status": 413 }])).unwrap();
    let upload = vec![b'x'; 8_000_000];
    let mut raw = Raw::connect(&mock).await;
    raw.send("POST /v1/upload HTTP/1.1\r\nhost: m\r\nauthorization: Bearer k\r\ncontent-length: 8000000\r\n\r\n").await;
    raw.send(std::str::from_utf8(&upload).unwrap()).await;
    assert!(raw.rest().await.unwrap().starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn an_informational_answer_comes_first() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.ask(&chat(json!({ "informational": true }))).await;
    assert!(raw.sees("\"fp_mock\"}").await);
    let seen = String::from_utf8(raw.seen).unwrap();
    assert!(seen.starts_with("HTTP/1.1 103 Early Hints\r\n"));
    assert!(parts(&seen).1.starts_with("HTTP/1.1 200 OK\r\n"));
}

#[tokio::test]
async fn a_plain_answer_can_come_without_its_length() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.ask(&chat(json!({ "no_content_length": true }))).await;
    assert!(raw.sees("\r\n0\r\n\r\n").await);
    let seen = String::from_utf8(raw.seen).unwrap();
    assert!(parts(&seen).0.contains("transfer-encoding: chunked") && !seen.contains("content-length"));
}

#[tokio::test]
async fn a_stall_goes_silent_and_then_goes_on() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.ask(&chat(json!({ "stall_after_bytes": 5 }))).await;
    assert!(raw.sees("\r\n\r\n{\"id\"").await);
    assert!(raw.seen.ends_with(b"{\"id\""), "five bytes and no more");
    let mut raw = Raw::connect(&mock).await;
    raw.ask(&chat(json!({ "stall_after_bytes": 5, "stall_ms": 20 }))).await;
    assert!(raw.sees("\"fp_mock\"}").await);
}

#[tokio::test]
async fn latency_holds_back_the_head() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.ask(&chat(json!({ "latency_ms": 3_600_000 }))).await;
    within(mock.until(|counts| counts.in_flight == 1)).await;
    let nothing_yet = tokio::time::timeout(Duration::from_millis(30), raw.sees("HTTP")).await;
    assert!(nothing_yet.is_err());
}

#[tokio::test]
async fn a_cut_over_http2_resets_the_stream_and_keeps_what_was_sent() {
    let mock = mock();
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let url = mock.url() + "/chat/completions";
    let request = client.post(&url).bearer_auth("k").json(&chat(json!({ "cut_at": 100 })));
    let mut response = request.send().await.unwrap();
    assert_eq!(response.version(), reqwest::Version::HTTP_2);
    let mut seen = 0;
    let ended = loop {
        match response.chunk().await {
            Ok(Some(chunk)) => seen += chunk.len(),
            other => break other,
        }
    };
    assert!(ended.is_err());
    assert_eq!(seen, 100);
    let healthy = client.post(&url).bearer_auth("k").json(&chat(json!({}))).send().await.unwrap();
    assert_eq!(healthy.status(), 200);
    assert_eq!(mock.counts().connections_accepted, 1, "only the stream was reset");
}

#[tokio::test]
async fn a_websocket_is_upgraded_and_echoes() {
    let mock = mock();
    let mut raw = Raw::connect(&mock).await;
    raw.send("GET /v1/realtime?model=x HTTP/1.1\r\nhost: m\r\nauthorization: Bearer k\r\nconnection: upgrade\r\n")
        .await;
    raw.send("upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        .await;
    assert!(raw.sees("\r\n\r\n").await);
    let head = String::from_utf8(raw.seen.clone()).unwrap();
    assert!(head.starts_with("HTTP/1.1 101"), "{head}");
    assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    raw.send("\u{1}\u{2}hi").await;
    assert!(raw.sees("\u{1}\u{2}hi").await);
    assert_eq!(post(&mock, "/realtime", &json!({})).await.status(), 200, "only GET upgrades");
    drop(raw);
    within(mock.until(|counts| counts.served("realtime", "cancelled") == 1)).await;
}
