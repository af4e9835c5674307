//! SCIM over HTTP, with requests as the two big identity providers send them: who is made, who ends, which workspaces
//! follow, and that one organisation's token reaches nobody of another.

mod shapes;

use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::bootstrap::FirstKeys;
use shared::model::KeyKind;
use uuid::Uuid;

pub const AUTH: &str = "/admin/organisation/auth-settings";
pub const TOKEN: &str = "scim-0123456789abcdef0123456789abcdef";

pub async fn provider(service: &Service, organisation: &FirstKeys, token: &str) -> Client {
    let admin = service.client().with_key(&organisation.admin_key.key);
    let set = admin.put(AUTH, &json!({ "scim": { "enabled": true, "token": token } })).await;
    assert_eq!(set.status, 200, "{}", set.text());
    service.client().with("authorization", format!("Bearer {token}"))
}

pub async fn patch(client: &Client, path: &str, operations: Value) -> Answer {
    let schemas = ["urn:ietf:params:scim:api:messages:2.0:PatchOp"];
    whole(client.request(Method::PATCH, path).json(&json!({ "schemas": schemas, "Operations": operations }))).await
}

pub async fn made(client: &Client, path: &str, body: Value) -> String {
    let answer = client.post(path, &body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// As Okta sends it.
pub fn person(name: &str) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"],
        "userName": format!("{name}@acme.test"),
        "name": { "givenName": name, "familyName": "King" },
        "emails": [{ "primary": true, "value": format!("{name}@acme.test"), "type": "work" }],
        "displayName": name, "locale": "en-US", "externalId": format!("ext-{name}"), "groups": [],
        "password": "s3cret-password", "active": true,
    })
}

async fn members(service: &Service, user: &str) -> Vec<String> {
    const SQL: &str =
        "SELECT w.name || '/' || m.role FROM workspace_members m JOIN workspaces w ON w.id = m.workspace_id
                       WHERE m.user_id = $1 ORDER BY 1";
    let user: Uuid = user.parse().unwrap();
    let rows = service.database.client().await.query(SQL, &[&user]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn a_person_is_made_found_changed_and_ended_with_keys() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let id = made(&idp, "/scim/Users", person("ada")).await;
    let again = idp.post("/scim/Users", &person("ada")).await;
    assert_eq!((again.status.as_u16(), &again.json()["scimType"]), (409, &json!("uniqueness")));
    for filter in [
        "userName eq \"ADA@acme.test\"",
        "externalId eq \"ext-ada\"",
        "emails.value eq \"ada@acme.test\" and active eq true",
        "emails[type eq \"work\" and value eq \"ada@acme.test\"]",
        "userName eq \"nobody\" or name.givenName sw \"ad\"",
    ] {
        let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("filter", filter).finish();
        let found = idp.get(&format!("/scim/Users?{query}")).await.json();
        assert_eq!((&found["totalResults"], &found["Resources"][0]["id"]), (&json!(1), &json!(id)), "{filter}");
        assert!(!found.to_string().contains("s3cret-password"));
    }
    let key = service
        .key_for(&service.home, service.home.workspace_id, id.parse().unwrap(), KeyKind::WorkspaceUser, &["logs.list"])
        .await;
    let own = service.client().with_key(&key.key);
    assert_eq!(own.get("/api-keys/self").await.status, 200);
    // As Entra ID sends it.
    let off =
        patch(&idp, &format!("/scim/Users/{id}"), json!([{ "op": "Replace", "path": "active", "value": "False" }]))
            .await;
    assert_eq!((off.status.as_u16(), &off.json()["active"]), (200, &json!(false)), "{}", off.text());
    assert_eq!(own.get("/api-keys/self").await.status, 401);
    // As Okta sends it.
    let on = patch(&idp, &format!("/scim/Users/{id}"), json!([{ "op": "replace", "value": { "active": true } }])).await;
    assert_eq!(on.json()["active"], true, "{}", on.text());
    let whole_path = format!("/scim/Users/{id}");
    assert_eq!(idp.delete(&whole_path).await.status, 204);
    assert_eq!(idp.get(&whole_path).await.status, 404);
    let trail = service.trail(service.home.organisation_id).await;
    let scim: Vec<_> = trail.iter().filter(|row| row["resource_type"] == "scim").collect();
    assert!(scim.len() >= 4, "{scim:?}");
    assert!(!json!(scim).to_string().contains("s3cret-password"));
}

#[tokio::test]
async fn groups_by_pattern_and_by_rule_move_people_between_workspaces() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let (ada, bob) = (made(&idp, "/scim/Users", person("ada")).await, made(&idp, "/scim/Users", person("bob")).await);
    let body = json!({ "displayName": "ws-Sales-role-member", "members": [{ "value": ada }, { "value": bob }] });
    let sales = made(&idp, "/scim/Groups", body).await;
    assert_eq!(members(&service, &ada).await, ["Sales/member"]);
    let path = format!("/scim/Groups/{sales}");
    let gone = patch(&idp, &path, json!([{ "op": "remove", "path": format!("members[value eq \"{bob}\"]") }])).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert!(members(&service, &bob).await.is_empty());
    patch(&idp, &path, json!([{ "op": "Add", "path": "members", "value": [{ "value": bob }] }])).await;
    patch(&idp, &path, json!([{ "op": "replace", "value": { "displayName": "ws-Sales-role-admin" } }])).await;
    assert_eq!(members(&service, &bob).await, ["Sales/admin"]);
    let plain = made(&idp, "/scim/Groups", json!({ "displayName": "Helpers", "members": [{ "value": ada }] })).await;
    let workspace = service.workspace("desk").await;
    let rule = json!({ "workspace_id": workspace, "role": "Manager", "scim_group_id": plain });
    assert_eq!(service.administrator().post("/scim/workspaces", &rule).await.status, 200);
    assert_eq!(members(&service, &ada).await, ["Sales/admin", "desk/manager"]);
    assert_eq!(idp.delete(&path).await.status, 204);
    assert_eq!(members(&service, &ada).await, ["desk/manager"]);
    let list = service.administrator().get("/scim/workspaces").await.json();
    assert_eq!((&list["total_count"], &list["mappings"][0]["role"]), (&json!(1), &json!("manager")), "{list}");
    for (role, expected) in [("Manager", json!(1)), ("member", json!(0))] {
        let found = service.administrator().get(&format!("/scim/workspaces?role={role}")).await.json();
        assert_eq!(found["total_count"], expected, "{role}: {found}");
    }
    let refused = service.administrator().get("/scim/workspaces?role=mangaer").await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("did you mean `manager`?"), "{}", refused.text());
}

#[tokio::test]
async fn groups_bring_deactivated_people_back_only_where_they_may() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let ada = made(&idp, "/scim/Users", person("ada")).await;
    let body = json!({ "displayName": "ws-Sales-role-member", "members": [{ "value": ada }] });
    let group = format!("/scim/Groups/{}", made(&idp, "/scim/Groups", body).await);
    let add = json!([{ "op": "Add", "path": "members", "value": [{ "value": ada }] }]);
    let path = format!("/scim/Users/{ada}");
    let off = patch(&idp, &path, json!([{ "op": "replace", "value": { "active": false } }])).await;
    assert_eq!(off.status, 200, "{}", off.text());
    for (may, is_active, workspaces) in [(false, false, &[][..]), (true, true, &["Sales/member"])] {
        let setting = json!({ "scim": { "group_based_user_provisioning": may } });
        assert_eq!(service.administrator().put(AUTH, &setting).await.status, 200);
        // They were in the group all along.
        let added = patch(&idp, &group, add.clone()).await;
        assert_eq!(added.status, 200, "{}", added.text());
        assert_eq!(idp.get(&path).await.json()["active"], is_active);
        assert_eq!(members(&service, &ada).await, workspaces);
    }
}

#[tokio::test]
async fn a_token_reaches_its_own_organisation_and_ends_after_two_rotations() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let id = made(&idp, "/scim/Users", person("ada")).await;
    let other = service.organisation().await;
    let stranger = provider(&service, &other, "scim-other-0123456789abcdef0123456789").await;
    let path = format!("/scim/Users/{id}");
    assert_eq!(stranger.get(&path).await.status, 404);
    assert_eq!(stranger.delete(&path).await.status, 404);
    assert_eq!(patch(&stranger, &path, json!([{ "op": "replace", "value": { "active": false } }])).await.status, 404);
    let body = json!({ "displayName": "G", "members": [{ "value": id }] });
    assert_eq!(stranger.post("/scim/Groups", &body).await.status, 400);
    let same = stranger.post("/scim/Users", &person("ada")).await;
    assert_eq!(same.status, 201, "a person may be in two organisations: {}", same.text());
    let theirs = format!("/scim/Users/{}", same.json()["id"].as_str().unwrap());
    assert_eq!(stranger.delete(&theirs).await.status, 204);
    assert_eq!(idp.get(&path).await.json()["active"], true);
    provider(&service, &service.home, "scim-second-0123456789abcdef012345678").await;
    assert_eq!(idp.get(&path).await.status, 200, "the one before still works");
    provider(&service, &service.home, "scim-third-0123456789abcdef0123456789").await;
    assert_eq!(idp.get(&path).await.status, 401);
    assert_eq!(service.administrator().get("/scim/Users").await.status, 401, "an API key is no SCIM token");
}

#[tokio::test]
async fn hostile_filters_versions_and_bulks_are_refused_in_shape() {
    let service = Service::start().await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let id = made(&idp, "/scim/Users", person("ada")).await;
    for filter in ["x", "password pr", "userName eq \"a", &vec!["active pr"; 100].join(" or "), &"(".repeat(500)] {
        let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("filter", filter).finish();
        let refused = idp.get(&format!("/scim/Users?{query}")).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["scimType"]), (400, &json!("invalidFilter")), "{filter}");
    }
    let injected = idp.get("/scim/Users?filter=userName%20eq%20%22'%20OR%201%3D1%20--%22").await.json();
    assert_eq!(injected["totalResults"], 0);
    let path = format!("/scim/Users/{id}");
    let stale = idp.with("if-match", "W/\"1\"");
    assert_eq!(stale.put(&path, &person("ada")).await.status, 412);
    let version = idp.get(&path).await.header("etag").to_owned();
    assert_eq!(idp.with("if-match", version.clone()).put(&path, &person("ada")).await.status, 200);
    assert_eq!(idp.with("if-match", version).delete(&path).await.status, 412);
    let many = json!({ "Operations": vec![json!({ "method": "DELETE", "path": "/Users/x" }); 501] });
    assert_eq!(idp.post("/scim/Bulk", &many).await.status, 413);
    let bulk = json!({ "Operations": [
        { "method": "POST", "path": "/Users", "bulkId": "b", "data": person("bob") },
        { "method": "POST", "path": "/Groups", "bulkId": "g",
          "data": { "displayName": "ws-Ops-role-member", "members": [{ "value": "bulkId:b" }] } },
        { "method": "DELETE", "path": "/Users/nobody" },
    ] });
    let done = idp.post("/scim/Bulk", &bulk).await.json();
    let statuses: Vec<_> = done["Operations"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(statuses, ["201", "201", "404"], "{done}");
    let owner = patch(
        &idp,
        &format!("/scim/Users/{}", service.home.owner_id),
        json!([{ "op": "replace", "value": { "active": false } }]),
    )
    .await;
    assert_eq!(owner.status, 403, "{}", owner.text());
}

#[tokio::test]
async fn in_user_mode_groups_come_with_the_person() {
    let service = Service::start_with(&["--scim-membership-user-mode=ON"]).await;
    let idp = provider(&service, &service.home, TOKEN).await;
    let mut sent = person("ada");
    sent["groups"] = json!([{ "display": "ws-Sales-role-manager" }]);
    let id = made(&idp, "/scim/Users", sent).await;
    assert_eq!(members(&service, &id).await, ["Sales/manager"]);
    let group = idp.get("/scim/Groups").await.json()["Resources"][0]["id"].as_str().unwrap().to_owned();
    patch(&idp, &format!("/scim/Groups/{group}"), json!([{ "op": "remove", "path": "members" }])).await;
    assert_eq!(members(&service, &id).await, ["Sales/manager"], "what a group says of members is passed over");
}
