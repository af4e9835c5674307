//! Which credentials the control plane takes, and what a key learns about itself.

use crate::service::Service;
use harness::Client;
use shared::model::KeyKind;
use uuid::Uuid;

const JWT: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.e30.c2ln";

async fn refusal(client: &Client) -> (u16, String, String) {
    let answer = client.get("/api-keys/self").await;
    let body = answer.json();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), text(&body["data"]["errorCode"]), text(&body["message"]))
}

#[tokio::test]
async fn a_key_is_told_what_it_is() {
    let service = Service::start().await;
    let key = service.key(KeyKind::WorkspaceUser, &["configs.read", "logs.list"]).await;
    let answer = service.client().with_key(&key.key).get("/api-keys/self").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert_eq!(body["object"], "api-key");
    assert_eq!(body["id"], key.id.to_string());
    assert_eq!(body["type"], "workspace-user");
    assert_eq!(body["status"], "active");
    assert_eq!(body["organisation_id"], service.home.organisation_id.to_string());
    assert_eq!(body["workspace_id"], service.home.workspace_id.to_string());
    assert_eq!(body["user_id"], service.home.owner_id.to_string());
    assert_eq!(body["scopes"], serde_json::json!(["configs.read", "logs.list"]));
    assert_eq!(body["rate_limits"], serde_json::json!([]));
    assert_eq!(body["expires_at"], serde_json::Value::Null);
    assert!(body["workspace_slug"].as_str().unwrap().starts_with("ws-"));
    assert!(body["created_at"].as_str().unwrap().ends_with('Z'));
    assert!(!answer.text().contains(&key.key), "the key itself is never shown again");
}

#[tokio::test]
async fn the_key_may_come_in_any_of_its_headers() {
    let service = Service::start_with(&["--header-prefix-aliases=x-acme-,x-other-"]).await;
    let key = &service.home.admin_key.key;
    for (name, value) in [
        ("x-gateway-api-key", key.clone()),
        ("X-Gateway-Api-Key", key.clone()),
        ("x-acme-api-key", key.clone()),
        ("x-other-api-key", key.clone()),
        ("authorization", format!("Bearer {key}")),
    ] {
        let answer = service.client().with(name, value).get("/api-keys/self").await;
        assert_eq!(answer.status, 200, "{name}");
        let aliased = name.starts_with("x-acme-");
        assert_eq!(answer.headers.contains_key("x-acme-request-id"), aliased, "{name}");
    }
    // Client libraries send provider headers with every call; here they mean nothing.
    let client =
        service.client().with_key(key).with("x-gateway-provider", "openai").with("authorization", "Bearer sk-x");
    assert_eq!(client.get("/api-keys/self").await.status, 200);
}

#[tokio::test]
async fn what_is_no_live_key_is_refused_with_its_reason() {
    let service = Service::start().await;
    let archived = service.key(KeyKind::WorkspaceService, &[]).await;
    let expired = service.key(KeyKind::WorkspaceService, &[]).await;
    let marked = service.key(KeyKind::WorkspaceService, &[]).await;
    let exhausted = service.key(KeyKind::WorkspaceService, &[]).await;
    service.sql(&format!("UPDATE api_keys SET status = 'archived' WHERE id = '{}'", archived.id)).await;
    service.sql(&format!("UPDATE api_keys SET expires_at = now() WHERE id = '{}'", expired.id)).await;
    service.sql(&format!("UPDATE api_keys SET status = 'expired' WHERE id = '{}'", marked.id)).await;
    service.sql(&format!("UPDATE api_keys SET status = 'exhausted' WHERE id = '{}'", exhausted.id)).await;
    let client = service.client();
    for (client, message) in [
        (client.clone(), "No valid credential was sent"),
        (client.with("authorization", "Basic dTpw"), "No valid credential was sent"),
        (client.with_key("pk_unknown"), "The API key is not known"),
        (client.with_key(&archived.key), "The API key is archived"),
        (client.with_key(&expired.key), "The API key has expired"),
        (client.with_key(&marked.key), "The API key has expired"),
        (client.with_key(JWT), "JWT rejected: unknown organisation (its id is the claim gateway_oid)"),
        (client.with_key(&archived.key).with_key(&exhausted.key), "Two different API keys were sent"),
    ] {
        assert_eq!(refusal(&client).await, (401, "AB05".into(), message.into()));
    }
    assert_eq!(client.with_key(&exhausted.key).get("/api-keys/self").await.status, 200);
}

#[tokio::test]
async fn keys_of_an_archived_workspace_stop_working() {
    let service = Service::start().await;
    let key = service.key(KeyKind::WorkspaceService, &[]).await;
    let client = service.client().with_key(&key.key);
    assert_eq!(client.get("/api-keys/self").await.status, 200);
    service.sql("UPDATE workspaces SET is_default = false, status = 'archived'").await;
    let refused = refusal(&client).await;
    assert_eq!(refused, (401, "AB05".into(), "The workspace of this API key is archived".into()));
    assert_eq!(service.administrator().get("/api-keys/self").await.status, 200);
}

#[tokio::test]
async fn a_key_describes_itself_and_never_one_of_another_organisation() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    let other = shared::bootstrap::create_organisation(&mut client, "Other", "owner@other.test", "pk_").await.unwrap();
    let mut seen = Vec::new();
    for keys in [&service.home, &other] {
        let body = service.client().with_key(&keys.admin_key.key).get("/api-keys/self").await.json();
        assert_eq!(body["organisation_id"], keys.organisation_id.to_string());
        seen.push(body["id"].as_str().unwrap().parse::<Uuid>().unwrap());
    }
    assert_eq!(seen, [service.home.admin_key.id, other.admin_key.id]);
}

#[tokio::test]
async fn an_unknown_kind_of_key_cannot_be_created() {
    let service = Service::start().await;
    for path in ["/api-keys/organisation/user", "/api-keys/x/y"] {
        let answer = service.administrator().post(path, &serde_json::json!({ "name": "x" })).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str()),
            (400, Some("AB01")),
            "{path}"
        );
    }
}
