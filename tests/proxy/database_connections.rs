//! How many connections to Postgres a proxy holds: what an operator adds up to set `max_connections`, whatever tenants do.

use crate::families::{FORM_TYPE, application};
use harness::client::whole;
use harness::{Stack, chat};
use http::Method;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// As `docs/operations.md` says it, of one without a semantic cache in Postgres.
const DOCUMENTED: i64 = 23;
const AT_ONCE: usize = 40;

fn form(content: &str) -> String {
    format!(
        "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\nContent-Disposition: form-data; \
         name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{content}\r\n--xYz--\r\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_holds_no_more_connections_than_is_documented() {
    let docs = include_str!("../../docs/operations.md");
    assert!(docs.contains(&format!("a proxy holds at most {DOCUMENTED}, whatever its load")), "the documents agree");
    // Nobody else has one to this database.
    let stack = Arc::new(Stack::builder().without_admin().start().await);
    let highest = Arc::new(AtomicI64::new(0));
    let watch = {
        let (database, highest) = (stack.database.client().await, highest.clone());
        tokio::spawn(async move {
            const HELD: &str = "SELECT count(*) FROM pg_stat_activity
                                WHERE datname = current_database() AND pid <> pg_backend_pid()";
            loop {
                let held: i64 = database.query_one(HELD, &[]).await.unwrap().get(0);
                highest.fetch_max(held, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        })
    };
    let row = |number: usize| json!({ "custom_id": format!("{number}"), "method": "POST", "url": "/v1/chat/completions", "body": chat("Hello") });
    let rows: String = (0..20).map(|number| format!("{}\n", row(number))).collect();
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..AT_ONCE {
        let (stack, rows) = (stack.clone(), rows.clone());
        calls.spawn(async move {
            let client = application(&stack);
            let upload = client.request(Method::POST, "/files").header("content-type", FORM_TYPE).body(form(&rows));
            let made = whole(upload).await;
            let options = json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": stack.mock.url(),
                "authorization": "Bearer sk-mock" });
            let batch = json!({ "input_file_id": made.json()["id"], "endpoint": "/v1/chat/completions",
                "completion_window": "immediate", "gateway_options": options });
            let batch = client.post("/batches", &batch).await;
            // What is refused for want of room has asked as well.
            assert!([200, 400, 429, 503].contains(&batch.status.as_u16()), "{number}: {}", batch.text());
            for path in ["/files", "/batches"] {
                assert!([200, 503].contains(&client.get(path).await.status.as_u16()), "{number}: {path}");
            }
            assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200, "{number}");
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    const UNFINISHED: &str = "SELECT count(*) FROM batches WHERE status NOT IN ('completed', 'failed')";
    let database = stack.database.client().await;
    let are_over = async || database.query_one(UNFINISHED, &[]).await.unwrap().get::<_, i64>(0) == 0;
    stack.until("all batches are over", are_over).await;
    watch.abort();
    // The connection that looks at batches is ours.
    let highest = highest.load(Ordering::Relaxed) - 1;
    assert!(highest > 12, "nothing was asked of it: {highest}");
    assert!(highest <= DOCUMENTED, "{highest} connections");
}
