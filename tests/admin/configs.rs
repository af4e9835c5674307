//! Configs: the shapes of their answers, what is refused, who is the default, and who keeps one alive.

mod credentials;
mod versions;

use crate::service::Service;
use futures::future::join_all;
use harness::{Answer, Client};
use serde_json::{Value, json};
use shared::model::KeyKind;
use uuid::Uuid;

pub async fn create(client: &Client, name: &str, config: Value) -> Value {
    let answer = client.post("/configs", &json!({ "name": name, "config": config })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

pub fn path(made: &Value) -> String {
    format!("/configs/{}", made["slug"].as_str().unwrap())
}

fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn answers_carry_both_published_shapes() {
    let service = Service::start().await;
    let client = service.administrator();
    let written = json!({ "strategy": { "mode": "single" }, "targets": [{ "virtual_key": "vk" }], "cache": { "mode": "simple" } });
    let made = create(&client, "Main router", written.clone()).await;
    let (id, slug, version) = (&made["id"], made["slug"].as_str().unwrap(), &made["version_id"]);
    assert!(slug.starts_with("pc-main-r-") || slug.starts_with("pc-main-"), "{slug}");
    let expected = json!({
        "success": true, "data": { "id": id, "version_id": version, "slug": slug },
        "id": id, "slug": slug, "version_id": version, "object": "config",
        "warnings": [
            "workspace_id: none was named, so this is made in the organisation's default workspace",
            "config.targets[0].virtual_key: this workspace has no provider @vk yet",
        ],
    });
    assert_eq!(made, expected);

    let read = client.get(&path(&made)).await.json();
    let item = json!({
        "id": id, "name": "Main router", "slug": slug,
        "organisation_id": service.home.organisation_id, "workspace_id": service.home.workspace_id,
        "is_default": 0, "status": "active",
        "owner_id": service.home.admin_key.id, "updated_by": service.home.admin_key.id,
        "created_at": read["created_at"], "last_updated_at": read["last_updated_at"], "object": "config",
    });
    let mut whole = item.clone();
    whole["config"] = written.to_string().into();
    for (name, value) in [("format", json!("json")), ("type", json!("ORG_CONFIG")), ("version_id", version.clone())] {
        whole[name] = value;
    }
    (whole["success"], whole["data"]) = (json!(true), json!({ "config": written }));
    assert_eq!(read, whole, "the text keeps the order of keys");
    let list = client.get("/configs").await.json();
    assert_eq!(list, json!({ "success": true, "object": "list", "total": 1, "data": [item] }));

    let changed = client.put(&path(&made), &json!({ "name": "Renamed" })).await.json();
    let expected = json!({
        "success": true, "data": { "version_id": version }, "version_id": version, "object": "config",
        "warnings": [expected["warnings"][1]],
    });
    assert_eq!(changed, expected, "a name is no content");
    assert_eq!(client.get(&path(&made)).await.json()["name"], "Renamed");
    assert_eq!(client.delete(&path(&made)).await.json(), json!({}));
    assert_eq!(outcome(&client.get(&path(&made)).await), (404, "AB08".into()));
    assert_eq!(client.get("/configs?status=archived").await.json()["data"][0]["status"], "archived");
}

#[tokio::test]
async fn every_fault_is_answered_with_its_code_and_path() {
    let service = Service::start().await;
    let client = service.administrator();
    let bad = json!({ "strategy": { "mode": "fallbak" }, "retry": { "attempts": 9 }, "metadata": {}, "targets": [{ "provider": "@a" }] });
    for sent in [bad.clone(), bad.to_string().into()] {
        let answer = client.post("/configs", &json!({ "name": "x", "config": sent })).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()));
        let errors = answer.json()["data"]["errors"].clone();
        let found: Vec<(&str, &str, &str)> = errors
            .as_array()
            .unwrap()
            .iter()
            .map(|error| {
                let text = |name: &str| error[name].as_str().unwrap();
                (text("code"), text("path"), text("field"))
            })
            .collect();
        let expected = [
            ("AB01_NOT_ONE_OF", "strategy.mode", "config.strategy.mode"),
            ("AB01_OUT_OF_RANGE", "retry.attempts", "config.retry.attempts"),
            ("AB01_UNKNOWN_KEY", "metadata", "config.metadata"),
        ];
        assert_eq!(found, expected, "{errors}");
        assert!(answer.json()["message"].as_str().unwrap().ends_with("(and 2 more)"), "{}", answer.text());
    }
    for body in [
        json!({ "name": "x" }),
        json!({ "name": "", "config": { "provider": "@a" } }),
        json!({ "name": "x", "config": "{" }),
        json!({ "name": "x", "config": { "provider": "@a" }, "isDefault": 2 }),
    ] {
        assert_eq!(outcome(&client.post("/configs", &body).await), (400, "AB01".into()), "{body}");
    }
    assert_eq!(client.get("/configs").await.json()["total"], 0, "nothing refused is saved");
}

#[tokio::test]
async fn a_limit_on_targets_is_a_setting() {
    let service = Service::start_with(&["--max-root-config-targets=1"]).await;
    let two = json!({ "strategy": { "mode": "fallback" }, "targets": [{ "provider": "@a" }, { "provider": "@b" }] });
    let answer = service.administrator().post("/configs", &json!({ "name": "x", "config": two })).await;
    assert_eq!(answer.json()["data"]["errors"][0]["code"], "AB01_TOO_MANY", "{}", answer.text());
}

#[tokio::test]
async fn a_workspace_has_one_default_config_and_the_last_one_chosen_is_it() {
    let service = Service::start().await;
    let client = service.administrator();
    let elsewhere = service.workspace("elsewhere").await;
    let new = |name: &str, workspace: Uuid| json!({ "name": name, "config": { "provider": "@a" }, "workspace_id": workspace, "isDefault": 1 });
    let first = client.post("/configs", &new("first", service.home.workspace_id)).await.json();
    let other = client.post("/configs", &new("other", elsewhere)).await.json();
    let second = client.post("/configs", &new("second", service.home.workspace_id)).await.json();
    let defaults = async || {
        let mut seen = Vec::new();
        for made in [&first, &second, &other] {
            seen.push(client.get(&path(made)).await.json()["is_default"].as_i64().unwrap());
        }
        seen
    };
    assert_eq!(defaults().await, [0, 1, 1]);
    client.put(&path(&first), &json!({ "is_default": true })).await;
    assert_eq!(defaults().await, [1, 0, 1]);
    client.put(&path(&first), &json!({ "isDefault": 0 })).await;
    assert_eq!(defaults().await, [0, 0, 1]);
    let (one, two) = (new("one", elsewhere), new("two", elsewhere));
    let (one, two) = tokio::join!(client.post("/configs", &one), client.post("/configs", &two));
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200), "{} {}", one.text(), two.text());
    let listed = client.get(&format!("/configs?workspace_id={elsewhere}")).await.json();
    let count = listed["data"].as_array().unwrap().iter().filter(|one| one["is_default"] == 1).count();
    assert_eq!(count, 1, "{listed}");
}

/// Each locks its own row and demotes the other's: taken in any order, they would wait for each other.
#[tokio::test]
async fn two_that_become_the_default_crosswise_never_wait_for_each_other() {
    let service = Service::start().await;
    let client = service.administrator();
    let one = path(&create(&client, "one", json!({ "provider": "@a" })).await);
    let two = path(&create(&client, "two", json!({ "provider": "@a" })).await);
    let body = json!({ "isDefault": 1 });
    for round in 0..25 {
        let answers = join_all([&one, &two, &one, &two].map(|path| client.put(path, &body))).await;
        for answer in &answers {
            assert_eq!(answer.status, 200, "round {round}: {}", answer.text());
        }
        let listed = client.get("/configs").await.json();
        let defaults = listed["data"].as_array().unwrap().iter().filter(|one| one["is_default"] == 1).count();
        assert_eq!(defaults, 1, "{listed}");
    }
}

#[tokio::test]
async fn a_config_in_use_is_not_deleted() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, "used", json!({ "provider": "@a" })).await;
    let (slug, id) = (made["slug"].as_str().unwrap(), made["id"].as_str().unwrap());
    for name in [slug, id] {
        service.sql(&format!(r#"UPDATE workspaces SET defaults = '{{"user_api_key_config": "{name}"}}'"#)).await;
        let refused = client.delete(&path(&made)).await;
        assert_eq!(outcome(&refused), (409, "AB07".into()), "{}", refused.text());
    }
    service.sql("UPDATE workspaces SET defaults = NULL").await;
    let key = service.key(KeyKind::WorkspaceService, &["completions.write"]).await;
    service
        .sql(&format!(r#"UPDATE api_keys SET defaults = '{{"config_id": "{slug}"}}' WHERE id = '{}'"#, key.id))
        .await;
    assert_eq!(outcome(&client.delete(&path(&made)).await), (409, "AB07".into()));
    assert_eq!(outcome(&client.put(&path(&made), &json!({ "status": "archived" })).await), (409, "AB07".into()));
    assert_eq!(client.get(&path(&made)).await.status, 200, "still there");
    service.sql("UPDATE api_keys SET status = 'archived' WHERE defaults ->> 'config_id' IS NOT NULL").await;
    assert_eq!(client.put(&path(&made), &json!({ "status": "archived" })).await.status, 200);
    assert_eq!(client.get(&path(&made)).await.status, 404);
}

#[tokio::test]
async fn a_workspace_key_sees_and_changes_its_own_workspaces_configs_alone() {
    let service = Service::start().await;
    let elsewhere = service.workspace("elsewhere").await;
    let (own, admin) = (service.workspace_client(elsewhere).await, service.administrator());
    let mine = create(&own, "mine", json!({ "provider": "@a" })).await;
    let theirs = create(&admin, "theirs", json!({ "provider": "@a" })).await;
    assert_eq!(own.get(&path(&mine)).await.json()["workspace_id"], elsewhere.to_string());
    let listed = own.get("/configs").await.json();
    assert_eq!((&listed["total"], &listed["data"][0]["slug"]), (&json!(1), &mine["slug"]), "{listed}");
    for answer in [
        own.get(&path(&theirs)).await,
        own.get(&format!("{}/versions", path(&theirs))).await,
        own.get(&format!("{}/versions/diff?from={}", path(&theirs), theirs["version_id"].as_str().unwrap())).await,
        own.post(&format!("{}/rollback", path(&theirs)), &json!({ "version_id": theirs["version_id"] })).await,
        own.get(&format!("{}?version={}", path(&mine), theirs["version_id"].as_str().unwrap())).await,
        own.post(&format!("{}/rollback", path(&mine)), &json!({ "version_id": theirs["version_id"] })).await,
    ] {
        assert_eq!(outcome(&answer), (404, "AB08".into()), "{}", answer.text());
    }
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(stranger.get(&format!("{}/versions", path(&mine))).await.status, 404);
    assert_eq!(admin.get("/configs").await.json()["total"], 2);
}

#[tokio::test]
async fn a_credential_in_a_config_comes_back_to_its_writer_and_never_reaches_the_trail() {
    let service = Service::start().await;
    let client = service.administrator();
    let secret = json!({ "provider": "openai", "api_key": "sk-canary", "aws_secret_access_key": "sk-canary" });
    let made = create(&client, "direct", secret.clone()).await;
    client.put(&path(&made), &json!({ "config": secret.to_string(), "name": "again" })).await;
    client.put(&path(&made), &json!({ "config": { "provider": "openai", "api_key": "sk-canary-2" } })).await;
    client
        .post("/configs", &json!({ "name": "bad", "config": { "api_key": "sk-canary", "provider": "nobody" } }))
        .await;
    client.delete(&path(&made)).await;
    let trail = json!(service.trail(service.home.organisation_id).await).to_string();
    assert!(trail.contains("config") && !trail.contains("canary"), "{trail}");
}

#[tokio::test]
async fn a_workspace_with_configs_is_not_deleted_carelessly() {
    let service = Service::start().await;
    let client = service.administrator();
    let workspace = service.workspace("doomed").await;
    let made = client
        .post("/configs", &json!({ "name": "c", "config": { "provider": "@a" }, "workspace_id": workspace }))
        .await
        .json();
    let delete = async |body: Value| {
        let request = client.request(http::Method::DELETE, &format!("/workspaces/{workspace}")).json(&body);
        harness::client::whole(request).await
    };
    let refused = delete(json!({ "name": "doomed" })).await;
    assert!(refused.status == 409 && refused.text().contains("configs"), "{}", refused.text());
    assert_eq!(delete(json!({ "name": "doomed", "force_delete": true })).await.status, 200);
    assert_eq!(client.get(&path(&made)).await.status, 404);
}
