//! A model without a provider is found in the workspace's catalogue: its own providers and models alone, in its order, and only
//! where the workspace wants that.

use super::{offer, until_logged};
use crate::families::application;
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

fn asking(model: &str) -> Value {
    let mut body = chat("Hello");
    body["model"] = json!(model);
    body
}

async fn ask(client: &Client, model: &str) -> Answer {
    client.post("/chat/completions", &asking(model)).await
}

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
}

async fn switch(stack: &Stack, setting: &str, value: Value) {
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let changed = stack.administrator().put(&path, &json!({ "settings": { setting: value } })).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
}

#[tokio::test]
async fn a_model_goes_to_the_provider_that_offers_it() {
    let stack = Stack::start().await;
    offer(&stack, "claude", "anthropic").await;
    offer(&stack, "prod", "openai").await;
    let client = application(&stack);
    let answer = ask(&client, "gpt-4o-mini").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let message =
        json!({ "model": "claude-opus-4-8", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }] });
    assert_eq!(client.post("/messages", &message).await.status, 200);
    // A release that nobody listed yet.
    assert_eq!(ask(&client, "gpt-4o-mini-2031-01-31").await.status, 200);
    let asked: Vec<(String, Value)> = stack
        .mock
        .requests()
        .iter()
        .filter(|request| request.method == "POST")
        .map(|request| (request.path.clone(), serde_json::from_slice::<Value>(&request.body).unwrap()["model"].clone()))
        .collect();
    let expected = [
        ("/v1/chat/completions", "gpt-4o-mini"),
        ("/v1/messages", "claude-opus-4-8"),
        ("/v1/chat/completions", "gpt-4o-mini-2031-01-31"),
    ];
    assert_eq!(asked, expected.map(|(path, model)| (path.to_owned(), json!(model))));
    let question = json!({ "path": "/v1/chat/completions", "body": asking("gpt-4o-mini") });
    let explained = client.post("/explain", &question).await.json();
    assert_eq!(explained["plan"][0]["target"]["found_at"], "@prod", "{explained}");
    let named = json!({ "path": "/v1/chat/completions", "body": asking("@prod/gpt-4o-mini") });
    assert_eq!(client.post("/explain", &named).await.json()["plan"][0]["target"]["found_at"], Value::Null);
    until_logged(&stack, "ai_model = 'gpt-4o-mini' AND virtual_key = 'prod' AND is_success", 1).await;
    until_logged(&stack, "ai_model = 'claude-opus-4-8' AND virtual_key = 'claude' AND is_success", 1).await;
}

#[tokio::test]
async fn of_several_the_oldest_is_asked_and_what_is_switched_off_is_not_there() {
    let stack = Stack::start().await;
    offer(&stack, "second", "openai").await;
    offer(&stack, "alpha", "openai").await;
    let client = application(&stack);
    let provider = async || {
        let question = json!({ "path": "/v1/chat/completions", "body": asking("gpt-4o-mini") });
        client.post("/explain", &question).await.json()["plan"][0]["target"]["found_at"].clone()
    };
    assert_eq!(provider().await, "@second");
    let off = json!({ "models": [{ "slug": "gpt-4o-mini", "enabled": false }] });
    assert_eq!(stack.administrator().put("/integrations/second/models", &off).await.status, 200);
    stack.until("the other is asked", async || provider().await == "@alpha").await;
    assert_eq!(stack.administrator().put("/integrations/alpha/models", &off).await.status, 200);
    stack.until("none is asked", async || provider().await.is_null()).await;
    let refused = ask(&client, "gpt-4o-mini").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (400, &json!("missing_provider")));
    let own =
        json!({ "models": [{ "slug": "house-1", "enabled": true, "is_custom": true, "base_model_slug": "gpt-4o" }] });
    assert_eq!(stack.administrator().put("/integrations/alpha/models", &own).await.status, 200);
    stack.until("a model of one's own", async || ask(&client, "house-1").await.status == 200).await;
}

#[tokio::test]
async fn what_nobody_offers_is_refused_with_what_was_meant() {
    let stack = Stack::start().await;
    offer(&stack, "claude", "anthropic").await;
    let client = application(&stack);
    for (model, says) in [
        (
            "claude-opus-4-88",
            "no provider of this workspace offers the model `claude-opus-4-88`: did you mean `@claude/claude-opus-4-8`?",
        ),
        ("gpt-4o-mini", "offers the model `gpt-4o-mini`; GET /v1/models lists what there is"),
    ] {
        let refused = ask(&client, model).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (400, &json!("missing_provider")));
        assert!(message(&refused).ends_with(says), "{}", message(&refused));
    }
    // Another provider was meant.
    let slip = client.with("x-gateway-provder", "@other");
    assert!(message(&ask(&slip, "claude-opus-4-8").await).contains("did you mean x-gateway-provider?"));
    assert!(stack.mock.requests().iter().all(|request| request.method != "POST"));
}

#[tokio::test]
async fn a_workspace_or_an_organisation_can_refuse_plain_names() {
    let stack = Stack::start().await;
    offer(&stack, "prod", "openai").await;
    let client = application(&stack);
    assert_eq!(ask(&client, "gpt-4o-mini").await.status, 200);
    switch(&stack, "plain_model_names", json!(0)).await;
    stack.until("switched off", async || ask(&client, "gpt-4o-mini").await.status == 400).await;
    let refused = message(&ask(&client, "gpt-4o-mini").await);
    assert!(refused.ends_with("did you mean the model `@prod/gpt-4o-mini`?"), "{refused}");
    switch(&stack, "plain_model_names", json!(true)).await;
    stack.until("switched on", async || ask(&client, "gpt-4o-mini").await.status == 200).await;
    let block = json!({ "settings": { "block_inline_config": true } });
    assert_eq!(stack.administrator().put("/admin/organisation", &block).await.status, 200);
    stack.until("saved configs alone", async || ask(&client, "gpt-4o-mini").await.status == 400).await;
    assert_eq!(ask(&client, "@prod/gpt-4o-mini").await.status, 200);
}

#[tokio::test]
async fn the_models_of_another_tenant_are_neither_found_nor_named() {
    let stack = Stack::start().await;
    offer(&stack, "prod", "openai").await;
    let other = stack.organisation().await;
    let foreign = stack.anonymous().with_key(&other.workspace_key);
    stack.until_known(&other.workspace_key).await;
    for model in ["gpt-4o-mini", "gpt-4o-minx"] {
        let refused = ask(&foreign, model).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(!refused.text().contains("prod"), "{}", refused.text());
    }
    assert_eq!(ask(&application(&stack), "gpt-4o-mini").await.status, 200);
}

/// A request that was refused yesterday shall not cost something today.
#[tokio::test]
async fn workspaces_from_before_keep_refusing_and_new_ones_do_not() {
    let stack = Stack::start().await;
    let administrator = stack.administrator();
    let home = administrator.get(&format!("/admin/workspaces/{}", stack.home.workspace_id)).await.json();
    assert_eq!(home["settings"]["plain_model_names"], 1, "{home}");
    for (name, settings) in [("V", json!({})), ("W", json!({ "debug_log": 0 }))] {
        let made = administrator.post("/admin/workspaces", &json!({ "name": name, "settings": settings })).await.json();
        assert_eq!(made["settings"]["plain_model_names"], 1, "{made}");
    }
    let own = json!({ "name": "X", "settings": { "plain_model_names": 0 } });
    assert_eq!(administrator.post("/admin/workspaces", &own).await.json()["settings"]["plain_model_names"], 0);
}
