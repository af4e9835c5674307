//! Streams that go wrong, on either side. A client never gets half an event, never silence, and never a clean end of
//! something unfinished; and a provider never works on for a client that has left.

use crate::raw::{Wire, credentials, post};
use futures::StreamExt as _;
use harness::{Answer, Client, Stack, chat};
use http::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);
/// The older spelling is always relayed.
const LANES: [&str; 2] = ["/chat/completions", "/relayed/completions"];

fn stream_of(content: &str) -> Value {
    let mut body = chat(content);
    body["stream"] = json!(true);
    body["prompt"] = json!(content);
    body
}

async fn answered(stack: &Stack, fault: Value) -> Answer {
    stack.mock.script(json!([fault])).unwrap();
    stack.client().post("/chat/completions", &stream_of("Hello")).await
}

#[tokio::test]
async fn an_error_reported_inside_a_200_before_any_content_is_an_error_answer() {
    let stack = Stack::start().await;
    for (events, status, message) in [
        (r#"data: {"error":{"message":"m","type":"server_error","code":503}}"#, 503, "m"),
        (r#"data: {"error":{"message":"slow down","type":"rate_limit_error"}}"#, 429, "slow down"),
        (r#"data: {"error":{"message":"m","type":"requests","code":"rate_limit_exceeded"}}"#, 429, "m"),
        (
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}",
            529,
            "m",
        ),
        (": comment\n\n: another\n\ndata: {\"error\":{\"message\":\"late\"}}", 502, "late"),
        (r#"data:{"error":{"message":"m","type":"invalid_request_error","code":null}}"#, 502, "m"),
        ("data: {\"error\":\ndata: {\"message\":\"two lines\"}}", 502, "two lines"),
    ] {
        for chunk_bytes in [1, 1000] {
            let body = format!("{events}\n\ndata: [DONE]\n\n");
            let fault = json!({ "body": body, "content_type": "text/event-stream", "chunk_bytes": chunk_bytes });
            let answer = answered(&stack, fault).await;
            assert_eq!(answer.status, status, "{events} {}", answer.text());
            assert_eq!(answer.header("content-type"), "application/json", "{events}");
            assert_eq!(answer.json()["error"]["message"], message, "{events}");
            assert_eq!(answer.json()["error"]["code"], "upstream_error", "{events}");
        }
    }
    assert_eq!(answered(&stack, json!({ "error_in_200": true })).await.status, 502);
    assert!(stack.metric(r#"gateway_upstream_attempts_total{outcome="stream_error"}"#).await > Some(0.0));
}

/// What a provider says before it has anything to say is not an answer yet.
#[tokio::test]
async fn a_stream_that_fails_after_its_preamble_is_an_error_answer() {
    let stack = Stack::start().await;
    let role = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
    let error = "data: {\"error\":{\"message\":\"m\",\"code\":503}}\n\n";
    for (body, cut, status) in [
        (format!("{role}{role}"), true, 502),
        (role.to_owned(), false, 502),
        (format!("{role}data: {{\"choices\":[\n\n"), false, 502),
        (format!("{role}{error}"), false, 503),
    ] {
        let cut_at = cut.then_some(role.len() + 5);
        let fault = json!({
            "body": body, "content_type": "text/event-stream", "no_content_length": true, "cut_at": cut_at,
        });
        let answer = answered(&stack, fault).await;
        assert_eq!(answer.status, status, "{body} {}", answer.text());
    }
}

#[tokio::test]
async fn a_stream_that_ends_or_stalls_before_its_first_event_is_a_502() {
    let stack = Stack::builder().proxy("UPSTREAM_STREAM_IDLE_TIMEOUT_MS", "300").start().await;
    for fault in [
        json!({ "cut_at": 0 }),
        json!({ "cut_at": 20 }),
        json!({ "cut_at": 20, "reset": true }),
        json!({ "body": "", "content_type": "text/event-stream", "no_content_length": true }),
        json!({ "stall_after_bytes": 0 }),
        json!({ "stall_after_bytes": 20 }),
    ] {
        let answer = answered(&stack, fault.clone()).await;
        assert_eq!(answer.status, 502, "{fault} {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "invalid_upstream_response", "{fault}");
    }
    let counted = stack.metric(r#"gateway_upstream_attempts_total{outcome="idle_timeout"}"#).await;
    assert_eq!(counted, Some(2.0));
}

/// Whole events as the provider sent them, then one error event, then the end.
fn assert_broken_off_cleanly(answer: &Answer, original: &str, what: &str) {
    assert_eq!(answer.status, 200, "{what}");
    let text = answer.text();
    let events = text.strip_suffix("data: [DONE]\n\n").unwrap_or_else(|| panic!("{what}: no [DONE] in {text:?}"));
    let at = events.trim_end().rfind("\n\n").map_or(0, |at| at + 2);
    let (passed, error) = events.split_at(at);
    assert!(original.starts_with(passed) && passed.ends_with("\n\n"), "{what}: {passed:?}");
    let error = error.strip_prefix("data: ").unwrap_or_else(|| panic!("{what}: {error:?}"));
    let error: Value = serde_json::from_str(error).unwrap_or_else(|_| panic!("{what}: {error:?}"));
    assert_eq!(error["error"]["code"], "invalid_upstream_response", "{what}");
    assert!(error["error"]["message"].is_string(), "{what}");
}

#[tokio::test]
async fn a_stream_that_is_cut_ends_with_whole_events_and_one_well_formed_error() {
    let stack = Stack::start().await;
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"Grüße 🌍\"}}]}\n\n";
    let original = event.repeat(8) + "data: [DONE]\n\n";
    let one = event.len() as u64;
    for cut_at in [one, one + 1, one + 40, one + 46, 2 * one - 1, 3 * one, 8 * one, 8 * one + 7, 8 * one + 13] {
        for (reset, no_content_length) in [(false, true), (true, true), (false, false)] {
            let fault = json!({
                "body": original, "content_type": "text/event-stream", "cut_at": cut_at, "reset": reset,
                "no_content_length": no_content_length,
            });
            let answer = answered(&stack, fault.clone()).await;
            assert_broken_off_cleanly(&answer, &original, &fault["cut_at"].to_string());
        }
    }
}

#[tokio::test]
async fn a_stream_that_stalls_ends_with_whole_events_and_one_well_formed_error() {
    let stack = Stack::builder().proxy("UPSTREAM_STREAM_IDLE_TIMEOUT_MS", "2000").start().await;
    let original = "data: {\"a\":1}\n\n".repeat(4);
    for at in [15, 20, 59] {
        let fault = json!({
            "body": original, "content_type": "text/event-stream", "stall_after_bytes": at, "no_content_length": true,
        });
        assert_broken_off_cleanly(&answered(&stack, fault).await, &original, &at.to_string());
    }
    // Slow is not silent: pauses below the limit add up without harm.
    let fault =
        json!({ "body": original, "content_type": "text/event-stream", "chunk_bytes": 15, "chunk_delay_ms": 800 });
    assert_eq!(answered(&stack, fault).await.text(), original);
}

#[tokio::test]
async fn an_error_that_the_provider_reports_later_is_passed_on_as_it_is() {
    let stack = Stack::start().await;
    let answer = answered(&stack, json!({ "error_after_chunks": 2 })).await;
    let text = answer.text();
    assert_eq!(answer.status, 200);
    assert!(text.contains("mock error inside a stream"), "{text}");
}

#[tokio::test]
async fn a_stream_torn_into_odd_pieces_reads_the_same() {
    let stack = Stack::start().await;
    let direct = Client::new(&stack.mock.url()).with("authorization", "Bearer sk-mock");
    for fault in
        [json!({ "split_utf8": true }), json!({ "split_utf8": true, "chunk_bytes": 1 }), json!({ "chunks": 300 })]
    {
        stack.mock.script(json!([fault.clone(), fault.clone()])).unwrap();
        let mut body = stream_of("Hello");
        // Otherwise the proxy would ask for it, and events change when it is asked for.
        body["stream_options"] = json!({ "include_usage": true });
        let expected = direct.post("/chat/completions", &body).await.text();
        let through = stack.client().post("/chat/completions", &body).await.text();
        assert_eq!(without_ids(&through), without_ids(&expected), "{fault}");
    }
}

/// Each answer of the mock has its own number.
fn without_ids(events: &str) -> String {
    let parts = events.split("chatcmpl-").enumerate().map(|(index, part)| if index == 0 { part } else { &part[16..] });
    parts.collect()
}

/// A large answer that is no stream cannot be ended with an event: it must not look whole.
#[tokio::test]
async fn a_large_plain_answer_that_is_cut_does_not_look_whole() {
    let stack = Stack::start().await;
    for no_content_length in [true, false] {
        let fault = json!({ "reply_bytes": 2_000_000, "cut_at": 1_000_000, "no_content_length": no_content_length });
        stack.mock.script(json!([fault])).unwrap();
        let response = stack.client().request(Method::POST, "/chat/completions").json(&chat("x")).send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(response.bytes().await.is_err(), "no_content_length: {no_content_length}");
    }
    // A small one was held until it was whole, and so its failure is a clean answer.
    stack.mock.script(json!([{ "reply_bytes": 20_000, "cut_at": 10_000 }])).unwrap();
    let answer = stack.client().post("/chat/completions", &chat("x")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["error"]["code"].as_str()),
        (502, Some("invalid_upstream_response"))
    );
}

#[tokio::test]
async fn a_client_that_leaves_inside_a_stream_cancels_it() {
    let stack = Stack::start().await;
    for lane in LANES {
        stack.mock.reset();
        // Silent after its first events: nothing but the client's leaving can be noticed.
        stack.mock.script(json!([{ "chunks": 1000, "stall_after_bytes": 2000 }])).unwrap();
        let request = stack.client().request(Method::POST, lane).json(&stream_of("Hello"));
        let mut events = request.send().await.unwrap().bytes_stream();
        assert!(events.next().await.is_some_and(|event| event.is_ok()), "{lane}");
        drop(events);
        let counts = timeout(PATIENCE, stack.mock.until(|counts| counts.in_flight == 0)).await;
        assert_eq!(counts.expect("the provider is told").cancelled, 1, "{lane}");
    }
    for (line, expected) in [
        (r#"gateway_requests_total{lane="engine",status="499"}"#, 1.0),
        (r#"gateway_requests_total{lane="relay",status="499"}"#, 1.0),
        (r#"gateway_upstream_attempts_total{outcome="client_left"}"#, 1.0),
        (r#"gateway_in_flight_requests{lane="engine"}"#, 0.0),
        (r#"gateway_in_flight_requests{lane="relay"}"#, 0.0),
    ] {
        stack.until(line, async || stack.metric(line).await == Some(expected)).await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_waiting_cancels_the_call() {
    let stack = Stack::start().await;
    let common = credentials(&stack);
    for lane in ["/v1/chat/completions", "/v1/rerank"] {
        for says_goodbye in [true, false] {
            stack.mock.reset();
            stack.mock.script(json!([{ "latency_ms": 3_600_000 }])).unwrap();
            let mut wire = Wire::open(stack.proxy_port).await;
            wire.send(post(lane, &common, &chat("Hello").to_string())).await;
            timeout(PATIENCE, stack.mock.until(|counts| counts.in_flight == 1)).await.expect("it arrives");
            if says_goodbye {
                wire.finish().await;
            } else {
                drop(wire);
            }
            let counts = timeout(PATIENCE, stack.mock.until(|counts| counts.in_flight == 0)).await;
            assert_eq!(counts.expect("the provider is told").cancelled, 1, "{lane}");
        }
    }
}
