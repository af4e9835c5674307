//! Targets of configs that are stored prompts.

use super::{asked, content, create, greeting, label, rows_of, start, until_runs};
use crate::families::application;
use crate::journal::calls::text;
use harness::chat;
use serde_json::json;

#[tokio::test]
async fn a_target_runs_its_prompt_in_place_of_what_was_asked() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("Hi {{name}}")).await;
    label(&stack, &prompt, 1, "staging").await;
    until_runs(&stack, &format!("{}@staging", prompt.slug)).await;
    let config = json!({ "prompt_id": format!("{}@staging", prompt.slug), "override_params": { "seed": 3 } });
    let client = application(&stack).with("x-gateway-config", config.to_string());
    let mut body = chat("what the application asked");
    body["variables"] = json!({ "name": "Ada" });
    body["max_tokens"] = 9.into();
    let answer = client.post("/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let asked = asked(&stack);
    assert_eq!(content(&stack), "Hi Ada");
    assert_eq!((&asked["max_tokens"], &asked["seed"], &asked["temperature"]), (&json!(9), &json!(3), &json!(0.5)));
    assert!(asked.get("variables").is_none());
    let rows = rows_of(&stack, &answer, 1).await;
    assert_eq!(text(&rows[0], "prompt_slug"), Some(prompt.slug.as_str()));
    let streamed = client.post("/chat/completions", &json!({ "stream": true, "model": "x", "messages": [] })).await;
    assert!(streamed.text().contains("data: [DONE]"), "{}", streamed.text());
}

#[tokio::test]
async fn a_fallback_goes_on_after_a_prompt_that_cannot_be_run_and_the_log_tells_them_apart() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("Hi")).await;
    until_runs(&stack, &prompt.slug).await;
    let config = |first: &str| {
        json!({ "strategy": { "mode": "fallback" }, "targets": [{ "prompt_id": first }, { "provider": "@main" }] })
            .to_string()
    };
    let client = application(&stack).with("x-gateway-config", config("pp-none"));
    let answer = client.post("/chat/completions", &chat("asked")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(content(&stack), "asked");
    stack.mock.script(json!([{ "status": 500 }])).unwrap();
    let client = application(&stack).with("x-gateway-config", config(&prompt.slug));
    let answer = client.post("/chat/completions", &chat("asked")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let rows = rows_of(&stack, &answer, 2).await;
    let named: Vec<(i32, Option<&str>)> =
        rows.iter().map(|row| (row.get::<_, i32>("response_status_code"), text(row, "prompt_slug"))).collect();
    assert_eq!(named, [(500, Some(prompt.slug.as_str())), (200, None)]);
}

#[tokio::test]
async fn a_prompt_stands_only_where_bodies_of_its_kind_are_taken() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("Hi")).await;
    until_runs(&stack, &prompt.slug).await;
    let config = json!({ "prompt_id": prompt.slug }).to_string();
    let client = application(&stack).with("x-gateway-config", config);
    let said = json!([{ "role": "user", "content": "x" }]);
    for (path, body) in [
        ("/completions", json!({ "model": "m", "prompt": "x" })),
        ("/messages", json!({ "model": "m", "max_tokens": 5, "messages": said })),
        ("/embeddings", json!({ "model": "m", "input": "x" })),
        ("/files", json!({})),
    ] {
        let answer = client.post(path, &body).await;
        assert_eq!(answer.status, 400, "{path}: {}", answer.text());
        assert!(answer.text().contains("/v1/chat/completions"), "{path}: {}", answer.text());
    }
    assert!(stack.mock.requests().is_empty());
    let other = create(&stack, &greeting("Other {{name}}")).await;
    until_runs(&stack, &other.slug).await;
    let path = format!("/prompts/{}/completions", other.slug);
    assert_eq!(client.post(&path, &json!({ "variables": { "name": "Ada" } })).await.status, 200);
    assert_eq!(content(&stack), "Hi", "a config wins over what is asked for");
}
