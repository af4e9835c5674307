//! What answers tell of their own cost, to whom, and where they do not.

use crate::journal::calls::rows;
use crate::routing::target;
use harness::{Answer, Client, Stack, chat};
use rust_decimal::Decimal;
use serde_json::{Value, json};

const COST: &str = "x-gateway-cost";
const STATE: &str = "x-gateway-cost-state";
const OVERHEAD: &str = "x-gateway-overhead-ms";

fn cost_headers(answer: &Answer) -> [String; 2] {
    [COST, STATE].map(|name| {
        let value = answer.headers.get(name).map(|value| value.to_str().unwrap());
        value.unwrap_or("-").to_owned()
    })
}

fn of_model(model: &str, more: Value) -> Value {
    let mut body = chat("Hello");
    body["model"] = json!(model);
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A whole answer of the mock provider that used so much.
fn answers(stack: &Stack, usage: Value) {
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "Hi" } });
    let body =
        json!({ "id": "c", "object": "chat.completion", "model": "gpt-4o", "choices": [choice], "usage": usage });
    stack.mock.script(json!([{ "body": body.to_string(), "content_type": "application/json" }])).unwrap();
}

async fn ask(stack: &Stack, client: &Client, model: &str) -> Answer {
    answers(stack, json!({ "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100 }));
    let answer = client.post("/chat/completions", &of_model(model, json!({}))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer
}

#[tokio::test]
async fn an_answer_tells_what_its_log_says_that_it_cost() {
    let stack = Stack::start().await;
    // 1000 × 2.5 + 100 × 10 dollars for a million.
    let plain = ask(&stack, &stack.client(), "gpt-4o").await;
    assert_eq!(cost_headers(&plain), ["0.0035", "exact"]);
    assert!(plain.header(OVERHEAD).parse::<f64>().is_ok_and(|ms| ms >= 0.0));
    let unpriced = stack.client().post("/chat/completions", &of_model("nobody-has-a-price-for-this", json!({}))).await;
    assert_eq!(cost_headers(&unpriced), ["-", "unknown"]);
    // The model has rates, and none for this.
    let tool = json!({ "prompt_tokens": 1000, "completion_tokens": 100, "server_side_tool_usage_details": { "x_search_calls": 1 } });
    answers(&stack, tool);
    let partly = stack.client().post("/chat/completions", &of_model("gpt-4o", json!({}))).await;
    assert_eq!((partly.status.as_u16(), cost_headers(&partly)), (200, ["-".into(), "unknown".into()]));
    let refused = stack.anonymous().post("/chat/completions", &of_model("gpt-4o", json!({}))).await;
    assert_eq!((refused.status.as_u16(), cost_headers(&refused)), (401, ["-".into(), "-".into()]));
    let rows = rows(&stack, 3).await;
    let costs: Vec<Option<Decimal>> = rows.iter().map(|row| row.get("cost")).collect();
    let cents: Decimal = "0.35".parse().unwrap();
    assert_eq!(costs, [Some(cents), None, Some(cents)], "what has a rate is charged");
    let prices = rows[2].get::<_, Value>("unit_prices");
    assert_eq!(prices, json!({ "request_token": "0.00025", "response_token": "0.001", "x_search": null }));
}

#[tokio::test]
async fn an_estimate_is_told_as_one_and_the_price_of_an_account_is_the_one_that_is_told() {
    let stack = Stack::start().await;
    let half = json!({
        "name": "half", "slug": "half", "ai_provider_id": "openai", "key": "sk-half", "default_provider_slug": "half",
        "workspace_id": stack.home.workspace_id, "configurations": { "custom_host": stack.mock.url() },
        "pricing_adjustments": { "multiplier": { "default": 0.5 } },
    });
    let made = stack.administrator().post("/integrations", &half).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", "@half");
    stack.until("the provider is known", async || client.get("/anything").await.status == 200).await;
    // Half of 1000 × 2.5 + 100 × 10 dollars for a million.
    let exact = ask(&stack, &client, "gpt-4o").await;
    assert_eq!(cost_headers(&exact), ["0.00175", "exact"]);
    assert_eq!(logged(&stack, &exact).await, ("0.175".parse().unwrap(), false));
    let silent = json!({ "mock": { "no_usage": true, "words": 300 } }).to_string();
    let mut body = chat(&silent);
    body["model"] = json!("gpt-4o");
    let mut told = Vec::new();
    for client in [&client, &stack.client()] {
        let answer = client.post("/chat/completions", &body).await;
        let [cost, state] = cost_headers(&answer);
        assert_eq!((answer.status.as_u16(), state.as_str()), (200, "estimated"), "{cost}");
        told.push(cost.parse::<Decimal>().unwrap());
        let (cents, is_estimated) = logged(&stack, &answer).await;
        assert!(is_estimated && cents > Decimal::ZERO, "{cents}");
    }
    assert!(told[0] > Decimal::ZERO && told[1] == told[0] * Decimal::TWO, "{told:?}");
}

/// Its cost in cents, and whether that is an estimate, once its log is stored.
async fn logged(stack: &Stack, answer: &Answer) -> (Decimal, bool) {
    const ROW: &str = "SELECT cost, usage_estimated FROM request_logs WHERE id = $1";
    let id: uuid::Uuid = answer.header("x-gateway-request-id").parse().unwrap();
    let database = stack.database.client().await;
    let is_stored = async || database.query_opt(ROW, &[&id]).await.unwrap().is_some();
    stack.until("its log is stored", is_stored).await;
    let row = database.query_one(ROW, &[&id]).await.unwrap();
    (row.get::<_, Option<Decimal>>(0).expect("it has a price"), row.get(1))
}

#[tokio::test]
async fn an_answer_from_the_cache_costs_nothing() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "cache": { "mode": "simple" } })).to_string();
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config);
    let first = ask(&stack, &client, "gpt-4o").await;
    assert_eq!((first.header("x-gateway-cache-status"), cost_headers(&first)[0].as_str()), ("MISS", "0.0035"));
    let hit = client.post("/chat/completions", &of_model("gpt-4o", json!({}))).await;
    assert_eq!((hit.header("x-gateway-cache-status"), cost_headers(&hit)), ("HIT", ["0".into(), "exact".into()]));
}

#[tokio::test]
async fn a_stream_tells_it_on_wish_before_its_end_and_a_relayed_answer_never() {
    let stack = Stack::start().await;
    let chunk = |choices: Value, usage: Value| json!({ "id": "c", "object": "chat.completion.chunk", "model": "gpt-4o", "choices": choices, "usage": usage });
    let text = json!([{ "index": 0, "delta": { "role": "assistant", "content": "Hi" }, "finish_reason": null }]);
    let end = json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]);
    let usage = json!({ "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100 });
    let events = [chunk(text, Value::Null), chunk(end, Value::Null), chunk(json!([]), usage)];
    let stream: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let stream = format!("{stream}data: [DONE]\n\n");
    let body = of_model("gpt-4o", json!({ "stream": true }));
    for (wish, expected) in [("true", true), ("false", false)] {
        stack.mock.script(json!([{ "body": stream, "content_type": "text/event-stream" }])).unwrap();
        let answer = stack.client().with("x-gateway-include-cost", wish).post("/chat/completions", &body).await;
        let comment = ": x-gateway-cost 0.0035\n: x-gateway-cost-state exact\n\ndata: [DONE]\n\n";
        assert_eq!(answer.text().ends_with(comment), expected, "{}", answer.text());
        assert!(answer.text().ends_with("data: [DONE]\n\n"), "{}", answer.text());
        assert_eq!(cost_headers(&answer), ["-", "-"]);
    }
    let relayed = stack.client().with("x-gateway-include-cost", "true").get("/files").await;
    assert_eq!((relayed.status.as_u16(), cost_headers(&relayed)), (200, ["-".into(), "-".into()]));
    // Held until it is whole, however it comes.
    let long = "x".repeat(300 << 10);
    let choice = json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": long } });
    let whole = json!({ "id": "c", "object": "chat.completion", "model": "gpt-4o", "choices": [choice],
        "usage": { "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100 } });
    stack.mock.script(json!([{ "body": whole.to_string(), "content_type": "application/json" }])).unwrap();
    let client = stack.client().with("x-gateway-include-cost", "true");
    let answer = client.post("/chat/completions", &of_model("gpt-4o", json!({}))).await;
    assert_eq!((answer.json(), cost_headers(&answer)), (whole, ["0.0035".into(), "exact".into()]));
}

#[tokio::test]
async fn the_installation_the_organisation_the_workspace_and_the_key_can_keep_it_quiet() {
    let silent = Stack::builder().proxy("COST_HEADERS", "OFF").start().await;
    assert_eq!(cost_headers(&ask(&silent, &silent.client(), "gpt-4o").await), ["-", "-"]);
    for path in ["/admin/workspaces/{}", "/admin/organisation"] {
        let stack = Stack::start().await;
        assert_eq!(cost_headers(&ask(&stack, &stack.client(), "gpt-4o").await)[1], "exact");
        let path = path.replace("{}", &stack.home.workspace_id.to_string());
        let changed = stack.administrator().put(&path, &json!({ "settings": { "cost_in_answers": 0 } })).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.text());
        let is_quiet = async || cost_headers(&ask(&stack, &stack.client(), "gpt-4o").await) == ["-", "-"];
        stack.until("the setting is known", is_quiet).await;
    }
    let stack = Stack::start().await;
    let defaults =
        json!({ "name": "quiet", "scopes": ["completions.write"], "defaults": { "cost_in_answers": false } });
    let made = stack.administrator().post("/api-keys/workspace/service", &with_home(&stack, defaults)).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let key = made.json()["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    assert_eq!(cost_headers(&ask(&stack, &stack.as_application(&key), "gpt-4o").await), ["-", "-"]);
}

fn with_home(stack: &Stack, mut body: Value) -> Value {
    body["workspace_id"] = json!(stack.home.workspace_id);
    body
}
