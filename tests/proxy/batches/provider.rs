//! Batches of a provider that is named: passed on as they are, and their output found where the provider keeps it.

use super::{asked, id, jsonl, row, send};
use harness::Stack;
use serde_json::{Value, json};

#[tokio::test]
async fn a_batch_of_openai_is_made_watched_and_read() {
    let stack = Stack::start().await;
    let client = stack.client();
    let file = send(&client, "batch", &jsonl(&[row("a", "gpt-4o-mini", "Hello")])).await.json();
    let made = client.post("/batches", &asked(id(&file), "24h")).await;
    assert_eq!((made.status.as_u16(), &made.json()["status"]), (200, &json!("validating")), "{}", made.text());
    let place = format!("/batches/{}", id(&made.json()));
    let early = client.get(&format!("{place}/output")).await;
    assert_eq!(early.status, 400, "{}", early.text());
    assert!(early.text().contains("no output yet"), "{}", early.text());
    stack.until("it is over", async || client.get(&place).await.json()["status"] == "completed").await;
    let output = client.get(&format!("{place}/output")).await;
    assert_eq!(output.status, 200, "{}", output.text());
    let row: Value = serde_json::from_str(output.text().trim()).unwrap();
    assert_eq!((&row["custom_id"], &row["response"]["status_code"]), (&json!("a"), &json!(200)), "{row}");
    let asked: Vec<String> = stack.mock.requests().iter().rev().take(2).map(|one| one.path.clone()).collect();
    assert!(asked[0].ends_with("/content") && asked[1].ends_with(id(&made.json())), "{asked:?}");
    assert_eq!(client.get("/batches").await.json()["data"][0]["id"], made.json()["id"]);
}

#[tokio::test]
async fn what_a_provider_says_against_it_is_passed_on() {
    let stack = Stack::start().await;
    let told = json!({ "error": { "message": "No batch found", "type": "invalid_request_error" } });
    stack.mock.script(json!([{ "status": 404, "body": told.to_string() }])).unwrap();
    let refused = stack.client().get("/batches/batch_9/output").await;
    assert_eq!((refused.status.as_u16(), refused.json()["error"]["message"].clone()), (404, json!("No batch found")));
}
