//! What stays with owners, and that admins do not get it by a detour over keys that they make.

use super::everywhere;
use crate::login::{AUTH_SETTINGS, by_link};
use crate::service::Service;
use http::Method;
use serde_json::json;
use shared::identity::scopes;
use shared::model::KeyKind;

const ADMIN_KEYS: &str = "/api-keys/organisation/service";

#[tokio::test]
async fn a_key_with_every_scope_is_made_and_shown_by_owners_alone() {
    let service = Service::start().await;
    let every = scopes::all_for(KeyKind::OrganisationService);
    let but = |left_out: &str| every.iter().copied().filter(|one| *one != left_out).collect::<Vec<_>>();
    let mut admin = everywhere(&service, service.person("admin", None).await).await;
    for body in [json!({ "name": "k" }), json!({ "name": "k", "scopes": every })] {
        let answer = admin.post(ADMIN_KEYS, &body).await;
        assert_eq!(answer.status, 403, "{}", answer.text());
    }
    let rotate = format!("/api-keys/{}/rotate", service.home.admin_key.id);
    assert_eq!(admin.post(&rotate, &json!({})).await.status, 403);
    // Two that have it all together do not make one that has it.
    let one = admin.post(ADMIN_KEYS, &json!({ "name": "one", "scopes": but("audit_logs.list") })).await.json();
    let two = admin.post(ADMIN_KEYS, &json!({ "name": "two", "scopes": but("plugins.list") })).await.json();
    let path = format!("/api-keys/{}", one["id"].as_str().unwrap());
    let more = json!({ "scopes": every });
    assert_eq!(admin.send(Method::PUT, &path, Some(&more)).await.status, 403);
    let by_two = service.client().with_key(two["key"].as_str().unwrap());
    assert_eq!(by_two.put(&path, &more).await.status, 403);
    for key in [&one, &two] {
        let client = service.client().with_key(key["key"].as_str().unwrap());
        assert_eq!(client.put(AUTH_SETTINGS, &json!({ "disable_login_links": true })).await.status, 403);
    }
    let mut owner = everywhere(&service, service.home.owner_id).await;
    assert_eq!(owner.post(ADMIN_KEYS, &json!({ "name": "k", "scopes": every })).await.status, 200);
    assert_eq!(owner.post(&rotate, &json!({})).await.status, 200);
}

#[tokio::test]
async fn nobody_acts_as_an_owner_by_a_key_for_them() {
    let service = Service::start().await;
    let owner = service.home.owner_id;
    let for_owner = json!({ "name": "k", "user_id": owner, "workspace_id": service.home.workspace_id });
    let theirs = service.key(KeyKind::WorkspaceUser, &["completions.write"]).await;
    let path = format!("/api-keys/{}", theirs.id);
    let mut admin = everywhere(&service, service.person("admin", None).await).await;
    let make =
        json!({ "name": "maker", "scopes": ["workspace_user_api_keys.create", "workspace_user_api_keys.rotate"] });
    let maker = admin.post(ADMIN_KEYS, &make).await.json();
    let maker = service.client().with_key(maker["key"].as_str().unwrap());
    assert_eq!(maker.post("/api-keys/workspace/user", &for_owner).await.status, 403);
    assert_eq!(maker.post(&format!("{path}/rotate"), &json!({})).await.status, 403);
    assert_eq!(admin.post("/api-keys/workspace/user", &for_owner).await.status, 403);
    assert_eq!(admin.post(&format!("{path}/rotate"), &json!({})).await.status, 403);
    assert_eq!(admin.send(Method::PUT, &path, Some(&json!({ "status": "suspended" }))).await.status, 403);
    assert_eq!(admin.delete(&path).await.status, 403);
    let seen = service.administrator().get(&path).await.json();
    assert_eq!(seen["status"], "active", "{seen}");
    let member = service.person("member", Some("member")).await;
    let for_member = json!({ "name": "k", "user_id": member, "workspace_id": service.home.workspace_id });
    assert_eq!(admin.post("/api-keys/workspace/user", &for_member).await.status, 200);
}

/// `organisationAdminsViewLogs` keeps admins from logs: they do not switch it on, nor make a key that sees them.
#[tokio::test]
async fn what_narrows_admins_is_not_theirs_to_change_or_to_evade() {
    let service = Service::start().await;
    let mut admin = everywhere(&service, service.person("admin", None).await).await;
    let settings = "/admin/organisation/security-settings";
    let on = json!({ "organisationAdminsViewLogs": true });
    let off = json!({ "organisationAdminsViewLogs": false });
    let with_logs = json!({ "name": "k", "scopes": ["logs.list"] });
    assert_eq!(admin.send(Method::PUT, settings, Some(&off)).await.status, 403);
    assert_eq!(admin.post(ADMIN_KEYS, &with_logs).await.status, 200);
    let mut owner = by_link(&service, service.home.owner_id).await;
    let opened = json!({ "settings": { "workspace_overrides": { "logs": true } } });
    assert_eq!(owner.send(Method::PUT, "/admin/organisation", Some(&opened)).await.status, 200);
    assert_eq!(owner.send(Method::PUT, settings, Some(&off)).await.status, 200);
    service.sql("UPDATE workspaces SET security_settings = '{}'").await;
    assert_eq!(admin.get("/logs").await.status, 403);
    assert_eq!(admin.post(ADMIN_KEYS, &with_logs).await.status, 403);
    let here = json!({ "name": "k", "workspace_id": service.home.workspace_id, "scopes": ["logs.view"] });
    assert_eq!(admin.post("/api-keys/workspace/service", &here).await.status, 403);
    assert_eq!(admin.send(Method::PUT, settings, Some(&on)).await.status, 403);
    let workspace = format!("/workspaces/{}", service.home.workspace_id);
    let change = json!({ "security_settings": on });
    assert_eq!(admin.send(Method::PUT, &workspace, Some(&change)).await.status, 403);
    assert_eq!(admin.post("/workspaces", &json!({ "name": "Mine", "security_settings": on })).await.status, 403);
    let setter =
        admin.post(ADMIN_KEYS, &json!({ "name": "k", "scopes": ["organisation_settings.update"] })).await.json();
    let setter = service.client().with_key(setter["key"].as_str().unwrap());
    assert_eq!(setter.put(settings, &on).await.status, 403);
    // The rest of the settings is an admin's.
    assert_eq!(admin.send(Method::PUT, settings, Some(&json!({ "membersViewLogs": false }))).await.status, 200);
    assert_eq!(owner.send(Method::PUT, settings, Some(&on)).await.status, 200);
    assert_eq!(admin.get("/logs").await.status, 200);
}
