//! Keys that come with joining a workspace, where the organisation gives everybody one, and what the workspace says
//! about them.

use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};
use shared::model::KeyKind;

const ORGANISATION: &str = "/admin/organisation";

async fn give_keys(client: &Client, more: Value) {
    let mut settings = json!({ "user_api_key_auto_create": 1 });
    settings.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    let answer = client.put(ORGANISATION, &json!({ "settings": settings })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn members(service: &Service) -> String {
    format!("/workspaces/{}/users", service.home.workspace_id)
}

#[tokio::test]
async fn who_is_added_gets_a_key_if_the_organisation_says_so() {
    let service = Service::start().await;
    let admin = service.administrator();
    let before = service.person("member", None).await;
    let none = admin.post(&members(&service), &json!({ "user_id": before, "role": "member" })).await;
    assert_eq!(none.json(), json!({}), "nothing was said");
    give_keys(&admin, json!({ "user_api_key_ttl": 3600, "user_api_key_rotation_period": 30 })).await;
    let user = service.person("member", None).await;
    let added = admin.post(&members(&service), &json!({ "users": [{ "id": user, "role": "member" }] })).await.json();
    let keys = added["api_keys"].as_array().unwrap_or_else(|| panic!("{added}"));
    assert_eq!(keys.len(), 1);
    assert_eq!((&keys[0]["user_id"], &keys[0]["workspace_id"]), (&json!(user), &json!(service.home.workspace_id)));
    let own = service.client().with_key(keys[0]["key"].as_str().unwrap()).get("/api-keys/self").await;
    assert_eq!(own.status, 200, "{}", own.text());
    let key = admin.get(&format!("/api-keys/{}", keys[0]["id"].as_str().unwrap())).await.json();
    assert_eq!((&key["type"], &key["creation_mode"]), (&json!("workspace-user"), &json!("auto")));
    assert_eq!((&key["user_id"], &key["expiry_enforced"]), (&json!(user), &json!(1)));
    assert_eq!(
        key["scopes"].as_array().unwrap().len(),
        shared::identity::scopes::all_for(KeyKind::WorkspaceUser).len()
    );
    assert_eq!(key["rotation_policy"]["rotation_period_days"], 30);
    assert_eq!(key["is_unclaimed"], false);
    let secret = keys[0]["key"].as_str().unwrap();
    for row in service.trail(service.home.organisation_id).await {
        assert!(!row.to_string().contains(secret), "{row}");
    }
}

#[tokio::test]
async fn who_accepts_an_invitation_gets_the_promised_key_or_the_one_that_everybody_gets() {
    let service = Service::start().await;
    let admin = service.administrator();
    give_keys(&admin, json!({})).await;
    for (email, details, scopes) in [
        ("a@x.test", json!(null), shared::identity::scopes::all_for(KeyKind::WorkspaceUser).len()),
        ("b@x.test", json!({ "scopes": ["completions.write"] }), 1),
    ] {
        let body = json!({ "email": email, "role": "member", "workspace_api_key_details": details,
                           "workspaces": [{ "id": service.home.workspace_id, "role": "member" }] });
        let made = admin.post("/admin/users/invites", &body).await.json();
        let token = made["invite_link"].as_str().unwrap().split_once("#token=").unwrap().1.to_owned();
        let joined = service.client().post("/admin/users/invites/accept", &json!({ "token": token })).await.json();
        let keys = joined["api_keys"].as_array().unwrap_or_else(|| panic!("{joined}"));
        assert_eq!(keys.len(), 1, "{email}: one key, not two");
        let own = service.client().with_key(keys[0]["key"].as_str().unwrap()).get("/api-keys/self").await.json();
        assert_eq!(own["scopes"].as_array().unwrap().len(), scopes, "{email}");
    }
}

/// A new workspace is answered without its people, so nobody sees these secrets; rotating shows one.
#[tokio::test]
async fn keys_made_with_a_workspace_are_fetched_by_rotating_them() {
    let service = Service::start().await;
    let admin = service.administrator();
    give_keys(&admin, json!({})).await;
    let user = service.person("member", None).await;
    let made = admin.post("/workspaces", &json!({ "name": "New", "users": [user] })).await.json();
    assert!(made.get("api_keys").is_none(), "{made}");
    let list = admin.get(&format!("/api-keys?workspace_id={}", made["id"].as_str().unwrap())).await.json();
    let key = &list["data"][0];
    assert_eq!((&list["total"], &key["is_unclaimed"], &key["user_id"]), (&json!(1), &json!(true), &json!(user)));
    let path = format!("/api-keys/{}", key["id"].as_str().unwrap());
    let fetched = admin.post(&format!("{path}/rotate"), &json!({})).await.json();
    assert_eq!(fetched["key_transition_expires_at"], Value::Null, "there is no secret before it: {fetched}");
    let own = service.client().with_key(fetched["key"].as_str().unwrap()).get("/api-keys/self").await;
    assert_eq!(own.json()["id"], key["id"]);
    assert_eq!(admin.get(&path).await.json()["is_unclaimed"], false);
    assert_eq!(admin.post(&format!("{path}/rotate"), &json!({})).await.status, 200, "from now on as any other");
}

#[tokio::test]
async fn joining_succeeds_without_a_key_where_there_can_be_none() {
    let service = Service::start().await;
    let admin = service.administrator();
    give_keys(&admin, json!({ "user_api_key_count": 0 })).await;
    let add = async || {
        let user = service.person("member", None).await;
        let answer = admin.post(&members(&service), &json!({ "user_id": user, "role": "member" })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    };
    assert_eq!(add().await, json!({}), "no place is left");
    let schema = json!({ "type": "object", "additionalProperties": true, "required": ["team"] });
    let change = json!({ "settings": { "user_api_key_count": -1 }, "metadata_schemas": { "api_key": schema } });
    assert_eq!(admin.put(ORGANISATION, &change).await.status, 200);
    assert_eq!(add().await, json!({}), "the metadata schema wants a team");
    let path = format!("/workspaces/{}", service.home.workspace_id);
    let change = json!({ "settings": { "user_key_metadata": { "team": "red" } } });
    assert_eq!(admin.put(&path, &change).await.status, 200);
    let keys = add().await["api_keys"].clone();
    let key = admin.get(&format!("/api-keys/{}", keys[0]["id"].as_str().unwrap())).await.json();
    assert_eq!(key["defaults"]["metadata"], json!({ "team": "red" }), "the workspace says which");
}

#[tokio::test]
async fn metadata_of_a_workspace_goes_to_its_peoples_keys_and_wins_unless_it_may_be_overridden() {
    let service = Service::start().await;
    let admin = service.administrator();
    let path = format!("/workspaces/{}", service.home.workspace_id);
    for (may_override, team) in [(0, "blue"), (1, "red")] {
        let settings = json!({ "user_key_metadata": { "team": "blue" }, "user_key_metadata_override": may_override });
        assert_eq!(admin.put(&path, &json!({ "settings": settings })).await.status, 200);
        let body = json!({ "name": "k", "workspace_id": service.home.workspace_id, "user_id": service.home.owner_id,
                           "defaults": { "metadata": { "team": "red", "app": "x" } } });
        let made = admin.post("/api-keys/workspace/user", &body).await.json();
        let key = admin.get(&format!("/api-keys/{}", made["id"].as_str().unwrap())).await.json();
        assert_eq!(key["defaults"]["metadata"], json!({ "team": team, "app": "x" }));
    }
}

#[tokio::test]
async fn a_new_workspace_must_have_the_metadata_that_the_organisations_schema_asks_for() {
    let service = Service::start().await;
    let admin = service.administrator();
    let schema = json!({ "type": "object", "additionalProperties": true, "required": ["cost_centre"],
                         "properties": { "cost_centre": { "type": "string", "pattern": "^[0-9]{4}$" } } });
    let answer = admin.put(ORGANISATION, &json!({ "metadata_schemas": { "workspace": schema } })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    for (defaults, status) in [
        (json!(null), 400),
        (json!({ "metadata": { "team": "red" } }), 400),
        (json!({ "metadata": { "cost_centre": "x" } }), 400),
        (json!({ "metadata": { "cost_centre": "0042", "team": "red" } }), 200),
    ] {
        let answer = admin.post("/workspaces", &json!({ "name": "New", "defaults": defaults })).await;
        assert_eq!(answer.status, status, "{defaults}: {}", answer.text());
        if status == 400 {
            assert_eq!(answer.json()["error"]["param"], "defaults.metadata.cost_centre");
        }
    }
}
