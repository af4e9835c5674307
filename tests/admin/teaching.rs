//! Errors that teach: nothing is ignored in silence, everything that is wrong is told at once, and each fault says what
//! would have done. Clients of other products, known by their header prefix, are warned instead of refused.

mod administrator;
mod in_use;
mod keys;
mod paths;
mod provider_types;
mod walk;

use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};

pub const ALIAS: &str = "--header-prefix-aliases=x-acme-";

/// The admin key under another product's prefix.
pub fn foreign(service: &Service) -> Client {
    service.client().with("x-acme-api-key", service.home.admin_key.key.clone())
}

/// The fault about this field.
pub fn fault(answer: &Answer, field: &str) -> Value {
    assert_eq!(answer.status, 400, "{}", answer.text());
    let errors = answer.json()["data"]["errors"].clone();
    let found = errors.as_array().unwrap().iter().find(|one| one["field"] == field).cloned();
    found.unwrap_or_else(|| panic!("nothing about {field} in {errors}"))
}

#[tokio::test]
async fn a_field_that_nobody_reads_is_refused_with_the_name_that_was_meant() {
    let service = Service::start().await;
    let client = service.administrator();
    let refused = client.post("/admin/workspaces", &json!({ "name": "Team", "budget": 5 })).await;
    let found = fault(&refused, "budget");
    assert_eq!(found["nearest"], "usage_limits", "{found}");
    assert!(found["message"].as_str().unwrap().contains("did you mean `usage_limits`?"), "{found}");
    assert!(found.get("value").is_none(), "what nobody knows could be a secret: {found}");
    assert_eq!(client.get("/admin/workspaces?exact_name=Team").await.json()["total"], 0, "nothing was made");
    let account = json!({ "name": "a", "ai_provider_id": "openai", "key": "sk-0123456789",
                          "configurations": { "base_url": "https://llm.example.com/v1" } });
    let found = fault(&client.post("/integrations", &account).await, "configurations.base_url");
    assert_eq!(found["nearest"], "custom_host", "{found}");
}

#[tokio::test]
async fn a_filter_that_nobody_reads_does_not_return_everything() {
    let service = Service::start().await;
    let client = service.administrator();
    let found = fault(&client.get("/logs?model=gpt-4o").await, "model");
    assert_eq!(found["nearest"], "ai_model", "{found}");
    assert_eq!(client.get("/logs?model=").await.status, 200, "an empty value is no value");
    let export = json!({ "filters": { "statuscode": "429" }, "requested_data": ["id"] });
    let found = fault(&client.post("/logs/exports", &export).await, "filters.statuscode");
    assert_eq!(found["nearest"], "status_code", "{found}");
    let export = json!({ "filters": { "status_code": ["429"], "created_at": { "gte": "2026-01-01" } }, "requested_data": ["id"] });
    assert_eq!(client.post("/logs/exports", &export).await.status, 200);
    let found = fault(&client.get("/api-keys?status=activ").await, "status");
    assert_eq!(found["nearest"], "active", "{found}");
}

#[tokio::test]
async fn clients_of_other_products_are_warned_and_served() {
    let service = Service::start_with(&[ALIAS]).await;
    let client = foreign(&service);
    let made = client.post("/admin/workspaces", &json!({ "name": "Team", "budget": 5, "id": "x" })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    for name in ["x-gateway-warnings", "x-acme-warnings"] {
        let warnings = made.header(name);
        assert!(warnings.contains("budget: ") && warnings.contains("id: "), "{name}: {warnings}");
    }
    let listed = client.get("/logs?model=gpt-4o").await;
    assert_eq!(listed.status, 200);
    assert!(listed.header("x-gateway-warnings").starts_with("model: "), "{}", listed.header("x-gateway-warnings"));
    assert!(!client.get("/logs").await.headers.contains_key("x-gateway-warnings"));
    let strict = json!({ "name": "Team 2", "usage_limits": { "credit_limit": 5, "colour": "red" } });
    fault(&client.post("/admin/workspaces", &strict).await, "usage_limits.colour");
    let refused = service.administrator().post("/admin/workspaces", &json!({ "name": "Team 3", "budget": 5 })).await;
    assert_eq!(refused.status, 400, "our own clients are not");
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once_in_the_words_of_json() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({
        "name": 7, "usage_limits": { "credit_limit": "5", "type": "costs" }, "priority": 1000, "invented": true,
    });
    let refused = client.post("/admin/workspaces", &body).await;
    assert_eq!(fault(&refused, "name")["message"], "must be a string");
    assert_eq!(fault(&refused, "name")["value"], 7);
    assert_eq!(fault(&refused, "usage_limits.credit_limit")["message"], "must be a number");
    let kind = fault(&refused, "usage_limits.type");
    assert_eq!((&kind["allowed"], &kind["nearest"]), (&json!(["cost", "tokens"]), &json!("cost")), "{kind}");
    assert_eq!(fault(&refused, "priority")["message"], "must be from 1 to 100");
    fault(&refused, "invented");
    assert!(refused.json()["message"].as_str().unwrap().ends_with("(and 4 more)"), "{}", refused.text());
    for word in ["struct", "f64", "u32", "Sent"] {
        assert!(!refused.text().contains(word), "{word}: {}", refused.text());
    }
}

#[tokio::test]
async fn values_that_are_one_of_a_list_come_with_the_list_and_secrets_stay_where_they_are() {
    let service = Service::start().await;
    let client = service.administrator();
    let key = json!({ "name": "k", "scopes": ["completion.write", "logs.list", "invented"],
                      "workspace_id": service.home.workspace_id });
    let refused = client.post("/api-keys/workspace/service", &key).await;
    let first = fault(&refused, "scopes[0]");
    assert_eq!(
        (&first["nearest"], &first["value"]),
        (&json!("completions.write"), &json!("completion.write")),
        "{first}"
    );
    assert!(first["allowed"].as_array().unwrap().contains(&json!("logs.list")), "{first}");
    fault(&refused, "scopes[2]");
    for (sent, meant) in [("opnai", "openai"), ("gemini", "google")] {
        let account = json!({ "name": "a", "ai_provider_id": sent, "key": "sk-s3cret-0123" });
        let refused = client.post("/integrations", &account).await;
        assert_eq!(fault(&refused, "ai_provider_id")["nearest"], meant, "{}", refused.text());
        assert!(!refused.text().contains("s3cret"), "{}", refused.text());
        let old = json!({ "name": "a", "provider": sent, "key": "k", "workspace_id": service.home.workspace_id });
        assert_eq!(fault(&client.post("/virtual-keys", &old).await, "provider")["nearest"], meant);
    }
    let account =
        json!({ "name": "a", "ai_provider_id": "openai", "key": ["sk-s3cret-0123"], "configurations": "s3cret" });
    let refused = client.post("/integrations", &account).await;
    fault(&refused, "key");
    assert!(!refused.text().contains("s3cret"), "{}", refused.text());
}

#[tokio::test]
async fn a_config_that_is_saved_says_what_does_not_exist_yet_and_keeps_the_slug_it_was_given() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({ "name": "Main", "slug": "my-router", "config": { "targets": [{ "provider": "@nope" }], "strategy": { "mode": "fallback" } } });
    let made = client.post("/configs", &body).await;
    assert_eq!((made.status.as_u16(), &made.json()["slug"]), (200, &json!("my-router")), "{}", made.text());
    let warnings = made.json()["warnings"].clone();
    assert!(warnings[1].as_str().unwrap().starts_with("config.targets[0].provider: "), "{warnings}");
    assert!(warnings[1].as_str().unwrap().contains("@nope"), "{warnings}");
    assert!(made.header("x-gateway-warnings").contains("@nope"));
    let again = client.post("/configs", &body).await;
    assert_eq!(again.json()["data"]["errorCode"], "AB07", "a slug that is taken is refused: {}", again.text());
    fault(&client.post("/configs", &json!({ "name": "x", "slug": "no slug", "config": {} })).await, "slug");
    let account = json!({ "name": "Nope", "slug": "nope", "ai_provider_id": "openai", "key": "sk-0123456789",
                          "workspace_id": service.home.workspace_id });
    assert_eq!(client.post("/integrations", &account).await.status, 200);
    let changed = client.put("/configs/my-router", &json!({ "config": { "provider": "@nope" } })).await;
    assert_eq!((changed.status.as_u16(), &changed.json()["warnings"]), (200, &json!([])), "{}", changed.text());
    let changed = client.put("/configs/my-router", &json!({ "config": { "provider": "@npe" } })).await;
    assert!(changed.json()["warnings"][0].as_str().unwrap().contains("did you mean @nope?"), "{}", changed.text());
    let attempts = json!({ "config": { "provider": "@nope", "retry": { "attempts": 1000 } } });
    fault(&client.put("/configs/my-router", &attempts).await, "config.retry.attempts");
}

#[tokio::test]
async fn a_list_of_logs_says_whose_they_are_and_what_costs_are_counted_in() {
    let service = Service::start().await;
    let id = crate::logs::store(&service, crate::logs::at(5), json!({ "cost": "0.5" })).await;
    let listed = service.administrator().get("/logs").await.json();
    assert_eq!(listed["workspaces"], Value::Null, "all of them: {listed}");
    let one = service.administrator().get(&format!("/logs?workspace_slug={}", service.home.workspace_id)).await.json();
    assert_eq!(one["workspaces"][0]["id"], json!(service.home.workspace_id), "{one}");
    let log = service.administrator().get(&format!("/logs/{id}")).await.json();
    assert_eq!((&log["metrics"]["cost"], &log["metrics"]["cost_unit"]), (&json!(0.5), &json!("cent")));
}
