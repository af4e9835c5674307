//! Proxies that die with rows in their hands, as their leases tell: what they held is asked again, is marked, and counts once.

use super::{application, asked, begin, ids, lines, number, paced, rows, sql, until_status};
use bench::process::Signal;
use serde_json::{Value, json};
use std::time::Duration;

/// As if the holder had not been heard of for long.
const DEAD: &str = "UPDATE batch_rows SET lease_owner = gen_random_uuid(), lease_until = now() - interval '1 second'
    WHERE state = 1";

#[tokio::test]
async fn a_row_whose_holder_is_gone_is_asked_again_and_says_so() {
    let stack = paced(10).start().await;
    // The first to be asked does not answer while the test lasts.
    stack.mock.script(json!([{ "latency_ms": 3_600_000 }])).unwrap();
    let batch = begin(&stack, &rows(1)).await;
    stack.until("the row is asked", async || asked(&stack, "question 1") == 1).await;
    assert_eq!(sql(&stack, DEAD).await, 1);
    let done = until_status(&stack, &batch, "completed").await;
    let output = lines(&stack, &done["output_file_id"]).await;
    assert_eq!((ids(&output), &output[0]["asked"]), (vec!["row-1"], &json!(2)), "{output:?}");
    assert_eq!(asked(&stack, "question 1"), 2);
    stack.until_metric("gateway_batch_takeovers_total", 1.0).await;
}

#[tokio::test]
async fn of_two_answers_to_a_row_the_first_counts() {
    let stack = paced(10).start().await;
    stack.mock.script(json!([{ "latency_ms": 4000 }])).unwrap();
    let batch = begin(&stack, &rows(1)).await;
    stack.until("the row is asked", async || asked(&stack, "question 1") == 1).await;
    assert_eq!(sql(&stack, DEAD).await, 1);
    let done = until_status(&stack, &batch, "completed").await;
    assert_eq!(done["request_counts"], json!({ "total": 1, "completed": 1, "failed": 0 }), "{done}");
    const DOUBLED: &str = "gateway_batch_rows_total{outcome=\"doubled\"}";
    stack.until("the other answer comes", async || stack.metric(DOUBLED).await == Some(1.0)).await;
    let after = until_status(&stack, &batch, "completed").await;
    assert_eq!((&after["request_counts"], &after["cost"]), (&done["request_counts"], &done["cost"]));
    assert_eq!(lines(&stack, &after["output_file_id"]).await.len(), 1);
}

#[tokio::test]
async fn a_killed_proxys_rows_are_run_by_another() {
    let mut stack = paced(10).proxy("BATCH_CONCURRENCY", "10").start().await;
    stack.mock.script(json!([{ "latency_ms": 3_600_000, "times": 10 }])).unwrap();
    let batch = begin(&stack, &rows(20)).await;
    stack.until("some rows are under way", async || stack.mock.requests().len() == 10).await;
    stack.proxy.kill();
    let replica = stack.replica().await;
    sql(&stack, "UPDATE batch_rows SET lease_until = now() - interval '1 second' WHERE state = 1").await;
    let client = application(&stack).at(&replica.base_url);
    let path = format!("/batches/{batch}");
    stack.until("it is completed", async || client.get(&path).await.json()["status"] == "completed").await;
    let done = client.get(&path).await.json();
    let content = client.get(&format!("/files/{}/content", done["output_file_id"].as_str().unwrap())).await.text();
    let output: Vec<Value> = content.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: Vec<String> = (1..=20).map(|number| format!("row-{number}")).collect();
    assert_eq!(ids(&output), expected);
    let marked = output.iter().filter(|line| line["asked"] == 2).count();
    assert_eq!(marked, 10, "those that were in flight");
}

#[tokio::test]
async fn results_that_a_killed_proxy_had_written_and_not_told_of_are_written_anew_and_count_once() {
    // Whoever tells of a file of results waits while the test holds the lock.
    const GATE: &str = "CREATE FUNCTION wait_at_gate() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_advisory_xact_lock(2300); RETURN NEW; END $$;
        CREATE TRIGGER gate BEFORE UPDATE ON managed_files FOR EACH ROW WHEN (NEW.purpose = 'batch_output')
            EXECUTE FUNCTION wait_at_gate();
        SELECT pg_advisory_lock(2300);";
    const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 2300 AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let mut stack = paced(20).start().await;
    let gate = stack.database.client().await;
    gate.batch_execute(GATE).await.unwrap();
    let batch = begin(&stack, &rows(20)).await;
    stack.until("the results are written", async || number(&stack, WAITING).await == 1).await;
    stack.proxy.kill();
    gate.batch_execute("SELECT pg_advisory_unlock(2300)").await.unwrap();
    let replica = stack.replica().await;
    sql(&stack, "UPDATE batches SET lease_until = now() - interval '1 second'").await;
    let client = application(&stack).at(&replica.base_url);
    let path = format!("/batches/{batch}");
    stack.until("it is completed", async || client.get(&path).await.json()["status"] == "completed").await;
    let done = client.get(&path).await.json();
    assert_eq!(done["request_counts"], json!({ "total": 20, "completed": 20, "failed": 0 }), "{done}");
    let content = client.get(&format!("/files/{}/content", done["output_file_id"].as_str().unwrap())).await.text();
    let output: Vec<Value> = content.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let expected: Vec<String> = (1..=20).map(|number| format!("row-{number}")).collect();
    assert_eq!(ids(&output), expected);
    assert_eq!(stack.mock.requests().len(), 20, "nothing is asked for results that are there");
    const RESULTS: &str = "SELECT count(*) FROM managed_files WHERE purpose = 'batch_output' AND status = 'processed'";
    assert_eq!(number(&stack, RESULTS).await, 1);
    let listed = client.get("/files").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 2, "the input and one output: {listed}");
    const COST: &str = "SELECT (cost > 0)::int::bigint FROM batches";
    assert_eq!(number(&stack, COST).await, 1);
}

/// What is cut would be asked again by another, and paid for again.
#[tokio::test]
async fn a_row_that_takes_longer_than_the_drain_timeout_is_answered_before_its_proxy_leaves() {
    const ANSWERED: &str = "SELECT count(*) FROM batch_rows WHERE state = 2 AND asked = 1";
    let mut stack = paced(10).proxy("DRAIN_TIMEOUT_S", "1").start().await;
    stack.mock.script(json!([{ "latency_ms": 5000 }])).unwrap();
    begin(&stack, &rows(1)).await;
    stack.until("the row is asked", async || asked(&stack, "question 1") == 1).await;
    stack.proxy.signal(Signal::TERM);
    assert!(stack.proxy.ended_within(Duration::from_secs(30)).await.success());
    assert_eq!((number(&stack, ANSWERED).await, asked(&stack, "question 1")), (1, 1));
}
