//! Providers that begin an event, a frame or an object and never end it: what waits for the rest counts in the memory of
//! bodies, on every lane and in every form of stream, and goes with its call.

use flate2::Compression;
use flate2::write::GzEncoder;
use harness::{Client, Stack, chat};
use serde_json::{Value, json};
use std::io::Write as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// What comes of each half.
const HALF: usize = 300_000;
const HELD: &str = "gateway_request_body_bytes";

/// How a provider answers whoever comes: with this, and then with nothing more.
struct Half {
    what: &'static str,
    provider: &'static str,
    path: &'static str,
    head: &'static str,
    body: Vec<u8>,
}

fn xs(start: &[u8]) -> Vec<u8> {
    [start, &vec![b'x'; HALF]].concat()
}

/// The prelude of a frame of an AWS event stream that is as long as this, and some of it.
fn frame() -> Vec<u8> {
    let mut prelude = (2 * HALF as u32).to_be_bytes().to_vec();
    prelude.extend_from_slice(&0u32.to_be_bytes());
    let checksum = crc32fast::hash(&prelude);
    prelude.extend_from_slice(&checksum.to_be_bytes());
    xs(&prelude)
}

fn compressed(text: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(text).unwrap();
    out.flush().unwrap();
    out.get_ref().clone()
}

fn halves() -> Vec<Half> {
    const EVENTS: &str = "Content-Type: text/event-stream\r\n";
    const PACKED: &str = "Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n";
    const FRAMES: &str = "Content-Type: application/vnd.amazon.eventstream\r\n";
    const LIST: &str = "Content-Type: application/json\r\n";
    let event = || xs(b"data: ");
    let engine = "/chat/completions";
    let half = |what, provider, path, head, body| Half { what, provider, path, head, body };
    vec![
        half("an event", "openai", engine, EVENTS, event()),
        half("an event that is translated", "anthropic", engine, EVENTS, event()),
        half("an event of the client's dialect", "anthropic", "/messages", EVENTS, event()),
        half("a compressed event", "openai", engine, PACKED, compressed(&event())),
        half("a frame", "bedrock", engine, FRAMES, frame()),
        half("an object of a list", "google", engine, LIST, xs(b"[{\"a\":\"")),
        half("a relayed event", "openai", "/rerank", EVENTS, event()),
        half("a relayed and compressed event", "openai", "/rerank", PACKED, compressed(&event())),
    ]
}

/// Answers each that comes with the half, and waits until they leave.
async fn serve(half: &Half) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("a listener has an address"));
    let answer = [format!("HTTP/1.1 200 OK\r\n{}Connection: close\r\n\r\n", half.head).as_bytes(), &half.body].concat();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut asked = vec![0; 64 << 10];
                let mut length = 0;
                while !asked[..length].ends_with(b"}") {
                    length += tcp.read(&mut asked[length..]).await.expect("a request comes");
                }
                let _ = tcp.write_all(&answer).await;
                while tcp.read(&mut asked).await.is_ok_and(|read| read > 0) {}
            });
        }
    });
    url
}

fn client(stack: &Stack, half: &Half, url: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-own");
    client.with("x-gateway-provider", half.provider).with("x-gateway-custom-host", url)
}

fn asked() -> Value {
    let mut asked = chat("Hello");
    asked["stream"] = json!(true);
    asked["max_tokens"] = json!(5);
    asked
}

#[tokio::test]
async fn half_of_anything_counts_while_it_is_held() {
    let stack = Stack::start().await;
    for half in halves() {
        let url = serve(&half).await;
        let client = client(&stack, &half, &url);
        let call = tokio::spawn(async move { client.post(half.path, &asked()).await });
        let is_held = async || stack.metric(HELD).await >= Some(HALF as f64);
        stack.until(&format!("{} counts", half.what), is_held).await;
        call.abort();
        stack.until(&format!("{} is given back", half.what), async || stack.metric(HELD).await == Some(0.0)).await;
    }
}

/// However many calls of its own a workspace leaves open.
#[tokio::test]
async fn halves_of_one_workspace_leave_room_for_another() {
    let stack = Stack::builder().proxy("BODY_MEMORY_BYTES", "4000000").start().await;
    let other = stack.organisation().await;
    for half in halves().into_iter().filter(|half| half.path != "/rerank") {
        let url = serve(&half).await;
        let calls: Vec<_> = (0..16)
            .map(|_| {
                let client = client(&stack, &half, &url);
                tokio::spawn(async move { client.post(half.path, &asked()).await })
            })
            .collect();
        let (refused, _, open) = futures::future::select_all(calls).await;
        let refused = refused.expect("no call panics");
        let code = refused.json()["error"]["code"].clone();
        assert_eq!((refused.status.as_u16(), code), (503, json!("overloaded")), "{}: {}", half.what, refused.text());
        assert!(refused.text().contains("memory"), "{}: {}", half.what, refused.text());
        let large = chat(&"x".repeat(400_000));
        let answer = stack.as_application(&other.workspace_key).post("/chat/completions", &large).await;
        assert_eq!(answer.status, 200, "{}: {}", half.what, answer.text());
        open.iter().for_each(tokio::task::JoinHandle::abort);
        stack.until("all is given back", async || stack.metric(HELD).await == Some(0.0)).await;
    }
}
