//! The trail for people: who runs a workspace reads its part, ids have names beside them, and one object has its history.

use crate::login::browser::Browser;
use crate::login::by_link;
use crate::service::Service;
use http::Method;
use serde_json::{Value, json};
use shared::model::KeyKind;
use uuid::Uuid;

async fn records(browser: &mut Browser, query: &str) -> Vec<Value> {
    let answer = browser.get(&format!("/audit-logs?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.json()["records"].as_array().unwrap().clone()
}

/// The names of the labels that were made, oldest first.
fn made(records: &[Value]) -> Vec<&str> {
    let made = records.iter().rev().filter(|row| row["resource_type"] == "labels");
    made.map(|row| row["after"]["name"].as_str().unwrap_or("?")).collect()
}

async fn label(service: &Service, workspace: Option<Uuid>, name: &str) {
    let new = json!({ "name": name, "workspace_id": workspace });
    let answer = service.administrator().post("/labels", &new).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// One label for each workspace, one for the organisation, one of a stranger.
async fn filled() -> (Service, Uuid) {
    let service = Service::start().await;
    let (second, rival) = (service.workspace("second").await, service.organisation().await);
    label(&service, Some(service.home.workspace_id), "home").await;
    label(&service, Some(second), "second").await;
    let stranger = service.client().with_key(&rival.admin_key.key);
    let theirs = json!({ "name": "theirs", "workspace_id": rival.workspace_id });
    assert_eq!(stranger.post("/labels", &theirs).await.status, 200);
    assert_eq!(service.administrator().post("/workspaces", &json!({ "name": "of-organisation" })).await.status, 200);
    (service, second)
}

async fn join(service: &Service, person: Uuid, workspace: Uuid, role: &str) {
    let home = service.home.organisation_id;
    service
        .sql(&format!(
            "INSERT INTO workspace_members (organisation_id, workspace_id, user_id, role)
             VALUES ('{home}', '{workspace}', '{person}', '{role}')"
        ))
        .await;
}

#[tokio::test]
async fn who_runs_a_workspace_reads_what_was_done_there_and_nothing_else() {
    let (service, second) = filled().await;
    let home = service.home.workspace_id;
    for role in ["manager", "admin"] {
        let person = service.person("member", Some(role)).await;
        let mut browser = by_link(&service, person).await;
        let seen = records(&mut browser, "").await;
        assert_eq!(made(&seen), ["home"], "{role}");
        assert!(seen.iter().all(|row| row["workspace_id"] == json!(home)), "{role}: {seen:?}");
        // Whatever they ask for.
        for query in ["workspace_id=second".into(), format!("workspace_id={second}"), "uri=workspaces".into()] {
            assert_eq!(records(&mut browser, &query).await, [] as [Value; 0], "{role}: {query}");
        }
        let mut abroad = browser.with("x-gateway-workspace", "second");
        assert_eq!(abroad.get("/audit-logs").await.status, 403, "{role}");
        // In several workspaces: those that they run, all at once or one of them.
        join(&service, person, second, "member").await;
        assert_eq!(made(&records(&mut browser, "").await), ["home"], "{role}");
        assert_eq!(abroad.get("/audit-logs").await.status, 403, "a member there");
        service.sql(&format!("UPDATE workspace_members SET role = 'manager' WHERE workspace_id = '{second}'")).await;
        for mut both in [browser.with("x-gateway-workspace", "*"), browser] {
            assert_eq!(made(&records(&mut both, "").await), ["home", "second"], "{role}");
        }
        assert_eq!(made(&records(&mut abroad, "").await), ["second"], "{role}");
        service.sql(&format!("DELETE FROM workspace_members WHERE workspace_id = '{second}'")).await;
    }
    let mut member = by_link(&service, service.person("member", Some("member")).await).await;
    assert_eq!(member.get("/audit-logs").await.status, 403);
    assert_eq!(member.with("x-gateway-workspace", "*").get("/audit-logs").await.status, 403);
    let mut nowhere = by_link(&service, service.person("member", None).await).await;
    assert_eq!(nowhere.get("/audit-logs").await.status, 403);
    // Those who run the organisation read all of it, or a workspace's part.
    let mut owner = by_link(&service, service.home.owner_id).await;
    assert_eq!(made(&records(&mut owner, "").await), ["home", "second"]);
    let mut there = owner.with("x-gateway-workspace", "second");
    assert_eq!(made(&records(&mut there, "").await), ["second"]);
}

/// It is for people; keys of a workspace change what it tells.
#[tokio::test]
async fn no_key_of_a_workspace_reads_the_trail() {
    let service = Service::start().await;
    let manager = service.person("member", Some("admin")).await;
    for client in [
        service.workspace_client(service.home.workspace_id).await,
        service.person_client(service.home.workspace_id, manager).await,
    ] {
        assert_eq!(client.get("/audit-logs").await.status, 403);
    }
    let key = json!({ "name": "k", "scopes": ["audit_logs.list"] });
    for kind in ["service", "user"] {
        let answer = service.administrator().post(&format!("/api-keys/workspace/{kind}"), &key).await;
        assert_eq!(answer.status, 400, "{kind}: {}", answer.text());
    }
}

#[tokio::test]
async fn what_settings_keep_from_managers_they_do_not_read_in_the_trail() {
    let (service, _) = filled().await;
    let mut manager = by_link(&service, service.person("member", Some("manager")).await).await;
    let mut admin = by_link(&service, service.person("member", Some("admin")).await).await;
    assert_eq!(made(&records(&mut manager, "").await), ["home"]);
    let settings = json!({ "managersViewConfigs": false });
    let path = "/admin/organisation/security-settings";
    assert_eq!(service.administrator().put(path, &settings).await.status, 200);
    for mut browser in [manager.with("x-gateway-workspace", "*"), manager] {
        let seen = records(&mut browser, "resource_type=labels").await;
        assert_eq!((seen.len(), &seen[0]["action"]), (1, &json!("create")), "that it was done, and by whom");
        for name in ["before", "after", "request_body", "query_params", "error"] {
            assert_eq!(seen[0][name], Value::Null, "{name}");
        }
    }
    assert_eq!(made(&records(&mut admin, "").await), ["home"]);
}

#[tokio::test]
async fn ids_have_names_beside_them() {
    let service = Service::start().await;
    let person = service.person("admin", None).await;
    let mut browser = by_link(&service, person).await;
    assert_eq!(browser.post("/labels", &json!({ "name": "by-hand" })).await.status, 200);
    let key = service.key(KeyKind::WorkspaceService, &["prompts.create", "prompts.update"]).await;
    let client = service.client().with_key(&key.key);
    let by_key = client.post("/labels", &json!({ "name": "by-key" })).await;
    assert_eq!(by_key.status, 200, "{}", by_key.text());
    service.sql("UPDATE workspaces SET name = 'Market'").await;
    service.sql(&format!("UPDATE users SET email = 'ada@x.test' WHERE id = '{person}'")).await;
    service.sql(&format!("UPDATE api_keys SET name = 'shop' WHERE id = '{}'", key.id)).await;
    let names = |row: &Value| json!([row["user_email"], row["api_key_name"], row["workspace_name"]]);
    let seen = records(&mut browser, "resource_type=labels").await;
    assert_eq!(names(&seen[1]), json!(["ada@x.test", null, "Market"]), "{seen:?}");
    assert_eq!(names(&seen[0]), json!([null, "shop", "Market"]), "{seen:?}");
}

#[tokio::test]
async fn an_object_has_its_history() {
    let service = Service::start().await;
    let client = service.administrator();
    let ids: Vec<String> = {
        let mut ids = Vec::new();
        for name in ["one", "two"] {
            let made =
                client.post("/labels", &json!({ "name": name, "workspace_id": service.home.workspace_id })).await;
            ids.push(made.json()["id"].as_str().unwrap().to_owned());
        }
        ids
    };
    let path = format!("/labels/{}", ids[0]);
    assert_eq!(client.put(&path, &json!({ "name": "uno" })).await.status, 200);
    let mut owner = by_link(&service, service.home.owner_id).await;
    let seen = records(&mut owner, &format!("resource_id={}", ids[0])).await;
    let actions: Vec<_> = seen.iter().map(|row| row["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["update", "create"]);
    assert_eq!(records(&mut owner, &format!("resource_id={}", Uuid::new_v4())).await, [] as [Value; 0]);
}

/// Each kind of thing that is kept in versions says who made which.
#[tokio::test]
async fn versions_have_authors() {
    let service = Service::start().await;
    let person = service.person("member", Some("admin")).await;
    let mut browser = by_link(&service, person).await;
    let collection = browser.post("/collections", &json!({ "name": "c" })).await.json()["id"].clone();
    let check = json!({ "id": "default.contains", "parameters": { "operator": "none", "words": ["x"] } });
    let messages = json!([{ "role": "user", "content": "hi" }]).to_string();
    for (path, new, change) in [
        ("/configs", json!({ "name": "c", "config": { "provider": "@a" } }), json!({ "config": { "provider": "@b" } })),
        (
            "/guardrails",
            json!({ "name": "g", "checks": [check], "actions": { "deny": true } }),
            json!({ "actions": {} }),
        ),
        (
            "/prompts",
            json!({ "name": "p", "collection_id": collection, "string": messages, "parameters": { "model": "m" }, "virtual_key": "main" }),
            json!({ "string": messages.replace("hi", "hello"), "patch": true }),
        ),
        ("/prompts/partials", json!({ "name": "p", "string": "Be kind." }), json!({ "string": "Be brief." })),
    ] {
        let made = browser.post(path, &new).await;
        assert_eq!(made.status, 200, "{path}: {}", made.text());
        let made = made.json();
        let id = made["id"].as_str().unwrap();
        let name = if path == "/configs" { made["slug"].as_str().unwrap_or(id) } else { id };
        let path = format!("{path}/{name}");
        let changed = service.administrator().put(&path, &change).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.text());
        let versions = browser.send(Method::GET, &format!("{path}/versions"), None).await.json();
        let authors: Vec<_> =
            versions["data"].as_array().unwrap().iter().map(|one| one["created_by"].clone()).collect();
        assert_eq!(authors, [json!(service.home.admin_key.id), json!(person)], "{path}: {versions}");
    }
}
