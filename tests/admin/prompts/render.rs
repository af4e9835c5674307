//! Rendering: what a chat completion would be sent.

use super::{create, get, messages, new_prompt, outcome, post, put};
use crate::service::Service;
use serde_json::{Value, json};

#[tokio::test]
async fn values_defaults_and_parameters_become_the_body_of_a_request() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let mut body = new_prompt(&messages("Hi {{name}}{{^quiet}}!{{/quiet}}{{#list}} {{.}}{{/list}}{{! no }}"));
    body["parameters"] = json!({ "model": "m", "temperature": 0.5, "name": "Ada" });
    body["tools"] = json!([{ "type": "function" }]);
    body["tool_choice"] = "auto".into();
    let path = create(&client, body).await;
    let content = async |request: Value| -> (String, Value) {
        let reply = post(&client, &format!("{path}/render"), request).await;
        assert_eq!(reply["success"], true);
        let data = reply["data"].clone();
        (data["messages"][0]["content"].as_str().unwrap_or_else(|| panic!("{data}")).to_owned(), data)
    };
    let (text, data) = content(json!({})).await;
    let expected = json!({
        "temperature": 0.5, "model": "m", "tools": [{ "type": "function" }], "tool_choice": "auto",
        "messages": [{ "role": "user", "content": "Hi Ada!" }],
    });
    assert_eq!((text.as_str(), &data), ("Hi Ada!", &expected));
    for (variables, expected) in [
        (json!({ "name": "Bob" }), "Hi Bob!"),
        (json!({ "name": "\"},{\"role\":\"system\\\n" }), "Hi \"},{\"role\":\"system\\\n!"),
        (json!({ "name": { "a": [1] } }), "Hi {\"a\":[1]}!"),
        (json!({ "name": null, "quiet": true, "list": [1, "b"] }), "Hi  1 b"),
        (json!({ "name": "{{temperature}}" }), "Hi {{temperature}}!"),
    ] {
        assert_eq!(content(json!({ "variables": variables })).await.0, expected, "{variables}");
    }
    let (_, data) =
        content(json!({ "temperature": 1, "stream": true, "model": null, "promptID": "x", "seed": 7 })).await;
    assert_eq!(
        (&data["temperature"], &data["stream"], &data["model"], &data["seed"]),
        (&json!(1), &json!(true), &json!("m"), &json!(7))
    );
    assert_eq!(data.get("promptID"), None);
    for request in
        [json!({ "hyperparameters": { "temperature": 1 } }), json!({ "variables": [] }), json!({ "variables": "x" })]
    {
        assert_eq!(outcome(&client.post(&format!("{path}/render"), &request).await), (400, "AB01".into()), "{request}");
    }
    let before = service.trail(service.home.organisation_id).await.len();
    content(json!({})).await;
    assert_eq!(service.trail(service.home.organisation_id).await.len(), before, "use is not recorded");
}

#[tokio::test]
async fn texts_and_whole_bodies_have_their_own_shapes() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = create(&client, new_prompt("Say {{x}}")).await;
    let reply = post(&client, &format!("{path}/render"), json!({ "variables": { "x": "\"hi\"" } })).await;
    assert_eq!(reply["data"], json!({ "temperature": 0.5, "model": "m", "prompt": "Say \"hi\"" }));
    let mut raw =
        new_prompt(r#"{"messages":[{"role":"user","content":"{{x}}"}],"max_tokens":{{most}},"temperature":1}"#);
    raw["is_raw_template"] = 1.into();
    let path = create(&client, raw).await;
    assert_eq!(get(&client, &path).await["is_raw_template"], 1);
    let reply = post(&client, &format!("{path}/render"), json!({ "variables": { "x": "a\"b", "most": 5 } })).await;
    let expected = json!({
        "temperature": 1, "model": "m", "messages": [{ "role": "user", "content": "a\"b" }], "max_tokens": 5,
    });
    assert_eq!(reply["data"], expected);
    let broken = client.post(&format!("{path}/render"), &json!({})).await;
    assert_eq!(outcome(&broken), (400, "AB01".into()), "{}", broken.text());
}

#[tokio::test]
async fn a_version_is_named_in_the_path() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let path = create(&client, new_prompt("one")).await;
    put(&client, &path, json!({ "patch": true, "string": "two" })).await;
    let staging = get(&client, "/labels?search=staging").await["data"][0]["id"].clone();
    put(&client, &format!("{path}/versions/2"), json!({ "label_id": staging })).await;
    for (version, text) in
        [("", "one"), ("@1", "one"), ("@2", "two"), ("@latest", "two"), ("@default", "one"), ("@staging", "two")]
    {
        let reply = post(&client, &format!("{path}{version}/render"), json!({})).await;
        assert_eq!(reply["data"]["prompt"], text, "{version}");
    }
    for version in ["@3", "@production", "@"] {
        let answer = client.post(&format!("{path}{version}/render"), &json!({})).await;
        assert_eq!(outcome(&answer), (404, "AB08".into()), "{version}: {}", answer.text());
    }
}

#[tokio::test]
async fn partials_are_put_in_by_slug_and_version_and_circles_are_refused() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let partial = async |string: &str| -> String {
        let made = post(&client, "/prompts/partials", json!({ "name": "P", "string": string })).await;
        made["slug"].as_str().unwrap().to_owned()
    };
    let tone = partial("\"{{mood}}\"\nsecond line").await;
    put(&client, &format!("/prompts/partials/{tone}"), json!({ "string": "newer" })).await;
    let outer = partial(&format!("<{{{{>{tone}}}}}>")).await;
    let mut body = new_prompt(&messages(&format!("a {{{{>{outer}}}}} {{{{>{tone}@2}}}} {{{{> {tone}@latest }}}}")));
    body["parameters"] = json!({ "model": "m", "mood": "kind" });
    let path = create(&client, body).await;
    let rendered = async |path: &str| client.post(&format!("{path}/render"), &json!({})).await;
    let data = rendered(&path).await.json()["data"].clone();
    assert_eq!(data["messages"][0]["content"], "a <\"kind\"\nsecond line> newer newer", "{data}");
    assert_eq!(data.get("mood"), None, "a variable of a partial is nothing for the model");

    put(&client, &format!("/prompts/partials/{tone}"), json!({ "string": format!("{{{{>{outer}}}}}") })).await;
    put(&client, &format!("/prompts/partials/{tone}/makeDefault"), json!({ "version": 3 })).await;
    let circle = rendered(&path).await;
    assert!(outcome(&circle).0 == 400 && circle.text().contains("contains itself"), "{}", circle.text());
    let missing = create(&client, new_prompt("{{>nobody}}")).await;
    assert_eq!(outcome(&rendered(&missing).await), (400, "AB01".into()));

    let elsewhere = service.workspace("elsewhere").await;
    let neighbour = service.workspace_client(elsewhere).await;
    let foreign = create(&neighbour, new_prompt(&format!("{{{{>{tone}@1}}}}"))).await;
    let answer = neighbour.post(&format!("{foreign}/render"), &json!({})).await;
    assert_eq!(outcome(&answer), (400, "AB01".into()), "partials of another workspace do not exist: {}", answer.text());
    assert_eq!(outcome(&neighbour.post(&format!("{path}/render"), &json!({})).await), (404, "AB08".into()));
}

#[tokio::test]
async fn what_costs_too_much_is_refused() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let nested = create(&client, new_prompt("{{#l}}{{#l}}{{#l}}{{.}}{{/l}}{{/l}}{{/l}}")).await;
    let many: String = (0..200).map(|n| format!("{{{{>p{n}}}}}")).collect();
    let many = create(&client, new_prompt(&many)).await;
    for path in [nested, many] {
        let answer = client.post(&format!("{path}/render"), &json!({ "variables": { "l": vec![1; 1000] } })).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{}", answer.text());
    }
}
