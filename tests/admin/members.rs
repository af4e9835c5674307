//! Members of workspaces: adding, roles, leaving.

use crate::service::Service;
use harness::Answer;
use serde_json::{Value, json};
use shared::model::KeyKind;

fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_member_is_added_listed_changed_and_removed() {
    let service = Service::start().await;
    let (client, user) = (service.administrator(), service.person("member", None).await);
    for base in ["/admin/workspaces", "/workspaces"] {
        let all = format!("{base}/{}/users", service.home.workspace_id);
        let one = format!("{all}/{user}");
        let added = client.post(&all, &json!({ "users": [{ "id": user, "role": "manager" }] })).await;
        assert_eq!((added.status.as_u16(), added.json()), (200, json!({})), "{}", added.text());
        let member = client.get(&one).await.json();
        assert_eq!(
            (&member["object"], &member["id"], &member["user_id"]),
            (&json!("workspace-user"), &json!(user), &json!(user))
        );
        assert_eq!(
            (&member["role"], &member["org_role"], &member["status"]),
            (&json!("manager"), &json!("member"), &json!("active"))
        );
        assert_eq!(member["workspace_id"], json!(service.home.workspace_id));
        assert!(member["scopes"].as_array().unwrap().contains(&json!("prompts.create")));
        let list = client.get(&all).await.json();
        assert_eq!((&list["total"], &list["data"][0]), (&json!(1), &member));
        assert_eq!(client.get(&format!("{all}?role=member")).await.json()["total"], 0);
        assert_eq!(
            client.get(&format!("{all}?email={}", member["email"].as_str().unwrap().to_uppercase())).await.json()["total"],
            1
        );
        assert_eq!(client.put(&one, &json!({ "role": "ws-member" })).await.json(), json!({}));
        assert_eq!(client.put(&one, &json!({ "role": "member" })).await.status, 200, "the same role again is no error");
        let member = client.get(&one).await.json();
        assert_eq!(member["role"], "member");
        assert!(!member["scopes"].as_array().unwrap().contains(&json!("prompts.create")));
        assert_eq!(client.delete(&one).await.json(), json!({}));
        assert_eq!(outcome(&client.get(&one).await), (404, "AB08".into()));
        assert_eq!(outcome(&client.delete(&one).await), (404, "AB08".into()));
    }
    let trail = service.trail(service.home.organisation_id).await;
    let seen: Vec<_> = trail.iter().map(|row| (row["resource_type"].clone(), row["action"].clone())).take(4).collect();
    let expected = ["create", "update", "update", "delete"].map(|action| (json!("workspace_users"), json!(action)));
    assert_eq!(seen, expected);
    assert_eq!((&trail[1]["before"]["role"], &trail[1]["after"]["role"]), (&json!("manager"), &json!("member")));
    assert_eq!(trail[1]["resource_id"], json!(user));
}

#[tokio::test]
async fn only_users_of_the_organisation_who_are_not_members_yet_can_be_added() {
    let service = Service::start().await;
    let (client, user) = (service.administrator(), service.person("member", Some("member")).await);
    let stranger = service.organisation().await.owner_id;
    let gone = service.person("member", None).await;
    service.sql(&format!("UPDATE users SET status = 'archived' WHERE id = '{gone}'")).await;
    let newcomer = service.person("member", None).await;
    let all = format!("/workspaces/{}/users", service.home.workspace_id);
    for (body, expected) in [
        (json!({ "users": [{ "id": user, "role": "member" }] }), (409, "AB07")),
        (json!({ "users": [{ "id": newcomer }, { "id": newcomer }] }), (409, "AB07")),
        (json!({ "users": [{ "id": newcomer }, { "id": stranger }] }), (404, "AB08")),
        (json!({ "users": [{ "id": gone }] }), (404, "AB08")),
        (json!({ "users": [] }), (400, "AB01")),
        (json!({ "users": {} }), (400, "AB01")),
        (json!({}), (400, "AB01")),
        (json!({ "users": [{ "id": "x" }] }), (400, "AB01")),
        (json!({ "users": [{ "id": newcomer, "role": "owner" }] }), (400, "AB01")),
        (json!({ "user_id": newcomer, "role": "member" }), (200, "")),
    ] {
        let answer = client.post(&all, &body).await;
        assert_eq!(outcome(&answer), (expected.0, expected.1.to_owned()), "{body}: {}", answer.text());
    }
    let list = client.get(&all).await.json();
    assert_eq!(list["total"], 2, "what failed added nobody: {list}");
}

#[tokio::test]
async fn a_manager_gives_and_takes_no_role_above_their_own() {
    let service = Service::start().await;
    let workspace = service.home.workspace_id;
    let manager = service.person_client(workspace, service.person("member", Some("manager")).await).await;
    let admin = service.person_client(workspace, service.person("member", Some("admin")).await).await;
    let (boss, peer) = (service.person("member", Some("admin")).await, service.person("member", Some("manager")).await);
    let newcomer = service.person("member", None).await;
    let all = format!("/workspaces/{workspace}/users");
    let user = |id| format!("{all}/{id}");
    let refused = (403, "AB03".to_owned());
    assert_eq!(outcome(&manager.post(&all, &json!({ "user_id": newcomer, "role": "admin" })).await), refused);
    assert_eq!(outcome(&manager.put(&user(peer), &json!({ "role": "admin" })).await), refused);
    assert_eq!(outcome(&manager.put(&user(boss), &json!({ "role": "member" })).await), refused);
    assert_eq!(outcome(&manager.delete(&user(boss)).await), refused);
    assert_eq!(manager.post(&all, &json!({ "user_id": newcomer, "role": "manager" })).await.status, 200);
    assert_eq!(manager.put(&user(newcomer), &json!({ "role": "member" })).await.status, 200);
    assert_eq!(admin.put(&user(newcomer), &json!({ "role": "admin" })).await.status, 200);
    service.sql(r#"UPDATE organisations SET security_settings = '{"managersWriteWsUsers": false}'"#).await;
    assert_eq!(outcome(&manager.delete(&user(peer)).await), refused);
}

#[tokio::test]
async fn a_member_who_leaves_takes_their_keys_of_that_workspace_along() {
    let service = Service::start().await;
    let (home, elsewhere) = (service.home.workspace_id, service.workspace("elsewhere").await);
    let user = service.person("member", Some("member")).await;
    let client = service.administrator();
    client.post(&format!("/workspaces/{elsewhere}/users"), &json!({ "users": [user] })).await;
    let here = service.key_for(&service.home, home, user, KeyKind::WorkspaceUser, &[]).await;
    let there = service.key_for(&service.home, elsewhere, user, KeyKind::WorkspaceUser, &[]).await;
    assert_eq!(client.delete(&format!("/workspaces/{home}/users/{user}")).await.status, 200);
    let status = async |key: &str| service.client().with_key(key).get("/api-keys/self").await.status.as_u16();
    assert_eq!((status(&here.key).await, status(&there.key).await), (401, 200));
}

#[tokio::test]
async fn owners_and_admins_belong_to_every_workspace_and_cannot_be_taken_out() {
    let service = Service::start().await;
    let client = service.administrator();
    let admin = service.person("admin", Some("member")).await;
    for user in [service.home.owner_id, admin] {
        let answer = client.delete(&format!("/workspaces/{}/users/{user}", service.home.workspace_id)).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()));
    }
    let member = client.get(&format!("/workspaces/{}/users/{admin}", service.home.workspace_id)).await.json();
    assert_eq!((&member["org_role"], &member["role"]), (&json!("admin"), &json!("member")));
    assert!(member["scopes"].as_array().unwrap().contains(&json!("prompts.create")), "they act as admins");
}

#[tokio::test]
async fn members_of_other_tenants_are_not_found() {
    let service = Service::start().await;
    let user = service.person("member", Some("member")).await;
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    let all = format!("/workspaces/{}/users", service.home.workspace_id);
    for client in [stranger, neighbour] {
        for answer in [
            client.get(&all).await,
            client.get(&format!("{all}/{user}")).await,
            client.post(&all, &json!({ "users": [user] })).await,
            client.put(&format!("{all}/{user}"), &json!({ "role": "admin" })).await,
            client.delete(&format!("{all}/{user}")).await,
        ] {
            assert_eq!(outcome(&answer), (404, "AB08".into()), "{}", answer.text());
        }
    }
    assert_eq!(service.administrator().get(&format!("{all}/{user}")).await.json()["role"], Value::from("member"));
}
