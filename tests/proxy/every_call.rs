//! Every kind of call passes the filters: `request_filter` counts it once by its lane, and `logging` writes its line of
//! the access log and settles its row.

use crate::http2::Http2;
use crate::mcp::{greeting, serve};
use crate::raw::{Wire, credentials, post};
use crate::relay::websocket::HANDSHAKE;
use bytes::Bytes;
use harness::{Client, Stack, chat};
use http::Request;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const CHAT: &str = "/v1/chat/completions";
const COUNTED: &str = "gateway_requests_by_lane_total{lane=\"";

/// One call, which carries its name as its trace id.
struct Call {
    name: &'static str,
    request: String,
    status: u16,
    /// As the filter counts it.
    lane: &'static str,
    /// As the access log tells it.
    log_lane: &'static str,
    has_row: bool,
}

fn calls(stack: &Stack) -> Vec<Call> {
    let common = credentials(stack);
    let stranger = common.replace(&stack.home.workspace_key, "pk_unknown");
    let simple = format!("{common}x-gateway-cache: simple\r\n");
    let key = format!("Host: gateway.test\r\nx-gateway-api-key: {}\r\n", stack.home.workspace_key);
    let accepting = format!("{key}Accept: application/json, text/event-stream\r\n");
    let body = chat("hello").to_string();
    let mut streamed = chat("hello");
    streamed["stream"] = json!(true);
    let ranked = r#"{"model":"m","query":"q","documents":["d"]}"#;
    let bare = |line: &str| format!("{line} HTTP/1.1\r\nHost: gateway.test\r\n\r\n");
    let upgrade = format!("GET /v1/realtime?model=m HTTP/1.1\r\n{common}{HANDSHAKE}\r\n");
    let mut calls = Vec::new();
    for (name, request, status, lane, log_lane, has_row) in [
        ("whole", post(CHAT, &common, &body), 200, "engine", "engine", true),
        ("streamed", post(CHAT, &common, &streamed.to_string()), 200, "engine", "engine", true),
        ("miss", post(CHAT, &simple, &body), 200, "engine", "engine", true),
        ("hit", post(CHAT, &simple, &body), 200, "engine", "engine", true),
        ("stranger", post(CHAT, &stranger, &body), 401, "refused", "engine", false),
        ("nowhere", bare("GET /nowhere"), 404, "refused", "own", false),
        ("relayed", post("/v1/threads", &common, "{}"), 200, "relay", "relay", true),
        // The engine's by its path, but its provider has no place for it.
        ("unknown", post("/v1/rerank", &common, ranked), 200, "relay", "engine", true),
        ("control", bare("GET /v1/api-keys/self"), 401, "control_plane", "control_plane", false),
        ("mcp", post("/tools/mcp", &accepting, &greeting().to_string()), 200, "mcp", "relay", false),
        ("greeting", bare("GET /"), 200, "page", "own", false),
        ("preflight", bare(&format!("OPTIONS {CHAT}")), 204, "page", "own", false),
        ("explained", post("/v1/explain", &key, "{}"), 400, "explain", "own", false),
        ("websocket", upgrade, 101, "relay", "relay", true),
    ] {
        let request = request.replacen("\r\n", &format!("\r\nx-gateway-trace-id: {name}\r\n"), 1);
        calls.push(Call { name, request, status, lane, log_lane, has_row });
    }
    calls
}

/// What the filter has counted, by lane.
async fn counted(stack: &Stack) -> BTreeMap<String, u64> {
    let text = Client::new(&stack.metrics_url).get("/metrics").await.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix(COUNTED)?.split_once("\"} "));
    lines.map(|(lane, count)| (lane.to_owned(), count.parse().unwrap())).collect()
}

fn line(stack: &Stack, name: &str) -> Option<Value> {
    let log = stack.proxy.log();
    let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.find(|line| line["trace_id"] == name && line.get("duration_ms").is_some())
}

/// Every call was counted once under its lane and nowhere else, and has its line.
async fn passed_the_filters(stack: &Stack, mut before: BTreeMap<String, u64>, call: &Call) {
    let name = call.name;
    *before.get_mut(call.lane).expect(name) += 1;
    assert_eq!(counted(stack).await, before, "{name}");
    stack.until(name, async || line(stack, name).is_some()).await;
    let line = line(stack, name).unwrap();
    assert_eq!((&line["status"], &line["lane"]), (&json!(call.status), &json!(call.log_lane)), "{name}: {line}");
}

#[tokio::test]
async fn every_kind_of_call_passes_the_filters_once() {
    let stack = Stack::builder().proxy("ACCESS_LOG", "ON").start().await;
    serve(&stack, "tools", "json", json!({})).await;
    let mut calls = calls(&stack);
    for call in &calls {
        let before = counted(&stack).await;
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(&call.request).await;
        let answer = wire.answer().await.expect(call.name);
        assert_eq!(answer.status, call.status, "{}: {answer:?}", call.name);
        if call.name == "hit" {
            assert_eq!(answer.header("x-gateway-cache-status"), "HIT");
        }
        // A websocket ends with its connection.
        drop(wire);
        passed_the_filters(&stack, before, call).await;
    }
    let before = counted(&stack).await;
    let body = chat("hello").to_string();
    let uri = format!("http://127.0.0.1:{}{CHAT}", stack.proxy_port);
    let mut request =
        Request::post(uri).header("content-type", "application/json").header("x-gateway-trace-id", "http2");
    for (name, value) in credentials(&stack).lines().filter_map(|line| line.split_once(": ")) {
        request = if name == "Host" { request } else { request.header(name, value) };
    }
    let connection = Http2::open(stack.proxy_port).await;
    let answer = connection.exchange(request.body(()).unwrap(), Bytes::from(body)).await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    let http2 =
        Call { name: "http2", request: String::new(), status: 200, lane: "engine", log_lane: "engine", has_row: true };
    passed_the_filters(&stack, before, &http2).await;
    calls.push(http2);
    let mut expected: Vec<&str> = calls.iter().filter(|call| call.has_row).map(|call| call.name).collect();
    expected.sort_unstable();
    let names: Vec<&str> = calls.iter().map(|call| call.name).collect();
    let database = stack.database.client().await;
    let rows = async || {
        const ROWS: &str = "SELECT trace_id FROM request_logs WHERE trace_id = ANY($1) ORDER BY trace_id";
        let rows = database.query(ROWS, &[&names]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    stack.until("the rows are there", async || rows().await.len() >= expected.len()).await;
    assert_eq!(rows().await, expected);
}
