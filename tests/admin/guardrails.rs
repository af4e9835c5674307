//! Guardrails over HTTP: how they are made, changed and kept in versions, who sees them, and what is refused.

mod defaults;
mod trial;

use crate::configs;
use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use shared::model::KeyKind;

const PATH: &str = "/guardrails";

fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

fn field(answer: &Answer) -> String {
    answer.json()["data"]["errors"][0]["field"].as_str().unwrap_or_default().to_owned()
}

fn checks() -> Value {
    json!([{ "id": "default.contains", "parameters": { "operator": "none", "words": ["x"] } }])
}

/// Of the organisation, or of the workspace that is named.
async fn create(client: &Client, service: &Service, workspace: Option<&str>) -> Value {
    let mut body = json!({ "name": "No x", "checks": checks(), "actions": { "deny": true } });
    match workspace {
        Some(workspace) => body["workspace_id"] = workspace.into(),
        None => body["organisation_id"] = json!(service.home.organisation_id),
    }
    let answer = client.post(PATH, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn path(made: &Value) -> String {
    format!("{PATH}/{}", made["slug"].as_str().unwrap())
}

#[tokio::test]
async fn a_guardrail_is_made_shown_changed_and_gone_by_id_or_slug() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, &service, Some(&service.home.workspace_id.to_string())).await;
    let (id, slug, version) = (&made["id"], made["slug"].as_str().unwrap(), &made["version_id"]);
    assert!(slug.starts_with("pg-no-x-") && slug.len() == "pg-no-x-".len() + 6, "{slug}");
    assert_eq!(made, json!({ "id": id, "slug": slug, "version_id": version, "object": "guardrail" }));

    let read = client.get(&path(&made)).await.json();
    let item = json!({
        "id": id, "name": "No x", "slug": slug, "organisation_id": service.home.organisation_id,
        "workspace_id": service.home.workspace_id, "status": "active", "owner_id": service.home.admin_key.id,
        "updated_by": service.home.admin_key.id, "created_at": read["created_at"],
        "last_updated_at": read["last_updated_at"], "object": "guardrail",
    });
    let mut whole = item.clone();
    let mut kept = checks();
    kept[0]["is_enabled"] = true.into();
    (whole["checks"], whole["actions"]) = (kept, json!({ "deny": true }));
    whole["version_id"] = version.clone();
    assert_eq!(read, whole);
    let list = client.get(PATH).await.json();
    assert_eq!(list, json!({ "object": "list", "total": 1, "data": [item] }), "a list shows less");
    let other_prefix = format!("{PATH}/{}", slug.replacen("pg-", "guard_", 1));
    for same in [format!("{PATH}/{}", id.as_str().unwrap()), other_prefix] {
        assert_eq!(client.get(&same).await.json(), whole, "{same}");
    }

    let renamed = client.put(&path(&made), &json!({ "name": "Never x" })).await.json();
    assert_eq!(renamed, json!({ "id": id, "slug": slug, "version_id": version, "object": "guardrail" }));
    let same = client.put(&path(&made), &json!({ "actions": { "deny": true } })).await.json();
    assert_eq!(&same["version_id"], version, "what says the same is the same version");
    let softer = client.put(&path(&made), &json!({ "actions": { "deny": false, "onFail": "log" } })).await.json();
    assert_ne!(&softer["version_id"], version);
    let read = client.get(&path(&made)).await.json();
    assert_eq!((&read["name"], &read["checks"]), (&json!("Never x"), &whole["checks"]), "what was not sent stays");
    assert_eq!(read["actions"], json!({ "deny": false, "onFail": "log" }), "as it was sent");
    assert_eq!(client.delete(&path(&made)).await.json(), json!({}));
    for answer in [client.get(&path(&made)).await, client.delete(&path(&made)).await] {
        assert_eq!(outcome(&answer), (404, "AB08".into()));
    }
    assert_eq!(client.get(PATH).await.json()["total"], 0);
}

#[tokio::test]
async fn versions_are_kept_read_and_brought_back() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, &service, None).await;
    let path = path(&made);
    let first = made["version_id"].as_str().unwrap();
    let second = client.put(&path, &json!({ "actions": {} })).await.json()["version_id"].clone();
    let versions = client.get(&format!("{path}/versions")).await.json();
    let seen: Vec<_> = versions["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["version"].clone(), one["version_id"].clone()))
        .collect();
    assert_eq!(seen, [(json!(2), second), (json!(1), json!(first))], "newest first");
    let old = client.get(&format!("{path}?version={first}")).await.json();
    assert_eq!((&old["actions"], &old["version_id"]), (&json!({ "deny": true }), &json!(first)));
    let third = client.post(&format!("{path}/rollback"), &json!({ "version_id": first })).await;
    assert_eq!(third.status, 200, "{}", third.text());
    assert_ne!(third.json()["version_id"], first, "a new version with the old content");
    assert_eq!(client.get(&path).await.json()["actions"], json!({ "deny": true }));
    assert_eq!(client.get(&format!("{path}/versions")).await.json()["total"], 3);
    let other = create(&client, &service, None).await;
    let foreign = format!("{path}?version={}", other["version_id"].as_str().unwrap());
    assert_eq!(outcome(&client.get(&foreign).await), (404, "AB08".into()), "a version of another guardrail");
    let foreign = client.post(&format!("{path}/rollback"), &json!({ "version_id": other["version_id"] })).await;
    assert_eq!(outcome(&foreign), (404, "AB08".into()));
}

#[tokio::test]
async fn a_workspace_sees_its_own_and_its_organisations_and_changes_only_its_own() {
    let service = Service::start().await;
    let admin = service.administrator();
    service.workspace("elsewhere").await;
    let home = service.workspace_client(service.home.workspace_id).await;
    let whole = create(&admin, &service, None).await;
    let other = create(&admin, &service, Some("elsewhere")).await;
    let body = json!({ "name": "Own", "checks": checks(), "actions": {} });
    let own = home.post(PATH, &body).await.json();
    assert_eq!(admin.get(&path(&own)).await.json()["workspace_id"], json!(service.home.workspace_id));
    for (client, guardrail, read, written) in [
        (&home, &own, 200, 200),
        (&home, &whole, 200, 403),
        (&home, &other, 404, 404),
        (&admin, &own, 200, 200),
        (&admin, &whole, 200, 200),
    ] {
        assert_eq!(client.get(&path(guardrail)).await.status, read, "{guardrail}");
        assert_eq!(client.put(&path(guardrail), &json!({ "name": "n" })).await.status, written, "{guardrail}");
    }
    assert_eq!(home.delete(&path(&whole)).await.status, 403);
    let slugs = async |client: &Client, query: &str| -> Vec<Value> {
        let list = client.get(&format!("{PATH}?{query}")).await.json();
        let data = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
        let mut slugs: Vec<_> = data.iter().map(|one| one["slug"].clone()).collect();
        slugs.sort_by_key(Value::to_string);
        slugs
    };
    let sorted = |mut list: Vec<&Value>| {
        list.sort_by_key(|one| one["slug"].to_string());
        list.into_iter().map(|one| one["slug"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(slugs(&home, "").await, sorted(vec![&own, &whole]));
    assert_eq!(slugs(&admin, "").await, sorted(vec![&own, &whole, &other]));
    assert_eq!(slugs(&admin, "workspace_id=elsewhere").await, sorted(vec![&other, &whole]));
    assert_eq!(slugs(&admin, &format!("organisation_id={}", service.home.organisation_id)).await, sorted(vec![&whole]));
    let ids = format!("ids={},{}", own["id"].as_str().unwrap(), other["slug"].as_str().unwrap());
    assert_eq!(slugs(&admin, &ids).await, sorted(vec![&own, &other]));
    assert_eq!(slugs(&home, &ids).await, sorted(vec![&own]), "by name too, only what one may see");
    let foreign = format!("{PATH}?organisation_id={}", service.organisation().await.organisation_id);
    assert_eq!(outcome(&admin.get(&foreign).await), (400, "AB01".into()));
}

#[tokio::test]
async fn scopes_of_the_organisations_guardrails_do_not_reach_into_workspaces() {
    let service = Service::start().await;
    let admin = service.administrator();
    let whole = create(&admin, &service, None).await;
    let part = create(&admin, &service, Some(&service.home.workspace_id.to_string())).await;
    let scopes = ["create", "read", "update", "delete", "list"].map(|verb| format!("organisation_guardrails.{verb}"));
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let key = service.key(KeyKind::OrganisationService, &scopes).await;
    let client = service.client().with_key(&key.key);
    let list = client.get(PATH).await.json();
    assert_eq!((&list["total"], &list["data"][0]["slug"]), (&json!(1), &whole["slug"]));
    assert_eq!(client.get(&path(&whole)).await.status, 200);
    for answer in [
        client.get(&path(&part)).await,
        client.put(&path(&part), &json!({ "name": "n" })).await,
        client.delete(&path(&part)).await,
        client.get(&format!("{}/versions", path(&part))).await,
        client
            .post(
                PATH,
                &json!({ "name": "n", "checks": checks(), "actions": {}, "workspace_id": service.home.workspace_id }),
            )
            .await,
    ] {
        assert_eq!(outcome(&answer), (403, "AB03".into()), "{}", answer.text());
    }
    create(&client, &service, None).await;
    assert_eq!(client.delete(&path(&whole)).await.status, 200);
}

#[tokio::test]
async fn what_could_not_run_is_refused_with_every_fault_and_the_name_that_was_meant() {
    let service = Service::start().await;
    let client = service.administrator();
    let organisation = json!(service.home.organisation_id);
    let body = |checks: Value, actions: Value| json!({ "name": "n", "checks": checks, "actions": actions, "organisation_id": organisation });
    for (body, expected) in [
        (json!({ "name": "n", "checks": checks(), "actions": {} }), "workspace_id"),
        (
            json!({ "name": "n", "checks": checks(), "actions": {}, "organisation_id": uuid::Uuid::nil() }),
            "organisation_id",
        ),
        (json!({ "checks": checks(), "actions": {}, "organisation_id": organisation }), "name"),
        (json!({ "name": "n", "actions": {}, "organisation_id": organisation }), "checks"),
        (json!({ "name": "n", "checks": checks(), "organisation_id": organisation }), "actions"),
        (body(json!([]), json!({})), "checks"),
        (body(json!(vec![checks()[0].clone(); 51]), json!({})), "checks"),
        (body(json!([{ "parameters": {} }]), json!({})), "checks[0].id"),
        (body(json!([{ "id": "default.contain" }]), json!({})), "checks[0].id"),
        (body(json!([{ "id": "default.contains", "parameters": [] }]), json!({})), "checks[0].parameters"),
        (body(json!([{ "id": "default.contains", "enabled": true }]), json!({})), "checks[0].enabled"),
        (body(checks(), json!({ "deny": "yes" })), "actions.deny"),
        (body(checks(), json!({ "denny": true })), "actions.denny"),
        (body(checks(), json!({ "on_fail": "explode" })), "actions.on_fail"),
        (body(checks(), json!({ "on_fail": { "feedback": { "value": 11 } } })), "actions.on_fail.feedback.value"),
        (body(checks(), json!({ "on_success": { "deny": true } })), "actions.on_success.deny"),
        (body(checks(), json!({ "stream": "drop" })), "actions.stream"),
        (body(checks(), json!({ "message": "x".repeat(1001) })), "actions.message"),
    ] {
        let refused = client.post(PATH, &body).await;
        assert_eq!(
            (outcome(&refused), field(&refused)),
            ((400, "AB01".into()), expected.to_owned()),
            "{}",
            refused.text()
        );
    }
    let mistyped = client.post(PATH, &body(json!([{ "id": "default.contain" }]), json!({}))).await.json();
    assert_eq!(mistyped["data"]["errors"][0]["nearest"], "default.contains", "{mistyped}");
    assert_eq!(client.get(PATH).await.json()["total"], 0, "nothing of it was saved");
}

#[tokio::test]
async fn a_guardrail_that_configs_name_is_deleted_by_force_only() {
    let service = Service::start().await;
    let client = service.administrator();
    for by in ["id", "slug"] {
        let made = create(&client, &service, None).await;
        let config = json!({ "strategy": { "mode": "fallback" }, "targets": [
            { "provider": "@a", "input_guardrails": [{ "default.contains": { "words": ["y"] } }, made[by]] }, { "provider": "@b" },
        ] });
        let config = configs::create(&client, by, config).await;
        let refused = client.delete(&path(&made)).await;
        assert_eq!(outcome(&refused), (409, "AB07".into()));
        let users = refused.json()["data"]["in_use_by"].clone();
        assert_eq!((&users[0]["object"], &users[0]["name"]), (&json!("config"), &config["slug"]), "{users}");
        assert_eq!(client.get(&path(&made)).await.status, 200, "it is still there");
        assert_eq!(client.delete(&format!("{}?force=true", path(&made))).await.status, 200);
    }
    let warned = configs::create(&client, "gone", json!({ "provider": "@a", "input_guardrails": ["pg-gone"] })).await;
    let warnings = warned["warnings"].to_string();
    assert!(warnings.contains("config.input_guardrails[0]: this workspace has no guardrail pg-gone yet"), "{warnings}");
    let unused = create(&client, &service, None).await;
    assert_eq!(client.delete(&path(&unused)).await.status, 200);
}

#[tokio::test]
async fn the_audit_trail_keeps_no_header_of_a_webhook() {
    let service = Service::start().await;
    let client = service.administrator();
    let webhook = json!({ "webhookURL": "https://guard.test/check", "headers": { "x-guard": "s3cret-value" } });
    let content =
        json!({ "checks": [{ "id": "default.webhook", "parameters": webhook, "is_enabled": true }], "actions": {} });
    let insert = "INSERT INTO guardrails (organisation_id, slug, name, content, version_id)
                  VALUES ($1, 'pg-hook', 'n', $2, gen_random_uuid())";
    let database = service.database.client().await;
    database.execute(insert, &[&service.home.organisation_id, &content]).await.unwrap();
    let path = format!("{PATH}/pg-hook");
    assert_eq!(client.put(&path, &json!({ "actions": { "deny": true } })).await.status, 200);
    assert_eq!(client.get(&path).await.json()["checks"][0]["parameters"], webhook, "its author sees it as it was sent");
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!(trail.len(), 1);
    assert!(trail.iter().all(|row| !row.to_string().contains("s3cret")), "{trail:?}");
}

#[tokio::test]
async fn every_check_is_listed_with_its_parameters() {
    let service = Service::start().await;
    let list = service.administrator().get("/guardrails/checks").await.json();
    let data = list["data"].as_array().unwrap();
    assert_eq!(list["total"], data.len());
    let one = data.iter().find(|one| one["id"] == "default.contains").unwrap_or_else(|| panic!("{list}"));
    assert_eq!(one["supported_hooks"], json!(["beforeRequestHook", "afterRequestHook"]), "{one}");
    assert_eq!((&one["plugin"], &one["is_run"]), (&Value::Null, &json!(true)));
    assert_eq!(one["parameters"]["required"], json!(["words"]), "{one}");
    assert_eq!(one["parameters"]["properties"]["operator"]["default"], "any", "{one}");
    for id in ["gateway.judge", "gateway.moderateContent", "gateway.language", "default.validUrls"] {
        let one = data.iter().find(|one| one["id"] == id).unwrap_or_else(|| panic!("{id}"));
        assert_eq!((&one["plugin"], &one["is_run"]), (&Value::Null, &json!(true)), "{one}");
    }
    let vendor = data.iter().find(|one| one["id"] == "aiguard.scan").unwrap();
    assert_eq!(vendor["plugin"], "aiguard");
}

#[tokio::test]
async fn a_check_that_a_model_answers_is_saved_with_one_target_alone() {
    let service = Service::start().await;
    let client = service.administrator();
    for (parameters, status) in [
        (json!({ "instructions": "It is polite.", "config": "pc-judge" }), 200),
        (json!({ "instructions": "It is polite.", "provider": "@prod", "model": "m" }), 200),
        (json!({ "instructions": "It is polite." }), 400),
        (json!({ "instructions": "It is polite.", "provider": "@prod" }), 400),
        (json!({ "instructions": "It is polite.", "config": "a", "provider": "b", "model": "m" }), 400),
        (json!({ "config": "pc-judge" }), 400),
    ] {
        let body = json!({ "name": "Judged", "organisation_id": service.home.organisation_id,
            "checks": [{ "id": "gateway.judge", "parameters": parameters }], "actions": {} });
        let answer = client.post(PATH, &body).await;
        assert_eq!(answer.status, status, "{parameters}: {}", answer.text());
    }
}
