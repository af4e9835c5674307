//! People of an organisation: finding them, changing their role, and what goes with those who leave.

use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};
use uuid::Uuid;

async fn ids(client: &Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("/admin/users?{query}")).await.json();
    let data = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
    assert_eq!(list["total"].as_u64().unwrap() as usize, data.len(), "{list}");
    data.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

async fn user(client: &Client, id: Uuid) -> Value {
    client.get(&format!("/admin/users/{id}")).await.json()
}

#[tokio::test]
async fn a_user_is_shown_with_the_workspaces_they_are_in() {
    let service = Service::start().await;
    let client = service.administrator();
    service.workspace("second").await;
    let member = service.person("member", Some("manager")).await;
    let admin = service.person("admin", None).await;
    let seen = user(&client, member).await;
    let home = seen["workspace_ids"][0].as_str().unwrap().to_owned();
    let expected = json!({
        "id": member, "object": "user", "first_name": null, "last_name": null, "role": "member",
        "email": seen["email"], "status": "active", "workspace_ids": [home],
        "created_at": seen["created_at"], "last_updated_at": seen["last_updated_at"], "updated_at": seen["last_updated_at"],
    });
    assert_eq!(seen, expected);
    assert_eq!(user(&client, admin).await["workspace_ids"], json!([home, "second"]), "admins are in every workspace");
    assert_eq!(user(&client, service.home.owner_id).await["workspace_ids"], json!([home, "second"]));
}

#[tokio::test]
async fn users_are_found_by_role_address_name_and_status() {
    let service = Service::start().await;
    let client = service.administrator();
    let (one, two) = (service.person("member", None).await, service.person("admin", None).await);
    service
        .sql(&format!(
            "UPDATE users SET first_name = 'Ada', last_name = 'Byron', email = 'Ada%_@x.test' WHERE id = '{one}'"
        ))
        .await;
    let owner = service.home.owner_id;
    for (query, expected) in [
        ("", vec![two, one, owner]),
        ("role=member", vec![one]),
        ("role=owner,admin", vec![two, owner]),
        ("email=ADA%25_@X.test", vec![one]),
        ("email=ada", vec![]),
        ("search=a%20by", vec![one]),
        ("search=OWNER@", vec![owner]),
        ("search=%25", vec![one]),
        ("search=%27", vec![]),
        ("status=archived", vec![]),
        ("status=active,archived&role=admin", vec![two]),
    ] {
        let expected: Vec<String> = expected.iter().map(Uuid::to_string).collect();
        assert_eq!(ids(&client, query).await, expected, "{query}");
    }
    for query in ["role=manager", "status=gone", "pageSize=x"] {
        assert_eq!(client.get(&format!("/admin/users?{query}")).await.status, 400, "{query}");
    }
    let page = client.get("/admin/users?pageSize=1&currentPage=1").await.json();
    assert_eq!((&page["total"], &page["data"][0]["id"]), (&json!(3), &json!(one)));
}

#[tokio::test]
async fn a_role_is_changed_and_takes_effect_at_once() {
    let service = Service::start().await;
    let client = service.administrator();
    let id = service.person("admin", None).await;
    let path = format!("/admin/users/{id}");
    let own = service.person_client(service.home.workspace_id, id).await;
    assert_eq!(own.get("/labels").await.status, 200);
    assert_eq!(client.put(&path, &json!({ "role": "member" })).await.json(), json!({}));
    assert_eq!(own.get("/labels").await.status, 403, "without the role there is no membership left");
    for (body, status) in [
        (json!({ "role": "member" }), 400),
        (json!({ "role": "owner" }), 403),
        (json!({ "role": "manager" }), 400),
        (json!({ "role": null }), 400),
        (json!({ "first_name": "Ada" }), 400),
        (json!({ "role": "member", "first_name": "x".repeat(256) }), 400),
        (json!({ "role": "member", "first_name": "Ada" }), 200),
        (json!({ "role": "member", "first_name": "Ada" }), 400),
        (json!({ "role": "member", "first_name": null }), 200),
    ] {
        let answer = client.put(&path, &body).await;
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
    }
    assert_eq!(client.put(&path, &json!({})).await.json()["data"]["errors"][0]["field"], "role");
}

#[tokio::test]
async fn who_leaves_takes_memberships_and_keys_along() {
    let service = Service::start().await;
    let client = service.administrator();
    let id = service.person("member", Some("admin")).await;
    let own = service.person_client(service.home.workspace_id, id).await;
    assert_eq!(own.get("/api-keys/self").await.status, 200);
    let path = format!("/admin/users/{id}");
    assert_eq!(client.delete(&path).await.json(), json!({}));
    assert_eq!(own.get("/api-keys/self").await.status, 401);
    for answer in
        [client.get(&path).await, client.put(&path, &json!({ "role": "admin" })).await, client.delete(&path).await]
    {
        assert_eq!(answer.status, 404, "{}", answer.text());
    }
    assert_eq!(ids(&client, "status=archived").await, [id.to_string()]);
    let left = "SELECT count(*) FROM workspace_members";
    let left: i64 = service.database.client().await.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    let trail = service.trail(service.home.organisation_id).await;
    let seen: Vec<_> = trail
        .iter()
        .map(|row| (row["action"].as_str().unwrap(), row["response_status_code"].as_i64().unwrap()))
        .collect();
    assert_eq!(seen, [("delete", 200), ("update", 404), ("delete", 404)]);
    assert_eq!((&trail[0]["resource_type"], &trail[0]["resource_id"]), (&json!("users"), &json!(id)));
}

#[tokio::test]
async fn owners_and_people_managed_elsewhere_are_left_alone() {
    let service = Service::start().await;
    let client = service.administrator();
    let owner = format!("/admin/users/{}", service.home.owner_id);
    let member = format!("/admin/users/{}", service.person("member", Some("member")).await);
    let outcomes = async |path: &str| {
        let mut seen = Vec::new();
        for answer in [client.put(path, &json!({ "role": "admin" })).await, client.delete(path).await] {
            seen.push((
                answer.status.as_u16(),
                answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned(),
            ));
        }
        seen
    };
    let forbidden = [(403, "AB03".to_owned()), (403, "AB03".to_owned())];
    assert_eq!(outcomes(&owner).await, forbidden);
    let scim_only = json!({ "settings": { "scim_only_user_management": true } });
    assert_eq!(client.put("/admin/organisation", &scim_only).await.status, 200);
    assert_eq!(outcomes(&member).await, forbidden);
    assert_eq!(
        client.get(&member).await.json()["workspace_ids"].as_array().unwrap().len(),
        1,
        "nothing was undone by half"
    );
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(stranger.get(&member).await.status, 404);
    assert_eq!(stranger.put(&member, &json!({ "role": "admin" })).await.status, 404);
    assert_eq!(stranger.delete(&member).await.status, 404);
}
