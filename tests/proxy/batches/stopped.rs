//! A batch that is cancelled around the moment at which its provider starts it is stopped there too, whoever noted what.

use super::{asked, begin, ended, id, jsonl, options, row, shown, upload};
use crate::families::application;
use crate::limits::limited_key;
use harness::{Client, Stack};
use serde_json::{Value, json};

/// Of the file and of the list; what follows is the request for the batch.
const BEFORE: u64 = 2;

fn rows() -> [Value; 1] {
    [row("a", "gpt-4o-mini", "Hello")]
}

/// How often the provider was asked to do this.
fn posted(stack: &Stack, end: &str) -> usize {
    stack.mock.requests().iter().filter(|one| one.method == "POST" && one.path.ends_with(end)).count()
}

async fn until_started(stack: &Stack) {
    stack.until("the provider is asked for a batch", async || posted(stack, "/batches") == 1).await;
}

async fn cancel(client: &Client, batch: &Value) {
    let told = client.post(&format!("/batches/{}/cancel", id(batch)), &json!({})).await;
    assert_eq!((told.status.as_u16(), &told.json()["status"]), (200, &json!("cancelling")), "{}", told.text());
}

async fn hurry(stack: &Stack) {
    const HURRY: &str = "UPDATE batches SET next_step_at = now() WHERE next_step_at > now()";
    stack.database.client().await.execute(HURRY, &[]).await.unwrap();
}

#[tokio::test]
async fn what_is_cancelled_while_the_provider_starts_it_is_stopped_there() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "times": BEFORE }, { "latency_ms": 2000 }])).unwrap();
    let batch = begin(&stack, &rows(), "24h", json!({})).await;
    until_started(&stack).await;
    cancel(&application(&stack), &batch).await;
    let over = ended(&stack, &batch).await;
    assert_eq!((&over["status"], &over["provider_details"]["status"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!((posted(&stack, "/batches"), posted(&stack, "/cancel")), (1, 1));
}

#[tokio::test]
async fn what_a_killed_proxy_had_started_and_not_noted_is_found_and_stopped() {
    let mut stack = Stack::start().await;
    stack.mock.script(json!([{ "times": BEFORE }, { "latency_ms": 3_600_000 }])).unwrap();
    let batch = begin(&stack, &rows(), "24h", json!({})).await;
    until_started(&stack).await;
    stack.proxy.kill();
    let replica = stack.replica().await;
    let client = application(&stack).at(&replica.base_url);
    cancel(&client, &batch).await;
    const DEAD: &str = "UPDATE batches SET lease_until = now() - interval '1 second'";
    stack.database.client().await.execute(DEAD, &[]).await.unwrap();
    let path = format!("/batches/{}", id(&batch));
    stack.until("it is cancelled", async || client.get(&path).await.json()["status"] == "cancelled").await;
    assert_eq!((posted(&stack, "/batches"), posted(&stack, "/cancel")), (1, 1));
}

#[tokio::test]
async fn what_a_provider_started_without_saying_so_is_found_and_stopped() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "times": BEFORE }, { "no_answer": true }])).unwrap();
    let batch = begin(&stack, &rows(), "24h", json!({})).await;
    let is_told = async || !shown(&stack, id(&batch)).await["errors"].is_null();
    stack.until("it is told that the provider does not answer", is_told).await;
    cancel(&application(&stack), &batch).await;
    let over = ended(&stack, &batch).await;
    assert_eq!((&over["status"], &over["provider_details"]["status"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!((posted(&stack, "/batches"), posted(&stack, "/cancel")), (1, 1));
}

#[tokio::test]
async fn of_two_batches_for_one_the_second_to_be_noted_is_stopped() {
    let stack = Stack::start().await;
    // Whoever takes the batch over does not see what the first is about to be told.
    let nothing = json!({ "object": "list", "data": [], "has_more": false }).to_string();
    let answers = json!([{ "times": BEFORE }, { "latency_ms": 5000 }, { "body": nothing }]);
    stack.mock.script(answers).unwrap();
    let batch = begin(&stack, &rows(), "24h", json!({})).await;
    until_started(&stack).await;
    const DEAD: &str = "UPDATE batches SET lease_owner = gen_random_uuid(), lease_until = now() - interval '1 second'";
    stack.database.client().await.execute(DEAD, &[]).await.unwrap();
    stack.until("it is started again", async || posted(&stack, "/batches") == 2).await;
    stack.until("the other is stopped", async || posted(&stack, "/cancel") == 1).await;
    let over = ended(&stack, &batch).await;
    assert_eq!((&over["status"], &over["request_counts"]["completed"]), (&json!("completed"), &json!(1)), "{over}");
    let stopped = stack.mock.requests().into_iter().find(|one| one.path.ends_with("/cancel")).unwrap().path;
    assert!(!stopped.contains(over["provider_details"]["id"].as_str().unwrap()), "{stopped}: {over}");
}

#[tokio::test]
async fn what_no_provider_made_is_cancelled_once_nothing_can_come_of_it() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "times": BEFORE }, { "status": 502 }])).unwrap();
    let batch = begin(&stack, &rows(), "24h", json!({})).await;
    let is_told = async || !shown(&stack, id(&batch)).await["errors"].is_null();
    stack.until("it is told what the provider says", is_told).await;
    cancel(&application(&stack), &batch).await;
    let lists =
        || stack.mock.requests().iter().filter(|one| one.method == "GET" && one.path.ends_with("/batches")).count();
    stack.until("it is looked for", async || lists() == 2).await;
    hurry(&stack).await;
    stack.until("it is looked for again", async || lists() >= 3).await;
    assert_eq!(shown(&stack, id(&batch)).await["status"], "cancelling");
    const LONG_AGO: &str = "UPDATE batches SET provider_batch = provider_batch || '{\"start_last_tried_at\": 0}'";
    let database = stack.database.client().await;
    let is_over = async || {
        database.execute(LONG_AGO, &[]).await.unwrap();
        hurry(&stack).await;
        shown(&stack, id(&batch)).await["status"] == "cancelled"
    };
    stack.until("it is cancelled", is_over).await;
    assert_eq!((posted(&stack, "/batches"), posted(&stack, "/cancel")), (1, 0));
}

#[tokio::test]
async fn what_runs_for_a_key_that_is_gone_is_stopped_when_another_cancels_it() {
    let stack = Stack::start().await;
    // After its start the provider does not tell of the batch for a while.
    stack.mock.script(json!([{ "times": BEFORE + 1 }, { "status": 503 }])).unwrap();
    let (key, application_of_key) = limited_key(&stack, json!({})).await;
    let client = stack.anonymous().with_key(&key);
    let mut body = asked(&upload(&client, &jsonl(&rows())).await, "24h");
    body["gateway_options"] = options(&stack);
    let batch = client.post("/batches", &body).await.json();
    let is_told = async || shown(&stack, id(&batch)).await["errors"]["data"][0]["code"] == "provider_error";
    stack.until("it runs at the provider", is_told).await;
    let made = "SELECT api_key_id::text FROM batches";
    let key: String = stack.database.client().await.query_one(made, &[]).await.unwrap().get(0);
    let gone = stack.administrator().delete(&format!("/api-keys/{key}")).await;
    assert!(gone.status.is_success(), "{}", gone.text());
    stack.until("the key is refused", async || application_of_key.get("/models").await.status == 401).await;
    cancel(&application(&stack), &batch).await;
    let over = ended(&stack, &batch).await;
    assert_eq!((&over["status"], &over["provider_details"]["status"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(posted(&stack, "/cancel"), 1);
}
