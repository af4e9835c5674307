//! A batch from its file to its results: order, counts, money and logs.

use super::{
    application, asked, begin, begin_with, ids, jsonl, lines, number, paced, row, rows, shown, sql, until_status,
};
use serde_json::{Value, json};

#[tokio::test]
async fn every_row_is_answered_once_in_the_order_of_the_input_and_is_paid_and_logged_as_any_call() {
    let stack = paced(100).start().await;
    let mut input = rows(30);
    input[7] = row("row-8", r#"{"mock":{"status":400}}"#);
    let batch = begin(&stack, &input).await;
    let done = until_status(&stack, &batch, "completed").await;
    assert_eq!(done["request_counts"], json!({ "total": 30, "completed": 29, "failed": 1 }), "{done}");
    for time in ["in_progress_at", "finalizing_at", "completed_at", "expires_at"] {
        assert!(done[time].is_i64(), "{time}: {done}");
    }
    assert_eq!((&done["errors"], &done["model"]), (&Value::Null, &json!("gpt-4o-mini")));
    let output = lines(&stack, &done["output_file_id"]).await;
    let expected: Vec<String> = (1..=30).filter(|number| *number != 8).map(|number| format!("row-{number}")).collect();
    assert_eq!(ids(&output), expected);
    for line in &output {
        assert_eq!((&line["error"], &line["asked"]), (&Value::Null, &Value::Null), "{line}");
        let response = &line["response"];
        assert_eq!((&response["status_code"], &response["body"]["object"]), (&json!(200), &json!("chat.completion")));
    }
    let errors = lines(&stack, &done["error_file_id"]).await;
    assert_eq!((ids(&errors), &errors[0]["response"]["status_code"]), (vec!["row-8"], &json!(400)));
    assert!(errors[0]["error"]["message"].is_string(), "{}", errors[0]);
    assert_eq!(number(&stack, "SELECT count(*) FROM batch_rows").await, 0, "results are in the files alone");
    // As logs have it.
    let logged = format!(
        "SELECT count(*) FROM request_logs WHERE metadata ->> '_batch_id' = '{batch}' AND metadata ->> '_batch_row' IS NOT NULL"
    );
    stack.until("all logs have come", async || number(&stack, &logged).await == 30).await;
    let sum = format!(
        "SELECT (sum(l.cost) = (SELECT cost FROM batches))::int::bigint FROM request_logs l
         WHERE metadata ->> '_batch_id' = '{batch}'"
    );
    assert_eq!(number(&stack, &sum).await, 1, "the cost is that of the rows");
    assert!(done["cost"].as_f64().unwrap() > 0.0, "{done}");
}

#[tokio::test]
async fn progress_and_cost_are_shown_while_it_runs() {
    let stack = paced(1).start().await;
    let batch = begin(&stack, &rows(1000)).await;
    let has_progress = async || {
        let now = shown(&stack, &batch).await;
        let counts = &now["request_counts"];
        now["status"] == "in_progress"
            && counts["total"] == 1000
            && counts["completed"].as_i64() > Some(1)
            && now["cost"].as_f64() > Some(0.0)
    };
    stack.until("some rows are answered", has_progress).await;
}

#[tokio::test]
async fn rows_are_run_with_what_the_batch_says_and_pass_through_its_config() {
    let stack = paced(100).start().await;
    let config = json!({ "provider": "openai", "api_key": "sk-mock", "custom_host": stack.mock.url(),
        "override_params": { "temperature": 0.25 } });
    let options = json!({ "x-gateway-config": config, "x-gateway-metadata": { "team": "blue" },
        "x-gateway-provider": null, "x-gateway-custom-host": null, "authorization": null });
    let mut streamed = row("a", "hello rows");
    streamed["body"]["stream"] = json!(true);
    let batch = begin_with(&stack, &application(&stack), &jsonl(&[streamed]), options).await;
    let done = until_status(&stack, &batch, "completed").await;
    let output = lines(&stack, &done["output_file_id"]).await;
    assert_eq!(lines(&stack, &done["error_file_id"]).await, [] as [Value; 0]);
    assert_eq!(output[0]["response"]["body"]["object"], "chat.completion", "{}", output[0]);
    assert_eq!(asked(&stack, "hello rows"), 1);
    let sent: Value = serde_json::from_slice(&stack.mock.requests().last().unwrap().body).unwrap();
    assert_eq!((&sent["temperature"], &sent["stream"]), (&json!(0.25), &Value::Null), "{sent}");
    let logged = format!(
        "SELECT count(*) FROM request_logs WHERE metadata ->> '_batch_id' = '{batch}' AND metadata ->> 'team' = 'blue'"
    );
    stack.until("the log has come", async || number(&stack, &logged).await == 1).await;
}

#[tokio::test]
async fn several_proxies_share_the_rows_of_a_batch() {
    const ANSWERED: &str = "gateway_batch_rows_total{outcome=\"answered\"}";
    // A proxy that waits for a row has room for no other.
    let stack = paced(2).proxy("BATCH_CONCURRENCY", "1").start().await;
    let replica = stack.replica().await;
    let slow = |number: usize| row(&format!("row-{number}"), r#"{"mock":{"latency_ms":1500}}"#);
    let input: Vec<Value> = (1..=12).map(slow).collect();
    let batch = begin(&stack, &input).await;
    let done = until_status(&stack, &batch, "completed").await;
    assert_eq!(done["request_counts"]["completed"], 12, "{done}");
    let counted = async || [stack.metric(ANSWERED).await.unwrap_or(0.0), replica.metric(ANSWERED).await.unwrap_or(0.0)];
    stack.until("all are counted", async || counted().await.iter().sum::<f64>() == 12.0).await;
    assert!(counted().await.iter().all(|rows| *rows > 0.0), "{:?}", counted().await);
    assert_eq!(lines(&stack, &done["output_file_id"]).await.len(), 12);
}

#[tokio::test]
async fn a_workspace_with_few_rows_under_way_comes_before_one_with_many() {
    let stack = paced(10).proxy("BATCH_CONCURRENCY", "2").start().await;
    let other = stack.anonymous().with_key(&stack.organisation().await.workspace_key);
    // Long enough for the other's batch to be found good meanwhile.
    let (soon, never) = (r#"{"mock":{"latency_ms":8000}}"#, r#"{"mock":{"latency_ms":3600000}}"#);
    let mut many = vec![row("soon", soon), row("never", never)];
    many.extend(rows(20));
    begin(&stack, &many).await;
    stack.until("there is no room for more", async || stack.mock.requests().len() == 2).await;
    begin_with(&stack, &other, &jsonl(&[row("other", "of another workspace")]), json!({})).await;
    stack.until("the next rows are asked", async || stack.mock.requests().len() >= 4).await;
    let third = String::from_utf8_lossy(&stack.mock.requests()[2].body).into_owned();
    assert!(third.contains("of another workspace"), "{third}");
}

#[tokio::test]
async fn the_batches_of_one_organisation_hide_those_of_no_other_however_many_workspaces_it_has() {
    let stack = paced(10).start().await;
    let many = stack.organisation().await.id;
    // In more workspaces than batches are looked at in one go, all due for longer, and more than can be failed while this
    // test waits: their inputs are not there.
    let waiting = format!(
        "WITH homes AS (INSERT INTO workspaces (organisation_id, slug, name, status)
             SELECT '{many}', 'gone-' || n, 'Gone ' || n, 'archived' FROM generate_series(1, 150) AS n RETURNING id)
         INSERT INTO batches (id, organisation_id, workspace_id, api_key_id, mode, endpoint, completion_window,
             input_file_id, expires_at, next_step_at)
         SELECT gen_random_uuid(), '{many}', id, gen_random_uuid(), 'immediate', '/v1/chat/completions', 'immediate',
             gen_random_uuid(), now() + interval '1 day', now() - interval '1 hour' FROM homes, generate_series(1, 30)"
    );
    sql(&stack, &waiting).await;
    let batch = begin(&stack, &rows(2)).await;
    until_status(&stack, &batch, "completed").await;
}
