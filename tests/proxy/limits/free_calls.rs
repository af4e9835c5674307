//! Calls that cost nothing under budgets: uploading, looking up, deleting and stopping pass a strict budget whatever its unit, and
//! one that is used up; what may cost something, and has no bound, is refused.

use super::{limited_key, patient};
use crate::families::FORM_TYPE;
use crate::journal::calls::{rows, tokens};
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::json;

const FORM: &str = "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\n\
    Content-Disposition: form-data; name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{}\r\n--xYz--\r\n";

/// Method, path, and whether a strict budget lets it pass.
const OPERATIONS: &[(&str, &str, bool)] = &[
    ("POST", "/files", true),
    ("GET", "/files", true),
    ("GET", "/files/file-1", true),
    ("GET", "/files/file-1/content", true),
    ("DELETE", "/files/file-1", true),
    ("POST", "/uploads", true),
    ("POST", "/uploads/upload_1/complete", true),
    ("POST", "/batches", false),
    ("GET", "/batches", true),
    ("GET", "/batches/batch_1", true),
    ("POST", "/batches/batch_1/cancel", true),
    ("POST", "/vector_stores", false),
    ("GET", "/vector_stores", true),
    ("GET", "/vector_stores/vs_1", true),
    ("DELETE", "/vector_stores/vs_1", true),
    ("POST", "/vector_stores/vs_1/search", false),
    ("GET", "/responses/resp_1", true),
    ("DELETE", "/responses/resp_1", true),
    ("POST", "/fine_tuning/jobs", false),
    ("GET", "/fine_tuning/jobs", true),
    ("POST", "/fine_tuning/jobs/ftjob_1/cancel", true),
    ("POST", "/threads/thread_1/runs", false),
    ("GET", "/models", true),
];

async fn status(client: &Client, method: &str, path: &str) -> u16 {
    let request = client.request(Method::from_bytes(method.as_bytes()).unwrap(), path);
    let request = match (method, path) {
        ("POST", "/files") => request.header("content-type", FORM_TYPE).body(FORM),
        ("POST", _) => request.json(&json!({ "model": "gpt-4o" })),
        _ => request,
    };
    whole(request).await.status.as_u16()
}

async fn limited(stack: &Stack, kind: &str, strict: bool) -> Client {
    let limits = json!({ "usage_limits": { "type": kind, "credit_limit": 1, "strict": strict } });
    limited_key(stack, limits).await.1
}

#[tokio::test]
async fn what_costs_nothing_passes_strict_budgets_and_what_has_no_bound_does_not() {
    let stack = patient().await;
    for kind in ["tokens", "cost"] {
        let client = limited(&stack, kind, true).await;
        for (method, path, is_free) in OPERATIONS {
            let status = status(&client, method, path).await;
            assert_eq!(status != 412, *is_free, "{kind} {method} {path}: {status}");
        }
    }
}

#[tokio::test]
async fn what_is_kept_deleted_or_stopped_passes_a_budget_that_is_used_up() {
    let stack = patient().await;
    let client = limited(&stack, "tokens", false).await;
    let is_used_up = async || client.post("/chat/completions", &harness::chat("Hello")).await.status == 412;
    stack.until("it is used up", is_used_up).await;
    for (method, path) in [("POST", "/files"), ("DELETE", "/files/file-1"), ("POST", "/batches/batch_1/cancel")] {
        assert_ne!(status(&client, method, path).await, 412, "{method} {path}");
    }
}

#[tokio::test]
async fn files_and_batches_of_the_gateways_own_are_made_under_a_strict_budget() {
    let stack = patient().await;
    let limits = json!({ "usage_limits": { "type": "tokens", "credit_limit": 100_000, "strict": true } });
    let (key, _) = limited_key(&stack, limits).await;
    let client = stack.anonymous().with_key(&key);
    let row = json!({ "custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": { "model": "gpt-4o",
        "max_tokens": 100, "messages": [{ "role": "user", "content": "Hello" }] } });
    let form = FORM.replace("{}", &row.to_string());
    let made = whole(client.request(Method::POST, "/files").header("content-type", FORM_TYPE).body(form)).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let options = json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": stack.mock.url(),
        "authorization": "Bearer sk-mock" });
    let asked = json!({ "input_file_id": made.json()["id"], "endpoint": "/v1/chat/completions",
        "completion_window": "immediate", "gateway_options": options });
    let batch = client.post("/batches", &asked).await;
    assert_eq!(batch.status, 200, "{}", batch.text());
    let path = format!("/batches/{}", batch.json()["id"].as_str().unwrap());
    stack.until("its row is run", async || client.get(&path).await.json()["request_counts"]["completed"] == 1).await;
}

#[tokio::test]
async fn a_response_that_is_read_again_costs_nothing_and_one_made_in_the_background_once() {
    let stack = patient().await;
    let limits = json!({ "usage_limits": { "type": "tokens", "credit_limit": 100_000 } });
    let (_, client) = limited_key(&stack, limits).await;
    let calls = [
        ("/responses/resp_1", false, "application/json", 0),
        ("/responses/resp_1", false, "application/json", 0),
        ("/responses/resp_2", true, "application/json", 12),
        ("/responses/resp_2", true, "application/json", 0),
        ("/responses/resp_3", true, "application/json", 12),
        ("/responses/resp_4?stream=true", true, "text/event-stream", 12),
        ("/responses/resp_4?stream=true", true, "text/event-stream", 0),
    ];
    for (path, background, content_type, _) in calls {
        let response = json!({ "id": "resp", "object": "response", "status": "completed", "background": background,
            "model": "gpt-4o", "output": [], "usage": { "input_tokens": 7, "output_tokens": 5, "total_tokens": 12 } });
        let event = json!({ "type": "response.completed", "response": response });
        let body = match content_type {
            "text/event-stream" => format!("event: response.completed\ndata: {event}\n\n"),
            _ => response.to_string(),
        };
        stack.mock.script(json!([{ "body": body, "content_type": content_type }])).unwrap();
        let answer = client.get(path).await;
        assert_eq!((u16::from(answer.status), answer.text()), (200, body), "{path}");
    }
    let charged: Vec<i64> = rows(&stack, calls.len()).await.iter().map(|row| tokens(row).0 + tokens(row).1).collect();
    assert_eq!(charged, calls.map(|(.., tokens)| tokens));
}
