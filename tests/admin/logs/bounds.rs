//! What a search of logs may cost: a time, a share of the connections, a period.

use super::{at, ids, store};
use crate::service::Service;
use futures::future::join_all;
use serde_json::json;

const SEARCH: &str = "/logs?ai_model=none&workspace_slug=*";

#[tokio::test]
async fn searches_that_take_long_stall_nobody_else_and_end_with_a_sentence() {
    let service = Service::start_with(&["--database-statement-timeout-ms=3000"]).await;
    store(&service, at(1), json!({})).await;
    let client = service.administrator();
    // Whoever reads logs waits for this lock, as if there were very many of them.
    let mut locker = service.database.client().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE request_logs IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let searches = tokio::spawn({
        let client = client.clone();
        async move { join_all((0..16).map(|_| client.get(SEARCH))).await }
    });
    let watcher = service.database.client().await;
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'request_logs'::regclass";
    harness::until("a search runs", async || watcher.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0).await;
    for path in ["/labels", "/configs", "/api-keys/self", "/admin/workspaces"] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert!(!searches.is_finished(), "the others were answered while the searches ran");
    let answers = searches.await.unwrap();
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert!(count(503) > 0 && count(503) + count(429) == 16, "{answers:?}");
    for answer in answers {
        let (body, is_busy) = (answer.json(), answer.status == 429);
        assert_eq!(body["data"]["errorCode"], if is_busy { "AB06" } else { "AB04" }, "{body}");
        assert_eq!(answer.header("retry-after").is_empty(), !is_busy, "{body}");
        let message = body["message"].as_str().unwrap();
        assert!(message.contains("time_of_generation_min"), "{message}");
        assert!(is_busy || message.contains("DATABASE_STATEMENT_TIMEOUT_MS"), "{message}");
    }
    lock.rollback().await.unwrap();
    assert_eq!(client.get(SEARCH).await.status, 200);
}

#[tokio::test]
async fn a_list_without_a_beginning_shows_the_last_thirty_days_and_says_so() {
    const DAY: i64 = 24 * 3600;
    let service = Service::start().await;
    let client = service.administrator();
    let old = store(&service, at(40 * DAY), json!({ "trace_id": "old" })).await.to_string();
    let new = store(&service, at(20 * DAY), json!({})).await.to_string();
    assert_eq!(ids(&client, "").await, [new.as_str()]);
    let beginning = client.get("/logs").await.json()["default_time_of_generation_min"].clone();
    let beginning: chrono::DateTime<chrono::Utc> = beginning.as_str().unwrap().parse().unwrap();
    assert!((at(30 * DAY) - beginning).num_minutes().abs() < 60, "{beginning}");
    let asked = "time_of_generation_min=2020-01-01T00:00:00Z";
    assert_eq!(ids(&client, asked).await, [new.as_str(), old.as_str()]);
    assert_eq!(client.get(&format!("/logs?{asked}")).await.json()["default_time_of_generation_min"], json!(null));
    for indexed in ["trace_id=old", "search=old"] {
        assert_eq!(ids(&client, indexed).await, [old.as_str()], "{indexed}");
    }
}
