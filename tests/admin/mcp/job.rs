//! The job that asks servers what they offer: nothing is locked while one takes its time, and nobody asks it a second time.

use super::scripted;
use crate::jobs::{admin_with, run};
use crate::service::Service;
use axum::Router;
use axum::extract::Path;
use axum::routing::post;
use serde_json::json;
use tokio::sync::{mpsc, watch};

#[tokio::test]
async fn no_transaction_is_open_while_a_server_is_asked_and_nobody_asks_it_twice() {
    const TRUSTED: &[&str] = &["--trusted-custom-hosts=127.0.0.1"];
    let (asked, mut hears) = mpsc::unbounded_channel();
    let (go, wait) = watch::channel(false);
    let answer = move |headers, body| async move {
        asked.send(()).unwrap();
        wait.clone().wait_for(|go| *go).await.unwrap();
        scripted(Path("plain".to_owned()), headers, body).await
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/plain", listener.local_addr().unwrap());
    let router = Router::new().route("/plain", post(answer));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let service = Service::start_with(TRUSTED).await;
    let (client, database) = (service.administrator(), &service.database);
    let body = json!({ "name": "Slow", "slug": "slow", "url": url, "auth_type": "none", "transport": "http" });
    assert_eq!(client.post("/mcp-integrations", &body).await.status, 200);

    let (one, other) = (admin_with(database, TRUSTED).await, admin_with(database, TRUSTED).await);
    let mut running = tokio::spawn(async move { run(&one, "sync_mcp").await });
    tokio::select! {
        done = &mut running => panic!("it was not asked: {done:?}"),
        asked = hears.recv() => asked.unwrap(),
    }
    let locks = "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE d.datname = current_database() AND l.locktype = 'advisory'
          AND l.objid = (hashtext('sync_mcp')::bigint & 4294967295)::oid";
    let open = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND state = 'idle in transaction'";
    for counted in [locks, open] {
        let found: i64 = database.client().await.query_one(counted, &[]).await.unwrap().get(0);
        assert_eq!(found, 0, "{counted}");
    }
    assert_eq!(run(&other, "sync_mcp").await, 0, "it is asked already");
    go.send(true).unwrap();
    assert_eq!(running.await.unwrap(), 1);
    let read = client.get("/mcp-integrations/slow").await;
    assert_eq!(read.json()["metadata"]["sync_status"], "synced", "{}", read.text());
    let due = "SELECT sync_due_at > now() + interval '50 minutes' FROM mcp_integrations";
    assert!(
        database.client().await.query_one(due, &[]).await.unwrap().get::<_, bool>(0),
        "it is asked again in an hour"
    );
}
