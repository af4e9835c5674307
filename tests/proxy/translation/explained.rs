//! What `POST /explain` says of translated targets: the format, the address, what would be dropped and what refused.

use harness::Stack;
use serde_json::{Value, json};

#[tokio::test]
async fn an_explanation_says_into_what_a_request_would_be_translated() {
    let stack = Stack::start().await;
    let key = &stack.home.workspace_key;
    for (provider, path, codec, url) in [
        ("anthropic", "/v1/chat/completions", json!("messages"), "https://api.anthropic.com/v1/messages"),
        ("anthropic", "/v1/messages", json!(null), "https://api.anthropic.com/v1/messages"),
        ("openai", "/v1/messages", json!("chat"), "https://api.openai.com/v1/chat/completions"),
        (
            "bedrock",
            "/v1/messages",
            json!("converse"),
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/a.b%3A0/converse",
        ),
    ] {
        let question = json!({ "path": path, "headers": { "x-gateway-provider": provider },
            "body": { "model": "a.b:0", "messages": [] } });
        let explained = stack.anonymous().with_key(key).post("/explain", &question).await;
        let target = &explained.json()["plan"][0]["target"];
        assert_eq!((&target["translated_to"], &target["url"]), (&codec, &json!(url)), "{}", explained.text());
    }
}

#[tokio::test]
async fn an_explanation_says_what_would_be_dropped_and_what_would_be_refused() {
    let stack = Stack::start().await;
    let tool = json!([{ "type": "function", "function": { "name": "f", "parameters": { "type": "object" } } }]);
    let image = json!([{ "type": "image_url", "image_url": { "url": "https://media.test/a.png" } }]);
    let body = |more: Value| {
        let mut body = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "Hello" }] });
        body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        body
    };
    for (provider, body, dropped, param) in [
        ("anthropic", body(json!({ "seed": 7, "logit_bias": { "1": 2 } })), json!(["logit_bias", "seed"]), json!(null)),
        ("anthropic", body(json!({})), json!([]), json!(null)),
        ("openai", body(json!({ "seed": 7 })), json!([]), json!(null)),
        ("groq", body(json!({ "logprobs": true })), json!(["logprobs"]), json!(null)),
        ("reka-ai", body(json!({ "tools": tool })), json!(null), json!("tools")),
        // What a request would have to fetch is not fetched.
        ("bedrock", body(json!({ "messages": [{ "role": "user", "content": image }] })), json!([]), json!(null)),
    ] {
        let question =
            json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-provider": provider }, "body": body });
        let explained = stack.anonymous().with_key(&stack.home.workspace_key).post("/explain", &question).await;
        let mut target = explained.json()["plan"][0]["target"].clone();
        if let Some(names) = target["dropped_params"].as_array_mut() {
            names.sort_by_key(|name| name.to_string());
        }
        let told = (&target["dropped_params"], &target["refusal"]["param"]);
        assert_eq!(told, (&dropped, &param), "{provider}: {}", explained.text());
        assert_eq!(target["provider"], provider, "a refusal by its wire names the target");
    }
}
