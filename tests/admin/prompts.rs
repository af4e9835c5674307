//! Prompts and collections: their lives, the shapes of their answers, tenants and roles.

mod access;
mod comparison;
mod declared;
mod partials;
mod render;
mod room;
mod splits;
mod versions;

use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};

pub fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

pub async fn post(client: &Client, path: &str, body: Value) -> Value {
    let answer = client.post(path, &body).await;
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    answer.json()
}

pub async fn put(client: &Client, path: &str, body: Value) -> Value {
    let answer = client.put(path, &body).await;
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.text());
    answer.json()
}

pub async fn get(client: &Client, path: &str) -> Value {
    let answer = client.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.json()
}

/// A chat of one message.
pub fn messages(content: &str) -> String {
    json!([{ "role": "user", "content": content }]).to_string()
}

pub fn new_prompt(string: &str) -> Value {
    json!({ "name": "Greeting", "string": string, "parameters": { "model": "m", "temperature": 0.5 }, "virtual_key": "main" })
}

/// Makes a prompt and answers its path.
pub async fn create(client: &Client, body: Value) -> String {
    format!("/prompts/{}", post(client, "/prompts", body).await["slug"].as_str().unwrap())
}

#[tokio::test]
async fn a_prompt_is_made_read_changed_and_gone() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let string = messages("Hi {{user.name}}{{#vip}}, {{title}}{{/vip}} {{>pl-x}}");
    let mut body = new_prompt(&string);
    body["tools"] = json!([{ "type": "function" }]);
    body["prompt_metadata"] = json!({ "team": "red" });
    body["version_description"] = "first".into();
    let made = post(&client, "/prompts", body).await;
    let (id, slug, version) = (&made["id"], made["slug"].as_str().unwrap(), &made["version_id"]);
    assert!(slug.starts_with("pp-greeting-"), "{slug}");
    assert_eq!(made, json!({ "id": id, "slug": slug, "version_id": version, "object": "prompt" }));

    let path = format!("/prompts/{slug}");
    let read = get(&client, &path).await;
    let collections = get(&client, "/collections").await;
    let collection = &collections["data"][0];
    let item = json!({
        "id": id, "slug": slug, "name": "Greeting", "collection_id": collection["id"], "model": "m", "status": "active",
        "prompt_owning_workspace_id": service.home.workspace_id, "prompt_version_id": version, "latest_version": 1,
        "created_at": read["created_at"], "last_updated_at": read["last_updated_at"], "object": "prompt",
        "access_level": "workspace",
    });
    let mut whole = item.clone();
    let more = json!({
        "string": string, "parameters": { "temperature": 0.5, "model": "m" }, "virtual_key": "main",
        "functions": null, "tools": [{ "type": "function" }], "tool_choice": null, "template_metadata": { "team": "red" },
        "prompt_version": 1, "prompt_version_status": "active", "prompt_version_description": "first",
        "prompt_version_label_id": null, "prompt_version_label_name": null, "prompt_version_labels": [],
        "is_raw_template": 0, "declared_variables": null,
        "variable_components": {
            "partials": ["pl-x"], "sections": ["vip"], "variables": ["user.name"], "sectionVariables": { "vip": ["title"] },
            "variablePartials": [],
        },
    });
    whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    assert_eq!(read, whole);
    assert_eq!(get(&client, &format!("/prompts/{}", id.as_str().unwrap())).await, whole, "by id as by slug");
    assert_eq!(get(&client, "/prompts").await, json!({ "object": "list", "total": 1, "data": [item] }));

    assert_eq!(
        put(&client, &path, json!({ "name": "Renamed", "parameters": null })).await,
        json!({ "id": id, "slug": slug })
    );
    assert_eq!(get(&client, &path).await["name"], "Renamed");
    assert_eq!(client.delete(&path).await.json(), json!({}));
    for answer in [client.get(&path).await, client.post(&format!("{path}/render"), &json!({})).await] {
        assert_eq!(outcome(&answer), (404, "AB08".into()));
    }
    assert_eq!(get(&client, "/prompts").await["total"], 0);
}

#[tokio::test]
async fn what_is_wrong_with_a_prompt_is_400_and_named() {
    let service = Service::start().await;
    let client = service.administrator();
    for (field, value) in [
        ("string", json!("{{#a}}")),
        ("string", json!(messages("{{name"))),
        ("string", json!("x".repeat((1 << 20) + 1))),
        ("string", Value::Null),
        ("name", json!("x".repeat(256))),
        ("parameters", json!([])),
        ("parameters", json!({ "a": "x".repeat(256 << 10) })),
        ("virtual_key", json!("a b")),
        ("virtual_key", json!("0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11")),
        ("is_raw_template", json!(2)),
        ("tools", json!({})),
        ("invented", json!(1)),
    ] {
        let mut body = new_prompt("Hi");
        body[field] = value;
        let answer = client.post("/prompts", &body).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{field}: {}", answer.text());
        assert_eq!(answer.json()["data"]["errors"][0]["field"], field, "{}", answer.text());
    }
    let mut body = new_prompt("Hi");
    body["collection_id"] = "nowhere".into();
    assert_eq!(outcome(&client.post("/prompts", &body).await), (404, "AB08".into()));
    assert_eq!(get(&client, "/prompts").await["total"], 0, "nothing refused is saved");
}

#[tokio::test]
async fn a_collection_holds_prompts_and_goes_when_it_is_empty() {
    let service = Service::start().await;
    let admin = service.administrator();
    let elsewhere = service.workspace("elsewhere").await;
    let of_elsewhere = get(&admin, &format!("/collections?workspace_id={elsewhere}")).await;
    assert_eq!(
        (&of_elsewhere["total"], &of_elsewhere["data"][0]["is_default"]),
        (&json!(1), &json!(1)),
        "made with it"
    );
    let outer = post(&admin, "/collections", json!({ "name": "Outer", "workspace_id": "elsewhere" })).await;
    let (outer_id, outer_slug) = (outer["id"].as_str().unwrap(), outer["slug"].as_str().unwrap());
    let inner = json!({ "name": "Inner", "workspace_id": elsewhere, "parent_collection_id": outer_slug });
    let inner = post(&admin, "/collections", inner).await;
    let mut body = new_prompt("Hi");
    body["collection_id"] = outer_slug.into();
    let prompt = create(&admin, body).await;
    let read = get(&admin, &prompt).await;
    assert_eq!(read["prompt_owning_workspace_id"], json!(elsewhere), "the collection decides the workspace");
    let seen = get(&admin, &format!("/collections/{outer_slug}")).await;
    assert_eq!(seen["collection_details"]["prompts_count"], 1, "{seen}");
    assert_eq!(seen["collection_details"]["child_collections_count"], 1, "{seen}");
    assert_eq!(seen["child_collections"][0]["id"], inner["id"], "{seen}");
    for (query, total) in [(outer_id, 1), (outer_slug, 1), (inner["slug"].as_str().unwrap(), 0), ("nowhere", 0)] {
        assert_eq!(get(&admin, &format!("/prompts?collection_id={query}")).await["total"], total, "{query}");
    }
    let (outer, inner) =
        (format!("/collections/{outer_id}"), format!("/collections/{}", inner["id"].as_str().unwrap()));
    assert_eq!(outcome(&admin.delete(&outer).await), (409, "AB07".into()));
    put(&admin, &prompt, json!({ "collection_id": inner.rsplit('/').next() })).await;
    assert_eq!(outcome(&admin.delete(&outer).await), (409, "AB07".into()), "a collection is in it");
    assert_eq!(admin.delete(&prompt).await.status, 200);
    for path in [&inner, &outer] {
        assert_eq!(admin.delete(path).await.json(), json!({}), "{path}");
    }
    let default = of_elsewhere["data"][0]["id"].as_str().unwrap();
    assert_eq!(outcome(&admin.delete(&format!("/collections/{default}")).await), (404, "AB08".into()));
    let home = json!({ "collection_id": get(&admin, &format!("/collections?workspace_id={}", service.home.workspace_id)).await["data"][0]["id"] });
    let mut body = new_prompt("Hi");
    body["workspace_id"] = "elsewhere".into();
    let prompt = create(&admin, body).await;
    assert_eq!(outcome(&admin.put(&prompt, &home).await), (404, "AB08".into()), "of another workspace");
}

#[tokio::test]
async fn a_workspace_of_prompts_is_deleted_only_by_force_and_with_them() {
    let service = Service::start().await;
    let admin = service.administrator();
    let elsewhere = service.workspace("elsewhere").await;
    let mut body = new_prompt("Hi");
    body["workspace_id"] = json!(elsewhere);
    let prompt = create(&admin, body).await;
    let delete = async |body: Value| {
        harness::client::whole(admin.request(http::Method::DELETE, "/workspaces/elsewhere").json(&body)).await
    };
    let refused = delete(json!({ "name": "elsewhere" })).await;
    assert!(refused.status == 409 && refused.text().contains("prompts"), "{}", refused.text());
    assert_eq!(delete(json!({ "name": "elsewhere", "force_delete": true })).await.status, 200);
    assert_eq!(admin.get(&prompt).await.status, 404);
}

#[tokio::test]
async fn members_look_and_managers_write_as_the_security_settings_say() {
    let service = Service::start().await;
    let workspace = service.home.workspace_id;
    let path = create(&service.workspace_client(workspace).await, new_prompt("Hi")).await;
    let member = service.person_client(workspace, service.person("member", Some("member")).await).await;
    let manager = service.person_client(workspace, service.person("member", Some("manager")).await).await;
    let statuses = async || {
        let mut seen = Vec::new();
        for client in [&member, &manager] {
            let rendered = client.post(&format!("{path}/render"), &json!({})).await;
            let published = client.put(&format!("{path}/makeDefault"), &json!({ "version": 1 })).await;
            let made = client.post("/prompts", &new_prompt("Hi")).await;
            seen.push([rendered, published, made].map(|answer| answer.status.as_u16()));
        }
        seen
    };
    assert_eq!(statuses().await, [[200, 403, 403], [200, 200, 200]]);
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersWritePrompts": true, "managersViewPrompts": false, "managersWritePrompts": false}'"#).await;
    assert_eq!(statuses().await, [[200, 200, 200], [403, 403, 403]]);
}
