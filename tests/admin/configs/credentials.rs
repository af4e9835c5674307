//! Credentials inside a config: sealed in every row, shown as masks, and kept when a client sends the mask back.

use super::{create, outcome, path};
use crate::service::Service;
use serde_json::{Value, json};

const SECRET: &str = "sk-0123456789abc";
const MASK: &str = "sk*****abc";

/// Everything of configs and the trail that could hold it.
async fn rows(service: &Service) -> String {
    let client = service.database.client().await;
    let mut all = String::new();
    for table in ["configs", "config_versions", "audit_logs"] {
        for row in client.query(&format!("SELECT t::text FROM {table} t"), &[]).await.unwrap() {
            all.push_str(row.get(0));
        }
    }
    all
}

#[tokio::test]
async fn a_credential_is_sealed_in_every_row_and_shown_as_a_mask_everywhere() {
    let service = Service::start().await;
    let client = service.administrator();
    let account = json!({ "private_key": SECRET });
    let config = json!({ "strategy": { "mode": "fallback" }, "targets": [
        { "provider": "openai", "apiKey": SECRET },
        { "provider": "vertex-ai", "vertex_service_account_json": account, "vertex_region": "r", "vertex_project_id": "p" } ] });
    let made = create(&client, "c", config).await;
    let changed = json!({ "provider": "openai", "api_key": "other-0123456789xyz" });
    let answer = client.put(&path(&made), &json!({ "config": changed.to_string() })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (first, second) = (made["version_id"].as_str().unwrap(), answer.json()["version_id"].clone());

    let mut shown = String::new();
    for query in ["", "/versions", &format!("?version={first}"), &format!("/versions/diff?from={first}")] {
        let answer = client.get(&format!("{}{query}", path(&made))).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        shown.push_str(&answer.text());
    }
    shown.push_str(&client.get("/configs").await.text());
    for text in [&shown, &rows(&service).await] {
        assert!(!text.contains("0123456789"), "{text}");
    }
    assert!(!shown.contains("sealed:"), "{shown}");
    let old = client.get(&format!("{}?version={first}", path(&made))).await.json()["data"]["config"].clone();
    assert_eq!((&old["targets"][0]["apiKey"], &old["targets"][1]["vertex_region"]), (&json!(MASK), &json!("r")));

    let back = client.post(&format!("{}/rollback", path(&made)), &json!({ "version_id": first })).await;
    assert_eq!(back.status, 200, "{}", back.text());
    assert_ne!(back.json()["version_id"], second);
    assert_eq!(client.get(&path(&made)).await.json()["data"]["config"], old, "sealed as it was");
}

#[tokio::test]
async fn a_mask_keeps_the_stored_credential_and_never_leads_it_elsewhere() {
    let service = Service::start().await;
    let client = service.administrator();
    let with = |key: &str, more: Value| {
        let mut config = json!({ "provider": "openai", "api_key": key });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "config": config })
    };
    let made = create(&client, "c", with(SECRET, json!({}))["config"].clone()).await;
    let stored = async || -> Value {
        service.database.client().await.query_one("SELECT config FROM configs", &[]).await.unwrap().get(0)
    };
    let before = stored().await;
    for same in [with(MASK, json!({})), with(SECRET, json!({}))] {
        let answer = client.put(&path(&made), &same).await;
        assert_eq!(answer.json()["version_id"], made["version_id"], "{same}: {}", answer.text());
        assert_eq!(stored().await, before);
    }
    let answer = client.put(&path(&made), &with(MASK, json!({ "retry": { "attempts": 1 } }))).await;
    assert_ne!(answer.json()["version_id"], made["version_id"]);
    assert_eq!(stored().await["api_key"], before["api_key"]);
    for refused in [
        with(MASK, json!({ "custom_host": "https://elsewhere.test/v1" })),
        with(MASK, json!({ "Custom_host": "https://elsewhere.test/v1" })),
        with(MASK, json!({ "provider": "groq" })),
        with("sk*****xyz", json!({})),
    ] {
        let answer = client.put(&path(&made), &refused).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{refused}");
        assert_eq!(answer.json()["error"]["param"], "config.api_key", "{}", answer.text());
    }
    assert_eq!(stored().await["api_key"], before["api_key"]);
    assert_eq!(client.put(&path(&made), &with("sk-another-secret", json!({}))).await.status, 200);
    assert_ne!(stored().await["api_key"], before["api_key"]);
}

#[tokio::test]
async fn without_a_master_key_a_config_is_saved_only_if_it_holds_no_credential() {
    let service = Service::start_without_master_key().await;
    let client = service.administrator();
    create(&client, "plain", json!({ "provider": "@a" })).await;
    let body = json!({ "name": "c", "config": { "provider": "openai", "api_key": SECRET } });
    assert_eq!(client.post("/configs", &body).await.status, 503);
    assert!(!rows(&service).await.contains(SECRET));
}
