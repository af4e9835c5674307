//! Who may do what at every path of prompts, partials, collections and labels: by the settings, and as another tenant.

use super::{create, get, new_prompt, outcome, post, put};
use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::routes::operations;

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Answer {
    let method: Method = method.parse().unwrap();
    match method {
        Method::GET | Method::DELETE => whole(client.request(method, path)).await,
        _ => whole(client.request(method, path).json(body)).await,
    }
}

#[tokio::test]
async fn the_settings_of_prompts_hold_at_every_path() {
    let service = Service::start().await;
    let workspace = service.home.workspace_id;
    let owner = service.workspace_client(workspace).await;
    let made = async |path: &str, body: Value| post(&owner, path, body).await["id"].as_str().unwrap().to_owned();
    let prompt = made("/prompts", new_prompt("Hi")).await;
    let partial = made("/prompts/partials", json!({ "name": "P", "string": "p" })).await;
    let collection = made("/collections", json!({ "name": "C" })).await;
    let label = made("/labels", json!({ "name": "own" })).await;
    let filled = |path: &str| {
        let path = path.replace("/partials/{id}", &format!("/partials/{partial}"));
        let path = path.replace("/collections/{id}", &format!("/collections/{collection}"));
        path.replace("{promptId}", &prompt).replace("{versionId}", "1").replace("{labelId}", &label)
    };
    let is_own = |path: &str| ["/prompts", "/collections", "/labels"].iter().any(|own| path.starts_with(own));
    let paths: Vec<_> = operations().filter(|one| is_own(one.path)).collect();
    assert!(paths.len() >= 28, "{paths:?}");
    for role in ["member", "manager"] {
        let person = service.person_client(workspace, service.person("member", Some(role)).await).await;
        // What may be written is written in the last rounds: deletes among it.
        for (views, writes) in [(false, false), (true, false), (false, true), (true, true)] {
            let settings = json!({ format!("{role}sViewPrompts"): views, format!("{role}sWritePrompts"): writes });
            service.sql(&format!("UPDATE organisations SET security_settings = '{settings}'")).await;
            for operation in &paths {
                let (method, path) = (operation.method.as_str(), filled(operation.path));
                let answer = send(&person, method, &path, &json!({})).await;
                let may = if method == "GET" || path.ends_with("/render") { views } else { writes };
                let case = format!("{role} {settings} {method} {path}: {}", answer.text());
                assert_eq!(answer.status != 403, may, "{case}");
                assert!(may || outcome(&answer).1 == "AB03", "{case}");
            }
        }
    }
}

#[tokio::test]
async fn no_path_of_another_tenants_prompt_or_partial_is_found() {
    let service = Service::start().await;
    let owner = service.workspace_client(service.home.workspace_id).await;
    let prompt = create(&owner, new_prompt("Hi")).await;
    put(&owner, &prompt, json!({ "patch": true, "string": "Ho" })).await;
    put(&owner, &format!("{prompt}/labels/production"), json!({ "versions": [{ "version": 1 }] })).await;
    let partial = post(&owner, "/prompts/partials", json!({ "name": "P", "string": "p" })).await;
    let partial = format!("/prompts/partials/{}", partial["slug"].as_str().unwrap());
    put(&owner, &partial, json!({ "string": "q" })).await;
    let collection = post(&owner, "/collections", json!({ "name": "C" })).await["slug"].clone();
    let state = async || {
        let mut seen = Vec::new();
        for path in [&prompt, &partial] {
            seen.push(get(&owner, path).await);
            seen.push(get(&owner, &format!("{path}/versions")).await);
        }
        seen.push(get(&owner, &format!("{prompt}/labels")).await);
        seen
    };
    let before = state().await;
    let second = json!({ "version": 2 });
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    for client in [&neighbour, &stranger] {
        for (method, path, body) in [
            ("GET", prompt.clone(), &Value::Null),
            ("GET", format!("{prompt}@production"), &Value::Null),
            ("GET", format!("{prompt}/versions"), &Value::Null),
            ("GET", format!("{prompt}/versions/1"), &Value::Null),
            ("GET", format!("{prompt}/versions/diff"), &Value::Null),
            ("GET", format!("{prompt}/labels"), &Value::Null),
            ("PUT", prompt.clone(), &json!({ "name": "mine" })),
            ("PUT", format!("{prompt}/makeDefault"), &second),
            ("PUT", format!("{prompt}/versions/1"), &json!({ "label_id": null })),
            ("PUT", format!("{prompt}/labels/production"), &json!({ "versions": [{ "version": 2 }] })),
            ("DELETE", format!("{prompt}/labels/production"), &Value::Null),
            ("DELETE", prompt.clone(), &Value::Null),
            ("POST", format!("{prompt}/render"), &json!({})),
            ("POST", format!("{prompt}@1/render"), &json!({})),
            ("GET", partial.clone(), &Value::Null),
            ("GET", format!("{partial}@2"), &Value::Null),
            ("GET", format!("{partial}/versions"), &Value::Null),
            ("PUT", partial.clone(), &json!({ "string": "mine" })),
            ("PUT", format!("{partial}/makeDefault"), &second),
            ("DELETE", partial.clone(), &Value::Null),
        ] {
            let answer = send(client, method, &path, body).await;
            assert_eq!(outcome(&answer), (404, "AB08".into()), "{method} {path}: {}", answer.text());
        }
        for (path, body) in [
            ("/prompts", new_prompt("Hi")),
            ("/prompts/partials", json!({ "name": "P", "string": "p" })),
            ("/collections", json!({ "name": "C" })),
        ] {
            let mut body = body;
            let field = if path == "/collections" { "parent_collection_id" } else { "collection_id" };
            body[field] = collection.clone();
            let answer = client.post(path, &body).await;
            assert_eq!(outcome(&answer), (404, "AB08".into()), "into {path}: {}", answer.text());
        }
    }
    assert_eq!(state().await, before);
}

#[tokio::test]
async fn publishing_taking_back_and_correcting_are_recorded_with_what_they_changed() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = create(&client, new_prompt("one")).await;
    put(&client, &path, json!({ "patch": true, "string": "two" })).await;
    let versions = get(&client, &format!("{path}/versions")).await;
    let id = |version: usize| versions["data"][2 - version]["id"].clone();
    let last = async || service.trail(service.home.organisation_id).await.pop().unwrap();
    for (from, to) in [(1, 2), (2, 1)] {
        put(&client, &format!("{path}/makeDefault"), json!({ "version": to })).await;
        let record = last().await;
        assert_eq!((&record["action"], &record["resource_type"]), (&json!("publish"), &json!("prompts")), "{record}");
        let (before, after) = (&record["before"]["prompt_version_id"], &record["after"]["prompt_version_id"]);
        assert_eq!((before, after), (&id(from), &id(to)), "{record}");
        let served = get(&client, &path).await;
        assert_eq!((&served["prompt_version"], &served["prompt_version_id"]), (&json!(to), &id(to)));
    }
    assert_eq!(get(&client, &path).await["string"], "one", "going back is publishing again");
    put(&client, &path, json!({ "virtual_key": "other", "version_description": "fixed" })).await;
    let record = last().await;
    let latest = |virtual_key: &str, description: Value| json!({ "version_id": id(2), "virtual_key": virtual_key, "version_description": description });
    assert_eq!(record["before"]["latest"], latest("main", Value::Null), "{record}");
    assert_eq!(record["after"]["latest"], latest("other", json!("fixed")), "{record}");

    let partial = post(&client, "/prompts/partials", json!({ "name": "P", "string": "p" })).await;
    let partial = format!("/prompts/partials/{}", partial["slug"].as_str().unwrap());
    let second = put(&client, &partial, json!({ "string": "q" })).await["prompt_partial_version_id"].clone();
    for (version, text) in [(2, "q"), (1, "p")] {
        put(&client, &format!("{partial}/makeDefault"), json!({ "version": version })).await;
        assert_eq!(get(&client, &partial).await["string"], text);
        let record = last().await;
        assert_eq!((&record["action"], &record["resource_type"]), (&json!("publish"), &json!("partials")), "{record}");
        assert_eq!(record["after"]["prompt_partial_version_id"] == second, version == 2, "{record}");
    }
}
