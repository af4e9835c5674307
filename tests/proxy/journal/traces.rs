//! Traces, as the collector of an operator gets them.

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use harness::{Stack, chat};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A collector on loopback that keeps the spans it takes, once it has refused so many requests.
#[derive(Default)]
struct Collector {
    refuses: Mutex<usize>,
    spans: Mutex<Vec<Value>>,
}

async fn collector(refuses: usize) -> (Arc<Collector>, String) {
    let collector = Arc::new(Collector { refuses: Mutex::new(refuses), ..Collector::default() });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/otlp/", listener.local_addr().unwrap());
    let router = Router::new().route("/otlp/v1/traces", post(take)).with_state(collector.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (collector, url)
}

async fn take(State(collector): State<Arc<Collector>>, headers: HeaderMap, body: String) -> StatusCode {
    if headers.get("x-tenant").is_none_or(|tenant| tenant != "ours") {
        return StatusCode::UNAUTHORIZED;
    }
    let mut refuses = collector.refuses.lock().unwrap();
    if *refuses > 0 {
        *refuses -= 1;
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    let body: Value = serde_json::from_str(&body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    collector.spans.lock().unwrap().extend(spans.iter().cloned());
    StatusCode::OK
}

fn named<'s>(spans: &'s [Value], name: &str) -> Vec<&'s Value> {
    spans.iter().filter(|span| span["name"] == name).collect()
}

#[tokio::test]
async fn a_request_and_each_of_its_targets_are_spans_of_the_callers_trace() {
    let (collector, url) = collector(1).await;
    let stack = Stack::builder()
        .proxy("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        .proxy("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=ours")
        .start()
        .await;
    stack.mock.script(json!([{ "status": 500 }])).unwrap();
    let target = json!({ "provider": "openai", "api_key": "sk-config", "custom_host": stack.mock.url() });
    let config = json!({ "strategy": { "mode": "fallback" }, "targets": [target, target] });
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.to_string());
    let client = client.with("traceparent", format!("00-{trace}-00f067aa0ba902b7-01"));
    assert_eq!(client.post("/chat/completions", &chat("Hello")).await.status, 200);
    stack.until("the spans arrive", async || collector.spans.lock().unwrap().len() >= 3).await;
    let spans = collector.spans.lock().unwrap().clone();
    assert_eq!(spans.len(), 3, "{spans:?}");
    assert!(spans.iter().all(|span| span["traceId"] == trace), "{spans:?}");
    let request = named(&spans, "POST /v1/chat/completions")[0];
    let targets = named(&spans, "chat gpt-4o-mini");
    assert_eq!(targets.len(), 2, "{spans:?}");
    assert!(targets.iter().all(|span| span["parentSpanId"] == request["spanId"]));
    assert_eq!(targets.iter().filter(|span| span.get("status").is_some()).count(), 1, "one of them failed");
    assert!(request.get("status").is_none(), "the request did not");
    stack.until_metric("gateway_trace_spans_total", 3.0).await;
    assert_eq!(stack.metric("gateway_trace_spans_dropped_total").await, Some(0.0));
}

#[tokio::test]
async fn a_collector_that_is_away_holds_up_neither_calls_nor_logs() {
    let stack = Stack::builder().proxy("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").start().await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    stack.until("the log is stored", async || stack.metric("gateway_journal_shipped_total").await == Some(1.0)).await;
    let dropped = async || stack.metric("gateway_trace_spans_dropped_total").await == Some(2.0);
    stack.until("its spans are given up", dropped).await;
}

#[tokio::test]
async fn a_collector_that_hangs_holds_up_neither_calls_nor_logs() {
    // Takes every connection and never says a word.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (taken, mut connections) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let _ = taken.send(connection);
        }
    });
    let stack = Stack::builder().proxy("OTEL_EXPORTER_OTLP_ENDPOINT", url).start().await;
    for logs in [1.0, 2.0, 3.0] {
        assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
        let is_stored = async || stack.metric("gateway_journal_shipped_total").await == Some(logs);
        stack.until("the log is stored", is_stored).await;
    }
    connections.recv().await.unwrap();
    // Had the logs waited for it, only the spans of the last would not be given up yet.
    let all_wait = async || stack.metric("gateway_trace_spans_waiting").await > Some(2.0);
    stack.until("the spans of all wait", all_wait).await;
}
