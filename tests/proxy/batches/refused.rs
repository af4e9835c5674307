//! What is wrong with a request for a batch is told with its field, and nothing is made of it.

use super::{asked, batches_made, jsonl, row, send, upload};
use crate::families::application;
use harness::Stack;
use serde_json::{Value, json};

#[tokio::test]
async fn each_field_that_is_wrong_is_named_and_nothing_is_started() {
    let stack = Stack::start().await;
    let client = application(&stack);
    let rows = jsonl(&[row("a", "m", "Hello")]);
    let file = upload(&client, &rows).await;
    let tuning = send(&client, "fine-tune", &rows).await.json()["id"].clone();
    let unknown = "gwf-00000000-0000-7000-8000-000000000000";
    let pairs: Value = (0..17).map(|pair| (pair.to_string(), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    for (field, value, status) in [
        ("endpoint", json!("/v1/images/generations"), 400),
        ("endpoint", json!(7), 400),
        ("completion_window", json!("48h"), 400),
        ("completion_window", Value::Null, 400),
        ("input_file_id", json!(unknown), 404),
        ("input_file_id", json!("gwf-1"), 404),
        ("input_file_id", json!("file-1"), 400),
        ("input_file_id", tuning, 400),
        ("metadata", pairs, 400),
        ("metadata", json!({ "k".repeat(65): "v" }), 400),
        ("metadata", json!({ "k": "v".repeat(513) }), 400),
        ("metadata", json!("text"), 400),
        ("gateway_options", json!({ "x-gateway-metdata": "{}" }), 400),
        ("gateway_options", json!({ "x-gateway-api-key": "pk_other" }), 400),
        ("gateway_options", json!({ "host": "example.com" }), 400),
        ("gateway_options", json!({ "completion_url": "https://hooks.example.com" }), 400),
        (
            "gateway_options",
            json!({ "completion_url": "https://169.254.169.254/", "completion_secret": "0123456789abcdef" }),
            400,
        ),
        ("gateway_options", json!({ "completion_url": "no url", "completion_secret": "0123456789abcdef" }), 400),
        ("provider_options", json!("text"), 400),
        ("model", json!(""), 400),
    ] {
        let mut body = asked(&file, "immediate");
        body[field] = value.clone();
        let refused = client.post("/batches", &body).await;
        assert_eq!(refused.status.as_u16(), status, "{field}: {value}: {}", refused.text());
        assert_eq!(refused.json()["error"]["param"], field, "{value}: {}", refused.text());
    }
    for body in [json!([]), json!("text"), Value::Null] {
        assert_eq!(client.post("/batches", &body).await.status, 400, "{body}");
    }
    let long = json!({ "input_file_id": file, "provider_options": { "x": "x".repeat(70_000) } });
    assert_eq!(client.post("/batches", &long).await.status, 413);
    assert_eq!(batches_made(&stack).await, 0);
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn lists_and_paths_that_are_none_are_refused() {
    let stack = Stack::start().await;
    let client = application(&stack);
    for bad in ["limit=0", "limit=101", "limit=x", "after=batch_1", "include_provider_details=maybe"] {
        assert_eq!(client.get(&format!("/batches?{bad}")).await.status, 400, "{bad}");
    }
    let unknown = "/batches/gwb-00000000-0000-7000-8000-000000000000";
    for path in [unknown, "/batches/gwb-1", "/batches/batch_1"] {
        assert_eq!(client.get(path).await.status, 404, "{path}");
        assert_eq!(client.get(&format!("{path}/output")).await.status, 404, "{path}");
        assert_eq!(client.post(&format!("{path}/cancel"), &json!({})).await.status, 404, "{path}");
    }
    assert_eq!(client.delete(unknown).await.status, 405);
    assert_eq!(client.get(&format!("{unknown}/rows")).await.status, 404);
}

#[tokio::test]
async fn a_file_beyond_the_bound_makes_no_batch() {
    let stack = Stack::start().await;
    let client = application(&stack);
    let file = upload(&client, &jsonl(&[row("a", "m", "Hello")])).await;
    // As if it were so long; nothing of it is read for this.
    const GROW: &str = "UPDATE managed_files SET bytes = 200000001";
    stack.database.client().await.execute(GROW, &[]).await.unwrap();
    let refused = client.post("/batches", &asked(&file, "immediate")).await;
    assert_eq!((refused.status.as_u16(), refused.json()["error"]["param"].clone()), (400, json!("input_file_id")));
    assert_eq!(batches_made(&stack).await, 0);
}
