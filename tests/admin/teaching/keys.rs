//! Keys that are switched off and on, and secrets that end at once.

use super::fault;
use crate::service::Service;
use serde_json::json;

#[tokio::test]
async fn a_suspended_key_opens_nothing_until_it_is_resumed() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({ "name": "k", "scopes": ["logs.list", "logs.view"], "workspace_id": service.home.workspace_id });
    let made = client.post("/api-keys/workspace/service", &body).await.json();
    let path = format!("/api-keys/{}", made["id"].as_str().unwrap());
    let own = service.client().with_key(made["key"].as_str().unwrap());
    assert_eq!(own.get("/api-keys/self").await.status, 200);
    assert_eq!(client.put(&path, &json!({ "status": "suspended" })).await.status, 200);
    let refused = own.get("/api-keys/self").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["message"]), (401, &json!("The API key is suspended")));
    let shown = client.get(&path).await.json();
    assert!(shown["status"] == "suspended" && shown["suspended_at"].is_string(), "{shown}");
    assert_eq!(client.get("/api-keys?status=suspended").await.json()["total"], 1);
    let active = client.get("/api-keys?status=active").await.json();
    assert!(!active.to_string().contains(made["id"].as_str().unwrap()), "{active}");
    assert_eq!(client.put(&path, &json!({ "status": "active" })).await.status, 200);
    assert_eq!(own.get("/api-keys/self").await.status, 200);
    let shown = client.get(&path).await.json();
    assert!(shown["status"] == "active" && shown["suspended_at"].is_null(), "{shown}");
    let wrong = fault(&client.put(&path, &json!({ "status": "suspend" })).await, "status");
    assert_eq!(
        (&wrong["allowed"], &wrong["nearest"]),
        (&json!(["active", "suspended"]), &json!("suspended")),
        "{wrong}"
    );
    let itself = format!("/api-keys/{}", service.home.admin_key.id);
    fault(&client.put(&itself, &json!({ "status": "suspended" })).await, "status");
    assert_eq!(client.get("/api-keys").await.status, 200, "nobody locks themselves out");
}

#[tokio::test]
async fn a_secret_that_got_out_ends_at_once() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({ "name": "k", "scopes": ["logs.list"], "workspace_id": service.home.workspace_id });
    let made = client.post("/api-keys/workspace/service", &body).await.json();
    let rotate = format!("/api-keys/{}/rotate", made["id"].as_str().unwrap());
    let kept = client.post(&rotate, &json!({})).await.json();
    let first = service.client().with_key(made["key"].as_str().unwrap());
    assert_eq!(first.get("/api-keys/self").await.status, 200, "the usual way has a transition");
    let rotated = client.post(&rotate, &json!({ "key_transition_period_ms": 0 })).await;
    assert_eq!(rotated.status, 200, "also while a transition is open: {}", rotated.text());
    for old in [&made, &kept] {
        let old = service.client().with_key(old["key"].as_str().unwrap());
        assert_eq!(old.get("/api-keys/self").await.status, 401);
    }
    let fresh = service.client().with_key(rotated.json()["key"].as_str().unwrap());
    assert_eq!(fresh.get("/api-keys/self").await.status, 200);
    fault(&client.post(&rotate, &json!({ "key_transition_period_ms": 1 })).await, "key_transition_period_ms");
}
