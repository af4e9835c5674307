//! Purges reach every replica and both stores, and take nothing else with them.

use super::server::RedisServer;
use super::{ask, keeping, patient, replica, started, status, until_written};
use crate::routing::target;
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::{Value, json};

async fn purge(stack: &Stack, body: Value) {
    let client = stack.client();
    let answer = whole(client.request(Method::DELETE, "/cache").json(&body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn a_purge_holds_on_every_replica_and_in_both_stores() {
    let server = RedisServer::start(false);
    let stack = started(patient(&server)).await;
    let (_replica, other) = replica(&stack).await;
    let named = |client: &Client, name: &str| client.with("x-gateway-cache-namespace", name);
    let mut written = 0.0;
    for name in ["a", "b"] {
        let clients = [named(&keeping(&stack), name), named(&other, name)];
        ask(&clients[0], "Hello").await;
        written += 1.0;
        until_written(&stack, written).await;
        for client in &clients {
            assert_eq!(status(client, "Hello").await, "HIT", "{name}");
        }
    }
    // The second replica may find what the first one stores anew: what was purged is known by its id.
    let id = async |client: &Client| ask(client, "Hello").await.json()["id"].as_str().unwrap().to_owned();
    let (first, second) = (id(&named(&other, "a")).await, id(&named(&other, "b")).await);
    purge(&stack, json!({ "namespace": "a" })).await;
    for client in [named(&keeping(&stack), "a"), named(&other, "a")] {
        stack.until("the purge has arrived", async || id(&client).await != first).await;
    }
    for client in [named(&keeping(&stack), "b"), named(&other, "b")] {
        assert_eq!(status(&client, "Hello").await, "HIT", "another namespace");
    }
    for client in [named(&keeping(&stack), "a"), named(&other, "a")] {
        stack.until("answers are kept anew", async || status(&client, "Hello").await == "HIT").await;
    }
    purge(&stack, json!({ "all": true })).await;
    for client in [named(&keeping(&stack), "b"), named(&other, "b")] {
        stack.until("all is purged", async || id(&client).await != second).await;
    }
}

#[tokio::test]
async fn the_answers_of_a_config_are_purged_by_its_name() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "cache": { "mode": "simple" } }));
    let body = json!({ "name": "kept", "config": config, "workspace_id": stack.home.workspace_id });
    let made = stack.administrator().post("/configs", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let slug = made.json()["slug"].as_str().unwrap().to_owned();
    let with_config = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", &slug);
    let is_kept = async || {
        let answer = with_config.post("/chat/completions", &harness::chat("Hello")).await;
        answer.status == 200 && answer.header("x-gateway-cache-status") == "HIT"
    };
    stack.until("the config is known and its answers are kept", is_kept).await;
    let plain = keeping(&stack);
    ask(&plain, "of no config").await;
    assert_eq!(status(&plain, "of no config").await, "HIT");
    purge(&stack, json!({ "config": slug })).await;
    stack.until("the purge has arrived", async || status(&with_config, "Hello").await == "MISS").await;
    assert_eq!(status(&plain, "of no config").await, "HIT");
}

#[tokio::test]
async fn the_answers_of_an_erased_person_are_purged_with_their_logs() {
    let stack = Stack::start().await;
    let of = |user: &str| keeping(&stack).with("x-gateway-metadata", json!({ "_user": user }).to_string());
    for user in ["ada", "bob"] {
        assert_eq!(status(&of(user), "Hello").await, "MISS");
        assert_eq!(status(&of(user), "Hello").await, "HIT");
    }
    let erased = stack.administrator().post("/logs/erase", &json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!(erased.status, 200, "{}", erased.text());
    stack.until("ada is forgotten", async || status(&of("ada"), "Hello").await == "MISS").await;
    assert_eq!(status(&of("bob"), "Hello").await, "HIT");
}
