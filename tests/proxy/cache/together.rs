//! Equal requests at the same time: where the config says so, one asks the provider and the others wait for it.

use super::{ask, cache_status};
use crate::journal::calls::{rows, text};
use crate::limits::limited;
use crate::routing::{asked, client, target};
use futures::future::join_all;
use harness::{Client, Stack, chat};
use serde_json::json;

fn coalescing(stack: &Stack) -> Client {
    client(stack, &target(stack, json!({ "cache": { "mode": "simple", "coalesce": true } })))
}

#[tokio::test]
async fn two_hundred_clients_are_one_call() {
    const CLIENTS: usize = 200;
    let stack = Stack::start().await;
    let client = coalescing(&stack);
    stack.mock.script(json!([{ "latency_ms": 500 }])).unwrap();
    let body = chat("Stampede");
    let answers = join_all((0..CLIENTS).map(|_| ask(&client, &body))).await;
    assert_eq!(asked(&stack), 1);
    let misses = answers.iter().filter(|answer| cache_status(answer) == "MISS").count();
    assert_eq!(misses, 1);
    assert!(answers.iter().all(|answer| answer.text() == answers[0].text()));
    let rows = rows(&stack, CLIENTS).await;
    let hits = rows.iter().filter(|row| text(row, "cache_status") == Some("HIT")).count();
    assert_eq!(hits, CLIENTS - 1, "each has a log of its own");
}

#[tokio::test]
async fn one_that_fails_is_followed_by_one_other() {
    let stack = Stack::start().await;
    let client = coalescing(&stack);
    stack.mock.script(json!([{ "status": 500, "latency_ms": 300 }])).unwrap();
    let body = chat("Fails first");
    let answers = join_all((0..40).map(|_| ask(&client, &body))).await;
    let failed = answers.iter().filter(|answer| answer.status == 500).count();
    assert_eq!((answers.len(), failed), (40, 1));
    assert_eq!(asked(&stack), 2, "the one that failed, and one for all others");
    // Where that one fails too, each asks for itself: nobody waits for a row of failures.
    stack.mock.script(json!([{ "status": 500, "latency_ms": 300, "times": 2 }])).unwrap();
    let body = chat("Fails twice");
    let answers = join_all((0..4).map(|_| ask(&client, &body))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 500, 500]);
}

#[tokio::test]
async fn who_leaves_takes_nobody_along() {
    let stack = Stack::start().await;
    let client = coalescing(&stack);
    let (body, is_asked) = (chat("Leaves"), async |calls: u64| asked(&stack) >= calls);
    let ask_apart = || {
        let (client, body) = (client.clone(), body.clone());
        tokio::spawn(async move { ask(&client, &body).await })
    };
    // Who waits leaves: the one that asks gets its answer, and nobody asks again.
    stack.mock.script(json!([{ "latency_ms": 500 }])).unwrap();
    let first = ask_apart();
    stack.until("the first asks", async || is_asked(1).await).await;
    let waits = ask_apart();
    let stays = ask_apart();
    waits.abort();
    assert_eq!(cache_status(&first.await.unwrap()), "MISS");
    assert_eq!(cache_status(&stays.await.unwrap()), "HIT");
    assert_eq!(asked(&stack), 1);
    // The one that asks leaves: who waited goes on.
    let body = chat("Leaves first");
    let ask_apart = || {
        let (client, body) = (client.clone(), body.clone());
        tokio::spawn(async move { ask(&client, &body).await })
    };
    stack.mock.script(json!([{ "latency_ms": 60_000 }])).unwrap();
    let first = ask_apart();
    stack.until("the first asks", async || is_asked(2).await).await;
    let others: Vec<_> = (0..3).map(|_| ask_apart()).collect();
    first.abort();
    for other in join_all(others).await {
        assert_eq!(other.unwrap().status, 200);
    }
}

#[tokio::test]
async fn who_waits_is_bound_by_limits_of_its_own() {
    let stack = Stack::start().await;
    let two = limited(&stack, json!({ "rate_limits": [{ "type": "requests", "unit": "rpd", "value": 2 }] })).await;
    let config = target(&stack, json!({ "cache": { "mode": "simple", "coalesce": true } })).to_string();
    let [free, two] = [stack.client(), two].map(|client| client.with("x-gateway-config", config.clone()));
    stack.mock.script(json!([{ "latency_ms": 500 }])).unwrap();
    let body = chat("Bound");
    let first = {
        let (free, body) = (free.clone(), body.clone());
        tokio::spawn(async move { ask(&free, &body).await })
    };
    stack.until("the first asks", async || asked(&stack) == 1).await;
    let answers = join_all((0..5).map(|_| ask(&two, &body))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 429, 429, 429]);
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!(asked(&stack), 1);
}

#[tokio::test]
async fn without_the_wish_each_asks_for_itself() {
    let stack = Stack::start().await;
    let client = super::cached(&stack);
    stack.mock.script(json!([{ "latency_ms": 300, "times": 3 }])).unwrap();
    let body = chat("Apart");
    let answers = join_all((0..3).map(|_| ask(&client, &body))).await;
    assert!(answers.iter().all(|answer| cache_status(answer) == "MISS"));
    assert_eq!(asked(&stack), 3);
}
