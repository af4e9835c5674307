//! Strict budgets look at what the provider will be sent: by whatever name, edit or reference a request could cost more
//! than it says, it does not pass.

use super::{limited, limited_key, patient};
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

/// A budget of tokens that a short call fits into many times, and a long one not at all.
async fn budgeted(stack: &Stack) -> Client {
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

/// A token that is written costs a cent, and five at the dearer tier; one that is read costs a tenth at Anthropic, and more on
/// its way into a cache.
fn tiered_prices() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let price = |cents: &str| json!({ "price": cents });
    let written =
        |cents: &str| json!({ "pay_as_you_go": { "request_token": price("0"), "response_token": price(cents) } });
    let modes = json!({ "priority": { "pricing_config": written("5") }, "flex": { "pricing_config": written("0.5") } });
    let openai = json!({
        "plain": { "pricing_config": written("1") },
        "tiered": { "pricing_config": written("1"),
            "custom_pricing": { "regions": { "default": { "execution_modes": modes } } } },
        "default": { "pricing_config": written("0") },
    });
    let anthropic = json!({ "claude-1": { "pricing_config": { "pay_as_you_go": {
        "request_token": price("0.1"), "response_token": price("1"), "cache_write_input_token": price("0.2"),
        "additional_units": { "cache_write_1h": price("2") } } } } });
    for (name, list) in [("openai.json", openai), ("anthropic.json", anthropic)] {
        std::fs::write(folder.path().join(name), list.to_string()).unwrap();
    }
    folder
}

async fn with_tiered_prices(folder: &tempfile::TempDir) -> Stack {
    let stack = Stack::builder()
        .proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", folder.path().to_str().unwrap())
        .proxy("LIMITS_WAIT_MS", "20000")
        .start()
        .await;
    let probe = limited(&stack, dollar(true)).await;
    let known = async || status(&probe, json!({ "model": "plain", "max_tokens": 1 })).await == 200;
    stack.until("prices are known", known).await;
    stack
}

/// The provider answers with nine tokens, and says that its dearer tier served them.
fn serve_in_priority(stack: &Stack, model: &str) {
    let message = json!({ "role": "assistant", "content": "Hello" });
    let answer = json!({ "id": "c", "object": "chat.completion", "model": model, "service_tier": "priority",
        "usage": { "prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18 },
        "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] });
    stack
        .mock
        .script(json!([{ "body": answer.to_string(), "content_type": "application/json", "times": 100 }]))
        .unwrap();
}

fn dollar(strict: bool) -> Value {
    json!({ "usage_limits": { "credit_limit": 1, "strict": strict } })
}

#[tokio::test]
async fn a_strict_budget_reserves_the_dearest_tier_that_may_serve_a_request() {
    let folder = tiered_prices();
    let stack = with_tiered_prices(&folder).await;
    for (more, expected) in [
        (json!({ "model": "plain" }), 200),
        (json!({ "model": "tiered" }), 412),
        (json!({ "model": "tiered", "service_tier": "auto" }), 412),
        (json!({ "model": "tiered", "service_tier": "priority" }), 412),
        (json!({ "model": "tiered", "service_tier": "default" }), 200),
        (json!({ "model": "tiered", "service_tier": "flex" }), 200),
        // What has no rate has no bound, and a default of the list is a guess.
        (json!({ "model": "plain", "service_tier": "priority" }), 412),
        (json!({ "model": "other" }), 412),
    ] {
        let mut more = more;
        more["max_tokens"] = json!(50);
        assert_eq!(status(&limited(&stack, dollar(true)).await, more.clone()).await, expected, "{more}");
    }
    let other = limited(&stack, dollar(false)).await;
    assert_eq!(status(&other, json!({ "model": "other", "max_tokens": 5 })).await, 200, "other budgets take a guess");
}

#[tokio::test]
async fn a_strict_budget_holds_where_the_provider_chooses_the_dearer_tier() {
    let folder = tiered_prices();
    let stack = with_tiered_prices(&folder).await;
    serve_in_priority(&stack, "tiered");
    let client = limited(&stack, dollar(true)).await;
    let mut body = chat("Hello");
    (body["model"], body["max_tokens"]) = (json!("tiered"), json!(9));
    let mut seen = Vec::new();
    for _ in 0..3 {
        let answer = client.post("/chat/completions", &body).await;
        seen.push((answer.status.as_u16(), answer.header("x-gateway-cost").to_owned()));
    }
    // Of the usual tier, a third one would be 9 cents.
    assert_eq!(seen, [(200, "0.45"), (200, "0.45"), (412, "")].map(|(status, cost)| (status, cost.to_owned())));
}

#[tokio::test]
async fn a_tier_of_service_without_rates_has_no_known_price() {
    let folder = tiered_prices();
    let stack = with_tiered_prices(&folder).await;
    let wary = limited(&stack, json!({ "usage_limits": { "credit_limit": 1000, "unknown_price": "refuse" } })).await;
    for (more, expected) in [
        (json!({ "model": "tiered", "service_tier": "priority" }), 200),
        (json!({ "model": "plain", "service_tier": "default" }), 200),
        (json!({ "model": "plain" }), 200),
    ] {
        assert_eq!(status(&wary, more.clone()).await, expected, "{more}");
    }
    let mut body = chat("Hello");
    (body["model"], body["service_tier"]) = (json!("plain"), json!("priority"));
    let refused = wary.post("/chat/completions", &body).await;
    assert_eq!((refused.status.as_u16(), refused.json()["error"]["code"].as_str()), (412, Some("price_unknown")));
    // The answer tells what nobody asked for.
    serve_in_priority(&stack, "plain");
    body.as_object_mut().unwrap().remove("service_tier");
    let answered = wary.post("/chat/completions", &body).await;
    assert_eq!(answered.status, 200, "{}", answered.text());
    assert_eq!(answered.header("x-gateway-cost-state"), "unknown");
    // Budgets count it at the usual rates.
    let client = limited(&stack, dollar(false)).await;
    let is_used_up = async || status(&client, json!({ "model": "plain" })).await == 412;
    stack.until("the budget is used up", is_used_up).await;
}

#[tokio::test]
async fn a_strict_budget_reserves_the_longest_cache_lifetime_that_a_request_names() {
    let folder = tiered_prices();
    let stack = with_tiered_prices(&folder).await;
    let asked = |mark: Value| {
        let text = json!({ "type": "text", "text": "x".repeat(100), "cache_control": mark });
        json!({ "model": "claude-1", "max_tokens": 1, "messages": [{ "role": "user", "content": [text] }] })
    };
    let (usual, hour) = (json!({ "type": "ephemeral" }), json!({ "type": "ephemeral", "ttl": "1h" }));
    for (mark, expected) in [(Value::Null, 200), (usual, 200), (hour, 412)] {
        let (key, _) = limited_key(&stack, dollar(true)).await;
        let client = stack.anonymous().with_key(&key).with("x-gateway-provider", "anthropic");
        let client = client.with("authorization", "Bearer sk-mock").with("x-gateway-custom-host", stack.mock.url());
        // Prices of this provider are known after the first.
        let is_so = async || client.post("/messages", &asked(mark.clone())).await.status == expected;
        stack.until(&format!("{mark} is {expected}"), is_so).await;
    }
}
