//! How long keys live, and how many people's keys a workspace may have.

use super::{ADMIN, SERVICE, USER, create, field, outcome, path};
use crate::configs;
use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

async fn set(service: &Service, settings: Value) {
    let organisation = service.home.organisation_id;
    let sql = "UPDATE organisations SET settings = $2 WHERE id = $1";
    service.database.client().await.execute(sql, &[&organisation, &settings]).await.unwrap();
}

fn time(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn people_s_keys_end_by_default_and_within_the_maximum_and_service_keys_as_asked() {
    let service = Service::start().await;
    let admin = service.administrator();
    let workspace = service.home.workspace_id;
    let body = |expires_at: Value| json!({ "name": "k", "workspace_id": workspace, "user_id": service.home.owner_id, "expires_at": expires_at });
    set(&service, json!({ "user_api_key_ttl": 3600, "user_api_key_max_ttl": 7200 })).await;
    let before = Utc::now();
    let key = admin.get(&path(&create(&admin, USER, body(Value::Null)).await)).await.json();
    let life = time(&key["expires_at"]) - before;
    assert!(life >= TimeDelta::seconds(3599) && life <= TimeDelta::seconds(3700), "{life}");
    assert_eq!(key["expiry_enforced"], 1);
    let late = json!(before + TimeDelta::seconds(7300));
    let refused = admin.post(USER, &body(late.clone())).await;
    assert_eq!((outcome(&refused), field(&refused)), ((400, "AB01".into()), "expires_at".into()));
    create(&admin, SERVICE, body(late)).await;
    let soon = json!(before + TimeDelta::seconds(60));
    let asked = admin.get(&path(&create(&admin, USER, body(soon)).await)).await.json();
    assert_eq!(asked["expiry_enforced"], 0);
    let own = path(&asked);
    let kept = admin.put(&own, &json!({ "expires_at": null })).await;
    assert_eq!((outcome(&kept), field(&kept)), ((400, "AB01".into()), "expires_at".into()));
    // A workspace has its own word on it.
    service.sql("UPDATE workspaces SET settings = '{\"user_api_key_ttl\": 0, \"user_api_key_max_ttl\": 0}'").await;
    assert_eq!(admin.put(&own, &json!({ "expires_at": null })).await.status, 200);
    assert_eq!(admin.get(&own).await.json()["expires_at"], Value::Null);
}

#[tokio::test]
async fn service_keys_and_admin_keys_have_a_default_and_a_maximum_of_their_own() {
    let service = Service::start().await;
    let admin = service.administrator();
    let scopes = json!(["configs.list"]);
    for (path_of_kind, name) in [(SERVICE, "service"), (ADMIN, "admin")] {
        let (ttl, max) = (format!("{name}_api_key_ttl"), format!("{name}_api_key_max_ttl"));
        let answer = admin.put("/admin/organisation", &json!({ "settings": { ttl: 3600, max: 7200 } })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let body = |expires_at: Value| {
            let mut body = json!({ "name": "k", "scopes": scopes, "expires_at": expires_at });
            if path_of_kind == SERVICE {
                body["workspace_id"] = json!(service.home.workspace_id);
            }
            body
        };
        let before = Utc::now();
        let key = admin.get(&path(&create(&admin, path_of_kind, body(Value::Null)).await)).await.json();
        let life = time(&key["expires_at"]) - before;
        assert!(life >= TimeDelta::seconds(3599) && life <= TimeDelta::seconds(3700), "{name}: {life}");
        assert_eq!(key["expiry_enforced"], 1);
        let late = json!(before + TimeDelta::seconds(7300));
        let refused = admin.post(path_of_kind, &body(late.clone())).await;
        assert_eq!((outcome(&refused), field(&refused)), ((400, "AB01".into()), "expires_at".into()), "{name}");
        for change in [json!({ "expires_at": null }), json!({ "expires_at": late })] {
            let refused = admin.put(&path(&key), &change).await;
            assert_eq!((outcome(&refused), field(&refused)), ((400, "AB01".into()), "expires_at".into()), "{name}");
        }
    }
}

#[tokio::test]
async fn an_expired_key_is_refused_at_that_instant_and_revives_with_a_later_end() {
    let service = Service::start().await;
    let admin = service.administrator();
    let key = create(&admin, SERVICE, json!({ "name": "k", "workspace_id": service.home.workspace_id })).await;
    let client = service.client().with_key(key["key"].as_str().unwrap());
    let id = key["id"].as_str().unwrap();
    service.sql(&format!("UPDATE api_keys SET expires_at = now() WHERE id = '{id}'")).await;
    assert_eq!(outcome(&client.get("/api-keys/self").await), (401, "AB05".into()), "no job has marked it yet");
    service.sql(&format!("UPDATE api_keys SET status = 'expired' WHERE id = '{id}'")).await;
    assert_eq!(admin.get(&path(&key)).await.json()["status"], "expired");
    assert_eq!(admin.put(&path(&key), &json!({ "name": "still" })).await.status, 200);
    assert_eq!(admin.get(&path(&key)).await.json()["status"], "expired", "a new name is no new life");
    assert_eq!(admin.put(&path(&key), &json!({ "expires_at": "2001-01-01" })).await.status, 400);
    assert_eq!(admin.put(&path(&key), &json!({ "expires_at": "2999-01-01" })).await.status, 200);
    assert_eq!(admin.get(&path(&key)).await.json()["status"], "active");
    assert_eq!(client.get("/api-keys/self").await.status, 200);
}

#[tokio::test]
async fn the_last_free_place_for_a_person_s_key_is_given_once() {
    let service = Service::start().await;
    let admin = service.administrator();
    set(&service, json!({ "user_api_key_count": 3 })).await;
    let body = json!({ "name": "k", "workspace_id": service.home.workspace_id, "user_id": service.home.owner_id });
    let answers = futures::future::join_all((0..8).map(|_| admin.post(USER, &body))).await;
    let mut statuses: Vec<_> = answers.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 200, 400, 400, 400, 400, 400]);
    create(&admin, SERVICE, body.clone()).await;
    let made = answers.iter().find(|answer| answer.status == 200).unwrap().json();
    assert_eq!(admin.delete(&path(&made)).await.status, 200);
    create(&admin, USER, body.clone()).await;
    assert_eq!(outcome(&admin.post(USER, &body).await), (400, "AB01".into()));
    set(&service, json!({ "user_api_key_count": -1 })).await;
    create(&admin, USER, body).await;
}

#[tokio::test]
async fn metadata_must_be_as_the_organisation_s_schema_wants_it() {
    let service = Service::start().await;
    let admin = service.administrator();
    let schema = json!({ "api_key": {
        "type": "object", "additionalProperties": true, "required": ["team"],
        "properties": { "team": { "type": "string", "enum": ["a", "b"] } },
    }});
    let sql = "UPDATE organisations SET metadata_schemas = $1";
    service.database.client().await.execute(sql, &[&schema]).await.unwrap();
    let body = |metadata: Value| json!({ "name": "k", "workspace_id": service.home.workspace_id, "defaults": { "metadata": metadata } });
    for metadata in [json!(null), json!({}), json!({ "team": "c" })] {
        let answer = admin.post(SERVICE, &body(metadata.clone())).await;
        assert_eq!(
            (outcome(&answer), field(&answer)),
            ((400, "AB01".into()), "defaults.metadata.team".into()),
            "{metadata}"
        );
    }
    let key = create(&admin, SERVICE, body(json!({ "team": "a", "more": "x" }))).await;
    assert_eq!(admin.put(&path(&key), &json!({ "defaults": { "metadata": { "team": "c" } } })).await.status, 400);
    assert_eq!(admin.put(&path(&key), &json!({ "name": "n" })).await.status, 200);
}

#[tokio::test]
async fn a_person_s_key_inherits_the_workspace_s_config() {
    let service = Service::start().await;
    let admin = service.administrator();
    service.sql("UPDATE workspaces SET defaults = '{\"user_api_key_config\": \"pc-team\"}'").await;
    let body = json!({ "name": "k", "workspace_id": service.home.workspace_id, "user_id": service.home.owner_id });
    let own = configs::create(&admin, "own", json!({ "provider": "@a" })).await["slug"].clone();
    for (place, sent, config) in [
        (USER, Value::Null, json!("pc-team")),
        (USER, json!({ "config_id": own }), own.clone()),
        (USER, json!({ "config_id": null }), Value::Null),
        (SERVICE, Value::Null, Value::Null),
    ] {
        let mut body = body.clone();
        body["defaults"] = sent;
        let key = admin.get(&path(&create(&admin, place, body).await)).await.json();
        assert_eq!(key["defaults"]["config_id"], config, "{place}");
    }
}
