//! What changed between two versions.

use super::{create, get, messages, new_prompt, outcome, put};
use crate::service::Service;
use serde_json::{Value, json};

#[tokio::test]
async fn versions_are_compared_field_by_field_and_line_by_line() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = create(&client, new_prompt(&messages("Hi {{name}}.\nBe kind.\nBye."))).await;
    let compare = async |query: &str| get(&client, &format!("{path}/versions/diff{query}")).await;
    let none = compare("").await;
    assert_eq!((&none["total"], &none["is_complete"]), (&json!(0), &json!(true)), "{none}");

    let change = json!({
        "patch": true, "string": messages("Hi {{name}}.\nBe brief.\nBye."), "model": "n", "tools": [{ "type": "function" }],
        "parameters": { "temperature": 1, "seed": 7 }, "version_description": "shorter",
    });
    put(&client, &path, change).await;
    let found = compare("").await;
    let versions = get(&client, &format!("{path}/versions")).await;
    let id = |place: usize| &versions["data"][place]["id"];
    assert_eq!(found["from"], json!({ "id": id(1), "version": 1 }), "from the default one");
    assert_eq!(found["to"], json!({ "id": id(0), "version": 2 }), "to the latest one");
    let plain = |op: &str, path: &str, from: Value, to: Value| json!({ "op": op, "path": path, "from": from, "to": to, "lines": null });
    let lines = json!([
        { "op": "remove", "line": 2, "text": "Be kind." }, { "op": "add", "line": 2, "text": "Be brief." },
    ]);
    let expected = json!([
        { "op": "replace", "path": "string[0].content", "from": null, "to": null, "lines": lines },
        plain("replace", "parameters.temperature", json!(0.5), json!(1)),
        plain("add", "parameters.seed", Value::Null, json!(7)),
        plain("replace", "model", json!("m"), json!("n")),
        plain("replace", "tools", Value::Null, json!([{ "type": "function" }])),
        plain("replace", "version_description", Value::Null, json!("shorter")),
    ]);
    assert_eq!((&found["data"], &found["total"]), (&expected, &json!(6)));

    put(&client, &format!("{path}/labels/staging"), json!({ "versions": [{ "version": 2 }] })).await;
    for query in ["?from=1&to=2", "?from=default&to=staging", "?from=1&to=latest"] {
        assert_eq!(compare(query).await["data"], expected, "{query}");
    }
    let back = compare("?from=2&to=1").await;
    assert_eq!(back["data"][2], plain("remove", "parameters.seed", json!(7), Value::Null), "{back}");
    for query in ["?from=9", "?to=nowhere", "?from=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"] {
        let answer = client.get(&format!("{path}/versions/diff{query}")).await;
        assert_eq!(outcome(&answer), (404, "AB08".into()), "{query}: {}", answer.text());
    }
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    let answer = neighbour.get(&format!("{path}/versions/diff")).await;
    assert_eq!(outcome(&answer), (404, "AB08".into()), "of another workspace: {}", answer.text());
}

#[tokio::test]
async fn a_comparison_of_large_versions_is_bounded() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let lines = |word: &str| (0..20_000).map(|n| format!("{word} {n}\n")).collect::<String>();
    let path = create(&client, new_prompt(&lines("old"))).await;
    put(&client, &path, json!({ "patch": true, "string": lines("new") })).await;
    let found = get(&client, &format!("{path}/versions/diff")).await;
    assert_eq!(found["is_complete"], false);
    assert_eq!(found["data"][0]["lines"].as_array().unwrap().len(), 5000);
}
