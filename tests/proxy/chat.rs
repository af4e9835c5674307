//! A chat through the engine lane: the caller's bytes reach the provider, the provider's bytes reach the caller, and
//! nothing in between touches either.

use harness::client::whole;
use harness::{Stack, chat};
use http::Method;
use serde_json::{Value, json};

/// As odd as JSON may be: spaces, escapes, unknown fields, nesting, numbers that floats would spoil, repeated names
/// below the top.
const ODD: &str = "{ \"zebra\" : [1.0,1e3, 0.1000000000000000055511151231257827, 123456789012345678901234567890],\n\
    \t\"messages\":[{\"content\":\"\\u0047r\\u00fc\\u00dfe \\ud83c\\udf0d \\/ é東京\",\"role\":\"user\",\"x\":1,\"x\":2}],\r\n\
    \"model\"  :\"gpt-4o\", \"stream\":STREAM,\"future_field\":{\"b\":null,\"a\":{}},\"\":\"\",\"temperature\":0.70 } \n";

#[tokio::test]
async fn the_provider_receives_the_callers_body_byte_for_byte() {
    let stack = Stack::start().await;
    for is_streaming in ["false", "true"] {
        let body = ODD.replace("STREAM", is_streaming);
        stack.mock.reset();
        let request = stack.client().request(Method::POST, "/chat/completions");
        let answer = whole(request.header("content-type", "application/json; charset=utf-8").body(body.clone())).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let arrived = &stack.mock.requests()[0];
        // A stream is asked for its usage, which is taken out of the answer again.
        let asks = body.replace("0.70 } ", "0.70,\"stream_options\":{\"include_usage\":true} } ");
        let body = if is_streaming == "true" { asks } else { body };
        assert_eq!(arrived.body, body.as_bytes(), "stream: {is_streaming}");
        assert_eq!((&arrived.method[..], &arrived.path[..]), ("POST", "/v1/chat/completions"));
        assert_eq!(arrived.header("content-length"), body.len().to_string());
    }
}

/// Bodies that a proxy might be tempted to improve.
fn answers() -> Vec<(&'static str, String)> {
    let big = format!("{{\"text\":\"{}\"}}", "Grüße 🌍 ".repeat(40_000));
    let events = "data: {\"choices\":[{\"delta\":{\"content\":\"Grüße 東京 🌍\"}}]}\n\n".repeat(50);
    vec![
        ("application/json", "{ \"b\" : 1,\n\"a\":1e0, \"a\":2 }\n".to_owned()),
        ("application/octet-stream", "not json at all".to_owned()),
        ("application/json", String::new()),
        ("text/plain; charset=latin1", "plain".to_owned()),
        ("application/json", big),
        ("text/event-stream", format!("{events}data: [DONE]\n\n")),
        (
            "text/event-stream; charset=utf-8",
            "\u{feff}: hello\r\n\r\nid: 1\r\nevent: x\r\ndata: a\r\ndata: b\r\n\r\n".to_owned(),
        ),
        ("text/event-stream", ": ping\n\n: ping\n\ndata: {}\n\n: ping\n\ndata: [DONE]\n\n".to_owned()),
        ("text/event-stream", "data: one\r\rdata: two\r\r".to_owned()),
        ("text/event-stream", "data: ended\n\ndata: without its blank line".to_owned()),
        ("text/event-stream", "data: only half an event".to_owned()),
        (
            "text/event-stream",
            "retry: 1\n\n\n\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\\"error\\\"\"}}]}\n\ndata: [DONE]\n\n"
                .to_owned(),
        ),
    ]
}

#[tokio::test]
async fn the_caller_receives_the_providers_answer_byte_for_byte() {
    let stack = Stack::start().await;
    for (content_type, body) in answers() {
        for shape in
            [json!({}), json!({ "no_content_length": true }), json!({ "chunk_bytes": 7 }), json!({ "chunk_bytes": 1 })]
        {
            // One byte at a time is for the small ones.
            if body.len() > 10_000 && shape["chunk_bytes"].is_number() {
                continue;
            }
            let mut fault = shape.clone();
            fault["body"] = json!(body);
            fault["content_type"] = json!(content_type);
            stack.mock.script(json!([fault])).unwrap();
            let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
            assert_eq!(answer.status, 200, "{content_type} {shape} {}", answer.text());
            assert_eq!(answer.header("content-type"), content_type);
            assert_eq!(answer.text(), body, "{content_type} {shape}");
        }
    }
}

#[tokio::test]
async fn an_error_of_the_provider_arrives_with_its_status_headers_and_body() {
    let stack = Stack::start().await;
    for status in [400, 401, 403, 404, 409, 422, 429, 500, 503, 529] {
        let fault = json!({ "status": status, "retry_after": 7, "headers": { "x-ratelimit-remaining-requests": "0" } });
        stack.mock.script(json!([fault])).unwrap();
        let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.json()["error"]["message"], "mock error, as asked", "{status}");
        assert_eq!(answer.header("retry-after"), "7", "{status}");
        assert_eq!(answer.header("x-ratelimit-remaining-requests"), "0", "{status}");
        assert_ne!(answer.header("x-request-id"), "", "{status}");
    }
}

#[tokio::test]
async fn an_answer_without_a_body_stays_one() {
    let stack = Stack::start().await;
    for status in [204, 304] {
        stack.mock.script(json!([{ "status": status, "body": "" }])).unwrap();
        let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (status, 0));
        assert_eq!(answer.header("transfer-encoding"), "", "{status}");
    }
    let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.json()["object"], "chat.completion");
}

#[tokio::test]
async fn a_stream_ends_with_what_the_provider_ended_it_with() {
    let stack = Stack::start().await;
    let mut body = chat("Hello");
    body["stream"] = json!(true);
    body["stream_options"] = json!({ "include_usage": true });
    let answer = stack.client().post("/chat/completions", &body).await;
    let text = answer.text();
    let events: Vec<&str> = text.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert_eq!(events.last(), Some(&"data: [DONE]"));
    let usage: Value = serde_json::from_str(events[events.len() - 2].trim_start_matches("data: ")).unwrap();
    assert!(usage["usage"]["total_tokens"].as_u64() > Some(0), "{usage}");
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
    assert_eq!(answer.header("cache-control"), "no-cache");
    assert_eq!(answer.header("content-length"), "");
}

/// HTTP/1.0 knows no chunks: the end of the connection is the end of the answer.
#[tokio::test]
async fn an_http_1_0_client_gets_an_answer_without_chunks() {
    let stack = Stack::start().await;
    let events = "data: a\n\ndata: b\n\n";
    for lane in ["/v1/chat/completions", "/v1/rerank"] {
        let fault = json!([{ "body": events, "content_type": "text/event-stream", "no_content_length": true }]);
        stack.mock.script(fault).unwrap();
        let mut wire = crate::raw::Wire::open(stack.proxy_port).await;
        let body = chat("Hello").to_string();
        wire.send(crate::raw::post(lane, &crate::raw::credentials(&stack), &body).replace("HTTP/1.1", "HTTP/1.0"))
            .await;
        let answer = wire.answer().await.expect("an answer");
        assert_eq!((answer.status, answer.header("transfer-encoding"), &*answer.text()), (200, "", events), "{lane}");
    }
}
