//! Clients that ask for a long answer and do not read it: they are given up, their calls cancelled and noted, and their
//! places go to others, on both lanes and over both protocols.

use super::fairness::{application, keys};
use crate::http2::Http2;
use crate::raw::Wire;
use bytes::Bytes;
use futures::future::join_all;
use harness::Stack;
use http::{Method, Request};
use serde_json::{Value, json};

/// More than the kernel takes off the proxy's hands.
const LENGTH: usize = 6_000_000;
const READERS_OF_A_KIND: usize = 2;

/// A long stream of the engine lane, and a long answer of the relay lane.
fn asks() -> [(Method, String, Value); 2] {
    let fault = json!({ "mock": { "reply_bytes": LENGTH, "chunks": 200 } }).to_string();
    let chat = json!({ "model": "gpt-4o-mini", "stream": true, "messages": [{ "role": "user", "content": fault }] });
    [(Method::POST, "/chat/completions".into(), chat), (Method::GET, format!("/bytes/{LENGTH}"), Value::Null)]
}

fn body(ask: &Value) -> Vec<u8> {
    if ask.is_null() { Vec::new() } else { ask.to_string().into_bytes() }
}

/// Of one request, over either protocol.
fn headers<'a>(key: &'a str, config: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("x-gateway-api-key", key),
        ("x-gateway-provider", "@shared"),
        ("x-gateway-config", config),
        ("content-type", "application/json"),
    ]
}

/// A connection over which a long answer comes that nobody reads.
#[expect(dead_code, reason = "held, and never read")]
enum Reader {
    Http1(Wire),
    Http2(Http2, h2::RecvStream),
}

impl Reader {
    async fn open(stack: &Stack, key: &str, config: &str, ask: &(Method, String, Value), is_http2: bool) -> Self {
        let (method, path, body) = (&ask.0, &ask.1, body(&ask.2));
        if is_http2 {
            let uri = format!("http://127.0.0.1:{}/v1{path}", stack.proxy_port);
            let request = Request::builder().method(method).uri(uri);
            let request =
                headers(key, config).into_iter().fold(request, |request, (name, value)| request.header(name, value));
            let connection = Http2::open(stack.proxy_port).await;
            let stream = connection.begin(request.body(()).unwrap(), Bytes::from(body)).await.unwrap();
            return Self::Http2(connection, stream);
        }
        let mut wire = Wire::open_narrow(stack.proxy_port).await;
        let headers: String = headers(key, config).iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        wire.send(format!(
            "{method} /v1{path} HTTP/1.1\r\nHost: gateway.test\r\n{headers}Content-Length: {length}\r\n\r\n"
        ))
        .await;
        wire.send(body).await;
        assert_eq!(wire.head().await.map(|(status, _)| status), Some(200), "{path}");
        Self::Http1(wire)
    }
}

/// Readers of every kind take all places with answers they do not read; then somebody else asks.
async fn others_are_served(stack: &Stack, config: &str) {
    let kinds = asks().into_iter().flat_map(|ask| [false, true].map(|is_http2| (ask.clone(), is_http2)));
    let kinds: Vec<_> = kinds.flat_map(|kind| vec![kind; READERS_OF_A_KIND]).collect();
    let keys = keys(stack, &json!({ "max_in_flight": kinds.len(), "max_wait_ms": 60_000 }), &[10, 10]).await;
    let open = kinds.iter().map(|(ask, is_http2)| Reader::open(stack, &keys[0], config, ask, *is_http2));
    // Held so that the connections stay.
    let _readers = join_all(open).await;
    let mine = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "mine" }] });
    let answer = application(stack, &keys[1]).post("/chat/completions", &mine).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let under_way = async || stack.metric("gateway_fairness_in_use").await.unwrap_or_default() as usize;
    stack.until("all places come back", async || under_way().await == 0).await;
    stack.until("nothing is asked of the provider", async || stack.mock.counts().in_flight == 0).await;
    let cut = kinds.len() as i64;
    // Nobody was served to the end: each is noted, with what was received of it.
    let noted = "SELECT count(*) AS noted, count(*) FILTER (WHERE res_units > 0) AS counted FROM request_logs
                 WHERE response_status_code = 499";
    let database = stack.database.client().await;
    let found = async || {
        let row = database.query_one(noted, &[]).await.unwrap();
        (row.get::<_, i64>("noted"), row.get::<_, i64>("counted"))
    };
    stack.until("all are noted", async || found().await.0 >= cut).await;
    assert_eq!(found().await, (cut, cut / 2), "the chats say how much of them came");
}

#[tokio::test]
async fn a_workspace_whose_clients_do_not_read_does_not_keep_another_out() {
    let stack = Stack::builder().proxy("CLIENT_WRITE_TIMEOUT_S", "1").start().await;
    others_are_served(&stack, r#"{"request_timeout":600000}"#).await;
}

#[tokio::test]
async fn the_time_for_a_whole_request_ends_though_its_client_does_not_read() {
    let stack = Stack::start().await;
    others_are_served(&stack, r#"{"total_timeout":15000}"#).await;
}

/// Nothing else would end the readers within the time that the other waits.
#[tokio::test]
async fn a_place_whose_client_does_not_read_goes_to_whoever_waits() {
    let stack = Stack::start().await;
    let keys = keys(&stack, &json!({ "max_in_flight": 1, "max_wait_ms": 25_000 }), &[10, 10]).await;
    let other = application(&stack, &keys[1]);
    let [chat, bytes] = asks();
    for (ask, is_http2) in [(&chat, false), (&chat, true), (&bytes, false), (&bytes, true)] {
        let what = format!("{} over HTTP/{}", ask.1, if is_http2 { 2 } else { 1 });
        let _reader = Reader::open(&stack, &keys[0], r#"{"request_timeout":600000}"#, ask, is_http2).await;
        let mine = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "mine" }] });
        let answer = other.post("/chat/completions", &mine).await;
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        let under_way = async || stack.metric("gateway_fairness_in_use").await.unwrap_or_default() as usize;
        stack.until("the place comes back", async || under_way().await == 0).await;
    }
}
