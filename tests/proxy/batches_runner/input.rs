//! Inputs that cannot be run: each is told with its line, and nothing of it starts.

use super::{application, begin_with, jsonl, number, paced, row, rows, until_status};
use serde_json::json;

#[tokio::test]
async fn a_file_with_a_fault_fails_its_batch_and_starts_nothing() {
    let stack = paced(100).start().await;
    let mut twice = rows(3);
    twice[2] = row("row-1", "again");
    let mut elsewhere = rows(2);
    elsewhere[1]["url"] = json!("/v1/embeddings");
    let many: String = jsonl(&rows(50_001));
    for (content, code, line) in [
        (format!("{}not json\n", jsonl(&rows(2))), "invalid_json_line", json!(3)),
        (jsonl(&twice), "duplicate_custom_id", json!(3)),
        (jsonl(&elsewhere), "mismatched_url", json!(2)),
        (many, "too_many_requests", json!(50_001)),
        ("\n\n".to_owned(), "empty_file", json!(null)),
    ] {
        let batch = begin_with(&stack, &application(&stack), &content, json!({})).await;
        let failed = until_status(&stack, &batch, "failed").await;
        let error = &failed["errors"]["data"][0];
        assert_eq!((&error["code"], &error["line"]), (&json!(code), &line), "{failed}");
        assert!(failed["failed_at"].is_i64() && failed["in_progress_at"].is_null(), "{failed}");
        assert_eq!(failed["request_counts"], json!({ "total": 0, "completed": 0, "failed": 0 }));
        let output = application(&stack).get(&format!("/batches/{batch}/output")).await;
        assert_eq!(output.status, 400, "{}", output.text());
        assert!(output.text().contains("no row of the batch was answered"), "{}", output.text());
    }
    assert_eq!(number(&stack, "SELECT count(*) FROM batch_rows").await, 0);
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn rows_are_found_again_in_a_file_of_several_parts() {
    let stack = paced(1000).start().await;
    // Each is about a megabyte, so that some lie in two parts.
    let long = "x".repeat(1 << 20);
    let input: Vec<_> = (1..=18).map(|number| row(&format!("row-{number}"), &format!("{number} {long}"))).collect();
    let batch = begin_with(&stack, &application(&stack), &jsonl(&input), json!({})).await;
    let done = until_status(&stack, &batch, "completed").await;
    assert_eq!(done["request_counts"], json!({ "total": 18, "completed": 18, "failed": 0 }), "{done}");
}
