//! What budgets and policies can be told to mind: calls without a price, requests without the grouped value, and clients
//! that say of themselves what they like.

use super::{limited, limited_key, patient, policy, requests};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

const ALLOWED: &str = "gateway_limits_unpriced_total{verdict=\"allowed\"}";
const REFUSED: &str = "gateway_limits_unpriced_total{verdict=\"refused\"}";

async fn ask_unpriced(client: &Client) -> Answer {
    let mut body = chat("Hello");
    body["model"] = json!("nobody-has-a-price-for-this");
    client.post("/chat/completions", &body).await
}

fn budget(more: Value) -> Value {
    let mut limits = json!({ "credit_limit": 1 });
    limits.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "usage_limits": limits })
}

#[tokio::test]
async fn a_model_without_a_price_passes_a_budget_or_not_as_the_budget_says_and_is_counted() {
    let stack = patient().await;
    let plain = limited(&stack, budget(json!({}))).await;
    assert_eq!(ask_unpriced(&plain).await.status, 200);
    stack.until_metric(ALLOWED, 1.0).await;
    let wary = limited(&stack, budget(json!({ "unknown_price": "refuse" }))).await;
    let refused = ask_unpriced(&wary).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "price_unknown");
    stack.until_metric(REFUSED, 1.0).await;
    assert_eq!(wary.post("/chat/completions", &chat("Hello")).await.status, 200, "a known price passes");
    assert_eq!(wary.get("/files").await.status, 200, "so does what only looks something up");
    assert_eq!(wary.post("/assistants", &json!({})).await.status, 412, "nobody knows what is relayed unread");
}

#[tokio::test]
async fn each_unit_without_a_rate_is_refused_though_the_model_has_others() {
    let folder = tempfile::tempdir().unwrap();
    let price = |cents: &str| json!({ "price": cents });
    let units = [
        "characters",
        "web_search",
        "search",
        "x_search",
        "file_search",
        "code_execution",
        "attachment_search",
        "maps",
        "image_generation",
        "audio_seconds",
        "cache_write_1h",
        "cache_write_12h",
        "request_high_context",
        "input_image",
    ];
    let fees: serde_json::Map<String, Value> = units.map(|unit| (unit.to_owned(), price("0.1"))).into_iter().collect();
    let list = json!({
        "text": { "pricing_config": { "pay_as_you_go": { "request_token": price("0.1"), "response_token": price("0.1") } } },
        "prompt": { "pricing_config": { "pay_as_you_go": { "request_token": price("0.1") } } },
        "all": { "pricing_config": { "pay_as_you_go": {
            "request_token": price("0.1"), "response_token": price("0.1"), "cache_write_input_token": price("0.1"),
            "request_audio_token": price("0.1"), "response_audio_token": price("0.1"),
            "image": { "hd": { "1024x1024": price("4") } }, "additional_units": fees,
        } } },
    });
    std::fs::write(folder.path().join("openai.json"), list.to_string()).unwrap();
    let stack = Stack::builder()
        .proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", folder.path().to_str().unwrap())
        .proxy("LIMITS_WAIT_MS", "20000")
        .start()
        .await;
    let wary = limited(&stack, budget(json!({ "unknown_price": "refuse", "credit_limit": 1000 }))).await;
    let messages = json!([{ "role": "user", "content": "Hello" }]);
    let hosted = json!([{ "type": "web_search" }]);
    let own = json!([{ "type": "function", "function": { "name": "web_search" } }]);
    for (model, path, more, status) in [
        ("text", "/chat/completions", json!({ "messages": messages }), 200),
        ("prompt", "/chat/completions", json!({ "messages": messages }), 412),
        ("prompt", "/embeddings", json!({ "input": "Hello" }), 200),
        ("text", "/chat/completions", json!({ "messages": messages, "web_search_options": {} }), 412),
        ("all", "/chat/completions", json!({ "messages": messages, "web_search_options": {} }), 200),
        ("text", "/chat/completions", json!({ "messages": messages, "tools": own }), 200),
        ("text", "/responses", json!({ "input": "Hello", "tools": hosted }), 412),
        ("all", "/responses", json!({ "input": "Hello", "tools": hosted }), 200),
        ("text", "/images/generations", json!({ "prompt": "a" }), 412),
        ("all", "/images/generations", json!({ "prompt": "a", "quality": "hd" }), 200),
        ("all", "/images/generations", json!({ "prompt": "a", "quality": "low" }), 412),
        ("all", "/images/generations", json!({ "prompt": "a", "quality": "hd", "size": "1x1" }), 412),
        ("text", "/audio/speech", json!({ "input": "Hello", "voice": "alloy" }), 412),
        ("all", "/audio/speech", json!({ "input": "Hello", "voice": "alloy" }), 200),
        ("text", "/embeddings", json!({ "input": "Hello", "images": ["data:image/png;base64,AA=="] }), 412),
        ("all", "/embeddings", json!({ "input": "Hello", "images": ["data:image/png;base64,AA=="] }), 200),
    ] {
        let mut body = json!({ "model": model });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = wary.post(path, &body).await;
        assert_eq!(answer.status.as_u16(), status, "{model} {path} {body}: {}", answer.text());
    }
    let marked = |mark: Value| json!([{ "role": "user", "content": [{ "type": "text", "text": "Hello", "cache_control": mark }] }]);
    let spoken = json!({ "type": "input_audio", "input_audio": { "data": "AA==", "format": "wav" } });
    for (path, more) in [
        ("/responses", json!({ "input": "Hello", "tools": [{ "type": "x_search" }] })),
        ("/responses", json!({ "input": "Hello", "tools": [{ "type": "file_search" }] })),
        ("/responses", json!({ "input": "Hello", "tools": [{ "type": "code_interpreter" }] })),
        ("/responses", json!({ "input": "Hello", "tools": [{ "type": "document_search" }] })),
        ("/responses", json!({ "input": "Hello", "tools": [{ "type": "google_maps" }] })),
        ("/responses", json!({ "input": "Hello", "tools": [{ "type": "image_generation" }] })),
        ("/chat/completions", json!({ "messages": messages, "web_search_options": { "search_context_size": "high" } })),
        ("/chat/completions", json!({ "messages": messages, "modalities": ["text", "audio"] })),
        ("/chat/completions", json!({ "messages": [{ "role": "user", "content": [spoken] }] })),
        ("/chat/completions", json!({ "messages": marked(json!({ "type": "ephemeral" })) })),
        ("/chat/completions", json!({ "messages": marked(json!({ "type": "ephemeral", "ttl": "1h" })) })),
        ("/chat/completions", json!({ "messages": marked(json!({ "type": "ephemeral", "ttl": "12h" })) })),
    ] {
        for (model, status) in [("text", 412), ("all", 200)] {
            let mut body = json!({ "model": model });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let answer = wary.post(path, &body).await;
            assert_eq!(answer.status.as_u16(), status, "{model} {path} {body}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn the_setting_holds_where_the_budget_says_nothing() {
    let stack = Stack::builder().proxy("UNKNOWN_PRICE", "refuse").proxy("LIMITS_WAIT_MS", "20000").start().await;
    assert_eq!(ask_unpriced(&limited(&stack, budget(json!({}))).await).await.status, 412);
    assert_eq!(ask_unpriced(&limited(&stack, budget(json!({ "unknown_price": "allow" }))).await).await.status, 200);
    let of_tokens = budget(json!({ "type": "tokens", "credit_limit": 100_000 }));
    assert_eq!(ask_unpriced(&limited(&stack, of_tokens).await).await.status, 200, "tokens have no price");
}

#[tokio::test]
async fn a_policy_counts_requests_without_the_grouped_value_together_if_asked_to() {
    let stack = patient().await;
    let by_team = |more: Value| {
        let mut body = json!({
            "type": "requests", "unit": "rpd", "value": 1, "group_by": [{ "key": "metadata.team" }],
            "conditions": [{ "key": "workspace_id", "value": stack.home.workspace_id }],
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    policy(&stack, "/policies/rate-limits", by_team(json!({ "include_none": true }))).await;
    let ask = async |client: &Client| client.post("/chat/completions", &chat("Hello")).await.status.as_u16();
    let anonymous = stack.client();
    stack.until("those without a team are one group", async || ask(&anonymous).await == 429).await;
    let red = stack.client().with("x-gateway-metadata", json!({ "team": "red" }).to_string());
    assert_eq!([ask(&red).await, ask(&red).await], [200, 429], "a team has its own");
}

#[tokio::test]
async fn a_policy_without_conditions_and_groups_is_one_counter_of_everybody() {
    let stack = patient().await;
    let (_, other) = limited_key(&stack, json!({ "rate_limits": requests("rpd", 1000) })).await;
    policy(&stack, "/policies/rate-limits", json!({ "type": "requests", "unit": "rpd", "value": 1 })).await;
    let ask = async |client: &Client| client.post("/chat/completions", &chat("Hello")).await.status.as_u16();
    let client = stack.client();
    stack.until("the policy is known and used up", async || ask(&client).await == 429).await;
    assert_eq!(ask(&other).await, 429, "another key is counted with it");
}

#[tokio::test]
async fn a_policy_that_trusts_only_what_is_stored_is_not_escaped_by_other_metadata() {
    let stack = patient().await;
    let body = json!({
        "type": "requests", "unit": "rpd", "value": 2, "trusted_metadata": true, "include_none": true,
        "group_by": [{ "key": "metadata.team" }],
        "conditions": [{ "key": "workspace_id", "value": stack.home.workspace_id }],
    });
    policy(&stack, "/policies/rate-limits", body).await;
    let limits = json!({ "defaults": { "metadata": { "team": "red" } }, "rate_limits": requests("rpd", 1000) });
    let (key, _) = limited_key(&stack, limits).await;
    let as_team = |client: Client, name: &str| client.with("x-gateway-metadata", json!({ "team": name }).to_string());
    let ask = async |client: Client| client.post("/chat/completions", &chat("Hello")).await.status.as_u16();
    let refused = async || ask(as_team(stack.as_application(&key), "x")).await == 429;
    stack.until("the policy is known and used up", refused).await;
    assert_eq!(
        ask(as_team(stack.as_application(&key), "another")).await,
        429,
        "the key is of the red team, whatever it says"
    );
    // A key that says nothing of itself is in the group of all those, however often its client changes its name.
    let mut answers = Vec::new();
    for name in ["a", "b", "c"] {
        answers.push(ask(as_team(stack.client(), name)).await);
    }
    assert_eq!(answers, [200, 200, 429]);
}
