//! Labels, the example of a plain resource: what the pattern does for it, and the little that is its own.

use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use shared::model::KeyKind;

async fn create(client: &Client, body: Value) -> Answer {
    client.post("/labels", &body).await
}

async fn names(client: &Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("/labels?{query}")).await.json();
    let data = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
    data.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_label_is_made_read_changed_and_gone() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, json!({ "name": "candidate", "description": "d" })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.json(), json!({ "id": id, "object": "label" }));
    let path = format!("/labels/{id}");
    let label = client.get(&path).await.json();
    let expected = json!({
        "id": id,
        "name": "candidate",
        "description": "d",
        "color_code": null,
        "organisation_id": service.home.organisation_id,
        "workspace_id": null,
        "is_universal": false,
        "status": "active",
        "created_at": label["created_at"],
        "last_updated_at": label["last_updated_at"],
        "object": "label",
    });
    assert_eq!(label, expected);
    assert_eq!(client.put(&path, &json!({ "color_code": "#fff" })).await.json(), json!({}));
    let changed = client.get(&path).await.json();
    assert_eq!((&changed["description"], &changed["color_code"]), (&json!("d"), &json!("#fff")), "only what was sent");
    client.put(&path, &json!({ "description": null, "name": null })).await;
    let cleared = client.get(&path).await.json();
    assert_eq!((&cleared["description"], &cleared["name"]), (&Value::Null, &json!("candidate")));
    assert_eq!(client.delete(&path).await.json(), json!({}));
    for answer in [client.get(&path).await, client.delete(&path).await] {
        assert_eq!((answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str()), (404, Some("AB08")));
    }
    assert_eq!(create(&client, json!({ "name": "candidate" })).await.status, 200, "a name that is gone is free");
}

#[tokio::test]
async fn a_name_is_taken_once_per_workspace_also_when_two_ask_at_once() {
    let service = Service::start().await;
    let (client, elsewhere) = (service.administrator(), service.workspace("elsewhere").await);
    let body = json!({ "name": "twice", "workspace_id": elsewhere });
    let (one, two) = tokio::join!(create(&client, body.clone()), create(&client, body.clone()));
    let mut statuses = [one.status.as_u16(), two.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let refused = create(&client, body).await;
    assert_eq!(refused.json()["data"]["errorCode"], "AB07", "{}", refused.text());
    assert_eq!(create(&client, json!({ "name": "twice" })).await.status, 200);
    assert_eq!(create(&client, json!({ "name": "production" })).await.status, 409);
}

#[tokio::test]
async fn two_changes_at_once_are_both_kept() {
    let service = Service::start().await;
    let client = service.administrator();
    let id = create(&client, json!({ "name": "shared" })).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/labels/{id}");
    for round in 0..10 {
        let (name, color) = (format!("name-{round}"), format!("#{round}"));
        let (name_change, color_change) = (json!({ "name": name }), json!({ "color_code": color }));
        let (one, two) = tokio::join!(client.put(&path, &name_change), client.put(&path, &color_change));
        assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
        let label = client.get(&path).await.json();
        assert_eq!((label["name"].as_str(), label["color_code"].as_str()), (Some(name.as_str()), Some(color.as_str())));
    }
}

#[tokio::test]
async fn the_three_universal_labels_are_everywhere_and_unchangeable() {
    let service = Service::start().await;
    let workspace = service.workspace_client(service.home.workspace_id).await;
    let mut seen = names(&workspace, "").await;
    seen.sort_unstable();
    assert_eq!(seen, ["development", "production", "staging"]);
    for client in [service.administrator(), workspace] {
        let list = client.get("/labels").await.json();
        let path = format!("/labels/{}", list["data"][0]["id"].as_str().unwrap());
        assert_eq!(list["data"][0]["is_universal"], true);
        for answer in [client.put(&path, &json!({ "name": "mine" })).await, client.delete(&path).await] {
            assert_eq!((answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str()), (400, Some("AB01")));
        }
    }
}

#[tokio::test]
async fn a_workspace_sees_its_own_and_its_organisations_labels_and_changes_only_its_own() {
    let service = Service::start().await;
    let (admin, elsewhere) = (service.administrator(), service.workspace("elsewhere").await);
    let home = service.workspace_client(service.home.workspace_id).await;
    create(&admin, json!({ "name": "whole", "workspace_id": null })).await;
    create(&admin, json!({ "name": "other", "workspace_id": "elsewhere" })).await;
    let own = create(&home, json!({ "name": "own" })).await.json()["id"].as_str().unwrap().to_owned();
    let mine = names(&home, "").await;
    assert!(
        mine.contains(&"own".into()) && mine.contains(&"whole".into()) && !mine.contains(&"other".into()),
        "{mine:?}"
    );
    assert_eq!(admin.get(&format!("/labels/{own}")).await.json()["workspace_id"], json!(service.home.workspace_id));
    let asked = names(&admin, &format!("workspace_id={elsewhere}")).await;
    assert!(asked.contains(&"other".into()) && !asked.contains(&"own".into()), "{asked:?}");
    assert_eq!(names(&admin, "workspace_id=elsewhere").await, asked, "by slug as by id");
    let whole = admin.get("/labels?search=whole").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    for (client, path, status) in [
        (&home, format!("/labels/{whole}"), 403),
        (&home, format!("/labels/{own}"), 200),
        (&admin, format!("/labels/{own}?workspace_id=elsewhere"), 404),
        (&admin, format!("/labels/{own}?workspace_id=nowhere"), 404),
        (&home, format!("/labels/{own}?workspace_id=elsewhere"), 403),
        (&admin, "/labels/own".to_owned(), 404),
    ] {
        let answer = client.put(&path, &json!({ "description": "x" })).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
    let foreign = create(&home, json!({ "name": "x", "workspace_id": elsewhere })).await;
    assert_eq!((foreign.status.as_u16(), foreign.json()["data"]["errorCode"].as_str()), (403, Some("AB03")));
}

#[tokio::test]
async fn names_and_filters_are_data_and_nothing_else() {
    let service = Service::start().await;
    let client = service.administrator();
    let half_a_megabyte = "x".repeat(1 << 19);
    for name in ["'; DROP TABLE labels; --", "a\"b", "🦀", "%", "$1", "", " ", half_a_megabyte.as_str()] {
        let answer = create(&client, json!({ "name": name })).await;
        assert_eq!(answer.json()["data"]["errors"][0]["field"], "name", "{}", answer.text());
    }
    for (n, text) in ["'; DROP TABLE labels; --", "a\"b\\", "🦀", "\u{202e}x"].into_iter().enumerate() {
        let id = create(&client, json!({ "name": format!("n{n}"), "description": text })).await.json()["id"]
            .as_str()
            .unwrap()
            .to_owned();
        assert_eq!(client.get(&format!("/labels/{id}")).await.json()["description"], text);
    }
    assert_eq!(create(&client, json!({ "name": "big", "description": half_a_megabyte })).await.status, 400);
    for (search, found) in [("PROD", 1), ("%25", 0), ("_", 0), ("'", 0), ("%F0%9F%A6%80", 0), ("%FF", 0), ("%5C", 0)] {
        assert_eq!(names(&client, &format!("search={search}")).await.len(), found, "{search}");
    }
    for query in ["search=%00", "workspace_id=%00"] {
        assert_eq!(client.get(&format!("/labels?{query}")).await.status, 400, "{query}");
    }
    for id in ["%00", "'", "..%2f", "%F0%9F%A6%80", "0b0cb1f48a524c0e8f0e7a1f2f1f0a11"] {
        assert_eq!(client.get(&format!("/labels/{id}")).await.status, 404, "{id}");
    }
}

#[tokio::test]
async fn members_look_and_managers_write_as_the_security_settings_say() {
    let service = Service::start().await;
    let workspace = service.home.workspace_id;
    let member = service.person_client(workspace, service.person("member", Some("member")).await).await;
    let manager = service.person_client(workspace, service.person("member", Some("manager")).await).await;
    let stranger = service.person_client(workspace, service.person("member", None).await).await;
    let statuses = async |n: usize| {
        let mut seen = Vec::new();
        for (who, client) in [&member, &manager, &stranger].into_iter().enumerate() {
            let body = json!({ "name": format!("l-{n}-{who}") });
            seen.push((client.get("/labels").await.status.as_u16(), create(client, body).await.status.as_u16()));
        }
        seen
    };
    assert_eq!(statuses(0).await, [(200, 403), (200, 200), (403, 403)]);
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersWritePrompts": true, "managersViewPrompts": false}'"#).await;
    assert_eq!(statuses(1).await, [(200, 200), (403, 200), (403, 403)]);
    service.sql(r#"UPDATE workspaces SET security_settings = '{"membersWritePrompts": false}'"#).await;
    assert_eq!(statuses(2).await[0], (200, 200), "not open for override");
    service.sql(r#"UPDATE organisations SET settings = '{"workspace_overrides": {"prompts": true}}'"#).await;
    assert_eq!(statuses(3).await[0], (200, 403));
    let refused = create(&member, json!({ "name": "x" })).await.json();
    assert_eq!(refused["data"]["errorCode"], "AB03");
    let service_key = service.key(KeyKind::WorkspaceService, &["prompts.create"]).await;
    let answer = create(&service.client().with_key(&service_key.key), json!({ "name": "by-service" })).await;
    assert_eq!(answer.status, 200, "service keys are bound by their scopes alone");
}
