//! A proxy whose disk is lost: what it held of budgets counts as spent until the operator says that it will not come back.

use super::limited_key;
use harness::{Process, Stack, chat};
use serde_json::json;
use std::process::ExitStatus;
use std::time::Duration;

async fn command(stack: &Stack, arguments: &[&str]) -> (ExitStatus, String) {
    let environment = [("DATABASE_URL".to_owned(), stack.database.url())];
    let mut process = Process::start("gateway-admin", arguments, &environment, stack.folder.path());
    let status = process.ended_within(Duration::from_secs(60)).await;
    (status, process.log())
}

#[tokio::test]
async fn what_a_lost_proxy_held_is_given_back_when_the_operator_says_so() {
    let builder = Stack::builder().proxy("LIMITS_WAIT_MS", "20000");
    // What it spends is never stored.
    let mut stack = builder.proxy("JOURNAL_SHIP_MS", "3600000").start().await;
    let mut body = chat("Hello");
    body["max_tokens"] = json!(600);
    let answer = json!({ "id": "c", "object": "chat.completion", "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hi" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 50, "completion_tokens": 600, "total_tokens": 650 } });
    stack.mock.script(json!([{ "body": answer.to_string(), "times": 10 }])).unwrap();
    let strict = json!({ "usage_limits": { "type": "tokens", "credit_limit": 1000, "strict": true } });
    let (key, client) = limited_key(&stack, strict).await;
    assert_eq!(client.post("/chat/completions", &body).await.status, 200);
    stack.proxy.kill();
    std::fs::remove_dir_all(stack.folder.path().join("journal")).unwrap();
    stack.proxy = stack.start_another_proxy(&[]);
    stack.until_ready().await;
    stack.until_known(&key).await;
    let refused = client.post("/chat/completions", &body).await;
    assert_eq!(refused.status, 412, "for all anybody knows it was spent: {}", refused.text());

    let (status, said) = command(&stack, &["limits", "holders"]).await;
    assert!(status.success() && said.contains("parts of 1 budgets"), "{said}");
    let database = stack.database.client().await;
    const LOST: &str = "SELECT boot::text FROM limit_leases WHERE ends_at IS NULL AND amount > 0";
    let lost: String = database.query_one(LOST, &[]).await.unwrap().get(0);
    assert!(said.contains(&lost), "{said}");
    let release = ["limits", "release", "--holder", lost.as_str()];
    let (status, said) = command(&stack, &release).await;
    assert!(!status.success() && said.contains("stop it first"), "it may still live: {said}");
    database
        .execute("UPDATE limit_holders SET seen_at = now() - interval '1 hour' WHERE boot::text = $1", &[&lost])
        .await
        .unwrap();
    let (status, said) = command(&stack, &release).await;
    assert!(status.success() && said.contains("1 leases given back"), "{said}");
    let passes = async || client.post("/chat/completions", &body).await.status == 200;
    stack.until("the budget can be used again", passes).await;
    let (status, said) = command(&stack, &release).await;
    assert!(!status.success() && said.contains("holds anything"), "{said}");
    const TRAIL: &str = "SELECT count(*) FROM audit_logs WHERE organisation_id = $1 AND resource_type = 'limits'
        AND action = 'release' AND resource_id = $2 AND user_type = 'system'";
    let recorded: i64 = database.query_one(TRAIL, &[&stack.home.id, &lost]).await.unwrap().get(0);
    assert_eq!(recorded, 1);
}
