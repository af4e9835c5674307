//! Bodies that are equal to the last letter never meet across organisations, workspaces and namespaces, in either store.

use super::server::RedisServer;
use super::{can_seal, patient, status};
use crate::routing::asked;
use harness::{Client, Stack};
use serde_json::json;

/// A key of a further workspace of the first organisation.
async fn next_door(stack: &Stack) -> String {
    let made = stack.home.create("/admin/workspaces", json!({ "name": "Next door" })).await;
    let body = json!({
        "name": "k", "workspace_id": made["id"], "scopes": ["completions.write", "models.list"],
    });
    let key = stack.home.create("/api-keys/workspace/service", body).await["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    key
}

async fn apart(stack: &Stack) {
    let mut keys = vec![stack.home.workspace_key.clone(), next_door(stack).await];
    for _ in 0..2 {
        keys.push(stack.organisation().await.workspace_key);
    }
    can_seal(stack, 3.0).await;
    let mut clients: Vec<Client> = Vec::new();
    for key in &keys {
        let client = stack.as_application(key).with("x-gateway-cache", "simple");
        clients.push(client.clone());
        for name in ["a", "b"] {
            clients.push(client.with("x-gateway-cache-namespace", name));
        }
    }
    for (n, client) in clients.iter().enumerate() {
        assert_eq!(status(client, "Hello").await, "MISS", "{n} met somebody else's answer");
        assert_eq!(asked(stack), n as u64 + 1);
    }
    for client in &clients {
        assert_eq!(status(client, "Hello").await, "HIT");
    }
    assert_eq!(asked(stack), clients.len() as u64);
}

#[tokio::test]
async fn equal_requests_of_different_tenants_are_kept_apart_in_memory() {
    apart(&Stack::start().await).await;
}

#[tokio::test]
async fn equal_requests_of_different_tenants_are_kept_apart_in_redis() {
    let server = RedisServer::start(false);
    apart(&patient(&server).start().await).await;
}
