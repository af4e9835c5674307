//! What models take is data: the bundled catalogue says how newer ones are told to think, and an operator's own files say it
//! better.

use crate::families::application;
use harness::{Stack, chat};
use serde_json::{Value, json};

async fn sent(stack: &Stack, provider: &str, model: &str) -> Value {
    let client = application(stack).with("authorization", "Bearer sk-own").with("x-gateway-provider", provider);
    let client = client.with("x-gateway-custom-host", stack.mock.origin());
    let mut body = chat("Hello");
    body.as_object_mut().unwrap().extend([
        ("model".to_owned(), json!(model)),
        ("reasoning_effort".to_owned(), json!("high")),
        ("temperature".to_owned(), json!(0.5)),
    ]);
    stack.mock.reset();
    client.post("/chat/completions", &body).await;
    serde_json::from_slice(&stack.mock.requests()[0].body).unwrap()
}

#[tokio::test]
async fn a_model_is_told_to_think_as_the_catalogue_says() {
    let stack = Stack::start().await;
    let older = sent(&stack, "anthropic", "claude-sonnet-4-5").await;
    assert_eq!((&older["thinking"]["type"], older.get("output_config")), (&json!("enabled"), None), "{older}");
    let newer = sent(&stack, "anthropic", "claude-opus-4-7").await;
    assert_eq!(
        (&newer["thinking"]["type"], &newer["output_config"]["effort"]),
        (&json!("adaptive"), &json!("high")),
        "{newer}"
    );
    let thinking = |body: &Value| body["generationConfig"]["thinkingConfig"].clone();
    let (older, newer) =
        (sent(&stack, "google", "gemini-2.5-pro").await, sent(&stack, "google", "gemini-3-pro-preview").await);
    assert!(thinking(&older).get("thinkingBudget").is_some(), "{older}");
    assert!(thinking(&newer).get("thinkingLevel").is_some(), "{newer}");
}

#[tokio::test]
async fn an_operators_own_catalogue_counts() {
    let folder = tempfile::tempdir().unwrap();
    let own = json!({ "claude-x": { "capabilities": { "thinking": "adaptive", "sampling": false, "max_output_tokens": 77 } } });
    std::fs::write(folder.path().join("anthropic.json"), own.to_string()).unwrap();
    let path = folder.path().to_string_lossy().into_owned();
    let stack = Stack::builder().proxy("MODEL_CONFIGS_CAPABILITIES_LOCAL_PATH", path).start().await;
    let is_own = async || sent(&stack, "anthropic", "claude-x").await["thinking"]["type"] == "adaptive";
    stack.until("the file was read", is_own).await;
    let body = sent(&stack, "anthropic", "claude-x").await;
    assert_eq!((&body["max_tokens"], body.get("temperature")), (&json!(77), None), "{body}");
}
