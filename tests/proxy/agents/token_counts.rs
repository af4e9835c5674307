//! Counting tokens at providers that cannot: agents get an estimate, which says that it is one.

use super::offer;
use crate::families::application;
use crate::translation::client;
use harness::Stack;
use serde_json::json;

#[tokio::test]
async fn tokens_are_counted_for_models_of_every_provider() {
    let stack = Stack::start().await;
    let words = "All happy families are alike; every unhappy family is unhappy in its own way. ".repeat(50);
    let messages = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": words }] });
    let asked = client(&stack, "openai").post("/messages/count_tokens", &messages).await;
    assert_eq!((asked.status.as_u16(), asked.header("x-gateway-token-count")), (200, "estimated"), "{}", asked.text());
    let counted = asked.json()["input_tokens"].as_u64().unwrap();
    assert!((700..1100).contains(&counted), "{counted}");
    let contents = json!({ "contents": [{ "role": "user", "parts": [{ "text": words }] }] });
    for provider in ["openai", "anthropic"] {
        let asked = client(&stack, provider).post("/v1beta/models/gpt-4o-mini:countTokens", &contents).await;
        assert_eq!(
            (asked.status.as_u16(), asked.header("x-gateway-token-count")),
            (200, "estimated"),
            "{}",
            asked.text()
        );
        assert!((700..1100).contains(&asked.json()["totalTokens"].as_u64().unwrap()), "{}", asked.text());
    }
    assert!(stack.mock.requests().is_empty(), "nobody was asked");
    let own = client(&stack, "anthropic").post("/messages/count_tokens", &messages).await;
    assert_eq!((own.status.as_u16(), own.header("x-gateway-token-count")), (200, ""), "{}", own.text());
    assert_eq!(stack.mock.requests()[0].path, "/v1/messages/count_tokens", "who can count is asked");
    let nothing = client(&stack, "openai").post("/messages/count_tokens", &json!({ "model": "m" })).await;
    assert_eq!(nothing.status, 400, "{}", nothing.text());
}

#[tokio::test]
async fn a_stored_provider_and_a_plain_name_are_counted_alike() {
    let stack = Stack::start().await;
    offer(&stack, "prod", "openai").await;
    let plain = application(&stack);
    for model in ["gpt-4o-mini", "@prod/gpt-4o-mini"] {
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": "Hello there" }] });
        let asked = plain.post("/messages/count_tokens", &body).await;
        assert_eq!(asked.status, 200, "{}", asked.text());
        assert!(asked.json()["input_tokens"].as_u64() > Some(0));
        let question = json!({ "path": "/v1/messages/count_tokens", "body": body });
        let target = plain.post("/explain", &question).await.json()["plan"][0]["target"].clone();
        assert_eq!((&target["translated_to"], &target["refusal"]), (&json!("estimate"), &json!(null)), "{target}");
    }
    let sdk = json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hello" }] }] });
    let path = "/v1beta/@prod/gpt-4o-mini:generateContent";
    let answer = plain.post(path, &sdk).await;
    assert_eq!(answer.status, 200, "a model whose name has a slash stands without `models/`: {}", answer.text());
}
