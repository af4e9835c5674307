//! Bodies of one workspace and hour lie in one object; each is found through its row, and one person's can be taken out.

use super::{PATIENCE, found, objects, of};
use bench::process::Signal;
use harness::{Stack, chat};
use serde_json::{Value, json};
use shared::log_store::{LogStore, unpack};
use std::collections::HashSet;
use std::path::Path;

const STORED: &str = "gateway_log_bodies_stored_total";
const KEYS: &str = "SELECT id, body_key, metadata ->> '_user' FROM request_logs ORDER BY id";

fn store(folder: &Path) -> LogStore {
    let settings = crate::journal::ship::settings();
    let url = format!("file://{}", folder.join("logs").display());
    LogStore::open(&shared::settings::LogStoreSettings { log_store_url: url, ..settings.log_store }).unwrap()
}

async fn says(stack: &Stack, user: &str, text: &str) -> harness::Answer {
    let client = stack.client().with("x-gateway-metadata", json!({ "_user": user }).to_string());
    let answer = client.post("/chat/completions", &chat(text)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

/// Everything that lies in the store, readable.
fn everything(folder: &Path) -> String {
    found(&folder.join("logs")).iter().map(|(_, object)| object.to_string()).collect()
}

#[tokio::test]
async fn many_calls_are_few_objects_and_each_row_says_where_its_body_is() {
    let mut stack = Stack::builder().proxy("LOG_PACK_SECONDS", "600").start().await;
    let mut answers = Vec::new();
    for n in 0..20 {
        answers.push(stack.client().post("/chat/completions", &chat(&format!("Number {n}"))).await);
    }
    let rows = stack.database.client().await;
    let objects = objects(&mut stack).await;
    assert_eq!(objects.len(), 20);
    let packs: HashSet<&String> = objects.iter().map(|(path, _)| path).collect();
    assert!(packs.len() <= 2, "one for each hour: {packs:?}");
    let store = store(stack.folder.path());
    for row in rows.query(KEYS, &[]).await.unwrap() {
        let key: &str = row.get(1);
        let body = unpack(&store.body(key, 1 << 20).await.unwrap().unwrap(), 1 << 20).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["_id"], row.get::<_, uuid::Uuid>(0).to_string());
    }
    for answer in &answers {
        assert_eq!(of(&objects, answer)["response"]["body"], answer.json());
    }
    let notes: i64 = rows.query_one("SELECT count(*) FROM object_deletions", &[]).await.unwrap().get(0);
    assert_eq!(notes, 0, "nothing that is stored is to be deleted");
}

#[tokio::test]
async fn an_erased_person_is_in_no_object_and_others_are_read_as_before() {
    let stack = Stack::builder().proxy("LOG_PACK_SECONDS", "1").start().await;
    let mut bobs = Vec::new();
    for n in 0..3 {
        says(&stack, "ada", &format!("This is ada, for the {n}. time")).await;
        bobs.push(says(&stack, "bob", &format!("This is bob, for the {n}. time")).await);
    }
    stack.until("all are stored", async || stack.metric(STORED).await == Some(6.0)).await;
    assert!(everything(stack.folder.path()).contains("This is ada"));
    let administrator = stack.administrator();
    let erased = administrator.post("/logs/erase", &json!({ "user": "ada", "mode": "anonymise" })).await;
    assert_eq!(erased.status, 200, "{}", erased.text());
    assert_eq!((&erased.json()["logs"], &erased.json()["bodies"]), (&json!(3), &json!(3)));
    let left = everything(stack.folder.path());
    assert!(!left.contains("This is ada") && left.contains("This is bob"), "{left}");
    for bob in bobs {
        let log = administrator.get(&format!("/logs/{}", bob.header("x-gateway-request-id"))).await.json();
        assert_eq!((&log["log_format"], &log["response"]["body"]), (&json!("v2"), &bob.json()), "{log}");
        assert_eq!(log["metrics"]["log_store_file_path_format"], "v2");
    }
}

#[tokio::test]
async fn what_is_erased_while_it_waits_to_be_packed_is_never_stored() {
    let mut stack = Stack::builder().proxy("LOG_PACK_SECONDS", "600").start().await;
    says(&stack, "ada", "This is ada").await;
    says(&stack, "bob", "This is bob").await;
    let rows = stack.database.client().await;
    stack.until("both are rows", async || rows.query(KEYS, &[]).await.unwrap().len() == 2).await;
    let erased = stack.administrator().post("/logs/erase", &json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!((erased.status.as_u16(), &erased.json()["logs"]), (200, &json!(1)), "{}", erased.text());
    let objects = objects(&mut stack).await;
    assert_eq!(objects.len(), 1, "{objects:?}");
    assert!(objects[0].1.to_string().contains("This is bob"));
}

#[tokio::test]
async fn a_proxy_that_is_killed_while_bodies_wait_loses_none_and_stores_none_twice() {
    let mut stack = Stack::builder().proxy("LOG_PACK_SECONDS", "600").start().await;
    for n in 0..10 {
        says(&stack, "ada", &format!("Number {n}")).await;
    }
    let rows = stack.database.client().await;
    stack.until("all are rows", async || rows.query(KEYS, &[]).await.unwrap().len() == 10).await;
    stack.proxy.signal(Signal::KILL);
    stack.proxy.ended_within(PATIENCE).await;
    assert!(found(&stack.folder.path().join("logs")).is_empty());
    stack.proxy = stack.start_another_proxy(&[]);
    stack.until_ready().await;
    // What was left is taken over before anything newer is sent.
    says(&stack, "ada", "After").await;
    stack.until("the newest is a row", async || rows.query(KEYS, &[]).await.unwrap().len() == 11).await;
    let objects = objects(&mut stack).await;
    let ids: HashSet<&str> = objects.iter().map(|(_, object)| object["_id"].as_str().unwrap()).collect();
    assert_eq!((objects.len(), ids.len()), (11, 11));
}
