//! What an administrator stumbled over in a second trial: the request as it was typed, and what is answered now.

use super::fault;
use crate::service::Service;
use harness::client::whole;
use http::Method;
use serde_json::{Value, json};

fn message(answer: &harness::Answer) -> String {
    answer.json()["message"].as_str().unwrap_or_else(|| panic!("{}", answer.text())).to_owned()
}

#[tokio::test]
async fn a_body_that_is_no_json_says_where_it_breaks() {
    let service = Service::start().await;
    let sent = "{\"name\": \"ops\"\n  \"workspace_id\": \"s3cret\"}";
    let refused = whole(service.administrator().request(Method::POST, "/api-keys/workspace/service").body(sent)).await;
    assert_eq!(refused.status, 400);
    let told = message(&refused);
    assert!(told.starts_with("The body is not valid JSON: expected `,` or `}`"), "{told}");
    assert!(told.ends_with("(line 2, column 3)") && !told.contains("s3cret"), "{told}");
}

#[tokio::test]
async fn what_a_field_names_and_is_not_there_is_said_with_the_field() {
    let service = Service::start().await;
    let client = service.administrator();
    let key = json!({ "name": "k", "workspace_id": "team-z", "scopes": ["completions.write"] });
    let seat =
        json!({ "email": "ada@example.com", "role": "member", "workspaces": [{ "id": "team-z", "role": "member" }] });
    for (answer, field) in [
        (client.post("/api-keys/workspace/service", &key).await, "workspace_id"),
        (client.post("/admin/users/invites", &seat).await, "workspaces[0].id"),
        (client.get("/logs?workspace_slug=team-z").await, "workspace_slug"),
        (client.get("/configs?workspace_id=team-z").await, "workspace_id"),
    ] {
        let body = answer.json();
        assert_eq!((answer.status.as_u16(), &body["error"]["param"]), (404, &json!(field)), "{body}");
        assert_eq!(body["data"]["errorCode"], "AB08", "{body}");
        assert_eq!(body["message"], format!("{field}: there is no such workspace"), "{body}");
    }
    let path = format!("/workspaces/{}/users", service.home.workspace_id);
    let refused = client.post(&path, &json!({ "users": [{ "id": "ada@example.com", "role": "member" }] })).await;
    assert_eq!(fault(&refused, "users[0].id")["message"], "must be an id, as its list shows it (a UUID)");
}

#[tokio::test]
async fn paths_that_others_have_lead_to_ours() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({ "name": "k", "scopes": ["completions.write"], "workspace_id": service.home.workspace_id });
    let made = client.post("/api-keys/workspace/service", &body).await.json();
    let id = made["id"].as_str().unwrap();
    for (path, says) in [
        (format!("/api-keys/{id}/suspend"), "PUT /v1/api-keys/{id} {\"status\": \"suspended\"}"),
        (format!("/api-keys/{id}/resume"), "PUT /v1/api-keys/{id} {\"status\": \"active\"}"),
        (format!("/api-keys/{id}/regenerate"), "POST /v1/api-keys/{id}/rotate"),
        ("/api-keys/workspace/servce".to_owned(), "workspace/service"),
    ] {
        let refused = whole(client.request(Method::POST, &path)).await;
        assert!(refused.status == 400 && message(&refused).contains(says), "{path}: {}", refused.text());
    }
    let refused = client.post("/providers/types/opnai/test", &json!({ "key": "k" })).await;
    assert!(refused.status == 404 && message(&refused).contains("`openai`"), "{}", refused.text());
}

#[tokio::test]
async fn accounts_and_references_say_what_may_stand_there() {
    let service = Service::start().await;
    let client = service.administrator();
    let aws = json!({ "configurations": { "aws_region": "us-east-1" } });
    let found = fault(&client.post("/providers/types/bedrock/test", &aws).await, "configurations.aws_auth_type");
    assert_eq!(found["allowed"], json!(["accessKey", "assumedRole", "serviceRole", "apiKey"]), "{found}");
    assert!(found["message"].as_str().unwrap().starts_with("is required: must be one of `accessKey`"), "{found}");

    let private = json!({ "key": "k", "configurations": { "custom_host": "https://10.0.0.1/v1" } });
    let found = fault(&client.post("/providers/types/openai/test", &private).await, "configurations.custom_host");
    assert!(found["message"].as_str().unwrap().contains("TRUSTED_CUSTOM_HOSTS"), "{found}");

    let vault = |auth: Value| json!({ "name": "v", "manager_type": "hashicorp_vault", "secret_path": "kv/x", "auth_config": auth });
    let mode = client.post("/secret-references", &vault(json!({ "vault_auth_type": "tokn" }))).await;
    let told = fault(&mode, "auth_config.vault_auth_type")["message"].clone();
    assert_eq!(told, "must be one of `token`, `approle`, `kubernetes`; did you mean `token`?");
    let token = json!({ "vault_auth_type": "token", "vault_addr": "https://v.example.com", "token": "s3cret" });
    let refused = client.post("/secret-references", &vault(token)).await;
    let told = fault(&refused, "auth_config.token")["message"].clone();
    assert!(told.as_str().unwrap().ends_with("did you mean `vault_token`?"), "{told}");
    assert!(!refused.text().contains("s3cret"), "{}", refused.text());

    let reference = json!({ "name": "Prod", "slug": "prod", "manager_type": "aws_sm", "secret_path": "x", "auth_config": {
        "aws_auth_type": "accessKey", "aws_access_key_id": "AKIA", "aws_secret_access_key": "s", "aws_region": "eu-west-1" } });
    assert_eq!(client.post("/secret-references", &reference).await.status, 200);
    let account = |target: &str| {
        json!({ "name": "A", "slug": "anth", "ai_provider_id": "anthropic",
        "secret_mappings": [{ "target_field": target, "secret_reference_id": "prod" }] })
    };
    // It said only that `key` is required.
    let found = fault(&client.post("/integrations", &account("kye")).await, "secret_mappings[0].target_field");
    assert_eq!(found["nearest"], "key", "{found}");
    assert_eq!(client.post("/integrations", &account("key")).await.status, 200);
    let refused = client.delete("/secret-references/prod").await;
    assert!(refused.status == 400 && message(&refused).contains("the integration `anth`"), "{}", refused.text());
    let colour = fault(&client.post("/labels", &json!({ "name": "l", "color": "red" })).await, "color");
    assert_eq!(colour["nearest"], "color_code", "{colour}");
}

#[tokio::test]
async fn configs_say_what_was_meant_who_uses_them_and_take_the_number_of_a_version() {
    let service = Service::start().await;
    let client = service.administrator();
    let wrong = json!({ "name": "c", "config": { "strategy": { "mode": "falback", "on_status_codes": ["429"] },
                        "targets": [{ "provider": "@a" }] } });
    let refused = client.post("/configs", &wrong).await;
    let told = fault(&refused, "config.strategy.mode")["message"].clone();
    assert_eq!(told, "must be one of single, loadbalance, fallback, conditional: did you mean fallback?");
    let told = fault(&refused, "config.strategy.on_status_codes[0]")["message"].clone();
    assert_eq!(told, "must be a number: a status code without quotes");

    let config = |attempts: u32| {
        json!({ "retry": { "attempts": attempts }, "targets": [{ "provider": "@a" }],
                                         "strategy": { "mode": "fallback" } })
    };
    let made = client.post("/configs", &json!({ "name": "Main", "slug": "main", "config": config(1) })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(client.put("/configs/main", &json!({ "config": config(2) })).await.status, 200);
    // The list shows numbers, which were refused.
    let changed = client.get("/configs/main/versions/diff?from=1&to=2").await;
    assert_eq!((changed.status.as_u16(), &changed.json()["total"]), (200, &json!(1)), "{}", changed.text());
    assert_eq!(client.get("/configs/main/versions/diff?from=1&to=9").await.status, 404);
    assert_eq!(client.post("/configs/main/rollback", &json!({ "version_id": "1" })).await.status, 200);
    let shown = client.get("/configs/main").await.json();
    assert_eq!(shown["data"]["config"]["retry"]["attempts"], 1, "{shown}");

    let key = json!({ "name": "Checkout", "workspace_id": service.home.workspace_id, "scopes": ["completions.write"],
                      "defaults": { "config_id": "main" } });
    assert_eq!(client.post("/api-keys/workspace/service", &key).await.status, 200);
    let refused = client.delete("/configs/main").await;
    assert_eq!(refused.status, 409);
    assert_eq!(message(&refused), "This config is still in use by the API key `Checkout`");
}

#[tokio::test]
async fn what_would_be_taken_for_done_or_for_nothing_comes_with_a_warning() {
    let service = Service::start().await;
    let client = service.administrator();
    let invited = client.post("/admin/users/invites", &json!({ "email": "ada@example.com", "role": "member" })).await;
    assert_eq!(invited.status, 200, "{}", invited.text());
    assert!(invited.header("x-gateway-warnings").contains("no mail was sent"), "{:?}", invited.headers);
    let again = client.post("/admin/users/invites", &json!({ "email": "ada@example.com", "role": "member" })).await;
    assert!(again.status == 409 && message(&again).contains("send it again"), "{}", again.text());

    let searched = client.get("/audit-logs?resource_type=config").await;
    assert!(searched.status == 400 && searched.text().contains("configs"), "{}", searched.text());
    assert_eq!(client.get("/audit-logs?action=nuke").await.status, 400);
    let searched = client.get("/audit-logs?resource_type=configs&action=create").await;
    assert!(!searched.headers.contains_key("x-gateway-warnings"), "{:?}", searched.headers);
}

#[tokio::test]
async fn steps_that_are_missing_are_named() {
    let service = Service::start().await;
    let client = service.administrator();
    let export = json!({ "filters": { "time_of_generation_min": "2026-01-01T00:00:00Z" }, "requested_data": ["id"] });
    let made = client.post("/logs/exports", &export).await.json();
    let refused = client.get(&format!("/logs/exports/{}/download", made["id"].as_str().unwrap())).await;
    assert!(refused.status == 400 && message(&refused).contains("/start"), "{}", refused.text());

    let team = service.workspace("team").await;
    let account = json!({ "name": "Main", "slug": "main", "ai_provider_id": "openai", "key": "sk-0123456789" });
    assert_eq!(client.post("/integrations", &account).await.status, 200);
    let provider = json!({ "name": "Bot", "slug": "bot", "integration_id": "main", "workspace_id": team });
    let refused = client.post("/providers", &provider).await;
    assert!(refused.status == 403, "{}", refused.text());
    assert!(message(&refused).contains("PUT /v1/integrations/{slug}/workspaces"), "{}", refused.text());
    let refused =
        whole(client.request(Method::DELETE, &format!("/workspaces/{team}")).json(&json!({ "name": "tm" }))).await;
    assert!(fault(&refused, "name")["message"].as_str().unwrap().contains("as a confirmation"), "{}", refused.text());
}
