//! The golden cost vectors, end to end: a provider answers with their usage in each dialect, plain and as a stream, and
//! the log of the call costs what was worked out by hand.

use super::calls::rows;
use harness::{Client, Stack};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use uuid::Uuid;

/// One call: where it goes, what is answered, and the sum in cents.
struct Call {
    rule: String,
    form: &'static str,
    path: &'static str,
    provider: &'static str,
    is_stream: bool,
    answer: String,
    cents: Decimal,
}

/// What no answer can tell: other terms than the list's, and usage that stands beside its object.
const ELSEWHERE: [&str; 5] = ["region", "multipliers", "own_price", "pricing_adjustments", "model_pricing_config"];
/// Dearer than the column of costs can hold.
const TOO_DEAR: &str = "a_large_bill_loses_no_digit";

fn vectors() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cost");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        serde_json::from_str::<Vec<Value>>(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    files.iter().flat_map(read).filter(|vector| ELSEWHERE.iter().all(|name| vector[name].is_null())).collect()
}

/// The calls that can report the usage of a vector.
fn calls(vector: &Value) -> Vec<Call> {
    let (rule, usage) = (vector["rule"].as_str().unwrap(), &vector["usage"]);
    let has = |name: &str| !usage[name].is_null();
    let call = |form, path, provider, answer: String| Call {
        rule: rule.to_owned(),
        form,
        path,
        provider,
        is_stream: answer.starts_with("data:") || answer.starts_with("event:"),
        answer,
        // Stored with ten decimals.
        cents: (vector["usd"].as_str().unwrap().parse::<Decimal>().unwrap() * Decimal::ONE_HUNDRED).round_dp(10),
    };
    // Anthropic counts what it cached beside the prompt.
    let is_message = has("input_tokens") && (has("cache_creation_input_tokens") || has("cache_read_input_tokens"));
    if has("units") || has("images") || rule == TOO_DEAR {
        return Vec::new();
    }
    if is_message {
        return vec![
            call("messages", "/messages", "anthropic", message(rule, usage)),
            call("messages stream", "/messages", "anthropic", message_stream(rule, usage)),
        ];
    }
    if has("input_tokens") {
        let response = json!({ "id": "r", "object": "response", "model": rule, "output": [], "usage": usage });
        let events = [
            json!({ "type": "response.created", "response": { "model": rule, "usage": null } }),
            json!({ "type": "response.output_text.delta", "delta": "Hello" }),
            json!({ "type": "response.completed", "response": response }),
        ];
        return vec![
            call("responses", "/responses", "openai", response.to_string()),
            call("responses stream", "/responses", "openai", stream(&events)),
        ];
    }
    if !has("prompt_tokens") {
        return Vec::new();
    }
    let tier = vector["mode"].as_str().unwrap_or("default");
    let with = |choices: Value, object: &str| {
        json!({ "id": "c", "object": object, "model": rule, "choices": choices, "usage": usage, "service_tier": tier })
            .to_string()
    };
    if !has("completion_tokens") {
        let list = json!({ "object": "list", "model": rule, "data": [], "usage": usage });
        return vec![call("embeddings", "/embeddings", "openai", list.to_string())];
    }
    let chunk = |choices: Value, usage: &Value| {
        json!({ "id": "c", "object": "chat.completion.chunk", "model": rule, "choices": choices, "usage": usage,
                "service_tier": tier })
    };
    let said = json!([{ "index": 0, "delta": { "content": "Hello" }, "finish_reason": null }]);
    let chat = stream(&[chunk(said, &Value::Null), chunk(json!([]), usage)]) + "data: [DONE]\n\n";
    let message =
        json!([{ "index": 0, "message": { "role": "assistant", "content": "Hello" }, "finish_reason": "stop" }]);
    let text = json!([{ "index": 0, "text": "Hello", "finish_reason": "stop" }]);
    vec![
        call("chat", "/chat/completions", "openai", with(message, "chat.completion")),
        call("chat stream", "/chat/completions", "openai", chat),
        call("completions", "/completions", "openai", with(text, "text_completion")),
    ]
}

fn message(model: &str, usage: &Value) -> String {
    json!({ "id": "m", "type": "message", "role": "assistant", "model": model, "content": [], "usage": usage })
        .to_string()
}

/// What was read is said at the start, what was written and done at the end.
fn message_stream(model: &str, usage: &Value) -> String {
    let is_late = |name: &&String| ["output_tokens", "server_tool_use"].contains(&name.as_str());
    let part = |late: bool| -> Map<String, Value> {
        let fields = usage.as_object().unwrap().iter().filter(|(name, _)| is_late(name) == late);
        fields.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let mut start = part(false);
    start.insert("output_tokens".into(), json!(0));
    stream(&[
        json!({ "type": "message_start", "message": { "type": "message", "model": model, "content": [], "usage": start } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hello" } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": part(true) }),
        json!({ "type": "message_stop" }),
    ])
}

fn stream(events: &[Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

async fn ask(stack: &Stack, call: &Call) -> Uuid {
    let kind = if call.is_stream { "text/event-stream" } else { "application/json" };
    stack.mock.script(json!([{ "body": call.answer, "content_type": kind }])).unwrap();
    let client: Client =
        stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", call.provider);
    let client = client.with("authorization", "Bearer sk-mock").with("x-gateway-custom-host", stack.mock.url());
    let body = json!({
        "model": call.rule, "stream": call.is_stream, "max_tokens": 10, "input": "Hello", "prompt": "Hello",
        "messages": [{ "role": "user", "content": "Hello" }],
    });
    let answer = client.post(call.path, &body).await;
    assert_eq!(answer.status, 200, "{} {}: {}", call.rule, call.form, answer.text());
    answer.header("x-gateway-request-id").parse().unwrap()
}

#[tokio::test]
async fn every_vector_costs_in_every_dialect_what_was_worked_out_by_hand() {
    let vectors = vectors();
    let prices = tempfile::tempdir().unwrap();
    let list: Map<String, Value> =
        vectors.iter().map(|vector| (vector["rule"].as_str().unwrap().to_owned(), vector["entry"].clone())).collect();
    for provider in ["openai", "anthropic"] {
        let file = prices.path().join(format!("{provider}.json"));
        std::fs::write(file, serde_json::to_string(&list).unwrap()).unwrap();
    }
    let folder = prices.path().to_str().unwrap();
    let stack = Stack::builder().proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", folder).start().await;
    let (mut sent, mut forms) = (BTreeMap::new(), BTreeMap::<&str, usize>::new());
    for call in vectors.iter().flat_map(calls) {
        *forms.entry(call.form).or_default() += 1;
        sent.insert(ask(&stack, &call).await, call);
    }
    let expected = [
        "chat",
        "chat stream",
        "completions",
        "embeddings",
        "messages",
        "messages stream",
        "responses",
        "responses stream",
    ];
    assert_eq!(forms.keys().copied().collect::<BTreeSet<_>>(), BTreeSet::from(expected));
    assert!(sent.len() >= 60, "only {forms:?}");
    let reader = stack.anonymous().with_key(&stack.home.workspace_key);
    for row in rows(&stack, sent.len()).await {
        let call = &sent[&row.get::<_, Uuid>("id")];
        let name = format!("{} {}", call.rule, call.form);
        assert!(!row.get::<_, bool>("usage_estimated"), "{name}");
        assert_eq!(row.get::<_, Option<Decimal>>("cost"), Some(call.cents), "{name}");
        let log = reader.get(&format!("/logs/{}", row.get::<_, Uuid>("id"))).await;
        assert_eq!(log.status, 200, "{name}: {}", log.text());
        assert_eq!(log.json()["metrics"]["cost"].as_f64(), call.cents.to_f64(), "{name}");
    }
}
