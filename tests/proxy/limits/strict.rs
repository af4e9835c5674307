//! Strict budgets look at what the provider will be sent: by whatever name, edit or reference a request could cost more
//! than it says, it does not pass.

use super::{limited, patient};
use harness::{Client, chat};
use serde_json::{Value, json};

/// A budget of tokens that a short call fits into many times, and a long one not at all.
async fn budgeted(stack: &harness::Stack) -> Client {
    limited(stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 20_000, "strict": true } })).await
}

async fn status(client: &Client, more: Value) -> u16 {
    let mut body = chat("Hello");
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    client.post("/chat/completions", &body).await.status.as_u16()
}

#[tokio::test]
async fn a_strict_budget_takes_the_largest_maximum_and_every_choice_into_account() {
    let stack = patient().await;
    let client = budgeted(&stack).await;
    for (more, expected) in [
        (json!({ "max_tokens": 5 }), 200),
        (json!({ "max_completion_tokens": 1, "max_tokens": 100_000 }), 412),
        (json!({ "max_tokens": 1, "max_completion_tokens": 100_000 }), 412),
        (json!({ "max_tokens": 5_000, "n": 20 }), 412),
        (json!({ "max_tokens": 5, "n": "20" }), 412),
        (json!({ "max_output_tokens": 5 }), 412),
    ] {
        assert_eq!(status(&client, more.clone()).await, expected, "{more}");
    }
}

#[tokio::test]
async fn a_strict_budget_looks_at_what_each_target_is_sent() {
    let stack = patient().await;
    let client = budgeted(&stack).await;
    let target = |mut edits: Value| {
        edits["provider"] = json!("openai");
        edits["api_key"] = json!("sk-mock");
        edits["custom_host"] = json!(stack.mock.url());
        edits
    };
    let with_config = |config: Value| client.with("x-gateway-config", config.to_string());
    let with = |edits: Value| with_config(target(edits));
    let small = json!({ "max_tokens": 5 });
    assert_eq!(status(&with(json!({ "override_params": { "max_tokens": 100_000 } })), small.clone()).await, 412);
    assert_eq!(status(&with(json!({ "override_params": { "n": 9_000 } })), small.clone()).await, 412);
    assert_eq!(status(&with(json!({ "drop_params": ["max_tokens"] })), small.clone()).await, 412, "no bound is left");
    assert_eq!(status(&with(json!({ "override_params": { "max_tokens": 5 } })), json!({})).await, 200);
    let targets = |most: u64| {
        let edits = [json!({ "override_params": { "seed": 1 } }), json!({ "override_params": { "max_tokens": most } })];
        with_config(json!({ "strategy": { "mode": "fallback" }, "targets": edits.map(target) }))
    };
    assert_eq!(status(&targets(5), small.clone()).await, 200);
    assert_eq!(status(&targets(100_000), small).await, 412, "the second target may be asked as well");
}

#[tokio::test]
async fn a_strict_budget_refuses_input_that_is_only_referred_to() {
    let stack = patient().await;
    let client = budgeted(&stack).await;
    let parts = |part: Value| json!({ "max_tokens": 5, "messages": [{ "role": "user", "content": [part] }] });
    let image = json!({ "type": "image_url", "image_url": { "url": "https://example.com/large.png" } });
    assert_eq!(status(&client, parts(json!({ "type": "text", "text": "Hello" }))).await, 200);
    assert_eq!(status(&client, parts(image.clone())).await, 412);
    assert_eq!(status(&client, parts(json!({ "type": "file", "file": { "file_id": "file-1" } }))).await, 412);
    let body = json!({ "model": "gpt-4o-mini", "input": "Hello", "max_output_tokens": 5, "previous_response_id": "r" });
    let refused = client.post("/responses", &body).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    assert!(refused.text().contains("text in the request itself"), "{}", refused.text());
    let free = limited(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 20_000 } })).await;
    assert_eq!(status(&free, parts(image)).await, 200, "other budgets do not ask");
}
