//! Providers and virtual keys: two views of the same rows.

use crate::integrations::{account, refused};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};

/// An integration that the first workspace may use.
pub async fn granted(service: &Service) -> Client {
    let client = service.administrator();
    account(&client, "main").await;
    let body = json!({ "workspaces": [{ "id": service.home.workspace_id, "enabled": true, "create_default_provider": false }] });
    assert_eq!(client.put("/integrations/main/workspaces", &body).await.status, 200);
    service.workspace_client(service.home.workspace_id).await
}

#[tokio::test]
async fn a_provider_is_made_read_changed_and_gone() {
    let service = Service::start().await;
    let client = granted(&service).await;
    let made = client
        .post("/providers", &json!({
            "name": "Main provider", "integration_id": "main", "note": "n", "tags": { "a": "b" },
            "usage_limits": { "credit_limit": 10 }, "rate_limits": { "type": "requests", "unit": "rpm", "value": 5 },
            "expires_at": "2099-01-01T00:00:00Z", "model_config": { "openai_project": "proj-1", "custom_headers": { "x-team": "0123456789abc" } },
            "concurrency": { "max_in_flight": 3 },
        }))
        .await;
    assert_eq!(made.status, 200, "{}", made.text());
    let (id, slug) = (made.json()["id"].clone(), made.json()["slug"].as_str().unwrap().to_owned());
    assert_eq!(made.json(), json!({ "id": id, "slug": slug, "object": "provider" }));
    assert!(slug.starts_with("main-provider-") && slug.len() == 20, "{slug}");
    let path = format!("/providers/{slug}");
    let shown = client.get(&path).await.json();
    let workspace = client.get(&format!("/workspaces/{}", service.home.workspace_id)).await.json();
    let expected = json!({
        "id": id, "slug": slug, "name": "Main provider", "note": "n", "status": "active",
        "ai_provider_name": "openai", "provider": "openai", "integration_id": "main",
        "workspace_id": service.home.workspace_id, "workspace_name": workspace["name"],
        "organisation_id": service.home.organisation_id,
        "model_config": { "openai_project": "proj-1", "custom_headers": { "x-team": "01*****abc" } },
        "usage_limits": shown["usage_limits"],
        "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 5 }],
        "reset_usage": null, "expires_at": "2099-01-01T00:00:00.000Z", "last_reset_at": null, "tags": { "a": "b" },
        "concurrency": { "max_in_flight": 3, "max_wait_ms": 0 },
        "created_at": shown["created_at"], "last_updated_at": shown["last_updated_at"], "object": "provider",
    });
    assert_eq!(shown, expected);
    assert_eq!(shown["usage_limits"]["credit_limit"], 10);
    let change =
        json!({ "note": null, "rate_limits": [], "expires_at": null, "usage_limits": null, "model_config": null });
    assert_eq!(client.put(&path, &change).await.json(), json!({ "id": id, "slug": slug }));
    let changed = client.get(&path).await.json();
    for (field, value) in
        [("note", Value::Null), ("rate_limits", json!([])), ("expires_at", Value::Null), ("model_config", Value::Null)]
    {
        assert_eq!(changed[field], value, "{field}");
    }
    let listed = client.get("/providers").await.json();
    assert_eq!((&listed["total"], &listed["data"][0]["rate_limits"]), (&json!(1), &Value::Null));
    assert_eq!(client.delete(&path).await.json(), json!({}));
    assert_eq!(client.get(&path).await.status, 404);
    assert_eq!(client.get("/integrations/main").await.status, 200, "an integration outlives its providers");
}

/// Where a credential goes, which one it is and what it reaches is the integration's to say: whoever may make a provider may
/// not make an integration of the organisation.
#[tokio::test]
async fn a_provider_says_nothing_that_is_its_integrations_to_say() {
    let service = Service::start().await;
    let client = granted(&service).await;
    let body = json!({ "name": "p", "slug": "p", "integration_id": "main", "model_config": { "openai_beta": "a=v1" } });
    assert_eq!(client.post("/providers", &body).await.status, 200);
    let integrations = ["custom_host", "azure_foundry_url", "azure_resource_name", "azure_region", "aws_region"];
    let accounts = ["api_key", "aws_role_arn", "azure_auth_mode", "vertex_project_id", "aws_s3_bucket", "timeout"];
    for name in integrations.iter().chain(&accounts) {
        let config = json!({ *name: "https://evil.example" });
        let body = json!({ "name": "q", "slug": "q", "integration_id": "main", "model_config": config });
        for answer in [
            client.post("/providers", &body).await,
            client.put("/providers/p", &json!({ "model_config": config })).await,
            service
                .administrator()
                .put("/providers/p", &json!({ "workspace_id": service.home.workspace_id, "model_config": config }))
                .await,
        ] {
            assert_eq!(answer.status, 400, "{}", answer.text());
            assert_eq!(answer.json()["error"]["param"], format!("model_config.{name}"), "{}", answer.text());
        }
    }
    let kept = client.get("/providers/p").await.json();
    assert_eq!(kept["model_config"], json!({ "openai_beta": "a=v1" }), "a refused change changes nothing");
}

#[tokio::test]
async fn a_provider_is_expired_and_exhausted_at_the_instant_and_revives() {
    let service = Service::start().await;
    let client = granted(&service).await;
    let body = json!({ "name": "p", "slug": "p", "integration_id": "main", "usage_limits": { "credit_limit": 5 }, "expires_at": "2099-01-01" });
    assert_eq!(client.post("/providers", &body).await.status, 200);
    let status = async || client.get("/providers/p").await.json()["status"].clone();
    assert_eq!(status().await, "active");
    service.spend("providers", "500").await;
    assert_eq!(status().await, "exhausted");
    service.sql("UPDATE providers SET expires_at = now(), status = 'exhausted'").await;
    assert_eq!(status().await, "expired");
    assert_eq!(client.get("/providers").await.json()["data"][0]["status"], "expired");
    assert_eq!(client.put("/providers/p", &json!({ "expires_at": null })).await.status, 200);
    assert_eq!(status().await, "exhausted");
    assert_eq!(client.put("/providers/p", &json!({ "usage_limits": { "credit_limit": 6 } })).await.status, 200);
    assert_eq!(status().await, "active");
    service.spend("providers", "600").await;
    service.sql("UPDATE providers SET status = 'exhausted'").await;
    assert_eq!(client.put("/providers/p", &json!({ "reset_usage": true })).await.status, 200);
    assert_eq!(status().await, "active");
    let stored = service.database.client().await.query_one("SELECT status FROM providers", &[]).await.unwrap();
    assert_eq!(stored.get::<_, String>(0), "active", "those who follow the row see it too");
    let past = client.put("/providers/p", &json!({ "expires_at": "2020-01-01" })).await;
    assert_eq!(refused(&past), (400, "AB01".into(), "expires_at".into()));
}

#[tokio::test]
async fn an_admin_key_sees_all_providers_and_says_which_it_means_where_slugs_repeat() {
    let service = Service::start().await;
    granted(&service).await;
    let (admin, elsewhere) = (service.administrator(), service.workspace("elsewhere").await);
    let body = json!({ "workspaces": [{ "id": elsewhere, "enabled": true, "create_default_provider": false }] });
    assert_eq!(admin.put("/integrations/main/workspaces", &body).await.status, 200);
    let body =
        |workspace: Value| json!({ "name": "p", "slug": "p", "integration_id": "main", "workspace_id": workspace });
    assert_eq!(admin.post("/providers", &body(Value::Null)).await.status, 200, "in the default workspace");
    assert_eq!(admin.post("/providers", &body(json!("elsewhere"))).await.status, 200);
    for workspace in [json!(service.home.workspace_id), json!("elsewhere")] {
        assert_eq!(admin.post("/providers", &body(workspace)).await.status, 409);
    }
    for path in ["/providers", "/virtual-keys"] {
        assert_eq!(admin.get(path).await.json()["total"], 2, "{path}");
    }
    for path in ["/providers", "/providers/p", "/virtual-keys", "/virtual-keys/p"] {
        if path.ends_with("/p") {
            assert_eq!(refused(&admin.get(path).await), (400, "AB01".into(), "workspace_id".into()), "{path}");
        }
        let found = admin.get(&format!("{path}?workspace_id=elsewhere")).await;
        assert_eq!(found.status, 200, "{path}: {}", found.text());
        let one = if path.ends_with("/p") { found.json() } else { found.json()["data"][0].clone() };
        assert_eq!(one["workspace_id"], json!(elsewhere), "{path}");
    }
    assert_eq!(admin.put("/providers/p?workspace_id=elsewhere", &json!({ "note": "x" })).await.status, 200);
    let home = service.workspace_client(service.home.workspace_id).await;
    assert_eq!(home.get("/providers/p").await.json()["note"], Value::Null);
    assert_eq!(home.get("/providers?workspace_id=elsewhere").await.status, 403);
}

#[tokio::test]
async fn a_provider_needs_an_integration_that_its_workspace_may_use() {
    let service = Service::start().await;
    let home = granted(&service).await;
    let (admin, elsewhere) = (service.administrator(), service.workspace("elsewhere").await);
    account(&admin, "withheld").await;
    let theirs =
        json!({ "name": "theirs", "ai_provider_id": "openai", "key": "sk-0123456789", "workspace_id": elsewhere });
    assert_eq!(admin.post("/integrations", &theirs).await.status, 200);
    for (integration, status) in [("withheld", 403), ("theirs", 404), ("nothing", 404), ("a b", 404), ("main", 200)] {
        let answer = home.post("/providers", &json!({ "name": "p", "integration_id": integration })).await;
        assert_eq!(answer.status, status, "{integration}: {}", answer.text());
    }
    assert_eq!(admin.delete("/integrations/main?force=true").await.status, 200);
    assert_eq!(home.get("/providers").await.json()["total"], 0, "providers go with their integration");
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    account(&stranger, "foreign").await;
    assert_eq!(home.post("/providers", &json!({ "name": "p", "integration_id": "foreign" })).await.status, 404);
}

#[tokio::test]
async fn many_who_want_one_slug_get_it_once() {
    let service = Service::start().await;
    let client = granted(&service).await;
    let body = json!({ "name": "p", "slug": "once", "integration_id": "main" });
    let answers = futures::future::join_all((0..8).map(|_| client.post("/providers", &body))).await;
    let made = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!((made, refused), (1, 7));
    assert_eq!(client.delete("/providers/once").await.status, 200);
    assert_eq!(client.post("/providers", &body).await.status, 200, "the slug is free again");
}

#[tokio::test]
async fn a_virtual_key_brings_its_own_credentials_and_takes_them_along() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let made = client
        .post("/virtual-keys", &json!({
            "name": "Azure", "provider": "azure-openai", "key": "azure-key-0123", "note": "n",
            "resourceName": "r", "deploymentConfig": [{ "deploymentName": "d", "apiVersion": "v", "alias": "gpt-4o" }],
            "azureEntraClientSecret": "entra-secret-1",
        }))
        .await;
    assert_eq!(made.status, 200, "{}", made.text());
    let made = made.json();
    let (id, slug) = (made["id"].clone(), made["slug"].as_str().unwrap().to_owned());
    assert_eq!(
        made,
        json!({ "success": true, "data": { "slug": slug }, "id": id, "slug": slug, "object": "virtual-key" })
    );
    let path = format!("/virtual-keys/{slug}");
    let shown = client.get(&path).await.json();
    for (field, value) in [
        ("object", json!("virtual-key")),
        ("ai_provider_name", json!("azure-openai")),
        ("key", json!("")),
        ("masked_api_key", json!("az*****123")),
        ("note", json!("n")),
        ("rate_limits", json!([])),
        (
            "model_config",
            json!({
                "resourceName": "r", "deploymentConfig": [{ "deploymentName": "d", "apiVersion": "v", "alias": "gpt-4o" }],
                "azureEntraClientSecret": "en*****t-1",
            }),
        ),
    ] {
        assert_eq!(shown[field], value, "{field}: {shown}");
    }
    assert_eq!(client.get(&format!("/providers/{slug}")).await.json()["id"], id, "the same row under its new name");
    assert_eq!(client.get("/integrations").await.json()["total"], 0, "its account is not seen");
    let hidden = shown["integration_id"].as_str().unwrap();
    assert_eq!(client.get(&format!("/integrations/{hidden}")).await.status, 404);

    let changed = client.put(&path, &json!({ "key": "azure-key-4567", "name": "Renamed" })).await;
    assert_eq!(changed.json(), json!({ "id": id, "slug": slug, "object": "virtual-key" }));
    let shown = client.get(&path).await.json();
    assert_eq!((&shown["masked_api_key"], &shown["name"]), (&json!("az*****567"), &json!("Renamed")));
    assert_eq!(client.delete(&path).await.json(), json!({}));
    let left = "SELECT count(*) FROM integrations WHERE status = 'active'";
    let left: i64 = service.database.client().await.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0, "its account goes with it");
}

#[tokio::test]
async fn virtual_keys_refuse_in_their_own_words() {
    let service = Service::start().await;
    let client = granted(&service).await;
    for (body, field) in [
        (json!({ "provider": "openai", "key": "k" }), "name"),
        (json!({ "name": "n", "key": "k" }), "provider"),
        (json!({ "name": "n", "provider": "nobody", "key": "k" }), "provider"),
        (json!({ "name": "n", "provider": "openai" }), "key"),
        (json!({ "name": "n", "provider": "azure-openai", "key": "k" }), "resourceName"),
        (json!({ "name": "n", "provider": "bedrock", "awsAccessKeyId": "a", "awsSecretAccessKey": "s" }), "awsRegion"),
        (
            json!({ "name": "n", "provider": "openai", "key": "k", "usage_limits": { "credit": 1 } }),
            "usage_limits.credit",
        ),
    ] {
        let answer = client.post("/virtual-keys", &body).await;
        assert_eq!(refused(&answer), (400, "AB01".into(), field.into()), "{body}: {}", answer.text());
    }
    assert_eq!(
        client.post("/providers", &json!({ "name": "p", "slug": "p", "integration_id": "main" })).await.status,
        200
    );
    let answer = client.put("/virtual-keys/p", &json!({ "key": "sk-another" })).await;
    assert_eq!(refused(&answer), (400, "AB01".into(), "key".into()), "its credentials are the integration's");
    assert_eq!(client.put("/virtual-keys/p", &json!({ "note": "x" })).await.status, 200);
}
