//! Batches that end before their time: cancelled, or expired. What ran is in their output, and the rest is told.

use super::{application, begin, begin_with, ids, jsonl, lines, paced, row, rows, shown, sql, until_status};
use crate::limits::fairness::keys;
use serde_json::json;

#[tokio::test]
async fn a_cancelled_batch_begins_nothing_more_and_keeps_what_ran() {
    let stack = paced(2).start().await;
    let batch = begin(&stack, &rows(200)).await;
    stack.until("some rows ran", async || shown(&stack, &batch).await["request_counts"]["completed"] != 0).await;
    let cancelled = application(&stack).post(&format!("/batches/{batch}/cancel"), &json!({})).await;
    assert_eq!((cancelled.status.as_u16(), &cancelled.json()["status"]), (200, &json!("cancelling")));
    let done = until_status(&stack, &batch, "cancelled").await;
    let output = lines(&stack, &done["output_file_id"]).await;
    let errors = lines(&stack, &done["error_file_id"]).await;
    assert_eq!(output.len() + errors.len(), 200, "each row once");
    assert_eq!(
        stack.mock.requests().len(),
        output.len(),
        "what was asked is in the output, and nothing is asked since"
    );
    assert_eq!(done["request_counts"], json!({ "total": 200, "completed": output.len(), "failed": 0 }), "{done}");
    assert!(errors.iter().all(|line| line["error"]["code"] == "batch_cancelled" && line["response"].is_null()));
    assert!(done["cancelling_at"].is_i64() && done["cancelled_at"].is_i64(), "{done}");
}

#[tokio::test]
async fn rows_under_way_are_waited_for_when_a_batch_is_cancelled() {
    let stack = paced(2).start().await;
    let slow = r#"{"mock":{"latency_ms":3000}}"#;
    let batch = begin(&stack, &[row("slow-1", slow), row("slow-2", slow), row("never", "late")]).await;
    stack.until("two are under way", async || stack.mock.requests().len() == 2).await;
    application(&stack).post(&format!("/batches/{batch}/cancel"), &json!({})).await;
    let done = until_status(&stack, &batch, "cancelled").await;
    assert_eq!(ids(&lines(&stack, &done["output_file_id"]).await), ["slow-1", "slow-2"]);
    assert_eq!(ids(&lines(&stack, &done["error_file_id"]).await), ["never"]);
}

#[tokio::test]
async fn rows_that_wait_for_their_turn_when_a_batch_is_cancelled_are_not_asked() {
    let stack = paced(10).start().await;
    let key = keys(&stack, &json!({ "max_in_flight": 1, "max_wait_ms": 60_000 }), &[10]).await.remove(0);
    let client = stack.anonymous().with_key(&key);
    let slow = r#"{"mock":{"latency_ms":3000}}"#;
    let input: Vec<_> = (1..=5).map(|number| row(&format!("row-{number}"), slow)).collect();
    let options = json!({ "x-gateway-provider": "@shared", "x-gateway-custom-host": null, "authorization": null });
    let batch = begin_with(&stack, &client, &jsonl(&input), options).await;
    let waits = async || stack.metric("gateway_fairness_waiting").await.is_some_and(|waiting| waiting >= 1.0);
    stack.until("others wait for the first", waits).await;
    let path = format!("/batches/{batch}");
    let cancelled = client.post(&format!("{path}/cancel"), &json!({})).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    stack.until("it is cancelled", async || client.get(&path).await.json()["status"] == "cancelled").await;
    let done = client.get(&path).await.json();
    assert_eq!(done["request_counts"], json!({ "total": 5, "completed": 1, "failed": 0 }), "{done}");
    assert_eq!(stack.mock.requests().len(), 1);
}

#[tokio::test]
async fn an_expired_batch_keeps_what_ran() {
    let stack = paced(2).start().await;
    let batch = begin(&stack, &rows(200)).await;
    stack.until("some rows ran", async || shown(&stack, &batch).await["request_counts"]["completed"] != 0).await;
    sql(&stack, "UPDATE batches SET expires_at = now()").await;
    let done = until_status(&stack, &batch, "expired").await;
    let output = lines(&stack, &done["output_file_id"]).await;
    let errors = lines(&stack, &done["error_file_id"]).await;
    assert_eq!((output.len() + errors.len(), output.is_empty()), (200, false), "each row once");
    assert!(errors.iter().all(|line| line["error"]["code"] == "batch_expired"));
    assert_eq!(done["request_counts"]["completed"], json!(output.len()));
    assert!(done["expired_at"].is_i64() && done["completed_at"].is_null(), "{done}");
}
