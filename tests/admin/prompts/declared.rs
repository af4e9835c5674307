//! Variables that a version declares: kept with it, and checked when it is rendered.

use super::{create, get, messages, new_prompt, outcome, post, put};
use crate::service::Service;
use http::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn what_is_missing_or_mistyped_is_400_and_named() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let mut body = new_prompt(&messages("{{user.name}} {{count}} {{tone}} {{free}}"));
    body["parameters"] = json!({ "model": "m", "tone": "kind" });
    body["declared_variables"] = json!([
        { "name": "user.name", "type": "string", "required": true },
        { "name": "count", "type": "integer" },
        { "name": "tone", "required": true },
    ]);
    let path = create(&client, body).await;
    let declared = json!([
        { "name": "user.name", "type": "string", "required": true },
        { "name": "count", "type": "integer", "required": false },
        { "name": "tone", "type": "any", "required": true },
    ]);
    assert_eq!(get(&client, &path).await["declared_variables"], declared);
    let render = format!("{path}/render");
    let variables = |variables: Value| json!({ "variables": variables });
    let rendered = post(&client, &render, variables(json!({ "user": { "name": "Ada" }, "count": 2 }))).await;
    assert_eq!(rendered["data"]["messages"][0]["content"], "Ada 2 kind ", "a default value is a value");
    assert_eq!(rendered["data"].get("tone"), None, "{rendered}");
    for (sent, field) in [
        (json!({}), "variables.user.name"),
        (json!({ "user": { "name": null } }), "variables.user.name"),
        (json!({ "user": { "name": 7 } }), "variables.user.name"),
        (json!({ "user": { "name": "Ada" }, "count": "2" }), "variables.count"),
        (json!({ "user": { "name": "Ada" }, "count": 2.5 }), "variables.count"),
        (json!({ "user": { "name": "Ada" }, "tone": null }), "variables.tone"),
    ] {
        let answer = client.post(&render, &variables(sent.clone())).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{sent}: {}", answer.text());
        assert_eq!(answer.json()["data"]["errors"][0]["field"], field, "{sent}: {}", answer.text());
    }

    put(&client, &path, json!({ "patch": true, "model": "n" })).await;
    assert_eq!(get(&client, &format!("{path}@latest")).await["declared_variables"], declared, "a patch keeps them");
    put(&client, &path, json!({ "patch": true, "declared_variables": null })).await;
    assert_eq!(get(&client, &format!("{path}@latest")).await["declared_variables"], Value::Null);
    let free = post(&client, &format!("{path}@latest/render"), json!({})).await;
    assert_eq!(free["data"]["messages"][0]["content"], "  kind ", "nothing is checked unless it is declared");
    put(&client, &path, json!({ "string": "x", "parameters": { "model": "m" } })).await;
    let fourth = get(&client, &format!("{path}/versions")).await["data"][0]["prompt_template"].clone();
    assert_eq!(fourth["declared_variables"], Value::Null, "a version that is sent whole keeps nothing");
}

#[tokio::test]
async fn a_declaration_that_means_nothing_is_refused() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let many: Vec<Value> = (0..201).map(|n| json!({ "name": format!("v{n}") })).collect();
    for (declared, field) in [
        (json!({}), "declared_variables"),
        (json!(many), "declared_variables"),
        (json!([{ "type": "string" }]), "declared_variables[0].name"),
        (json!([{ "name": "a" }, { "name": "" }]), "declared_variables[1].name"),
        (json!([{ "name": "a" }, { "name": "a" }]), "declared_variables[1].name"),
        (json!([{ "name": "{{a}}" }]), "declared_variables[0].name"),
        (json!([{ "name": "a", "type": "text" }]), "declared_variables[0].type"),
        (json!([{ "name": "a", "required": "yes" }]), "declared_variables[0].required"),
    ] {
        let mut body = new_prompt("Hi");
        body["declared_variables"] = declared.clone();
        let answer = client.post("/prompts", &body).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{declared}: {}", answer.text());
        assert_eq!(answer.json()["data"]["errors"][0]["field"], field, "{declared}: {}", answer.text());
    }
}

/// Half of a surrogate pair is no text; JSON can write it all the same.
#[tokio::test]
async fn half_of_a_surrogate_pair_is_refused_wherever_it_stands() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = create(&client, new_prompt(&messages("Hi {{name}}"))).await;
    for body in [
        r#"{"variables":{"name":"\ud800"}}"#,
        r#"{"variables":{"name":"\udc00\ud800"}}"#,
        r#"{"variables":{"\ud800":"x"}}"#,
        r#"{"user":"\ud83d"}"#,
    ] {
        let answer = harness::client::whole(client.request(Method::POST, &format!("{path}/render")).body(body)).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{body}: {}", answer.text());
    }
    // In a template it is found when the messages are put together: the value cannot be its other half.
    let torn = create(&client, new_prompt(r#"[{"role":"user","content":"\ud83d{{name}}"}]"#)).await;
    let variables = json!({ "variables": { "name": "\\udc00" } });
    let answer = client.post(&format!("{torn}/render"), &variables).await;
    assert_eq!(outcome(&answer), (400, "AB01".into()), "{}", answer.text());
}
