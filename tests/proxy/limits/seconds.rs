//! Rates of a second: what passes in one is no more than that, however many replicas share it, and the next begins anew.

use super::replica::{Replica, ask, limit, until};
use super::{limited, patient, requests};
use futures::future::join_all;
use harness::{Database, chat};
use proxy::limits::{LimitKind, Unit, Window};
use serde_json::json;
use std::collections::HashMap;
use tempfile::TempDir;
use uuid::Uuid;

#[tokio::test]
async fn a_rate_per_second_is_not_saved_up_for_a_minute() {
    let stack = patient().await;
    let client = limited(&stack, json!({ "rate_limits": requests("rps", 1) })).await;
    let ask = async || client.post("/chat/completions", &chat("Hello")).await;
    let answers = join_all((0..40).map(|_| ask())).await;
    let refused = answers.iter().find(|answer| answer.status == 429).expect("they do not take forty seconds");
    assert!(refused.text().contains("1 requests per second"), "{}", refused.text());
    assert_eq!(refused.header("x-ratelimit-limit-requests"), "1");
    assert_eq!(refused.header("x-ratelimit-reset-requests"), "1s");
    stack.until("the next second begins", async || ask().await.status == 200).await;
}

#[tokio::test]
async fn replicas_together_admit_no_more_in_a_second_than_its_cap() {
    const CAP: u64 = 5;
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let replicas = ["a", "b", "c"].map(|name| Replica::start(&folder.path().join(name), &database));
    let rate = limit(Uuid::new_v4(), Unit::Requests, LimitKind::Rate(Window::Second), CAP);
    let mut admitted: HashMap<_, u64> = HashMap::new();
    let calls = replicas.iter().flat_map(|replica| (0..30).map(move |_| replica));
    let taken = join_all(calls.map(async |replica| replica.reserve(&[ask(&rate, 1)]).await)).await;
    for reservation in taken.iter().flatten() {
        *admitted.entry(reservation.standings().next().unwrap().resets_at).or_default() += 1;
    }
    assert!(!admitted.is_empty());
    assert!(admitted.values().all(|count| *count <= CAP), "{admitted:?}");
    // No window of a second leaves a row behind; leases go once they are over.
    until(&database, "SELECT count(*) FROM usage_counters", 0_i64).await;
}
