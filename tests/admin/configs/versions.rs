//! Versions of a config: when there is a new one, what differs, and the way back.

use super::{create, path};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};

async fn versions(client: &Client, made: &Value) -> Vec<Value> {
    let list = client.get(&format!("{}/versions", path(made))).await.json();
    assert_eq!((&list["success"], &list["object"]), (&json!(true), &json!("list")), "{list}");
    let data = list["data"].as_array().unwrap().clone();
    assert_eq!(list["total"], data.len(), "{list}");
    data
}

async fn change(client: &Client, made: &Value, config: Value) -> String {
    let answer = client.put(&path(made), &json!({ "config": config })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["version_id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn another_content_makes_a_version_and_the_same_content_does_not() {
    let service = Service::start().await;
    let client = service.administrator();
    let one = json!({ "provider": "@a", "retry": { "attempts": 1 } });
    let two = json!({ "provider": "@b" });
    let made = create(&client, "c", one.clone()).await;
    let first = made["version_id"].as_str().unwrap();
    assert_eq!(
        change(&client, &made, json!({ "retry": { "attempts": 1 }, "provider": "@a" })).await,
        first,
        "another order is no change"
    );
    let second = change(&client, &made, two.clone()).await;
    assert_ne!(second, first);
    let third = change(&client, &made, one.clone()).await;
    assert!(third != first && third != second, "content that comes back is a new version");

    let listed = versions(&client, &made).await;
    let ids: Vec<_> = listed.iter().map(|one| one["version_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [third.as_str(), &second, first], "newest first");
    let mut expected = client.get(&format!("{}?version={second}", path(&made))).await.json();
    assert_eq!(expected["data"]["config"], two);
    (expected["version"], expected["created_at"]) = (json!(2), listed[1]["created_at"].clone());
    expected["created_by"] = client.get("/api-keys/self").await.json()["id"].clone();
    assert_eq!(listed[1], expected, "a version is listed as it is read");
    assert_eq!(client.get(&path(&made)).await.json()["version_id"], third);
    let page = client.get(&format!("{}/versions?page_size=1&current_page=1", path(&made))).await.json();
    assert_eq!((&page["total"], &page["data"][0]["version_id"]), (&json!(3), &json!(second)));
}

#[tokio::test]
async fn two_changes_at_once_make_two_versions() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, "c", json!({ "provider": "@a" })).await;
    for round in 0..5_usize {
        let (one, two) =
            (json!({ "provider": format!("@one-{round}") }), json!({ "provider": format!("@two-{round}") }));
        tokio::join!(change(&client, &made, one), change(&client, &made, two));
        assert_eq!(versions(&client, &made).await.len(), 3 + 2 * round);
    }
}

#[tokio::test]
async fn a_difference_names_what_changed_from_one_version_to_another() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, "c", json!({ "provider": "@a", "retry": { "attempts": 1 } })).await;
    let first = made["version_id"].as_str().unwrap();
    let second =
        change(&client, &made, json!({ "provider": "@a", "retry": { "attempts": 2 }, "cache": { "mode": "simple" } }))
            .await;
    let forward = json!([
        { "op": "replace", "path": "retry.attempts", "from": 1, "to": 2 },
        { "op": "add", "path": "cache", "from": null, "to": { "mode": "simple" } },
    ]);
    for query in [format!("from={first}&to={second}"), format!("from={first}")] {
        let diff = client.get(&format!("{}/versions/diff?{query}", path(&made))).await.json();
        assert_eq!((&diff["data"], &diff["total"]), (&forward, &json!(2)), "{diff}");
    }
    let back = client.get(&format!("{}/versions/diff?from={second}&to={first}", path(&made))).await.json();
    assert_eq!(back["data"][1]["op"], "remove", "{back}");
    for (query, status) in [("", 400), ("from=nonsense", 404), (&format!("from={}", made["id"].as_str().unwrap()), 404)]
    {
        assert_eq!(client.get(&format!("{}/versions/diff?{query}", path(&made))).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn a_rollback_makes_a_new_version_with_the_old_content() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, "c", json!({ "provider": "@a" })).await;
    let first = made["version_id"].as_str().unwrap();
    change(&client, &made, json!({ "provider": "@b" })).await;
    let rolled = client.post(&format!("{}/rollback", path(&made)), &json!({ "version_id": first })).await;
    assert_eq!(rolled.status, 200, "{}", rolled.text());
    let third = rolled.json()["version_id"].clone();
    assert_eq!(rolled.json()["data"]["version_id"], third);
    let read = client.get(&path(&made)).await.json();
    assert_eq!((&read["data"]["config"], &read["version_id"]), (&json!({ "provider": "@a" }), &third));
    assert_eq!(versions(&client, &made).await.len(), 3);
    let trail = service.trail(service.home.organisation_id).await;
    let last = trail.last().unwrap();
    assert_eq!((&last["action"], &last["resource_type"]), (&json!("manage"), &json!("configs")), "{last}");
    assert_eq!(
        (&last["before"]["config"]["provider"], &last["after"]["config"]["provider"]),
        (&json!("@b"), &json!("@a"))
    );

    // Rules may grow stricter: what is no longer valid does not come back.
    service
        .sql(&format!(r#"UPDATE config_versions SET content = '{{"provider": "@a", "gone": 1}}' WHERE id = '{first}'"#))
        .await;
    let refused = client.post(&format!("{}/rollback", path(&made)), &json!({ "version_id": first })).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["data"]["errors"][0]["code"]),
        (400, &json!("AB01_UNKNOWN_KEY"))
    );
    for body in [json!({}), json!({ "version_id": 5 })] {
        assert_eq!(client.post(&format!("{}/rollback", path(&made)), &body).await.status, 400, "{body}");
    }
    let unknown = json!({ "version_id": "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11" });
    assert_eq!(client.post(&format!("{}/rollback", path(&made)), &unknown).await.status, 404);
}
