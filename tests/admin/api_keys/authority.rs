//! A secret is shown to nobody who could not do before what its key can do.

use super::{ADMIN, SERVICE, USER, create, outcome, path};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};
use shared::model::KeyKind;

async fn rotate(client: &Client, key: &Value) -> (u16, String) {
    let answer = client.post(&format!("{}/rotate", path(key)), &json!({})).await;
    let has_key = answer.json()["key"].is_string();
    assert_eq!(has_key, answer.status == 200, "{}", answer.text());
    outcome(&answer)
}

#[tokio::test]
async fn rotating_a_key_is_no_way_to_scopes_that_one_does_not_hold() {
    let service = Service::start().await;
    let (admin, workspace) = (service.administrator(), service.home.workspace_id);
    let owner = service.home.owner_id;
    let strong_admin = create(&admin, ADMIN, json!({ "name": "k" })).await;
    let body = |scopes: &[&str]| json!({ "name": "k", "workspace_id": workspace, "scopes": scopes });
    let strong = create(&admin, SERVICE, body(&["logs.list", "completions.write"])).await;
    let weak = create(&admin, SERVICE, body(&["logs.list"])).await;
    let mut of_owner = body(&["logs.list", "completions.write"]);
    of_owner["user_id"] = json!(owner);
    let of_owner = create(&admin, USER, of_owner).await;
    let verbs = ["rotate", "update"].map(|verb| {
        ["organisation_service_api_keys", "workspace_service_api_keys", "workspace_user_api_keys"]
            .map(|family| format!("{family}.{verb}"))
    });
    let refused = (403, "AB03".to_owned());
    for scopes in &verbs {
        let mut scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        scopes.push("logs.list");
        for kind in [KeyKind::OrganisationService, KeyKind::WorkspaceService] {
            let client = service.client().with_key(&service.key(kind, &scopes).await.key);
            for key in [&strong, &of_owner] {
                assert_eq!(rotate(&client, key).await, refused, "{kind:?} with {scopes:?}");
            }
        }
        let client = service.client().with_key(&service.key(KeyKind::OrganisationService, &scopes).await.key);
        assert_eq!(rotate(&client, &strong_admin).await, refused, "{scopes:?}");
    }
    let holder = ["workspace_service_api_keys.rotate", "logs.list"];
    let client = service.client().with_key(&service.key(KeyKind::WorkspaceService, &holder).await.key);
    assert_eq!(rotate(&client, &weak).await.0, 200, "it holds all that this one can do");
    for key in [&strong_admin, &strong, &of_owner] {
        assert_eq!(rotate(&admin, key).await.0, 200);
    }
}

#[tokio::test]
async fn a_key_rotates_itself_whatever_it_holds() {
    let service = Service::start().await;
    let own = service.key(KeyKind::WorkspaceService, &["workspace_service_api_keys.rotate", "completions.write"]).await;
    let client = service.client().with_key(&own.key);
    assert_eq!(rotate(&client, &json!({ "id": own.id.to_string() })).await.0, 200);
}

#[tokio::test]
async fn who_adds_a_member_is_not_shown_a_key_that_can_do_more_than_they_can() {
    let service = Service::start().await;
    let (admin, workspace) = (service.administrator(), service.home.workspace_id);
    let settings = json!({ "settings": { "user_api_key_auto_create": 1 } });
    assert_eq!(admin.put("/admin/organisation", &settings).await.status, 200);
    let manager = service.person("member", Some("manager")).await;
    let as_manager = service.person_client(workspace, manager).await;
    let adding = service.key(KeyKind::WorkspaceService, &["workspace_users.create"]).await;
    let adding = service.client().with_key(&adding.key);
    let (first, second) = (service.person("member", None).await, service.person("member", None).await);
    let (third, boss) = (service.person("member", None).await, service.person("admin", None).await);
    let owner = service.person("owner", None).await;
    for (what, client, user, is_shown) in [
        ("an owner", &as_manager, owner, false),
        ("an admin", &as_manager, boss, false),
        ("a member", &as_manager, first, true),
        ("a scope for adding alone", &adding, second, false),
        ("an admin key", &admin, third, true),
    ] {
        let body = json!({ "user_id": user, "role": "member" });
        let added = client.post(&format!("/workspaces/{workspace}/users"), &body).await;
        assert_eq!(added.status, 200, "{what}: {}", added.text());
        let key = added.json()["api_keys"][0].clone();
        assert_eq!(key["user_id"], json!(user), "{what}: {key}");
        assert_eq!(key["key"].is_string(), is_shown, "{what}");
        let stored = admin.get(&path(&key)).await.json();
        assert_eq!(stored["is_unclaimed"], json!(!is_shown), "{what}");
    }
}

#[tokio::test]
async fn an_invitation_promises_no_key_that_the_inviter_could_not_make() {
    let service = Service::start().await;
    let body = |scopes: &[&str]| {
        json!({ "email": "ada@x.test", "role": "member", "workspace_api_key_details": { "scopes": scopes },
                "workspaces": [{ "id": service.home.workspace_id, "role": "member" }] })
    };
    let inviting = service.key(KeyKind::OrganisationService, &["organisation_users.create"]).await;
    let inviting = service.client().with_key(&inviting.key);
    let refused = inviting.post("/admin/users/invites", &body(&["completions.write"])).await;
    assert_eq!(outcome(&refused), (403, "AB03".into()), "{}", refused.text());
    assert_eq!(inviting.post("/admin/users/invites", &body(&[])).await.status, 200);
}

#[tokio::test]
async fn who_follows_the_link_of_an_inviter_that_makes_no_keys_is_shown_none() {
    let service = Service::start().await;
    let admin = service.administrator();
    let settings = json!({ "settings": { "user_api_key_auto_create": 1 } });
    assert_eq!(admin.put("/admin/organisation", &settings).await.status, 200);
    let inviting = service.key(KeyKind::OrganisationService, &["organisation_users.create"]).await;
    let inviting = service.client().with_key(&inviting.key);
    for (client, email, is_shown) in [(&inviting, "ada@x.test", false), (&admin, "bob@x.test", true)] {
        let seats = json!([{ "id": service.home.workspace_id, "role": "member" }]);
        let body = json!({ "email": email, "role": "member", "workspaces": seats });
        let made = client.post("/admin/users/invites", &body).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let link = made.json()["invite_link"].as_str().unwrap().to_owned();
        let token = link.split_once("#token=").unwrap().1;
        let joined = service.client().post("/admin/users/invites/accept", &json!({ "token": token })).await;
        assert_eq!(joined.status, 200, "{}", joined.text());
        let key = joined.json()["api_keys"][0].clone();
        assert_eq!(key["key"].is_string(), is_shown, "{email}: {key}");
        assert_eq!(admin.get(&path(&key)).await.json()["is_unclaimed"], json!(!is_shown), "{email}");
    }
}
