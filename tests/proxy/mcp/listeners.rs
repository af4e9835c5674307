//! Streams that are only listened to: they end when the process leaves, and when whoever listens may not any more.

use super::people::member;
use super::{bridged, call, client, request, serve, serve_at, session};
use bench::process::Signal;
use futures::StreamExt as _;
use harness::{Client, Stack};
use http::Method;
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(30);

/// A stream that is open; the task ends with it, and says whether it ended as streams do.
async fn listen(client: &Client, path: &str) -> JoinHandle<bool> {
    let answer = client.request(Method::GET, path).send().await.expect("the stream begins");
    assert_eq!(answer.status(), 200, "{path}");
    let mut bytes = answer.bytes_stream();
    tokio::spawn(async move {
        while let Some(piece) = bytes.next().await {
            if piece.is_err() {
                return false;
            }
        }
        true
    })
}

async fn ended(what: &str, stream: JoinHandle<bool>) {
    let ended = tokio::time::timeout(PATIENCE, stream).await.unwrap_or_else(|_| panic!("{what}: it goes on"));
    assert!(ended.expect("the reader lives"), "{what}: it was cut");
}

#[tokio::test]
async fn listening_streams_end_with_a_drain_and_do_not_keep_the_process() {
    let mut stack = Stack::start().await;
    let own = serve(&stack, "tools", "idle", json!({})).await;
    let origin = bridged::start().await;
    let old = serve_at(&stack, "old", &format!("{origin}/sse"), json!({ "transport": "sse" })).await;
    let old = session(&old, "/old/mcp").await;
    let mut streams = Vec::new();
    for (client, path) in [(&own, "/tools/mcp"), (&old, "/old/mcp"), (&own, "/mcp")] {
        streams.push((path, listen(client, path).await));
    }
    assert!(streams.iter().all(|(_, stream)| !stream.is_finished()));
    stack.proxy.signal(Signal::TERM);
    for (path, stream) in streams {
        ended(path, stream).await;
    }
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
}

/// Everything that lets somebody listen, taken away while they do.
#[tokio::test]
async fn who_may_listen_no_more_hears_no_more() {
    let stack = Stack::start().await;
    for slug in ["kept", "archived", "restricted", "closed"] {
        serve(&stack, slug, "idle", json!({})).await;
    }
    let stays = stack.key(&["mcp.invoke"]).await;
    let stays = client(&stack, &stays);
    let database = stack.database.client().await;
    let ends = [
        ("its key", "kept", "UPDATE api_keys SET status = 'archived', last_updated_at = now() WHERE id = $1"),
        ("its key's scope", "kept", "UPDATE api_keys SET scopes = '{completions.write}' WHERE id = $1"),
        ("its server", "archived", "UPDATE mcp_servers SET status = 'archived' WHERE slug = 'archived' AND $1::uuid IS NOT NULL"),
        ("what it may see", "restricted", "INSERT INTO mcp_server_capabilities (organisation_id, server_id, type, name, enabled)
             SELECT organisation_id, id, 'tool', 'echo', false FROM mcp_servers WHERE slug = 'restricted' AND $1::uuid IS NOT NULL"),
        ("the merged server's key", "", "UPDATE api_keys SET status = 'archived', last_updated_at = now() WHERE id = $1"),
    ];
    let mut open = Vec::new();
    for (what, slug, sql) in ends {
        let key = stack.key(&["mcp.invoke"]).await;
        const NEWEST: &str =
            "SELECT id FROM api_keys WHERE workspace_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1";
        let id: uuid::Uuid = database.query_one(NEWEST, &[&stack.home.workspace_id]).await.unwrap().get(0);
        let path = if slug.is_empty() { "/mcp".to_owned() } else { format!("/{slug}/mcp") };
        open.push((what, id, sql, listen(&client(&stack, &key), &path).await));
    }
    let (eve, person) = member(&stack, "eve").await;
    let removed = listen(&eve, "/kept/mcp").await;
    let goes_on = listen(&stays, "/closed/mcp").await;
    let gone = stack.home.client().delete(&format!("/admin/users/{person}")).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    for (what, id, sql, stream) in &open {
        assert!(!stream.is_finished(), "{what}");
        assert_eq!(database.execute(*sql, &[id]).await.unwrap(), 1, "{what}");
    }
    for (what, _, _, stream) in open {
        ended(what, stream).await;
    }
    ended("its person", removed).await;
    assert!(!goes_on.is_finished(), "nothing was taken from this one");
    goes_on.abort();
}

#[tokio::test]
async fn a_session_of_the_older_transport_says_that_another_proxy_holds_it() {
    let stack = Stack::start().await;
    let origin = bridged::start().await;
    let own = serve_at(&stack, "old", &format!("{origin}/sse"), json!({ "transport": "sse" })).await;
    let own = session(&own, "/old/mcp").await;
    let replica = stack.replica().await;
    let elsewhere = own.at(replica.base_url.trim_end_matches("/v1"));
    let refused = async || elsewhere.post("/old/mcp", &request(1, "ping", json!({}))).await;
    stack.until("the other proxy knows the server", async || refused().await.status == 421).await;
    let said = refused().await.json();
    assert!(said["error"]["message"].as_str().unwrap().contains("held by another proxy"), "{said}");
    assert_eq!(elsewhere.get("/old/mcp").await.status, 421);
    let said = own.post("/old/mcp", &call(2, "echo", "still here")).await.text();
    assert!(said.contains("still here"), "{said}");
}
