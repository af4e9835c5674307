//! Deleting what others use.

use super::{ALIAS, foreign};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};

/// An account of the organisation that the first workspace uses by a provider, which a config names.
async fn in_use(service: &Service) -> Client {
    let client = service.administrator();
    let workspace = service.home.workspace_id;
    let account = json!({ "name": "Main", "slug": "main", "ai_provider_id": "openai", "key": "sk-0123456789" });
    assert_eq!(client.post("/integrations", &account).await.status, 200);
    let access = json!({ "workspaces": [{ "id": workspace, "enabled": true }], "create_default_provider": false });
    assert_eq!(client.put("/integrations/main/workspaces", &access).await.status, 200);
    let provider = json!({ "name": "Bot", "slug": "bot", "integration_id": "main", "workspace_id": workspace });
    assert_eq!(client.post("/providers", &provider).await.status, 200);
    let config = json!({ "name": "Router", "slug": "router", "workspace_id": workspace,
                         "config": { "strategy": { "mode": "fallback" }, "targets": [{ "targets": [{ "provider": "@bot" }],
                         "strategy": { "mode": "single" } }] } });
    let made = client.post("/configs", &config).await;
    assert_eq!(made.status, 200, "{}", made.text());
    client
}

fn users(answer: &Value) -> Vec<(&str, &str)> {
    let users = answer["data"]["in_use_by"].as_array().unwrap_or_else(|| panic!("{answer}"));
    users.iter().map(|one| (one["object"].as_str().unwrap(), one["name"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn what_is_in_use_is_deleted_by_force_only_and_says_who_uses_it() {
    let service = Service::start().await;
    let client = in_use(&service).await;
    let path = format!("/providers/bot?workspace_id={}", service.home.workspace_id);
    let refused = client.delete(&path).await;
    assert_eq!((refused.status.as_u16(), users(&refused.json())), (409, vec![("config", "router")]));
    assert!(refused.json()["message"].as_str().unwrap().contains("`router`"), "{}", refused.text());
    let refused = client.delete("/integrations/main").await;
    assert_eq!(
        (refused.status.as_u16(), users(&refused.json())),
        (409, vec![("provider", "bot"), ("config", "router")])
    );
    let refused = client.delete("/integrations/main?force=yes").await;
    assert_eq!(refused.status, 400, "force is `true`, `false` or nothing");
    let forced = client.delete("/integrations/main?force=true").await;
    assert_eq!(forced.status, 200, "{}", forced.text());
    assert!(forced.header("x-gateway-warnings").contains("config router"), "{}", forced.header("x-gateway-warnings"));
    let trail = service.trail(service.home.organisation_id).await;
    let record = trail.last().unwrap();
    assert_eq!((&record["action"], &record["after"]["is_forced"]), (&json!("delete"), &json!(true)), "{record}");
    assert_eq!(record["after"]["in_use_by"][0]["name"], "bot", "{record}");
    assert_eq!(client.get("/integrations/main").await.status, 404);
}

#[tokio::test]
async fn a_client_of_another_product_deletes_as_it_always_did_with_a_warning() {
    let service = Service::start_with(&[ALIAS]).await;
    in_use(&service).await;
    let deleted = foreign(&service).delete(&format!("/providers/bot?workspace_id={}", service.home.workspace_id)).await;
    assert_eq!(deleted.status, 200, "{}", deleted.text());
    assert!(deleted.header("x-acme-warnings").contains("config router"), "{}", deleted.header("x-acme-warnings"));
}

#[tokio::test]
async fn a_provider_of_the_same_name_elsewhere_is_used_by_nobody() {
    let service = Service::start().await;
    let client = in_use(&service).await;
    let elsewhere = service.workspace("elsewhere").await;
    let access = json!({ "workspaces": [{ "id": elsewhere, "enabled": true }], "create_default_provider": false });
    assert_eq!(client.put("/integrations/main/workspaces", &access).await.status, 200);
    let provider = json!({ "name": "Bot", "slug": "bot", "integration_id": "main", "workspace_id": elsewhere });
    assert_eq!(client.post("/providers", &provider).await.status, 200);
    assert_eq!(client.delete(&format!("/providers/bot?workspace_id={elsewhere}")).await.status, 200);
}
