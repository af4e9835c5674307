//! Purging kept answers: which rows it leaves for proxies, who may, and that an erased person's answers go with the logs.

use crate::jobs::{admin_on, admin_with, run};
use crate::service::Service;
use harness::client::whole;
use harness::{Answer, Client};
use http::Method;
use serde_json::{Value, json};
use shared::model::{KeyKind, purge_tag};
use shared::secrets::seal::Keyring;
use uuid::Uuid;

async fn purge(client: &Client, body: Value) -> Answer {
    whole(client.request(Method::DELETE, "/cache").json(&body)).await
}

/// Kind, tag and whether it is of one workspace.
async fn rows(service: &Service) -> Vec<(String, Vec<u8>, bool)> {
    const ROWS: &str = "SELECT kind, tag, workspace_id IS NOT NULL FROM cache_purges ORDER BY 1, 2";
    let rows = service.database.client().await.query(ROWS, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect()
}

fn of_namespace(name: &str) -> (String, Vec<u8>, bool) {
    ("namespace".into(), purge_tag(name).to_vec(), true)
}

#[tokio::test]
async fn a_purge_leaves_one_row_for_each_target_and_all_takes_the_place_of_the_others() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let config = client.post("/configs", &json!({ "name": "c", "config": { "provider": "@team" } })).await.json();
    for body in [
        json!({ "namespace": "team-a" }),
        json!({ "namespace": "team-a" }),
        json!({ "config": config["slug"] }),
        json!({ "config": config["id"] }),
    ] {
        let answer = purge(&client, body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["workspace_id"], json!(service.home.workspace_id));
    }
    let id: Uuid = config["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(rows(&service).await, [("config".into(), id.as_bytes().to_vec(), true), of_namespace("team-a")]);
    let trail = service.trail(service.home.organisation_id).await;
    let last = trail.last().unwrap();
    assert_eq!((&last["resource_type"], &last["action"]), (&json!("cache"), &json!("delete")), "{last}");
    assert_eq!(last["after"], json!({ "config": config["id"] }), "{last}");
    let answer = purge(&client, json!({ "all": true })).await.json();
    assert_eq!(answer["kind"], "all", "{answer}");
    assert_eq!(rows(&service).await, [("all".into(), Vec::new(), true)]);
}

#[tokio::test]
async fn a_repeated_purge_counts_from_its_last_time() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let body = json!({ "namespace": "team-a" });
    let first = purge(&client, body.clone()).await.json();
    service.sql("UPDATE cache_purges SET purged_at = now() - interval '1 day'").await;
    let again = purge(&client, body.clone()).await.json();
    assert!(again["purged_at"].as_str() >= first["purged_at"].as_str(), "{first} {again}");
    service.sql("UPDATE cache_purges SET purged_at = now() + interval '1 day'").await;
    let later = purge(&client, body).await.json();
    assert!(later["purged_at"].as_str() > again["purged_at"].as_str(), "a clock that was set back revives nothing");
    assert_eq!(rows(&service).await.len(), 1);
}

#[tokio::test]
async fn where_single_purges_become_many_everything_is_purged() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let (organisation, workspace) = (service.home.organisation_id, service.home.workspace_id);
    let many = format!(
        "INSERT INTO cache_purges (organisation_id, workspace_id, kind, tag)
         SELECT '{organisation}', '{workspace}', 'namespace', decode(md5(n::text), 'hex') FROM generate_series(1, 2000) n"
    );
    service.sql(&many).await;
    assert_eq!(purge(&client, json!({ "namespace": "team-a" })).await.json()["kind"], "all");
    assert_eq!(rows(&service).await, [("all".into(), Vec::new(), true)]);
}

#[tokio::test]
async fn a_workspace_is_purged_by_its_own_keys_and_its_organisations_admin_keys_alone() {
    let service = Service::start().await;
    let home = service.home.workspace_id;
    let administrator = service.administrator();
    let body = json!({ "namespace": "team-a", "workspace_id": home });
    assert_eq!(purge(&administrator, body.clone()).await.status, 200);
    assert_eq!(purge(&administrator, json!({ "namespace": "team-a" })).await.status, 400, "which workspace?");
    let in_query = administrator.request(Method::DELETE, &format!("/cache?workspace_id={home}"));
    assert_eq!(whole(in_query.json(&json!({ "all": true }))).await.status, 200);
    service.sql("DELETE FROM cache_purges").await;

    let other = service.organisation().await;
    let stranger = service.client().with_key(&other.admin_key.key);
    assert_eq!(purge(&stranger, body.clone()).await.status, 404);
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    assert_eq!(purge(&neighbour, body.clone()).await.status, 403);
    let config = administrator
        .post("/configs", &json!({ "name": "c", "config": { "provider": "@team" }, "workspace_id": home }))
        .await
        .json();
    for name in [&config["slug"], &config["id"], &json!("no-such"), &json!("a b")] {
        assert_eq!(purge(&neighbour, json!({ "config": name })).await.status, 404, "{name}");
    }
    let key = service.key(KeyKind::WorkspaceService, &["completions.write", "configs.delete"]).await;
    assert_eq!(purge(&service.client().with_key(&key.key), json!({ "all": true })).await.status, 403);
    for body in [json!({}), json!({ "all": false }), json!({ "all": true, "namespace": "a" }), json!({ "name": "a" })] {
        let client = service.workspace_client(home).await;
        assert_eq!(purge(&client, body.clone()).await.status, 400, "{body}");
    }
    assert!(rows(&service).await.is_empty());
}

#[tokio::test]
async fn an_erased_persons_answers_are_purged_in_all_workspaces() {
    let service = Service::start().await;
    let erase = async |body: Value| service.administrator().post("/logs/erase", &body).await.status.as_u16();
    assert_eq!(erase(json!({ "trace_id": "t", "mode": "delete" })).await, 200);
    assert!(rows(&service).await.is_empty(), "a trace leaves no mark");
    assert_eq!(erase(json!({ "user": "ada", "mode": "anonymise" })).await, 200);
    assert_eq!(rows(&service).await, [("user".into(), purge_tag("ada").to_vec(), false)]);
    let client = service.workspace_client(service.home.workspace_id).await;
    assert_eq!(purge(&client, json!({ "all": true })).await.status, 200);
    assert_eq!(rows(&service).await.len(), 2, "of one workspace alone");
}

#[tokio::test]
async fn purges_are_forgotten_once_nothing_from_before_is_kept() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let client = service.workspace_client(service.home.workspace_id).await;
    for name in ["old", "new"] {
        assert_eq!(purge(&client, json!({ "namespace": name })).await.status, 200);
        service.sql("UPDATE cache_purges SET purged_at = purged_at - interval '90 days 12 hours'").await;
    }
    assert_eq!(run(&app, "expire_cache_purges").await, 1);
    assert_eq!(rows(&service).await, [of_namespace("new")]);
}

#[tokio::test]
async fn every_organisation_gets_one_data_key() {
    let service = Service::start().await;
    let key = format!("--gateway-master-key={}", Keyring::generate("test").unwrap().trim());
    let (keyless, app) = (admin_on(&service.database).await, admin_with(&service.database, &[&key]).await);
    service.organisation().await;
    assert_eq!(run(&keyless, "make_data_keys").await, 0);
    let made = run(&app, "make_data_keys").await;
    assert_eq!((made, run(&app, "make_data_keys").await), (2, 0));
    let keys = service.database.client().await.query("SELECT organisation_id FROM data_keys", &[]).await.unwrap();
    assert_eq!(keys.len(), 2);
}
