//! Who may make, see and change which keys.

use super::{ADMIN, SERVICE, USER, create, outcome, path};
use crate::service::Service;
use serde_json::json;
use shared::identity::scopes;
use shared::model::KeyKind;

#[tokio::test]
async fn the_scope_that_counts_is_that_of_the_keys_kind() {
    let service = Service::start().await;
    let admin = service.administrator();
    let workspace = service.home.workspace_id;
    // What acts for an owner comes from owners: see `acting::limits`.
    let person = service.person("member", Some("member")).await;
    let keys = [
        create(&admin, ADMIN, json!({ "name": "k", "scopes": ["audit_logs.list"] })).await,
        create(&admin, SERVICE, json!({ "name": "k", "workspace_id": workspace })).await,
        create(&admin, USER, json!({ "name": "k", "workspace_id": workspace, "user_id": person })).await,
    ];
    let families = ["organisation_service_api_keys", "workspace_service_api_keys", "workspace_user_api_keys"];
    for (n, family) in families.iter().enumerate() {
        for (verb, extra) in [("read", ""), ("update", ""), ("rotate", ""), ("update", "rotate"), ("delete", "")] {
            let scope = format!("{family}.{verb}");
            // Who rotates a key must be able to do what it can, or to make such a key.
            let create = format!("{family}.create");
            let holder = service.key(KeyKind::OrganisationService, &[&scope, &create, "audit_logs.list"]).await;
            let client = service.client().with_key(&holder.key);
            for (m, key) in keys.iter().enumerate() {
                let path = path(key);
                let answer = match (verb, extra) {
                    ("read", _) => client.get(&path).await,
                    ("rotate", _) | (_, "rotate") => client.post(&format!("{path}/rotate"), &json!({})).await,
                    ("update", _) => client.put(&path, &json!({ "name": "n" })).await,
                    _ => client.delete(&path).await,
                };
                if n == m {
                    let open = [200, 409].contains(&answer.status.as_u16());
                    assert!(open, "{scope} {extra}: {}", answer.text());
                } else if m < n {
                    // Deleted at the end of its own family's turn.
                    assert_eq!(outcome(&answer), (404, "AB08".into()), "{scope}");
                } else {
                    assert_eq!(outcome(&answer), (403, "AB03".into()), "{scope} on {}", families[m]);
                }
            }
        }
    }
}

#[tokio::test]
async fn no_key_gives_a_scope_that_it_does_not_hold() {
    let service = Service::start().await;
    let held = ["workspace_service_api_keys.create", "workspace_service_api_keys.update", "logs.list"];
    let key = service.key(KeyKind::WorkspaceService, &held).await;
    let client = service.client().with_key(&key.key);
    let refused = client.post(SERVICE, &json!({ "name": "k", "scopes": ["completions.write"] })).await;
    assert_eq!(outcome(&refused), (403, "AB03".into()));
    let refused = client.post(SERVICE, &json!({ "name": "k" })).await;
    assert_eq!(outcome(&refused), (400, "AB01".into()), "without a wish it would call models");
    let made = create(&client, SERVICE, json!({ "name": "k", "scopes": held })).await;
    let shown = service.administrator().get(&path(&made)).await.json();
    let mut scopes: Vec<_> = shown["scopes"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    scopes.sort_unstable();
    let mut expected = held;
    expected.sort_unstable();
    assert_eq!(scopes, expected, "what the giver holds");
    let raised = client.put(&path(&made), &json!({ "scopes": ["logs.list", "completions.write"] })).await;
    assert_eq!(outcome(&raised), (403, "AB03".into()));
    assert_eq!(client.put(&path(&made), &json!({ "scopes": ["logs.list"] })).await.status, 200);
    let narrow = service.key(KeyKind::OrganisationService, &["organisation_service_api_keys.create"]).await;
    let narrow = service.client().with_key(&narrow.key);
    let refused = narrow.post(ADMIN, &json!({ "name": "k", "scopes": ["audit_logs.list"] })).await;
    assert_eq!(outcome(&refused), (403, "AB03".into()), "an admin key that can do little makes none that can do all");
}

#[tokio::test]
async fn a_workspace_key_stays_in_its_workspace() {
    let service = Service::start().await;
    let own = service.workspace_client(service.home.workspace_id).await;
    let elsewhere = service.workspace("elsewhere").await;
    let refused = own.post(SERVICE, &json!({ "name": "k", "workspace_id": elsewhere })).await;
    assert_eq!(outcome(&refused), (403, "AB03".into()));
    let made = create(&own, SERVICE, json!({ "name": "k" })).await;
    assert_eq!(own.get(&path(&made)).await.json()["workspace_id"], json!(service.home.workspace_id));
    assert_eq!(outcome(&own.post(ADMIN, &json!({ "name": "k" })).await), (403, "AB03".into()));
    let admin_key = format!("/api-keys/{}", service.home.admin_key.id);
    assert_eq!(outcome(&own.get(&admin_key).await), (404, "AB08".into()));
}

#[tokio::test]
async fn people_make_keys_as_their_role_says_and_for_nobody_above_them() {
    let service = Service::start().await;
    let workspace = service.home.workspace_id;
    let (member, peer) =
        (service.person("member", Some("member")).await, service.person("member", Some("member")).await);
    let (manager, admin) =
        (service.person("member", Some("manager")).await, service.person("member", Some("admin")).await);
    let outsider = service.person("member", None).await;
    let as_member = service.person_client(workspace, member).await;
    let as_manager = service.person_client(workspace, manager).await;
    let as_admin = service.person_client(workspace, admin).await;
    let body = |user: Option<uuid::Uuid>| json!({ "name": "k", "user_id": user });
    for (client, user, status) in [
        (&as_member, None, 403),
        (&as_manager, None, 200),
        (&as_manager, Some(member), 200),
        (&as_manager, Some(admin), 403),
        (&as_manager, Some(service.home.owner_id), 403),
        (&as_manager, Some(outsider), 400),
        (&as_admin, Some(manager), 200),
        (&as_admin, Some(service.home.owner_id), 403),
    ] {
        let answer = client.post(USER, &body(user)).await;
        assert_eq!(answer.status, status, "{user:?}: {}", answer.text());
    }
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersWriteApiKeys": true}'"#).await;
    let own = create(&as_member, USER, body(None)).await;
    let shown = service.administrator().get(&path(&own)).await.json();
    assert_eq!(shown["user_id"], json!(member));
    assert!(!shown["scopes"].as_array().unwrap().contains(&json!("prompts.create")), "a member holds it not: {shown}");
    assert_eq!(outcome(&as_member.post(USER, &body(Some(peer))).await), (403, "AB03".into()));
    service.sql(r#"UPDATE organisations SET security_settings = '{"managersWriteApiKeys": false}'"#).await;
    assert_eq!(outcome(&as_manager.post(USER, &body(None)).await), (403, "AB03".into()));
    assert_eq!(outcome(&as_admin.get("/api-keys").await), (403, "AB03".into()), "people's keys manage no other keys");
}

#[tokio::test]
async fn an_admin_key_can_give_a_workspace_every_scope() {
    let service = Service::start().await;
    let admin = service.administrator();
    let every = scopes::all_for(KeyKind::WorkspaceService);
    let plain = json!({ "name": "k", "workspace_id": service.home.workspace_id });
    let asking = json!({ "name": "l", "workspace_id": service.home.workspace_id, "scopes": every });
    for (body, scopes) in [(asking, json!(every)), (plain, json!(["completions.write", "models.list"]))] {
        let made = create(&admin, SERVICE, body).await;
        assert_eq!(admin.get(&path(&made)).await.json()["scopes"], scopes, "what says nothing calls models");
    }
}
