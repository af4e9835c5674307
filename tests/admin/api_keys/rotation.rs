//! A key with two secrets: both open it during the transition, on the control plane and for inference.

use super::{SERVICE, create, field, outcome, path};
use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use harness::{Stack, chat};
use serde_json::{Value, json};

fn secret(answer: &Value) -> &str {
    answer["key"].as_str().unwrap()
}

#[tokio::test]
async fn a_rotated_key_opens_with_both_secrets_until_the_transition_ends() {
    let service = Service::start().await;
    let admin = service.administrator();
    let old = create(&admin, SERVICE, json!({ "name": "k", "workspace_id": service.home.workspace_id })).await;
    let rotate = format!("{}/rotate", path(&old));
    let before = Utc::now();
    let answer = admin.post(&rotate, &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let new = answer.json();
    assert_eq!(new["id"], old["id"]);
    assert_ne!(new["key"], old["key"]);
    let ends: DateTime<Utc> = new["key_transition_expires_at"].as_str().unwrap().parse().unwrap();
    let lasts = ends - before;
    assert!(lasts >= TimeDelta::minutes(30) - TimeDelta::seconds(1) && lasts < TimeDelta::minutes(31), "{lasts}");
    let open =
        async |key: &Value| service.client().with_key(secret(key)).get("/api-keys/self").await.json()["id"].clone();
    assert_eq!((open(&old).await, open(&new).await), (old["id"].clone(), old["id"].clone()));
    assert_eq!(outcome(&admin.post(&rotate, &json!({})).await), (409, "AB07".into()), "never three secrets");
    let shown = admin.get(&path(&old)).await.json();
    assert_eq!(shown["key"], json!(shared::identity::api_key::mask(secret(&new))));
    assert!(shown["last_rotated_at"].is_string());
    let trail = service.trail(service.home.organisation_id).await;
    let record = trail.iter().find(|row| row["action"] == "rotate").unwrap();
    assert_eq!(record["after"]["old_key_masked"], json!(shared::identity::api_key::mask(secret(&old))));
    assert_eq!(record["after"]["rotation_mode"], "manual");
    assert!(![secret(&old), secret(&new)].iter().any(|one| record.to_string().contains(one)));
    service.sql("UPDATE api_keys SET previous_expires_at = now() WHERE previous_hash IS NOT NULL").await;
    assert_eq!((open(&old).await, open(&new).await), (Value::Null, old["id"].clone()));
    assert_eq!(admin.post(&rotate, &json!({ "key_transition_period_ms": 3_600_000 })).await.status, 200);
    assert_eq!(open(&old).await, Value::Null, "the one before the one before is gone");
}

#[tokio::test]
async fn a_transition_is_neither_short_nor_longer_than_the_period() {
    let service = Service::start().await;
    let admin = service.administrator();
    let body = json!({ "name": "k", "workspace_id": service.home.workspace_id, "rotation_policy": { "rotation_period_days": 1 } });
    let key = create(&admin, SERVICE, body).await;
    let rotate = format!("{}/rotate", path(&key));
    for ms in [json!(1_799_999), json!(86_400_000), json!(-1), json!("x")] {
        let answer = admin.post(&rotate, &json!({ "key_transition_period_ms": ms })).await;
        assert_eq!(
            (outcome(&answer), field(&answer)),
            ((400, "AB01".into()), "key_transition_period_ms".into()),
            "{ms}"
        );
    }
    assert_eq!(admin.post(&rotate, &json!({})).await.status, 200);
    assert_eq!(admin.put(&path(&key), &json!({ "rotation_policy": null })).await.status, 200);
    assert_eq!(admin.get(&path(&key)).await.json()["rotation_policy"], Value::Null);
}

#[tokio::test]
async fn what_has_ended_or_belongs_to_others_cannot_be_rotated() {
    let service = Service::start().await;
    let admin = service.administrator();
    let key = create(&admin, SERVICE, json!({ "name": "k", "workspace_id": service.home.workspace_id })).await;
    let rotate = format!("{}/rotate", path(&key));
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(outcome(&stranger.post(&rotate, &json!({})).await), (404, "AB08".into()));
    service.sql(&format!("UPDATE api_keys SET expires_at = now() WHERE id = '{}'", key["id"].as_str().unwrap())).await;
    assert_eq!(outcome(&admin.post(&rotate, &json!({})).await), (400, "AB01".into()));
    assert_eq!(admin.delete(&path(&key)).await.status, 200);
    assert_eq!(outcome(&admin.post(&rotate, &json!({})).await), (404, "AB08".into()));
}

/// Each secret is tried once at a time, so that two rotations at the same moment do not both win.
#[tokio::test]
async fn of_two_rotations_at_once_one_wins() {
    let service = Service::start().await;
    let admin = service.administrator();
    let key = create(&admin, SERVICE, json!({ "name": "k", "workspace_id": service.home.workspace_id })).await;
    let (rotate, none) = (format!("{}/rotate", path(&key)), json!({}));
    let (one, two) = tokio::join!(admin.post(&rotate, &none), admin.post(&rotate, &none));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
}

#[tokio::test]
async fn the_proxy_takes_both_secrets_during_the_transition_and_the_new_one_after() {
    let stack = Stack::start().await;
    let admin = stack.administrator();
    let body = json!({ "name": "k", "workspace_id": stack.home.workspace_id });
    let old = create(&admin, SERVICE, body).await;
    let status =
        async |key: &str| stack.as_application(key).post("/chat/completions", &chat("hello")).await.status.as_u16();
    stack.until("the new key works", async || status(secret(&old)).await == 200).await;
    let new = admin.post(&format!("{}/rotate", path(&old)), &json!({})).await.json();
    stack.until("the rotated key works", async || status(secret(&new)).await == 200).await;
    assert_eq!(status(secret(&old)).await, 200, "in transition");
    let end = "UPDATE api_keys SET previous_expires_at = now() WHERE previous_hash IS NOT NULL";
    stack.database.client().await.batch_execute(end).await.unwrap();
    stack.until("the old secret is refused", async || status(secret(&old)).await == 401).await;
    assert_eq!(status(secret(&new)).await, 200);
    assert_eq!(admin.delete(&path(&old)).await.status, 200);
    stack.until("the deleted key is refused", async || status(secret(&new)).await == 401).await;
}
