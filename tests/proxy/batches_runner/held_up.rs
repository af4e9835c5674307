//! What holds a batch up without failing its rows: rates of providers, budgets and keys. And what fails rows after all.

use super::{application, asked, begin, begin_with, hurry, ids, jsonl, lines, paced, row, rows, shown, until_status};
use crate::limits::limited_key;
use harness::Stack;
use serde_json::{Value, json};

/// The reason for which a batch in progress waits.
async fn until_held_up(stack: &Stack, batch: &str, code: &str) -> Value {
    let is_held = async || shown(stack, batch).await["errors"]["data"][0]["code"] == code;
    stack.until(&format!("the batch waits because of {code}"), is_held).await;
    let now = shown(stack, batch).await;
    assert_eq!(now["status"], "in_progress", "{now}");
    now
}

#[tokio::test]
async fn a_provider_that_asks_to_wait_slows_a_batch_and_fails_no_row() {
    let stack = paced(1).start().await;
    stack.mock.script(json!([{ "status": 429, "retry_after": 2, "times": 5 }])).unwrap();
    let batch = begin(&stack, &rows(2)).await;
    let is_done = async || {
        hurry(&stack).await;
        shown(&stack, &batch).await["status"] == "completed"
    };
    stack.until("it is completed", is_done).await;
    let done = shown(&stack, &batch).await;
    assert_eq!(done["request_counts"], json!({ "total": 2, "completed": 2, "failed": 0 }), "{done}");
    assert_eq!(done["errors"], Value::Null, "what held it up is over");
    let output = lines(&stack, &done["output_file_id"]).await;
    let asks: i64 = output.iter().map(|line| line["asked"].as_i64().unwrap_or(1)).sum();
    assert_eq!((ids(&output), asks), (vec!["row-1", "row-2"], 7), "{output:?}");
}

#[tokio::test]
async fn a_wait_is_as_long_as_the_provider_says() {
    let stack = paced(1).start().await;
    stack.mock.script(json!([{ "status": 429, "retry_after": 120 }])).unwrap();
    let batch = begin(&stack, &rows(2)).await;
    until_held_up(&stack, &batch, "rate_limit_exceeded").await;
    const LATE: &str = "SELECT count(*) FROM batches b JOIN batch_rows r ON r.batch_id = b.id WHERE r.row_no = 1
        AND b.next_step_at > now() + interval '60 seconds' AND r.not_before > now() + interval '60 seconds'";
    stack.until("row and batch wait", async || super::number(&stack, LATE).await == 1).await;
    assert_eq!(asked(&stack, "question 2"), 0, "nothing else begins");
    hurry(&stack).await;
    until_status(&stack, &batch, "completed").await;
}

#[tokio::test]
async fn a_broken_provider_is_asked_four_times() {
    let stack = paced(10).start().await;
    let broken = r#"{"mock":{"status":503}}"#;
    let batch = begin(&stack, &[row("broken", broken), row("good", "hello")]).await;
    let is_done = async || {
        hurry(&stack).await;
        shown(&stack, &batch).await["status"] == "completed"
    };
    stack.until("it is completed", is_done).await;
    let done = shown(&stack, &batch).await;
    assert_eq!(done["request_counts"], json!({ "total": 2, "completed": 1, "failed": 1 }), "{done}");
    let errors = lines(&stack, &done["error_file_id"]).await;
    assert_eq!((ids(&errors), &errors[0]["asked"]), (vec!["broken"], &json!(4)), "{errors:?}");
    assert_eq!(errors[0]["response"]["status_code"], 503);
    assert_eq!(asked(&stack, "503"), 4);
}

#[tokio::test]
async fn a_budget_that_runs_out_pauses_a_batch_and_a_larger_one_lets_it_go_on() {
    let stack = paced(1).start().await;
    let (key, _) = limited_key(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 1 } })).await;
    let client = stack.anonymous().with_key(&key);
    let batch = begin_with(&stack, &client, &jsonl(&rows(3)), json!({})).await;
    let held = until_held_up(&stack, &batch, "budget_exhausted").await;
    assert_eq!(held["request_counts"], json!({ "total": 3, "completed": 1, "failed": 0 }), "{held}");
    assert_eq!(stack.mock.requests().len(), 1, "what a limit refuses is not sent");
    let limited = "SELECT id::text FROM api_keys WHERE usage_limits IS NOT NULL";
    let id: String = stack.database.client().await.query_one(limited, &[]).await.unwrap().get(0);
    let raised = json!({ "usage_limits": { "type": "tokens", "credit_limit": 100_000 } });
    let answer = stack.administrator().put(&format!("/api-keys/{id}"), &raised).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let is_done = async || {
        hurry(&stack).await;
        shown(&stack, &batch).await["status"] == "completed"
    };
    stack.until("it goes on", is_done).await;
    let done = shown(&stack, &batch).await;
    let output = lines(&stack, &done["output_file_id"]).await;
    assert_eq!(ids(&output), ["row-1", "row-2", "row-3"]);
    assert!(output.iter().all(|line| line["asked"].is_null()), "nobody was asked in vain: {output:?}");
}

#[tokio::test]
async fn the_rows_of_a_key_that_is_gone_are_not_run() {
    let stack = paced(1).start().await;
    let (key, client) = limited_key(&stack, json!({})).await;
    let batch = begin_with(&stack, &stack.anonymous().with_key(&key), &jsonl(&rows(500)), json!({})).await;
    stack.until("it runs", async || shown(&stack, &batch).await["request_counts"]["completed"] != 0).await;
    let made = "SELECT api_key_id::text FROM batches";
    let id: String = stack.database.client().await.query_one(made, &[]).await.unwrap().get(0);
    let gone = stack.administrator().delete(&format!("/api-keys/{id}")).await;
    assert!(gone.status.is_success(), "{}", gone.text());
    stack.until("the key is refused", async || client.get("/models").await.status == 401).await;
    let held = until_held_up(&stack, &batch, "invalid_api_key").await;
    assert!(held["request_counts"]["completed"].as_i64() < Some(500), "{held}");
    let others = application(&stack).post(&format!("/batches/{batch}/cancel"), &json!({})).await;
    assert_eq!(others.status, 200, "any key of the workspace may end it: {}", others.text());
    until_status(&stack, &batch, "cancelled").await;
}
