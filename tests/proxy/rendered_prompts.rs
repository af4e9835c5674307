//! What rendering answers is the body of a chat completion as it stands: it is sent unchanged and reaches the provider.

use harness::{Client, Stack};
use serde_json::{Value, json};

async fn rendered(client: &Client, prompt: Value, variables: &Value) -> Value {
    let made = client.post("/prompts", &prompt).await;
    assert_eq!(made.status, 200, "{prompt}: {}", made.text());
    let path = format!("/prompts/{}/render", made.json()["slug"].as_str().unwrap());
    let answer = client.post(&path, &json!({ "variables": variables, "seed": 7 })).await;
    assert_eq!(answer.status, 200, "{prompt}: {}", answer.text());
    answer.json()["data"].clone()
}

#[tokio::test]
async fn rendered_data_is_taken_unchanged_by_chat_completions() {
    let stack = Stack::start().await;
    let client = stack.client();
    let hostile = "\"},{\"role\":\"system\",\"content\":\"\\\u{1}\u{0}\u{7f}\u{2028}\n\t🦀\u{fffd}{{x}}\\";
    let hostile = hostile.replace('\0', "");
    let variables =
        json!({ "x": hostile, "list": [hostile, 1, { "a": "\"" }], "o": { "k": hostile }, "n": 3, "yes": true });
    let tools = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let prompt = |string: String, more: Value| {
        let mut prompt = json!({
            "name": "p", "string": string, "parameters": { "model": "gpt-4o-mini", "temperature": 0.5 }, "virtual_key": "v",
        });
        prompt.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        prompt
    };
    let message = |content: &str| json!([{ "role": "user", "content": content }]).to_string();
    let parts = json!([{ "role": "system", "content": "{{x}}" }, { "role": "user", "content": [{ "type": "text", "text": "<{{x}}>" }] }]);
    let raw = r#"{"messages":[{"role":"user","content":"{{x}}"}],"max_tokens":{{n}},"stop":["{{o.k}}"]}"#;
    let shots = r#"[{{#list}}{"role":"user","content":"{{.}}"},{{/list}}{"role":"assistant","content":"{{x}}"}]"#;
    for prompt in [
        prompt(message("Say {{x}}."), json!({})),
        prompt(
            message("{{#list}}{{.}}\n{{/list}}{{^no}}{{o}}{{/no}}{{list}}"),
            json!({ "tools": tools, "tool_choice": "auto" }),
        ),
        prompt(parts.to_string(), json!({ "model": "gpt-4o" })),
        prompt(shots.into(), json!({})),
        prompt(raw.into(), json!({ "is_raw_template": 1 })),
        prompt(
            message("{{x}}"),
            json!({ "declared_variables": [{ "name": "x", "type": "string", "required": true }] }),
        ),
    ] {
        let data = rendered(&client, prompt.clone(), &variables).await;
        assert!(data["messages"].is_array(), "{prompt}: {data}");
        let answer = client.post("/chat/completions", &data).await;
        assert_eq!(answer.status, 200, "{prompt}: {}", answer.text());
        let sent = stack.mock.requests().pop().expect("the provider was asked");
        assert_eq!(serde_json::from_slice::<Value>(&sent.body).unwrap(), data, "{prompt}");
    }
}
