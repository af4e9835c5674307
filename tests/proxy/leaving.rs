//! How the proxy leaves: drained on SIGTERM, replaced without a gap by a hand-over.

use bench::process::Signal;
use futures::StreamExt as _;
use harness::{Client, Stack, until};
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

fn stream_of(chunks: u32, delay_ms: u32) -> Value {
    let script = json!({ "mock": { "chunks": chunks, "chunk_delay_ms": delay_ms } }).to_string();
    json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": script }] })
}

/// A stream whose first bytes have arrived; the rest is read by the task.
async fn begin(client: &Client, body: &Value) -> tokio::task::JoinHandle<Result<String, reqwest::Error>> {
    let request = client.request(Method::POST, "/chat/completions").json(body);
    let mut bytes = request.send().await.expect("the stream begins").bytes_stream();
    let first = bytes.next().await.expect("a first piece comes").expect("and is whole");
    tokio::spawn(async move {
        let mut text = String::from_utf8_lossy(&first).into_owned();
        while let Some(piece) = bytes.next().await {
            text.push_str(&String::from_utf8_lossy(&piece?));
        }
        Ok(text)
    })
}

#[tokio::test]
async fn sigterm_turns_readiness_off_at_once_finishes_streams_and_exits_when_idle() {
    let mut stack = Stack::start().await;
    let stream = begin(&stack.client(), &stream_of(40, 50)).await;
    stack.proxy.signal(Signal::TERM);
    let ready = format!("{}/readyz", stack.metrics_url);
    until("readiness is off", async || reqwest::get(&ready).await.is_ok_and(|answer| answer.status() == 503)).await;
    let address = format!("127.0.0.1:{}", stack.proxy_port);
    until("no new connection is taken", async || tokio::net::TcpStream::connect(&address).await.is_err()).await;
    assert!(stack.proxy.has_ended().is_none(), "a stream still runs");
    let text = stream.await.expect("the reader lives").expect("the stream is whole");
    assert!(text.trim_end().ends_with("data: [DONE]"), "the stream was cut: {text}");
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
}

#[tokio::test]
async fn a_stream_longer_than_the_drain_timeout_does_not_keep_the_process() {
    let mut stack = Stack::builder().proxy("DRAIN_TIMEOUT_S", "1").start().await;
    let stream = begin(&stack.client(), &stream_of(2000, 50)).await;
    stack.proxy.signal(Signal::TERM);
    stack.proxy.ended_within(PATIENCE).await;
    assert!(stream.await.expect("the reader lives").is_err(), "the client sees that the stream was cut");
}

#[tokio::test]
async fn a_hand_over_refuses_no_connection_and_cuts_no_stream() {
    let mut stack = Stack::start().await;
    let stream = begin(&stack.client(), &stream_of(80, 50)).await;
    let (answered, failed, over) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let (client, answered, failed, over) = (stack.client(), answered.clone(), failed.clone(), over.clone());
            tokio::spawn(async move {
                let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
                while !over.load(Ordering::Relaxed) {
                    // A connection of its own each time: a kept one may be closed between two requests, and clients know that.
                    let request =
                        client.request(Method::POST, "/chat/completions").header("connection", "close").json(&body);
                    let is_fine = match request.send().await {
                        Ok(answer) => answer.status() == 200 && answer.bytes().await.is_ok(),
                        Err(_) => false,
                    };
                    if is_fine {
                        answered.fetch_add(1, Ordering::Relaxed)
                    } else {
                        failed.fetch_add(1, Ordering::Relaxed)
                    };
                }
            })
        })
        .collect();
    until("calls are answered", async || answered.load(Ordering::Relaxed) > 20).await;

    let mut successor = stack.start_another_proxy(&["--upgrade"]);
    let socket = stack.folder.path().join("upgrade.sock");
    until("the successor waits for the sockets", async || socket.exists()).await;
    stack.proxy.signal(Signal::QUIT);
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
    let before = answered.load(Ordering::Relaxed);
    until("the successor answers alone", async || answered.load(Ordering::Relaxed) > before + 20).await;
    over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.expect("the caller lives");
    }
    assert_eq!(failed.load(Ordering::Relaxed), 0, "of {} calls", answered.load(Ordering::Relaxed));
    let text = stream.await.expect("the reader lives").expect("the stream is whole");
    assert!(text.trim_end().ends_with("data: [DONE]"), "the stream was cut: {text}");
    assert!(successor.has_ended().is_none());
}
