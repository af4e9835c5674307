//! Gateway deployments: kinds with limits of their own, workspaces, the default, and a token that is shown once.

use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use shared::identity::api_key::KeyHash;
use shared::model::KeyKind;

async fn make(client: &Client, body: Value) -> Answer {
    client.post("/deployments", &body).await
}

async fn made(client: &Client, body: Value) -> Value {
    let answer = make(client, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

async fn slugs(client: &Client, query: &str) -> Vec<String> {
    let list = client.get(&format!("/deployments?{query}")).await.json();
    let data = list["data"].as_array().unwrap_or_else(|| panic!("{query}: {list}"));
    let mut slugs: Vec<_> = data.iter().map(|one| one["slug"].as_str().unwrap().to_owned()).collect();
    slugs.sort();
    slugs
}

#[tokio::test]
async fn a_deployment_is_made_read_changed_and_gone_and_its_token_is_shown_once() {
    let service = Service::start().await;
    let client = service.administrator();
    let answer =
        made(&client, json!({ "name": "Europe", "type": "production", "url": "https://eu.example.com" })).await;
    let token = answer["client_auth"].as_str().unwrap().to_owned();
    let slug = answer["slug"].as_str().unwrap().to_owned();
    assert!(token.starts_with("gwd_") && token.len() > 40 && slug.starts_with("dp-europe-"), "{answer}");
    let found = client.get(&format!("/deployments/{slug}")).await.json();
    let expected = json!({
        "id": answer["id"],
        "name": "Europe",
        "slug": slug,
        "type": "production",
        "url": "https://eu.example.com",
        "deployment_config": {},
        "allow_all_workspaces": true,
        "workspaces": [],
        "is_default": 0,
        "organisation_id": service.home.organisation_id,
        "status": "inactive",
        "last_sync_at": null,
        "created_by": found["created_by"],
        "created_at": found["created_at"],
        "last_updated_at": found["last_updated_at"],
        "object": "deployment",
    });
    assert_eq!(found, expected);
    let change = json!({ "url": null, "deployment_config": { "jwt": { "users": ["a"] } }, "type": "non-production" });
    let changed = client.put(&format!("/deployments/{}", found["id"].as_str().unwrap()), &change).await.json();
    assert_eq!(
        (&changed["url"], &changed["type"], &changed["name"]),
        (&Value::Null, &json!("non-production"), &json!("Europe"))
    );
    assert_eq!(changed["deployment_config"], json!({ "jwt": { "users": ["a"] } }));
    assert_eq!(client.delete(&format!("/deployments/{slug}")).await.json(), json!({}));
    assert_eq!(client.get(&format!("/deployments/{slug}")).await.status, 404);
    assert_eq!(slugs(&client, "status=archived").await, [slug.as_str()]);

    let trail = service.trail(service.home.organisation_id).await;
    assert!(trail.iter().all(|row| !row.to_string().contains(&token)), "the token is in the audit trail");
    let db = service.database.client().await;
    let hash: Vec<u8> = db.query_one("SELECT token_hash FROM deployments", &[]).await.unwrap().get(0);
    assert_eq!(hash, KeyHash::from_key(token.as_bytes()).0);
}

#[tokio::test]
async fn a_new_token_takes_the_place_of_the_one_before() {
    let service = Service::start().await;
    let client = service.administrator();
    let first = made(&client, json!({ "name": "Europe", "slug": "europe", "type": "production" })).await;
    let path = "/deployments/europe/rotate-token";
    let answer = client.post(path, &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let token = answer.json()["client_auth"].as_str().unwrap().to_owned();
    assert!(token.starts_with("gwd_") && token != first["client_auth"].as_str().unwrap());
    assert_eq!(
        answer.json(),
        json!({ "id": first["id"], "slug": "europe", "object": "deployment", "client_auth": token })
    );
    let db = service.database.client().await;
    let hash: Vec<u8> = db.query_one("SELECT token_hash FROM deployments", &[]).await.unwrap().get(0);
    assert_eq!(hash, KeyHash::from_key(token.as_bytes()).0);
    let trail = service.trail(service.home.organisation_id).await;
    assert!(trail.iter().any(|row| row["action"] == "rotate"), "{trail:?}");
    assert!(trail.iter().all(|row| !row.to_string().contains(&token)), "the token is in the audit trail");

    let other = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(other.post(path, &json!({})).await.status, 404, "another organisation's");
    let reader = service.client().with_key(&service.key(KeyKind::OrganisationService, &["deployments.read"]).await.key);
    assert_eq!(reader.post(path, &json!({})).await.status, 403);
    let workspace = service.workspace_client(service.home.workspace_id).await;
    assert_eq!(workspace.post(path, &json!({})).await.status, 403);
    assert_eq!(client.delete("/deployments/europe").await.status, 200);
    assert_eq!(client.post(path, &json!({})).await.status, 404, "it is archived");
    let now: Vec<u8> = db.query_one("SELECT token_hash FROM deployments", &[]).await.unwrap().get(0);
    assert_eq!(now, hash);
}

#[tokio::test]
async fn each_kind_has_a_limit_of_its_own_also_when_many_ask_at_once() {
    let service = Service::start_with(&["--max-production-deployments=2", "--max-non-production-deployments=0"]).await;
    let client = service.administrator();
    let asking = (0..6).map(|n| make(&client, json!({ "name": format!("P{n}"), "type": "production" })));
    let mut statuses: Vec<u16> =
        futures::future::join_all(asking).await.iter().map(|one| one.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 402, 402, 402, 402]);
    let refused = make(&client, json!({ "name": "N", "type": "non-production" })).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["data"]["errorCode"]), (402, &json!("AB09")));
    assert!(refused.text().contains("MAX_NON_PRODUCTION_DEPLOYMENTS"), "{}", refused.text());
    let slug = slugs(&client, "type=production").await.remove(0);
    let moved = client.put(&format!("/deployments/{slug}"), &json!({ "type": "non-production" })).await;
    assert_eq!(moved.status, 402, "a change of kind counts as well");
    assert_eq!(client.delete(&format!("/deployments/{slug}")).await.status, 200);
    assert_eq!(make(&client, json!({ "name": "again", "type": "production" })).await.status, 200);
    let other = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(make(&other, json!({ "name": "theirs", "type": "production" })).await.status, 200, "per organisation");
}

#[tokio::test]
async fn workspaces_restrict_a_deployment_and_must_be_in_use_and_our_own() {
    let service = Service::start().await;
    let client = service.administrator();
    let (one, two) = (service.workspace("one").await, service.workspace("two").await);
    let stranger = service.organisation().await;
    let body = |workspaces: Value| json!({ "name": "R", "type": "production", "workspaces": workspaces });
    let restricted = made(&client, body(json!(["one", two, "one"]))).await;
    let path = format!("/deployments/{}", restricted["slug"].as_str().unwrap());
    let shown = client.get(&path).await.json();
    assert_eq!((&shown["allow_all_workspaces"], &shown["workspaces"]), (&json!(false), &json!(["one", "two"])));
    for (workspaces, field) in [
        (json!([]), "workspaces"),
        (json!(["one", "nowhere"]), "workspaces[1]"),
        (json!([stranger.workspace_id]), "workspaces[0]"),
    ] {
        let refused = make(&client, body(workspaces.clone())).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]["param"]), (400, &json!(field)), "{workspaces}");
    }
    for body in [json!({ "allow_all_workspaces": true, "workspaces": ["one"] }), json!({ "workspaces": [] })] {
        assert_eq!(client.put(&path, &body).await.status, 400, "{body}");
    }
    let open = made(&client, json!({ "name": "Open", "type": "production", "slug": "open" })).await;
    assert_eq!(client.put("/deployments/open", &json!({ "allow_all_workspaces": false })).await.status, 400);
    for (query, expected) in [
        (format!("workspace_id={one}"), vec!["open", restricted["slug"].as_str().unwrap()]),
        ("workspace_id=two".into(), vec!["open", restricted["slug"].as_str().unwrap()]),
        (format!("workspace_id={}", service.home.workspace_id), vec![open["slug"].as_str().unwrap()]),
    ] {
        let mut expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        expected.sort();
        assert_eq!(slugs(&client, &query).await, expected, "{query}");
    }
    let opened = client.put(&path, &json!({ "allow_all_workspaces": true })).await.json();
    assert_eq!((&opened["allow_all_workspaces"], &opened["workspaces"]), (&json!(true), &json!([])));
}

#[tokio::test]
async fn a_slug_is_taken_once_and_one_deployment_is_the_default() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = |slug: &str, is_default: Value| json!({ "name": "D", "type": "production", "slug": slug, "is_default": is_default });
    made(&client, body("first", json!(1))).await;
    made(&client, body("second", json!(true))).await;
    assert_eq!(make(&client, body("second", json!(0))).await.status, 409);
    let defaults = async || {
        let list = client.get("/deployments").await.json();
        let all = list["data"].as_array().unwrap().clone();
        let chosen: Vec<_> =
            all.into_iter().filter(|one| one["is_default"] == 1).map(|one| one["slug"].clone()).collect();
        chosen
    };
    assert_eq!(defaults().await, ["second"]);
    assert_eq!(client.put("/deployments/first", &json!({ "is_default": 1 })).await.status, 200);
    assert_eq!(defaults().await, ["first"]);
    assert_eq!(make(&client, body("third", json!(2))).await.status, 400);
    assert_eq!(client.put("/deployments/first", &json!({ "slug": "other" })).await.status, 400, "a slug stays");
    for url in ["ftp://x", "x", "https://"] {
        let refused = make(&client, json!({ "name": "U", "type": "production", "url": url })).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]["param"]), (400, &json!("url")), "{url}");
    }
}

#[tokio::test]
async fn lists_are_narrowed_by_kind_status_and_text() {
    let service = Service::start().await;
    let client = service.administrator();
    for (slug, kind) in [("eu", "production"), ("us", "production"), ("lab", "non-production")] {
        made(&client, json!({ "name": format!("Site {slug}"), "slug": slug, "type": kind })).await;
    }
    service.sql("INSERT INTO deployment_syncs SELECT id, now() FROM deployments WHERE slug = 'eu'").await;
    service
        .sql("INSERT INTO deployment_syncs SELECT id, now() - interval '11 minutes' FROM deployments WHERE slug = 'us'")
        .await;
    for (query, expected) in [
        ("type=production", vec!["eu", "us"]),
        ("type=non-production", vec!["lab"]),
        ("status=active", vec!["eu"]),
        ("status=inactive", vec!["lab", "us"]),
        ("status=active,inactive", vec!["eu", "lab", "us"]),
        ("status=archived", vec![]),
        ("search=SITE+u", vec!["us"]),
        ("search=%27%3B--", vec![]),
        ("", vec!["eu", "lab", "us"]),
    ] {
        assert_eq!(slugs(&client, query).await, expected, "{query}");
    }
    for query in ["type=staging", "status=gone"] {
        assert_eq!(client.get(&format!("/deployments?{query}")).await.status, 400, "{query}");
    }
}
