//! `?dry_run=true`: the answer of the change, and nothing changed. `successes` tries every change before it makes it.

use crate::service::Service;
use harness::client::whole;
use harness::sink::{Sink, Speech};
use http::Method;
use serde_json::json;
use std::collections::BTreeMap;
use tokio_postgres::Client;

/// What stands in every table, so that two moments can be compared.
pub async fn contents(db: &Client) -> BTreeMap<String, String> {
    const TABLES: &str = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE n.nspname = 'public' AND c.relkind = 'r' ORDER BY 1";
    let mut contents = BTreeMap::new();
    for row in db.query(TABLES, &[]).await.unwrap() {
        let table: String = row.get(0);
        // With the transaction that wrote each row: writing the same again is a change, too.
        let sql = format!(
            "SELECT coalesce(md5(string_agg(r, E'\\n' ORDER BY r)), '') FROM (SELECT t.xmin || ' ' || t AS r FROM \"{table}\" t) x"
        );
        contents.insert(table, db.query_one(&sql, &[]).await.unwrap().get(0));
    }
    contents
}

#[tokio::test]
async fn a_refused_trial_is_answered_as_the_change_would_be_and_leaves_no_trace() {
    let service = Service::start().await;
    let client = service.administrator();
    let label = json!({ "name": "taken", "workspace_id": service.home.workspace_id });
    assert_eq!(client.post("/labels", &label).await.status, 200);
    let before = contents(&service.database.client().await).await;
    for (method, path, body, status) in [
        (Method::POST, "/labels", label.clone(), 409),
        (Method::POST, "/labels", json!({ "name": 7 }), 400),
        (Method::PUT, "/labels/none", json!({ "name": "b" }), 404),
        (Method::DELETE, "/labels/none", json!({}), 404),
    ] {
        let request = client.request(method.clone(), &format!("{path}?dry_run=true")).json(&body);
        let answer = whole(request).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
        assert_eq!(answer.header("x-gateway-dry-run"), "true", "{method} {path}");
    }
    assert_eq!(contents(&service.database.client().await).await, before);
}

#[tokio::test]
async fn what_cannot_be_taken_back_is_not_tried() {
    let service = Service::start_with(&["--header-prefix-aliases=x-acme-"]).await;
    let erase = json!({ "user": "ada", "mode": "delete" });
    let labels = async || service.administrator().get("/labels").await.json()["total"].clone();
    let before = labels().await;
    for client in [service.administrator(), service.administrator().with("x-acme-trace-id", "t")] {
        for (path, body) in [("/logs/erase", &erase), ("/providers/types/openai/test", &json!({}))] {
            let answer = client.post(&format!("{path}?dry_run=true"), body).await;
            assert_eq!((answer.status.as_u16(), answer.header("x-gateway-dry-run")), (400, ""), "{path}");
            assert_eq!(answer.json()["error"]["param"], "dry_run", "{}", answer.text());
        }
        let answer = client.post("/labels?dry_run=perhaps", &json!({ "name": "a" })).await;
        assert_eq!(answer.json()["error"]["param"], "dry_run", "{}", answer.text());
    }
    assert_eq!(labels().await, before);
}

#[tokio::test]
async fn nobody_gets_a_letter_of_a_trial() {
    let mut sink = Sink::start(Speech::Plain).await;
    let port = format!("--smtp-port={}", sink.port);
    let service = Service::start_with(&["--smtp-host=127.0.0.1", &port, "--smtp-tls=off"]).await;
    let invite = |name: &str| json!({ "email": format!("{name}@x.test"), "role": "member" });
    let client = service.administrator();
    assert_eq!(client.post("/admin/users/invites?dry_run=true", &invite("ada")).await.status, 200);
    let made = client.post("/admin/users/invites", &invite("bob")).await;
    assert_eq!(sink.letter().await.to, ["bob@x.test"]);
    let path = format!("/admin/users/invites/{}/resend", made.json()["id"].as_str().unwrap());
    assert_eq!(client.post(&format!("{path}?dry_run=true"), &json!({})).await.status, 200);
    assert_eq!(client.post("/admin/users/invites", &invite("cleo")).await.status, 200);
    assert_eq!(sink.letter().await.to, ["cleo@x.test"]);
}
