//! What a caller says of its call besides the call itself: spans, metadata, the length of a recording; and the parts of the
//! gateway's own time.

use super::calls::{rows, text};
use harness::client::whole;
use harness::{Stack, chat};
use http::Method;
use serde_json::{Value, json};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn a_call_is_below_the_span_of_its_traceparent_and_has_a_span_of_its_own() {
    let stack = Stack::start().await;
    let client = stack.client().with("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01"));
    let body = chat("Hello");
    assert_eq!(client.post("/chat/completions", &body).await.status, 200);
    let named = client.with("x-gateway-span-name", "step").with("x-gateway-parent-span-id", "above");
    assert_eq!(named.with("x-gateway-span-id", "mine").post("/chat/completions", &body).await.status, 200);
    assert_eq!(named.with("x-gateway-trace-id", "other").post("/chat/completions", &body).await.status, 200);
    assert_eq!(stack.client().post("/chat/completions", &body).await.status, 200);
    let rows = rows(&stack, 4).await;
    let said = |row, column| text(row, column).map(str::to_owned);
    let spans: Vec<_> = rows
        .iter()
        .map(|row| {
            [said(row, "trace_id"), said(row, "parent_span_id"), said(row, "span_name")].map(Option::unwrap_or_default)
        })
        .collect();
    assert_eq!(spans[0], [TRACE, "00f067aa0ba902b7", "POST /v1/chat/completions"], "as the traceparent says");
    assert_eq!(spans[1], [TRACE, "above", "step"], "our own headers win");
    assert_eq!(spans[2], ["other", "above", "step"]);
    assert_eq!(spans[3][1..], ["", ""], "nobody said anything");
    assert_eq!(text(&rows[1], "span_id"), Some("mine"));
    for row in [&rows[0], &rows[2], &rows[3]] {
        let id = text(row, "span_id").expect("a span of its own");
        assert!(id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    }
}

#[tokio::test]
async fn headers_that_the_operator_names_become_metadata_under_everything_else() {
    let stack = Stack::builder().proxy("HEADERS_TO_METADATA", "x-team,X-Forwarded-User:_user").start().await;
    let client = stack.client().with("x-team", "search").with("x-forwarded-user", "ada");
    assert_eq!(client.post("/chat/completions", &chat("Hello")).await.status, 200);
    let own = client.with("x-gateway-metadata", r#"{"_user":"bob","n":1.5,"is":true,"none":null}"#);
    assert_eq!(own.post("/chat/completions", &chat("Hello")).await.status, 200);
    let found: Vec<Value> = rows(&stack, 2).await.iter().map(|row| row.get("metadata")).collect();
    assert_eq!(found[0], json!({ "x-team": "search", "_user": "ada" }));
    assert_eq!(found[1], json!({ "x-team": "search", "_user": "bob", "n": "1.5", "is": "true" }));
}

#[tokio::test]
async fn a_number_in_metadata_belongs_to_the_same_group_as_its_text() {
    let stack = crate::limits::patient().await;
    let body = json!({
        "name": "one-a-day", "type": "requests", "unit": "rpd", "value": 1, "group_by": [{ "key": "metadata.team" }],
        "conditions": [{ "key": "metadata.team", "value": "7" }],
    });
    crate::limits::policy(&stack, "/policies/rate-limits", body).await;
    let ask = async |metadata: Value| {
        let client = stack.client().with("x-gateway-metadata", metadata.to_string());
        client.post("/chat/completions", &chat("Hello")).await.status.as_u16()
    };
    stack.until("the policy is known", async || ask(json!({ "team": "7" })).await == 429).await;
    assert_eq!(ask(json!({ "team": 7 })).await, 429, "written as a number");
    assert_eq!(ask(json!({ "team": 8 })).await, 200);
}

#[tokio::test]
async fn a_recording_costs_by_the_length_its_sender_says_when_the_answer_does_not() {
    let stack = Stack::start().await;
    let form = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\nsound\r\n\
                --b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--b--\r\n";
    let silent = json!({ "text": "Hello" });
    let counted = json!({ "text": "Hello", "usage": { "type": "duration", "seconds": 3 } });
    let client = stack.client().with("x-gateway-audio-file-duration", "12500");
    for body in [silent, counted] {
        let answer = json!([{ "body": body.to_string(), "content_type": "application/json" }]);
        stack.mock.script(answer).unwrap();
        let request = client.request(Method::POST, "/audio/transcriptions");
        let answer = whole(request.header("content-type", "multipart/form-data; boundary=b").body(form)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let rows = rows(&stack, 2).await;
    let seconds: Vec<f64> = rows.iter().filter_map(|row| row.get::<_, Value>("usage")["seconds"].as_f64()).collect();
    assert_eq!(seconds, [12.5, 3.0], "what the provider counts comes first");
}

#[tokio::test]
async fn a_recording_of_which_nobody_says_how_long_it_is_costs_by_what_its_answer_shows_or_by_its_size() {
    let stack = Stack::start().await;
    // A second and a half at 128 kbit/s.
    let sound = "x".repeat(24_000);
    let form = format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\n{sound}\r\n\
         --b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--b--\r\n"
    );
    let cases = [
        ("application/json", r#"{"text":"Hello"}"#, 1.4..1.6, true),
        ("application/json", r#"{"task":"transcribe","duration":8.47,"text":"Hello"}"#, 8.46..8.48, false),
        ("text/plain; charset=utf-8", "Hello", 1.4..1.6, true),
        ("text/plain; charset=utf-8", "1\n00:00:00,000 --> 00:01:03,500\nHello\n", 63.4..63.6, false),
        ("text/vtt", "WEBVTT\n\n00:00.000 --> 00:03.250\nHello\n", 3.2..3.3, false),
    ];
    for (kind, body, _, _) in &cases {
        stack.mock.script(json!([{ "body": body, "content_type": kind }])).unwrap();
        let request = stack.client().request(Method::POST, "/audio/transcriptions");
        let request = request.header("content-type", "multipart/form-data; boundary=b").body(form.clone());
        let answer = whole(request).await;
        assert_eq!((answer.status.as_u16(), &*answer.text()), (200, *body));
    }
    let rows = rows(&stack, cases.len()).await;
    for (row, (kind, body, seconds, is_guessed)) in rows.iter().zip(&cases) {
        let found = row.get::<_, Value>("usage")["seconds"].as_f64();
        assert!(found.is_some_and(|found| seconds.contains(&found)), "{kind} {body}: {found:?}");
        assert_eq!(row.get::<_, bool>("usage_estimated"), *is_guessed, "{kind} {body}");
        let cost: Option<rust_decimal::Decimal> = row.get("cost");
        assert!(cost.is_some_and(|cost| cost > 0.into()), "{kind} {body}: {cost:?}");
    }
}

#[tokio::test]
async fn the_gateways_own_time_is_shown_in_parts() {
    let stack = Stack::start().await;
    let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
    let path = format!("/logs/{}", answer.header("x-gateway-request-id"));
    rows(&stack, 1).await;
    let log = stack.administrator().get(&path).await.json();
    let metrics = &log["metrics"];
    let time = |name: &str| metrics[name].as_u64().unwrap_or_else(|| panic!("{name}: {metrics}"));
    let names = ["request_parsing_time", "pre_processing_time", "cache_processing_time", "response_parsing_time"];
    let parts: u64 = names.into_iter().map(time).sum();
    assert_eq!(parts, time("gateway_processing_time"));
    stack
        .until("its bodies are stored", async || {
            let log = stack.administrator().get(&path).await.json();
            log["originalResponse"]["body"] == answer.json()
                && log["finalUntransformedRequest"]["body"] == chat("Hello")
        })
        .await;
}
