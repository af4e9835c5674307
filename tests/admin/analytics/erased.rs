//! A person who is erased is in no figure either, be it of logs that are there or of logs that are gone.

use super::{ALL, get, reference};
use crate::logs::store;
use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use shared::db::usage_slots;

/// The users that figures name, and how many calls there are.
async fn named(service: &Service) -> (Vec<String>, Value) {
    let client = service.administrator();
    let users = get(&client, "/analytics/groups/users", &format!("{ALL}&order_by=user&order_by_type=asc")).await;
    let users = users["data"].as_array().unwrap().iter().map(|one| one["user"].as_str().unwrap().to_owned()).collect();
    (users, get(&client, "/analytics/graphs/requests", ALL).await["summary"]["total"].clone())
}

/// Whether a value is in some slot.
pub async fn is_in_slots(client: &tokio_postgres::Client, name: &str) -> bool {
    let mut is_found = false;
    // Filters of traces have no values.
    let figures = "SELECT slot, figures FROM usage_slots WHERE dimension <> $1";
    for row in client.query(figures, &[&usage_slots::TRACES]).await.unwrap() {
        let slot: DateTime<Utc> = row.get("slot");
        let figures: &[u8] = row.get("figures");
        usage_slots::read(figures, slot, |value, _| is_found |= value.contains(name)).unwrap();
    }
    is_found
}

#[tokio::test]
async fn an_erased_person_is_in_no_figure() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    let kept = "UPDATE usage_slots_kept SET begins_at = '2026-01-03T00:00:00Z', minutes_from = '2026-01-17T00:00:00Z'";
    client.batch_execute(kept).await.unwrap();
    let first: DateTime<Utc> = "2026-01-06T12:00:00Z".parse().unwrap();
    for day in [0, 1, 14] {
        for user in ["ada", "bob"] {
            store(
                &service,
                first + TimeDelta::days(day),
                json!({ "metadata": { "_user": user, "name": format!("full name of {user}") } }),
            )
            .await;
        }
    }
    reference::refresh(&mut client).await;
    assert_eq!(named(&service).await, (vec!["ada".to_owned(), "bob".to_owned()], json!(6)));
    // The logs of the first two days are gone, as when they are too old.
    let tx = client.transaction().await.unwrap();
    tx.batch_execute("TRUNCATE request_logs_20260106, request_logs_20260107").await.unwrap();
    usage_slots::seal(&tx, "2026-01-08T00:00:00Z".parse().unwrap()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(named(&service).await.1, 6, "figures outlast logs");
    assert!(is_in_slots(&client, "ada").await);
    for (dimension, left) in [("metadata", 0), ("trace", 0), ("user", 2)] {
        let sealed =
            "SELECT count(*) FROM usage_slots WHERE size = 1440 AND dimension = $1 AND slot < '2026-01-08T00:00:00Z'";
        let sealed: i64 = client.query_one(sealed, &[&dimension]).await.unwrap().get(0);
        assert_eq!(sealed, left, "{dimension}: nobody could say any more whose it is");
    }

    let erased = service.administrator().post("/logs/erase", &json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!(erased.status, 200, "{}", erased.text());
    let left = (vec!["bob".to_owned()], json!(5));
    assert_eq!(named(&service).await, left, "calls that nobody can find any more stay counted, without the name");
    reference::refresh(&mut client).await;
    assert_eq!(named(&service).await, left);
    assert!(!is_in_slots(&client, "ada").await && is_in_slots(&client, "bob").await);
}
