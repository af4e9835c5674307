//! Guardrails at the routes of Google's and Bedrock's own clients: they read and change these bodies too, and speak of it in the
//! vendors' own words.

use super::none_of;
use crate::routing::{asked, client, target};
use harness::Stack;
use serde_json::{Value, json};

const GEMINI: &str = "/v1beta/models/m:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/m:streamGenerateContent";
const CONVERSE: &str = "/model/m/converse";
const CONVERSE_STREAM: &str = "/model/m/converse-stream";

fn contents(text: &str) -> Value {
    json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] })
}

fn messages(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": [{ "text": text }] }] })
}

fn routes(text: &str) -> [(&'static str, Value); 4] {
    [
        (GEMINI, contents(text)),
        (GEMINI_STREAM, contents(text)),
        (CONVERSE, messages(text)),
        (CONVERSE_STREAM, messages(text)),
    ]
}

#[tokio::test]
async fn a_denied_request_is_446_in_the_vendors_words_and_no_provider_hears_of_it() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "input_guardrails": [none_of("secret", json!({ "deny": true }))] }));
    for (path, body) in routes("a secret") {
        let answer = client(&stack, &config).post(path, &body).await;
        assert_eq!(answer.status, 446, "{path}: {}", answer.text());
        let told = answer.json();
        assert_eq!(told["hook_results"]["before_request_hooks"][0]["deny"], true, "{path}: {told}");
        match path.contains("models") {
            true => assert_eq!(
                (&told["error"]["code"], &told["error"]["status"]),
                (&json!(446), &json!("INVALID_ARGUMENT"))
            ),
            false => {
                assert_eq!(answer.header("x-amzn-errortype"), "ValidationException", "{path}");
                assert!(told["message"].is_string() && told.get("error").is_none(), "{told}");
            }
        }
    }
    assert_eq!(asked(&stack), 0);
    for (path, body) in routes("nothing of the kind") {
        assert_eq!(client(&stack, &config).post(path, &body).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn what_is_redacted_is_what_the_provider_gets_and_comes_back_where_it_was() {
    let stack = Stack::start().await;
    let redact = json!({ "default.pii": { "reversible": true } });
    let config = target(&stack, json!({ "input_guardrails": [redact] }));
    for (path, body) in routes("write to ann@example.com") {
        stack.mock.script(json!([{ "reply": "I wrote to [EMAIL_1] today.", "chunks": 6 }])).unwrap();
        let answer = client(&stack, &config).post(path, &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let sent = stack.mock.requests().pop().unwrap();
        assert!(!String::from_utf8_lossy(&sent.body).contains("ann@example.com"), "{path}");
        assert!(answer.text().contains("ann@example.com"), "{path}: {}", answer.text());
    }
}

#[tokio::test]
async fn an_answer_is_denied_marked_or_passed_and_a_held_stream_lets_nothing_out() {
    let stack = Stack::start().await;
    for (actions, statuses) in [
        (json!({}), [246, 200, 246, 200]),
        (json!({ "deny": true, "stream": "report" }), [446, 200, 446, 200]),
        (json!({ "deny": true }), [446, 446, 446, 446]),
        (json!({ "deny": true, "stream": "hold" }), [446, 446, 446, 446]),
        (json!({ "deny": true, "async": true }), [200, 200, 200, 200]),
    ] {
        let config = target(&stack, json!({ "output_guardrails": [none_of("leak", actions.clone())] }));
        for ((path, body), status) in routes("Hello").into_iter().zip(statuses) {
            stack.mock.script(json!([{ "reply": "here is a leak of it" }])).unwrap();
            let answer = client(&stack, &config).post(path, &body).await;
            assert_eq!(answer.status, status, "{path} {actions}: {}", answer.text());
            // A stream says it in pieces.
            let said = answer.text().contains("a leak of") || answer.text().contains("\"leak \"");
            assert_eq!(said, status != 446, "{path} {actions}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn results_stand_in_streams_as_events_of_their_own_where_clients_can_take_them() {
    let stack = Stack::start().await;
    let config = target(
        &stack,
        json!({ "input_guardrails": [none_of("x", json!({}))], "output_guardrails": [none_of("never", json!({}))],
            "strict_open_ai_compliance": false }),
    );
    let list = client(&stack, &config).post(GEMINI_STREAM, &contents("Hello")).await.json();
    let list = list.as_array().unwrap();
    assert!(list.first().unwrap()["hook_results"]["before_request_hooks"][0]["verdict"] == true, "{list:?}");
    assert!(list.last().unwrap()["hook_results"]["after_request_hooks"][0]["verdict"] == true, "{list:?}");
    let framed = client(&stack, &config).post(CONVERSE_STREAM, &messages("Hello")).await;
    assert_eq!(framed.text().matches("\"hook_results\":").count(), 2, "{}", framed.text());
}

#[tokio::test]
async fn a_soft_denial_is_an_answer_of_the_vendor_whole_and_in_its_frames() {
    let stack = Stack::start().await;
    let hook = none_of("secret", json!({ "deny": true, "soft_deny_200": true, "message": "Not here." }));
    let config = target(&stack, json!({ "input_guardrails": [hook] }));
    for ((path, body), kind) in routes("a secret").into_iter().zip([
        "application/json",
        "application/json",
        "application/json",
        "application/vnd.amazon.eventstream",
    ]) {
        let answer = client(&stack, &config).post(path, &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(answer.header("content-type").starts_with(kind), "{path}: {}", answer.header("content-type"));
        assert!(answer.text().contains("Not here."), "{path}: {}", answer.text());
    }
    assert_eq!(asked(&stack), 0);
}
