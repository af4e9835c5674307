//! API keys over HTTP: the three kinds, who may make and change which, lifetimes, and rotation. Pure rules are tested
//! beside the code.

mod authority;
mod lifetimes;
mod rotation;
mod scopes;

use crate::configs;
use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use shared::model::KeyKind;
use uuid::Uuid;

pub const ADMIN: &str = "/api-keys/organisation/service";
pub const SERVICE: &str = "/api-keys/workspace/service";
pub const USER: &str = "/api-keys/workspace/user";

pub async fn create(client: &Client, path: &str, body: Value) -> Value {
    let answer = client.post(path, &body).await;
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    answer.json()
}

pub fn path(key: &Value) -> String {
    format!("/api-keys/{}", key["id"].as_str().unwrap())
}

pub fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

/// The field that a refusal names.
pub fn field(answer: &Answer) -> String {
    answer.json()["data"]["errors"][0]["field"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_key_of_each_kind_works_at_once_and_shows_its_secret_once() {
    let service = Service::start().await;
    let (admin, workspace) = (service.administrator(), service.home.workspace_id);
    for (place, kind, body) in [
        (ADMIN, "organisation-service", json!({})),
        (SERVICE, "workspace-service", json!({ "workspace_id": workspace })),
        (USER, "workspace-user", json!({ "workspace_id": workspace, "user_id": service.home.owner_id })),
    ] {
        let mut body = body;
        body["name"] = json!("k");
        let made = create(&admin, place, body).await;
        assert_eq!(made["object"], "api-key");
        let secret = made["key"].as_str().unwrap();
        let own = service.client().with_key(secret).get("/api-keys/self").await.json();
        assert_eq!((&own["id"], &own["type"]), (&made["id"], &json!(kind)));
        let shown = admin.get(&path(&made)).await;
        let key = shown.json();
        assert_eq!(
            (&key["type"], &key["status"], &key["creation_mode"]),
            (&json!(kind), &json!("active"), &json!("api"))
        );
        assert_eq!(key["key"], json!(shared::identity::api_key::mask(secret)));
        for text in [shown.text(), admin.get("/api-keys").await.text()] {
            assert!(!text.contains(secret), "{text}");
        }
        let trail = service.trail(service.home.organisation_id).await;
        assert!(!json!(trail).to_string().contains(secret), "the trail does not know it either");
    }
}

#[tokio::test]
async fn a_key_is_shown_whole() {
    let service = Service::start().await;
    let admin = service.administrator();
    let config = configs::create(&admin, "c", json!({ "provider": "@a" })).await["slug"].clone();
    let body = json!({
        "name": "Whole",
        "description": "d",
        "workspace_id": service.home.workspace_id,
        "scopes": ["logs.list", "completions.write"],
        "rate_limits": [{ "type": "requests", "unit": "rps", "value": 0 }],
        "usage_limits": [{ "credit_limit": 10, "alert_threshold": 5 }],
        "defaults": { "metadata": { "team": "a" }, "config_id": config, "allow_config_override": false },
        "alert_emails": ["a@b.test"],
        "expires_at": "2999-01-01T00:00:00Z",
        "rotation_policy": { "rotation_period_days": 30 },
    });
    let key = admin.get(&path(&create(&admin, SERVICE, body).await)).await.json();
    assert_eq!(key["scopes"], json!(["logs.list", "completions.write"]), "in the order they were sent");
    assert_eq!(key["rate_limits"], json!([{ "type": "requests", "unit": "rps", "value": 0 }]));
    assert_eq!((&key["usage_limits"]["credit_limit"], &key["usage_limits"]["current_usage"]), (&json!(10), &json!(0)));
    assert_eq!(
        key["defaults"],
        json!({ "metadata": { "team": "a" }, "config_id": config, "allow_config_override": false, "cost_in_answers": true })
    );
    assert_eq!((&key["allow_config_override"], &key["expiry_enforced"]), (&json!(0), &json!(0)));
    assert_eq!((&key["alert_emails"], &key["expires_at"]), (&json!(["a@b.test"]), &json!("2999-01-01T00:00:00.000Z")));
    assert_eq!(key["rotation_policy"]["status"], "ACTIVE");
    for name in
        ["user_id", "last_reset_at", "next_usage_reset_at", "api_key_defaults_id", "last_rotated_at", "reset_usage"]
    {
        assert_eq!(key.get(name), Some(&Value::Null), "{name}");
    }
}

#[tokio::test]
async fn a_key_starts_from_a_config_of_its_own_workspace_alone() {
    let service = Service::start().await;
    let (admin, other) = (service.administrator(), service.organisation().await);
    let config = async |client: &Client, workspace: Uuid| {
        let body = json!({ "name": "c", "config": { "provider": "@a" }, "workspace_id": workspace });
        client.post("/configs", &body).await.json()["slug"].clone()
    };
    let elsewhere = service.workspace("elsewhere").await;
    let own = config(&admin, service.home.workspace_id).await;
    let gone = config(&admin, service.home.workspace_id).await;
    assert_eq!(admin.delete(&format!("/configs/{}", gone.as_str().unwrap())).await.status, 200);
    let (near, far) = (
        config(&admin, elsewhere).await,
        config(&service.client().with_key(&other.admin_key.key), other.workspace_id).await,
    );
    let body = json!({ "name": "k", "workspace_id": service.home.workspace_id });
    let key = create(&admin, SERVICE, body.clone()).await;
    for (name, accepted) in [(&own, true), (&near, false), (&far, false), (&gone, false), (&json!("no such"), false)] {
        let defaults = json!({ "config_id": name });
        let mut body = body.clone();
        body["defaults"] = defaults.clone();
        for answer in [admin.post(SERVICE, &body).await, admin.put(&path(&key), &json!({ "defaults": defaults })).await]
        {
            assert_eq!(answer.status == 200, accepted, "{name}: {}", answer.text());
            assert!(accepted || answer.json()["error"]["param"] == "defaults.config_id", "{}", answer.text());
        }
    }
}

#[tokio::test]
async fn an_update_touches_what_was_sent_and_nothing_of_whose_key_it_is() {
    let service = Service::start().await;
    let admin = service.administrator();
    let config = configs::create(&admin, "c", json!({ "provider": "@a" })).await["id"].clone();
    let body = json!({
        "name": "a", "workspace_id": service.home.workspace_id, "usage_limits": { "credit_limit": 10 },
        "defaults": { "metadata": { "a": "1" }, "config_id": config }, "alert_emails": ["a@b.test"],
    });
    let key = create(&admin, SERVICE, body).await;
    let elsewhere = service.workspace("elsewhere").await;
    let answer = admin
        .put(&path(&key), &json!({ "name": "b", "type": "workspace-user", "user_id": service.home.owner_id }))
        .await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({})), "{}", answer.text());
    let changed = admin.get(&path(&key)).await.json();
    assert_eq!(
        (&changed["name"], &changed["type"], &changed["user_id"]),
        (&json!("b"), &json!("workspace-service"), &Value::Null)
    );
    assert_eq!(changed["usage_limits"]["credit_limit"], 10);
    let body =
        json!({ "defaults": { "config_id": null }, "alert_emails": [], "usage_limits": null, "rate_limits": [] });
    assert_eq!(admin.put(&path(&key), &body).await.status, 200);
    let cleared = admin.get(&path(&key)).await.json();
    assert_eq!((&cleared["usage_limits"], &cleared["alert_emails"]), (&Value::Null, &Value::Null));
    assert_eq!(cleared["defaults"]["config_id"], Value::Null);
    assert_eq!(cleared["defaults"]["metadata"], json!({ "a": "1" }));
    let moved = admin.put(&path(&key), &json!({ "workspace_id": elsewhere, "name": "c" })).await;
    assert_eq!(outcome(&moved), (404, "AB08".into()), "there is no such key in that workspace");
}

#[tokio::test]
async fn usage_starts_over_when_asked_and_a_raised_budget_wakes_the_key() {
    let service = Service::start().await;
    let admin = service.administrator();
    let body =
        json!({ "name": "k", "workspace_id": service.home.workspace_id, "usage_limits": { "credit_limit": 10 } });
    let key = create(&admin, SERVICE, body).await;
    let spend = async || {
        service.spend("api_keys", "1200").await;
        service.sql("UPDATE api_keys SET status = 'exhausted' WHERE usage_limits IS NOT NULL").await;
    };
    spend().await;
    assert_eq!(admin.get(&path(&key)).await.json()["usage_limits"]["status"], "exhausted");
    for (body, status, usage, asked) in [
        (json!({ "usage_limits": { "credit_limit": 11 } }), "exhausted", 12, Value::Null),
        (json!({ "usage_limits": { "credit_limit": 13 } }), "active", 12, Value::Null),
        (json!({ "reset_usage": true }), "active", 0, json!(1)),
    ] {
        spend().await;
        assert_eq!(admin.put(&path(&key), &body).await.status, 200, "{body}");
        let seen = admin.get(&path(&key)).await.json();
        assert_eq!(
            (&seen["status"], &seen["usage_limits"]["current_usage"]),
            (&json!(status), &json!(usage)),
            "{body}"
        );
        assert_eq!(seen["reset_usage"], asked, "{body}");
    }
    assert!(admin.get(&path(&key)).await.json()["last_reset_at"].is_string());
}

#[tokio::test]
async fn a_deleted_key_stops_at_once_and_none_deletes_itself() {
    let service = Service::start().await;
    let admin = service.administrator();
    let own = format!("/api-keys/{}", service.home.admin_key.id);
    assert_eq!(outcome(&admin.delete(&own).await), (400, "AB01".into()));
    let key = create(&admin, ADMIN, json!({ "name": "k" })).await;
    let client = service.client().with_key(key["key"].as_str().unwrap());
    assert_eq!(client.get("/api-keys/self").await.status, 200);
    assert_eq!(admin.delete(&path(&key)).await.json(), json!({}));
    assert_eq!(outcome(&client.get("/api-keys/self").await), (401, "AB05".into()));
    assert_eq!(outcome(&admin.get(&path(&key)).await), (404, "AB08".into()));
    assert_eq!(admin.get("/api-keys?status=archived").await.json()["data"][0]["id"], key["id"]);
}

#[tokio::test]
async fn lists_are_narrowed_by_scopes_workspace_type_status_and_ids() {
    let service = Service::start().await;
    let admin = service.administrator();
    let elsewhere = service.workspace("elsewhere").await;
    let one = create(&admin, SERVICE, json!({ "name": "one", "workspace_id": service.home.workspace_id })).await;
    let two = create(&admin, SERVICE, json!({ "name": "two", "workspace_id": "elsewhere" })).await;
    let person =
        create(&admin, USER, json!({ "name": "person", "workspace_id": elsewhere, "user_id": service.home.owner_id }))
            .await;
    let ids = async |client: &Client, query: &str| {
        let list = client.get(&format!("/api-keys?{query}")).await.json();
        let data = list["data"].as_array().unwrap_or_else(|| panic!("{query}: {list}")).clone();
        assert_eq!(list["total"], data.len(), "{query}");
        data.iter().map(|one| one["id"].clone()).collect::<Vec<_>>()
    };
    let all = ids(&admin, "").await;
    assert_eq!(all[..3], [person["id"].clone(), two["id"].clone(), one["id"].clone()]);
    assert!(all.contains(&json!(service.home.admin_key.id)));
    assert_eq!(ids(&admin, "workspace_id=elsewhere").await, [person["id"].clone(), two["id"].clone()]);
    assert_eq!(ids(&admin, "type=workspace-user").await, [person["id"].clone()]);
    assert_eq!(
        ids(&admin, &format!("ids={},{}", one["id"].as_str().unwrap(), two["id"].as_str().unwrap())).await.len(),
        2
    );
    assert_eq!(ids(&admin, "status=expired").await.len(), 0);
    for query in ["type=x", "status=x", "ids=x"] {
        assert_eq!(outcome(&admin.get(&format!("/api-keys?{query}")).await), (400, "AB01".into()), "{query}");
    }
    let narrow = service.key(KeyKind::WorkspaceService, &["workspace_user_api_keys.list"]).await;
    let narrow = service.client().with_key(&narrow.key);
    assert!(ids(&narrow, "").await.is_empty(), "the workspace has service keys, which this scope does not show");
    assert!(ids(&narrow, "type=workspace-service").await.is_empty());
    assert_eq!(outcome(&narrow.get("/api-keys?workspace_id=elsewhere").await), (403, "AB03".into()));
}

#[tokio::test]
async fn what_is_wrong_with_a_new_key_is_named() {
    let service = Service::start().await;
    let admin = service.administrator();
    let workspace = service.home.workspace_id;
    let stranger = service.organisation().await;
    for (place, body, expected) in [
        (SERVICE, json!({ "name": "", "workspace_id": workspace }), "name"),
        (SERVICE, json!({ "name": "x".repeat(101), "workspace_id": workspace }), "name"),
        (SERVICE, json!({ "name": "k", "description": "x".repeat(201), "workspace_id": workspace }), "description"),
        (SERVICE, json!({ "name": "k", "scopes": ["logs.list", "typo"], "workspace_id": workspace }), "scopes[1]"),
        (SERVICE, json!({ "name": "k", "scopes": "logs.list", "workspace_id": workspace }), "scopes"),
        (
            SERVICE,
            json!({ "name": "k", "alert_emails": ["a@b.test", "x"], "workspace_id": workspace }),
            "alert_emails[1]",
        ),
        (
            SERVICE,
            json!({ "name": "k", "alert_emails": vec!["a@b.test"; 21], "workspace_id": workspace }),
            "alert_emails",
        ),
        (SERVICE, json!({ "name": "k", "expires_at": "2001-01-01", "workspace_id": workspace }), "expires_at"),
        (SERVICE, json!({ "name": "k", "expires_at": "soon", "workspace_id": workspace }), "expires_at"),
        (
            SERVICE,
            json!({ "name": "k", "defaults": { "metadata": { "a": 1 } }, "workspace_id": workspace }),
            "defaults.metadata.a",
        ),
        (
            SERVICE,
            json!({ "name": "k", "organisation_id": stranger.organisation_id, "workspace_id": workspace }),
            "organisation_id",
        ),
        (SERVICE, json!({ "name": "k", "rotation_policy": {}, "workspace_id": workspace }), "rotation_policy"),
        (ADMIN, json!({ "name": "k", "scopes": ["completions.write"] }), "scopes[0]"),
        (USER, json!({ "name": "k", "workspace_id": workspace }), "user_id"),
        (USER, json!({ "name": "k", "workspace_id": workspace, "user_id": stranger.owner_id }), "user_id"),
    ] {
        let answer = admin.post(place, &body).await;
        assert_eq!((outcome(&answer), field(&answer)), ((400, "AB01".into()), expected.into()), "{body}");
    }
    for workspace in [json!(stranger.workspace_id), json!("nowhere")] {
        let answer = admin.post(SERVICE, &json!({ "name": "k", "workspace_id": workspace })).await;
        assert_eq!(outcome(&answer), (404, "AB08".into()), "{workspace}");
    }
}
