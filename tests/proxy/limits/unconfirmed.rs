//! A proxy that is killed while a call under a strict budget runs: what the call was promised stays charged, once, until
//! somebody says what the provider was paid.

use super::limited_key;
use harness::{Client, Process, Stack, chat};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

const CHARGED: &str = "SELECT count(*) FROM limit_intents WHERE charged_at IS NOT NULL";

async fn command(stack: &Stack, arguments: &[&str]) -> (ExitStatus, String) {
    let environment = [("DATABASE_URL".to_owned(), stack.database.url())];
    let mut process = Process::start("gateway-admin", arguments, &environment, stack.folder.path());
    let status = process.ended_within(Duration::from_secs(60)).await;
    (status, process.log())
}

fn long() -> Value {
    let mut body = chat("Hello");
    body["max_tokens"] = json!(600);
    body
}

async fn count(stack: &Stack, query: &str) -> i64 {
    stack.database.client().await.query_one(query, &[]).await.unwrap().get(0)
}

/// What the journal's folder holds, to be put back later.
fn files(stack: &Stack) -> HashMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(stack.folder.path().join("journal")).unwrap();
    entries.map(|entry| entry.unwrap().path()).map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

async fn restart(stack: &mut Stack) {
    stack.proxy.kill();
    stack.proxy = stack.start_another_proxy(&[]);
    stack.until_ready().await;
}

async fn budget(stack: &Stack) -> Value {
    let keys = stack.administrator().get(&format!("/api-keys?workspace_id={}", stack.home.workspace_id)).await.json();
    let keys = keys["data"].as_array().unwrap().clone();
    keys.into_iter().find(|key| key["name"] == "limited").unwrap()["usage_limits"].clone()
}

/// A proxy is killed while the provider works on a call; another takes over. Answers what was in the journal's folder.
async fn killed_in_a_call(stack: &mut Stack, client: &Client) -> HashMap<PathBuf, Vec<u8>> {
    stack.mock.script(json!([{ "latency_ms": 600_000, "times": 1 }])).unwrap();
    let calling = tokio::spawn({
        let client = client.clone();
        async move { client.request(http::Method::POST, "/chat/completions").json(&long()).send().await.is_ok() }
    });
    let arrived = async || stack.mock.requests().iter().any(|request| request.path.ends_with("/chat/completions"));
    stack.until("the provider has the call", arrived).await;
    stack.proxy.kill();
    calling.await.unwrap();
    let left = files(stack);
    stack.proxy = stack.start_another_proxy(&[]);
    stack.until_ready().await;
    left
}

#[tokio::test]
async fn what_a_killed_proxy_promised_stays_charged_once_until_it_is_reconciled() {
    let mut stack = Stack::builder().proxy("LIMITS_WAIT_MS", "20000").start().await;
    let strict = json!({ "usage_limits": { "type": "tokens", "credit_limit": 1000, "strict": true } });
    let (key, client) = limited_key(&stack, strict).await;
    let left = killed_in_a_call(&mut stack, &client).await;
    stack.until_known(&key).await;
    stack.until("what was promised is charged", async || count(&stack, CHARGED).await == 1).await;
    let refused = client.post("/chat/completions", &long()).await;
    assert_eq!(refused.status, 412, "the provider may have been paid: {}", refused.text());
    let shown = budget(&stack).await;
    assert!(shown["current_usage"].as_f64().unwrap() >= 600.0, "{shown}");
    assert_eq!(shown["unconfirmed"], shown["current_usage"], "{shown}");

    // The same file comes again, mark and all: nothing is charged twice.
    stack.proxy.kill();
    left.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    restart(&mut stack).await;
    let is_gone = async || !left.keys().any(|path| path.exists());
    stack.until("the file was sent again", is_gone).await;
    assert_eq!((count(&stack, CHARGED).await, budget(&stack).await), (1, shown));

    let (status, said) = command(&stack, &["limits", "unconfirmed"]).await;
    let id: String = stack
        .database
        .client()
        .await
        .query_one("SELECT request_id::text FROM limit_intents", &[])
        .await
        .unwrap()
        .get(0);
    assert!(status.success() && said.contains(&id) && said.contains("tokens of api_key"), "{said}");
    let reconcile = ["limits", "reconcile", "--request", id.as_str(), "--verdict", "unspent"];
    let (status, said) = command(&stack, &reconcile).await;
    assert!(status.success() && said.contains("1 charges reconciled"), "{said}");
    stack
        .until("the budget can be used again", async || client.post("/chat/completions", &long()).await.status == 200)
        .await;
    let (status, said) = command(&stack, &reconcile).await;
    assert!(!status.success() && said.contains("nothing of that request"), "{said}");
    const TRAIL: &str = "SELECT count(*) FROM audit_logs WHERE resource_type = 'limits' AND action = 'reconcile'";
    assert_eq!(count(&stack, TRAIL).await, 1);
}

#[tokio::test]
async fn a_promise_that_was_spent_stays_charged_when_it_is_reconciled() {
    let mut stack = Stack::builder().proxy("LIMITS_WAIT_MS", "20000").start().await;
    let strict = json!({ "usage_limits": { "type": "tokens", "credit_limit": 1000, "strict": true } });
    let (key, client) = limited_key(&stack, strict).await;
    killed_in_a_call(&mut stack, &client).await;
    stack.until_known(&key).await;
    stack.until("what was promised is charged", async || count(&stack, CHARGED).await == 1).await;
    let before = budget(&stack).await;
    let id: String = stack
        .database
        .client()
        .await
        .query_one("SELECT request_id::text FROM limit_intents", &[])
        .await
        .unwrap()
        .get(0);
    let (status, said) = command(&stack, &["limits", "reconcile", "--request", &id, "--verdict", "spent"]).await;
    assert!(status.success(), "{said}");
    let after = budget(&stack).await;
    assert_eq!((&after["current_usage"], &after["unconfirmed"]), (&before["current_usage"], &json!(0)));
    assert_eq!(client.post("/chat/completions", &long()).await.status, 412);
}

#[tokio::test]
async fn a_call_that_ends_leaves_no_promise_behind_however_often_its_file_is_sent() {
    let mut stack = Stack::builder().proxy("LIMITS_WAIT_MS", "20000").proxy("JOURNAL_SHIP_MS", "3600000").start().await;
    let strict = json!({ "usage_limits": { "type": "tokens", "credit_limit": 10_000, "strict": true } });
    let (_, client) = limited_key(&stack, strict).await;
    let answer = client.post("/chat/completions", &long()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let used = answer.json()["usage"]["total_tokens"].clone();
    // Its own proxy has sent nothing yet; whoever comes after sends what it finds at once.
    stack.proxy.kill();
    let left = files(&stack);
    for _ in 0..2 {
        left.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
        restart(&mut stack).await;
        stack.until("the file was sent", async || !left.keys().any(|path| path.exists())).await;
        assert_eq!(count(&stack, "SELECT count(*) FROM limit_intents").await, 0);
        let shown = budget(&stack).await;
        assert_eq!((&shown["current_usage"], &shown["unconfirmed"]), (&used, &json!(0)));
    }
}
