//! Keys by a session in a workspace: one's own, and for those who run the workspace its services' and its members'.

use crate::login::browser::Browser;
use crate::login::by_link;
use crate::service::Service;
use http::Method;
use serde_json::{Value, json};
use shared::identity::scopes;
use shared::model::KeyKind;
use shared::routes::{Access, operations};
use uuid::Uuid;

const USER_KEYS: &str = "/api-keys/workspace/user";
const SERVICE_KEYS: &str = "/api-keys/workspace/service";

async fn put(browser: &mut Browser, key: Uuid, change: Value) -> u16 {
    browser.send(Method::PUT, &format!("/api-keys/{key}"), Some(&change)).await.status.as_u16()
}

async fn own_key(service: &Service, person: Uuid) -> Uuid {
    let scopes = ["completions.write"];
    let (home, workspace) = (&service.home, service.home.workspace_id);
    service.key_for(home, workspace, person, KeyKind::WorkspaceUser, &scopes).await.id
}

async fn listed(browser: &mut Browser, query: &str) -> Vec<Uuid> {
    let list = browser.get(&format!("/api-keys?{query}")).await.json();
    let data = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
    let mut ids: Vec<Uuid> = data.iter().map(|one| one["id"].as_str().unwrap().parse().unwrap()).collect();
    ids.sort_unstable();
    ids
}

async fn set(service: &Service, settings: Value) {
    let path = "/admin/organisation/security-settings";
    assert_eq!(service.administrator().put(path, &settings).await.status, 200);
}

/// The least that there is: a member of an organisation that lets members neither view nor write keys.
#[tokio::test]
async fn people_have_their_own_keys_in_their_hands() {
    let service = Service::start().await;
    set(&service, json!({ "membersViewApiKeys": false })).await;
    let (member, other) =
        (service.person("member", Some("member")).await, service.person("member", Some("member")).await);
    let (own, theirs) = (own_key(&service, member).await, own_key(&service, other).await);
    let services = service.key(KeyKind::WorkspaceService, &["completions.write"]).await.id;
    let mut browser = by_link(&service, member).await;
    assert_eq!(listed(&mut browser, "").await, [own]);
    assert_eq!(listed(&mut browser, "type=workspace-user").await, [own]);
    assert_eq!(listed(&mut browser, "type=workspace-service").await, [] as [Uuid; 0]);
    assert_eq!(browser.get(&format!("/api-keys/{own}")).await.status, 200);
    let rotated =
        browser.post(&format!("/api-keys/{own}/rotate"), &json!({ "key_transition_period_ms": 0 })).await.json();
    let key = service.client().with_key(rotated["key"].as_str().unwrap());
    assert_eq!(key.get("/api-keys/self").await.status, 200, "{rotated}");
    // Nothing by which it could do more, and not back what an administrator may have switched off.
    for change in [
        json!({ "scopes": ["completions.write", "logs.view"] }),
        json!({ "usage_limits": null }),
        json!({ "rate_limits": [] }),
        json!({ "reset_usage": true }),
        json!({ "expires_at": null }),
        json!({ "defaults": {} }),
        json!({ "status": "active" }),
        json!({ "rotation_policy": null }),
    ] {
        assert_eq!(put(&mut browser, own, change.clone()).await, 403, "{change}");
    }
    assert_eq!(put(&mut browser, own, json!({ "name": "laptop", "status": "suspended" })).await, 200);
    assert_eq!(key.get("/api-keys/self").await.status, 401);
    for foreign in [theirs, services] {
        assert_eq!(browser.get(&format!("/api-keys/{foreign}")).await.status, 403);
        assert_eq!(put(&mut browser, foreign, json!({ "status": "suspended" })).await, 403);
        assert_eq!(browser.post(&format!("/api-keys/{foreign}/rotate"), &json!({})).await.status, 403);
        assert_eq!(browser.delete(&format!("/api-keys/{foreign}")).await.status, 403);
    }
    let new = json!({ "name": "k", "scopes": ["completions.write"] });
    assert_eq!(browser.post(USER_KEYS, &new).await.status, 403, "members make none by default");
    assert_eq!(browser.post(SERVICE_KEYS, &new).await.status, 403);
    assert_eq!(browser.delete(&format!("/api-keys/{own}")).await.status, 200);
    // Where members write keys, they make their own and still nobody else's.
    set(&service, json!({ "membersWriteApiKeys": true, "membersViewApiKeys": true })).await;
    let made = browser.post(USER_KEYS, &new).await.json();
    let made: Uuid = made["id"].as_str().unwrap().parse().unwrap();
    assert_eq!(put(&mut browser, made, json!({ "rate_limits": [] })).await, 200);
    assert_eq!(put(&mut browser, theirs, json!({ "status": "suspended" })).await, 403);
    assert_eq!(browser.delete(&format!("/api-keys/{theirs}")).await.status, 403);
    assert_eq!(browser.post(USER_KEYS, &json!({ "name": "k", "user_id": other })).await.status, 403);
    // In a key of theirs none of it is.
    let user_key = service.person_client(service.home.workspace_id, member).await;
    assert_eq!(user_key.get("/api-keys").await.status, 403);
    assert_eq!(user_key.delete(&format!("/api-keys/{made}")).await.status, 403);
}

#[tokio::test]
async fn who_runs_a_workspace_manages_its_keys_and_none_above_them() {
    let service = Service::start().await;
    let elsewhere = service.workspace("elsewhere").await;
    let home = &service.home;
    let abroad =
        service.key_for(home, elsewhere, home.owner_id, KeyKind::WorkspaceService, &["completions.write"]).await.id;
    let new = json!({ "name": "shop", "scopes": ["completions.write"] });
    for role in ["manager", "admin"] {
        let mut browser = by_link(&service, service.person("member", Some(role)).await).await;
        let made = browser.post(SERVICE_KEYS, &new).await;
        assert_eq!(made.status, 200, "{role}: {}", made.text());
        let id: Uuid = made.json()["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(put(&mut browser, id, json!({ "status": "suspended" })).await, 200);
        assert_eq!(put(&mut browser, id, json!({ "status": "active" })).await, 200);
        assert_eq!(browser.post(&format!("/api-keys/{id}/rotate"), &json!({})).await.status, 200);
        assert!(listed(&mut browser, "").await.contains(&id));
        assert_eq!(browser.delete(&format!("/api-keys/{id}")).await.status, 200);
        let member = service.person("member", Some("member")).await;
        let theirs = own_key(&service, member).await;
        assert_eq!(put(&mut browser, theirs, json!({ "status": "suspended" })).await, 200);
        let for_them = json!({ "name": "k", "user_id": member, "scopes": ["completions.write"] });
        assert_eq!(browser.post(USER_KEYS, &for_them).await.status, 200);
        // Nobody above them, nor elsewhere.
        for (organisation_role, above) in [("owner", None), ("admin", None), ("member", Some("admin"))] {
            if (organisation_role, role) == ("member", "admin") {
                continue;
            }
            let person = service.person(organisation_role, above).await;
            let key = own_key(&service, person).await;
            assert_eq!(
                put(&mut browser, key, json!({ "status": "suspended" })).await,
                403,
                "{role}: {organisation_role}"
            );
            assert_eq!(browser.post(&format!("/api-keys/{key}/rotate"), &json!({})).await.status, 403);
            assert_eq!(browser.delete(&format!("/api-keys/{key}")).await.status, 403);
            assert_eq!(browser.post(USER_KEYS, &json!({ "name": "k", "user_id": person })).await.status, 403);
        }
        assert_eq!(put(&mut browser, abroad, json!({ "status": "suspended" })).await, 404);
        assert!(!listed(&mut browser, "").await.contains(&abroad));
        let there = json!({ "name": "k", "scopes": ["completions.write"], "workspace_id": elsewhere });
        assert_eq!(browser.post(SERVICE_KEYS, &there).await.status, 403);
        assert_eq!(browser.post("/api-keys/organisation/service", &new).await.status, 403);
    }
    set(&service, json!({ "managersWriteApiKeys": false })).await;
    let mut manager = by_link(&service, service.person("member", Some("manager")).await).await;
    assert_eq!(manager.post(SERVICE_KEYS, &new).await.status, 403);
    assert_eq!(manager.post(USER_KEYS, &new).await.status, 403);
}

/// A key of a service knows no role: what its maker could not do, it must not do for them.
#[tokio::test]
async fn a_manager_gets_no_more_by_a_service_key() {
    let service = Service::start().await;
    let manager = service.person("member", Some("manager")).await;
    let mut browser = by_link(&service, manager).await;
    let key = |scope: &str| json!({ "name": "k", "scopes": [scope] });
    for scope in ["workspace_users.create", "workspace_users.update", "workspace_user_api_keys.create"] {
        assert_eq!(browser.post(SERVICE_KEYS, &key(scope)).await.status, 403, "{scope}");
    }
    for scope in ["logs.list", "logs.view", "logs.export", "analytics.view", "workspace_users.list"] {
        assert_eq!(browser.post(SERVICE_KEYS, &key(scope)).await.status, 200, "{scope}");
    }
    let strong = service.key(KeyKind::WorkspaceService, &["workspace_users.update"]).await.id;
    assert_eq!(browser.post(&format!("/api-keys/{strong}/rotate"), &json!({})).await.status, 403);
    let weak = service.key(KeyKind::WorkspaceService, &["completions.write"]).await.id;
    assert_eq!(put(&mut browser, weak, json!({ "scopes": ["workspace_users.update"] })).await, 403);
    // Without a wish it gets what applications need, and with that it raises nobody.
    let all = browser.post(SERVICE_KEYS, &json!({ "name": "all" })).await.json();
    let client = service.client().with_key(all["key"].as_str().unwrap());
    let path = format!("/workspaces/{}/users/{manager}", service.home.workspace_id);
    assert_eq!(client.put(&path, &json!({ "role": "admin" })).await.status, 403);
    let for_owner = json!({ "name": "k", "user_id": service.home.owner_id });
    assert_eq!(client.post(USER_KEYS, &for_owner).await.status, 403);
    // Who sees only their own data gives none of everybody's.
    set(&service, json!({ "managersViewAllData": false })).await;
    for scope in ["logs.list", "logs.view", "logs.export", "analytics.view"] {
        assert_eq!(browser.post(SERVICE_KEYS, &key(scope)).await.status, 403, "{scope}");
    }
}

/// Each row of the table by each role's session in a workspace: what the role's scopes include, and nothing else.
#[tokio::test]
async fn a_session_in_a_workspace_does_what_the_role_includes() {
    use admin::identity::access::{SecuritySettings, Standing, effective_scopes};
    let service = Service::start().await;
    let held: Vec<String> = scopes::all_for_session().into_iter().map(str::to_owned).collect();
    for role in [Some("admin"), Some("manager"), Some("member")] {
        let person = service.person("member", role).await;
        let mut browser = by_link(&service, person).await;
        let scopes = effective_scopes(&held, &Standing::new("member", role, SecuritySettings::default()));
        let said: Vec<String> =
            serde_json::from_value(browser.get("/api-keys/self").await.json()["scopes"].clone()).unwrap();
        assert_eq!(said, scopes, "{role:?}");
        for operation in operations() {
            let Access::Keys(kinds) = operation.access else { continue };
            let answer = super::by_session(&mut browser, operation).await;
            let opens = kinds.workspace_user || operation.workspace_sessions;
            let text = answer.text();
            let is_of_scope_or_kind = text.contains("(needs ") || text.contains("kind of credential");
            let is_refused = answer.status == 403 && (is_of_scope_or_kind || operation.is_of_sign_in());
            let is_included = opens && operation.scopes.are_met_by(&scopes);
            assert_eq!(is_refused, !is_included, "{role:?} {operation:?}: {}", answer.text());
        }
    }
}
