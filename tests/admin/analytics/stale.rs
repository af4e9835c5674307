//! Which changes of logs make figures stale: all that figures may be of, and not that a body lies elsewhere.

use crate::logs::store;
use crate::service::Service;
use chrono::{DateTime, Utc};
use serde_json::json;
use shared::db::request_logs::bodies::{MovedBodies, move_bodies};
use uuid::Uuid;

#[tokio::test]
async fn a_body_that_is_moved_makes_no_minute_stale_and_every_other_change_does() {
    const STALE: &str = "WITH gone AS (DELETE FROM usage_stale RETURNING 1) SELECT count(*) FROM gone";
    let service = Service::start().await;
    let client = service.database.client().await;
    let noon: DateTime<Utc> = "2026-01-15T12:00:00Z".parse().unwrap();
    store(&service, noon, json!({ "metadata": { "plan": "pro" } })).await;
    let stale = async || client.query_one(STALE, &[]).await.unwrap().get::<_, i64>(0);
    assert!(stale().await > 0, "a log has come");
    client.execute("UPDATE request_logs SET body_key = 'journal/1'", &[]).await.unwrap();
    assert!(stale().await > 0, "nobody says what this was for");
    let row = client.query_one("SELECT created_at, id FROM request_logs", &[]).await.unwrap();
    let (made, id): (DateTime<Utc>, Uuid) = (row.get(0), row.get(1));
    let moved =
        MovedBodies { times: vec![made], ids: vec![id], old: vec!["journal/1".into()], new: vec!["packs/1".into()] };
    assert_eq!(move_bodies(&client, &moved).await.unwrap(), 1);
    assert_eq!(stale().await, 0, "it lies elsewhere");
    // Over the same connection.
    for change in ["cost = 7", "metadata = '{}'", "response_status_code = 500", "cost = 8, body_key = 'packs/2'"] {
        client.execute(&format!("UPDATE request_logs SET {change}"), &[]).await.unwrap();
        assert!(stale().await > 0, "{change}");
    }
    client.execute("DELETE FROM request_logs", &[]).await.unwrap();
    assert!(stale().await > 0, "a log is gone");
}
