//! Kept answers in a real Redis: found by every replica, unreadable to who looks into it, and never the reason why a
//! request fails.

mod purge;
mod server;
mod tenants;

use crate::routing::asked;
use harness::stack::Builder;
use harness::{Answer, Client, Replica, Stack, chat};
use serde_json::Value;
use server::RedisServer;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const WRITTEN: &str = "gateway_cache_store_writes_total{result=\"written\"}";
const UNREADABLE: &str = "gateway_cache_store_reads_total{result=\"unreadable\"}";
const FAILED: &str = "gateway_cache_store_reads_total{result=\"failed\"}";
const SKIPPED: &str = "gateway_cache_store_reads_total{result=\"skipped\"}";

/// Waits for Redis as long as it takes: how fast it answers is not of interest.
fn patient(server: &RedisServer) -> Builder {
    Stack::builder().proxy("REDIS_URL", server.url()).proxy("CACHE_STORE", "redis").proxy("CACHE_WAIT_MS", "10000")
}

/// A stack whose proxy can seal: its organisation's data key has arrived.
async fn started(settings: Builder) -> Stack {
    let stack = settings.start().await;
    can_seal(&stack, 1.0).await;
    stack
}

/// Admin makes keys for organisations that have none, and proxies learn of them.
async fn can_seal(stack: &Stack, organisations: f64) {
    const KEYS: &str = "gateway_snapshot_rows{table=\"data_keys\"}";
    let has_keys = async || stack.metric(KEYS).await.is_some_and(|keys| keys >= organisations);
    stack.until("data keys are there", has_keys).await;
}

/// An application whose answers are kept.
fn keeping(stack: &Stack) -> Client {
    stack.client().with("x-gateway-cache", "simple")
}

async fn ask(client: &Client, said: &str) -> Answer {
    let answer = client.post("/chat/completions", &chat(said)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

async fn status(client: &Client, said: &str) -> String {
    ask(client, said).await.header("x-gateway-cache-status").to_owned()
}

async fn until_written(stack: &Stack, count: f64) {
    stack.until("answers are in Redis", async || stack.metric(WRITTEN).await == Some(count)).await;
}

async fn replica(stack: &Stack) -> (Replica, Client) {
    let replica = stack.replica().await;
    let client = keeping(stack).at(&replica.base_url);
    (replica, client)
}

#[tokio::test]
async fn what_one_proxy_stored_is_found_by_another_and_read_by_nobody_else() {
    const SECRET: &str = "the-launch-code";
    for is_cluster in [false, true] {
        let server = RedisServer::start(is_cluster);
        let stack = started(patient(&server)).await;
        let (_replica, other) = replica(&stack).await;
        let first = ask(&keeping(&stack), SECRET).await;
        assert_eq!(first.header("x-gateway-cache-status"), "MISS");
        until_written(&stack, 1.0).await;
        let found = ask(&other, SECRET).await;
        assert_eq!(found.header("x-gateway-cache-status"), "HIT", "cluster: {is_cluster}");
        assert_eq!((found.json(), asked(&stack)), (first.json(), 1));
        let keys: Vec<_> = server.keys().into_iter().filter(|key| key.contains("cache")).collect();
        assert_eq!(keys.len(), 1, "{keys:?}");
        let value = server.value(&keys[0]);
        let words = first.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
        for part in [SECRET, "choices", "content", "usage", "gpt-4o-mini", words.as_str()] {
            let is_there = |bytes: &[u8]| bytes.windows(part.len()).any(|found| found == part.as_bytes());
            assert!(!is_there(&value) && !is_there(keys[0].as_bytes()), "{part} can be read in Redis");
        }
    }
}

#[tokio::test]
async fn an_organisation_says_how_long_answers_are_kept_at_most_and_where_nobody_says_more() {
    let server = RedisServer::start(false);
    let stack = started(patient(&server)).await;
    let settings = serde_json::json!({ "settings": { "cache_max_age": 3600 } });
    let changed = stack.administrator().put("/admin/organisation", &settings).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    // A key that was made later is known later.
    let client = stack.as_application(&stack.key(&["completions.write"]).await);
    let mut known = Vec::new();
    for (n, (cache, longest)) in
        [("simple", 3600), (r#"{"mode":"simple","max_age":7200}"#, 3600), (r#"{"mode":"simple","max_age":90}"#, 90)]
            .into_iter()
            .enumerate()
    {
        ask(&client.with("x-gateway-cache", cache), &format!("question {n}")).await;
        until_written(&stack, (n + 1) as f64).await;
        let key = server.keys().into_iter().find(|key| key.contains("cache") && !known.contains(key)).unwrap();
        let ttl = server.ttl(&key);
        assert!(ttl <= longest && ttl + 60 > longest, "{cache}: {ttl}");
        known.push(key);
    }
}

#[tokio::test]
async fn a_value_of_another_version_a_damaged_and_a_moved_one_are_misses_and_counted() {
    let server = RedisServer::start(false);
    let stack = started(patient(&server)).await;
    let (replica, other) = replica(&stack).await;
    ask(&keeping(&stack), "foreign").await;
    until_written(&stack, 1.0).await;
    let mut known = server.keys();
    let foreign = server.value(&known[0]);
    let newer: Tampering = |whole, _| [&[whole[0] + 1], &whole[1..]].concat();
    let damaged: Tampering = |whole, _| [&whole[..40], &[whole[40] ^ 1], &whole[41..]].concat();
    let cut: Tampering = |whole, _| whole[..20].to_vec();
    let moved: Tampering = |_, foreign| foreign.to_vec();
    let strange: Tampering = |_, _| b"{}".to_vec();
    for (n, tamper) in [newer, damaged, cut, moved, strange].into_iter().enumerate() {
        let said = format!("question {n}");
        ask(&keeping(&stack), &said).await;
        until_written(&stack, (n + 2) as f64).await;
        let key = server.keys().into_iter().find(|key| !known.contains(key)).unwrap();
        server.set(&key, &tamper(&server.value(&key), &foreign));
        assert_eq!(status(&other, &said).await, "MISS", "{n}");
        assert_eq!(replica.metric(UNREADABLE).await, Some((n + 1) as f64));
        known.push(key);
    }
}

/// What becomes of a value, given one of another key.
type Tampering = fn(&[u8], &[u8]) -> Vec<u8>;

/// Each question is asked of the other proxy once, so that it finds nothing in its own memory.
async fn until_shared(stack: &Stack, client: &Client, other: &Client) {
    let asked = AtomicUsize::new(0);
    let is_shared = async || {
        let n = asked.fetch_add(1, Ordering::Relaxed);
        ask(client, &format!("after {}", n + 1)).await;
        status(other, &format!("after {n}")).await == "HIT"
    };
    stack.until("answers are shared again", is_shared).await;
}

#[tokio::test]
async fn a_frozen_redis_fails_no_request_and_soon_nobody_waits_for_it() {
    const CALLS: usize = 30;
    let server = RedisServer::start(false);
    let settings = Stack::builder().proxy("REDIS_URL", server.url()).proxy("CACHE_STORE", "redis");
    let stack = started(settings).await;
    let client = keeping(&stack);
    let is_written = async || {
        ask(&client, "Hello").await;
        stack.metric(WRITTEN).await.is_some_and(|written| written > 0.0)
    };
    stack.until("answers are stored", is_written).await;
    server.freeze();
    let all = futures::future::join_all((0..CALLS).map(|n| {
        let client = client.clone();
        async move { status(&client, &format!("while it is frozen {n}")).await }
    }));
    assert!(all.await.iter().all(|status| status == "MISS"));
    for n in 0..CALLS {
        assert_eq!(status(&client, &format!("still frozen {n}")).await, "MISS");
    }
    let (failed, skipped) = (stack.metric(FAILED).await.unwrap(), stack.metric(SKIPPED).await.unwrap_or(0.0));
    assert!(failed >= 3.0 && skipped > 0.0, "{failed} waited, {skipped} did not");
    assert_eq!(status(&client, "while it is frozen 0").await, "HIT", "memory stands in front");
    server.thaw();
    let (_replica, other) = replica(&stack).await;
    until_shared(&stack, &client, &other).await;
}

#[tokio::test]
async fn a_redis_that_goes_and_comes_back_costs_misses_and_no_request() {
    let mut server = RedisServer::start(false);
    // While a connection is being mended, whoever knocks waits as long as it may.
    let stack = started(patient(&server).proxy("CACHE_WAIT_MS", "500")).await;
    let (_replica, other) = replica(&stack).await;
    let client = keeping(&stack);
    ask(&client, "before").await;
    until_written(&stack, 1.0).await;
    server.stop();
    for n in 0..10 {
        assert_eq!(status(&client, &format!("away {n}")).await, "MISS");
        assert_eq!(status(&other, &format!("away elsewhere {n}")).await, "MISS");
    }
    assert_eq!(status(&client, "before").await, "HIT", "memory stands in front");
    server.resume();
    until_shared(&stack, &client, &other).await;
}

/// Asks one question after the other until it is told to stop; how many there were. `ask` fails the test if one fails.
async fn load(client: Client, number: usize, stop: Arc<AtomicBool>) -> usize {
    let mut asked = 0;
    while !stop.load(Ordering::Relaxed) {
        // Some are asked again, and so looked for in both stores.
        ask(&client, &format!("load {number} {}", asked % 50)).await;
        asked += 1;
    }
    asked
}

#[tokio::test]
async fn under_load_no_request_fails_while_redis_freezes_stops_and_comes_back() {
    let mut server = RedisServer::start(false);
    let settings = Stack::builder().proxy("REDIS_URL", server.url()).proxy("CACHE_STORE", "redis");
    let stack = started(settings).await;
    let (_replica, other) = replica(&stack).await;
    let (client, stop) = (keeping(&stack), Arc::new(AtomicBool::new(false)));
    let clients = [&client, &other, &client, &other];
    let loads: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(number, client)| tokio::spawn(load(client.clone(), number, stop.clone())))
        .collect();
    let fresh = async || {
        for n in 0..20 {
            ask(&client, &format!("fresh {n} {}", uuid::Uuid::new_v4())).await;
        }
    };
    fresh().await;
    server.freeze();
    fresh().await;
    server.thaw();
    fresh().await;
    server.stop();
    fresh().await;
    server.resume();
    until_shared(&stack, &client, &other).await;
    stop.store(true, Ordering::Relaxed);
    for load in loads {
        assert!(load.await.expect("none of its requests failed") > 0);
    }
}

#[tokio::test]
async fn a_proxy_starts_and_answers_without_its_redis() {
    let mut server = RedisServer::start(false);
    server.stop();
    let stack = started(patient(&server)).await;
    let client = keeping(&stack);
    assert_eq!((status(&client, "a").await, status(&client, "a").await), ("MISS".into(), "HIT".into()));
    assert!(stack.metric(SKIPPED).await.is_some_and(|skipped| skipped >= 1.0));
    let answer: Value = ask(&client, "a").await.json();
    assert!(answer["choices"].is_array(), "{answer}");
}
