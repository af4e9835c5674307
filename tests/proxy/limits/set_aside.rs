//! Answers that were paid and then set aside: denied, of no use, or replaced by a retry or a fallback. Each has its row with
//! what it used and cost, and is charged; a strict budget must have as much again before the next call leaves.

use super::{limited_key, patient};
use crate::journal::calls::{rows, status, tokens};
use crate::routing::target;
use harness::{Client, Stack};
use rust_decimal::Decimal;
use serde_json::{Value, json};

const MODEL: &str = "gpt-4o";

fn answer(text: &str) -> Value {
    used(text, 1000, 100)
}

fn used(text: &str, prompt: u64, completion: u64) -> Value {
    let body = json!({ "id": "c", "object": "chat.completion", "model": MODEL,
        "usage": { "prompt_tokens": prompt, "completion_tokens": completion },
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }] });
    json!({ "body": body.to_string(), "content_type": "application/json" })
}

fn ask() -> Value {
    let long = "word ".repeat(990);
    json!({ "model": MODEL, "max_tokens": 100, "messages": [{ "role": "user", "content": long }] })
}

fn denying(stack: &Stack, more: Value) -> Value {
    let deny = json!({ "default.contains": { "words": ["leak"], "operator": "none" }, "deny": true });
    let mut one = target(stack, json!({ "output_guardrails": [deny] }));
    one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    one
}

fn fallback(first: Value, second: Value) -> Value {
    json!({ "strategy": { "mode": "fallback" }, "targets": [first, second] })
}

async fn client(stack: &Stack, config: &Value, limits: Value) -> Client {
    let (key, _) = limited_key(stack, limits).await;
    stack.anonymous().with_key(&key).with("x-gateway-config", config.to_string())
}

/// What happens, the script of the provider, the call, and its rows: status and tokens, where they were paid for.
type Case = (&'static str, Value, Value, Vec<(i32, Option<(i64, i64)>)>);

#[tokio::test]
async fn every_answer_that_is_paid_has_its_row_whatever_became_of_it() {
    let stack = patient().await;
    let plain = || target(&stack, json!({}));
    let unusable = json!({ "body": "<html>", "content_type": "application/json" });
    let retry = json!({ "retry": { "attempts": 1, "on_status_codes": [446] } });
    let messages = json!({ "provider": "anthropic", "api_key": "sk", "custom_host": stack.mock.url() });
    let foreign = json!({ "body": "{\"type\":7,\"usage\":{\"input_tokens\":1000,\"output_tokens\":100}}", "content_type": "application/json" });
    let exact = (1000, 100);
    let cases: Vec<Case> = vec![
        (
            "denied, then a fallback",
            fallback(denying(&stack, json!({})), plain()),
            json!([answer("a leak"), answer("good")]),
            vec![(446, Some(exact)), (200, Some(exact))],
        ),
        (
            "denied, then a retry",
            denying(&stack, retry),
            json!([answer("a leak"), answer("good")]),
            vec![(446, Some(exact)), (200, Some(exact))],
        ),
        ("denied at last", denying(&stack, json!({})), json!([answer("a leak")]), vec![(446, Some(exact))]),
        (
            "not JSON, then a fallback",
            fallback(plain(), plain()),
            json!([unusable, answer("good")]),
            vec![(502, None), (200, Some(exact))],
        ),
        (
            "not translatable, then a fallback",
            fallback(messages, plain()),
            json!([foreign, answer("good")]),
            vec![(502, Some(exact)), (200, Some(exact))],
        ),
        ("not JSON at last", plain(), json!([unusable]), vec![(502, None)]),
    ];
    let mut before = 0;
    for (what, config, faults, expected) in &cases {
        stack.mock.script(faults.clone()).unwrap();
        let client = client(&stack, config, json!({ "usage_limits": { "credit_limit": 5 } })).await;
        let got = client.post("/chat/completions", &ask()).await;
        assert_eq!(i32::from(got.status.as_u16()), expected.last().unwrap().0, "{what}: {}", got.text());
        let all = rows(&stack, before + expected.len()).await;
        let mut found: Vec<_> = all[before..].iter().collect();
        found.sort_by_key(|row| row.get::<_, i16>("attempt"));
        before = all.len();
        let mut cost = Decimal::ZERO;
        for (row, (code, used)) in found.iter().zip(expected) {
            assert_eq!(status(row), *code, "{what}");
            match used {
                Some(used) => assert_eq!(tokens(row), *used, "{what} {code}"),
                None => assert!(tokens(row).0 > 500 && row.get::<_, bool>("usage_estimated"), "{what} {code}"),
            }
            let own: Option<Decimal> = row.get("cost");
            // The model of the calls has no price at the provider of the foreign answer.
            let is_listed = !(*code == 502 && used.is_some());
            assert_eq!(own.is_some_and(|cost| cost > 0.into()), is_listed, "{what} {code}: {own:?}");
            cost += own.unwrap_or_default();
        }
        let key: uuid::Uuid = found[0].get("api_key_id");
        const COUNTED: &str = "SELECT coalesce(sum(value), 0) FROM usage_counters
            WHERE scope_id = $1 AND unit = 'cost' AND period = 'total' AND starts_at > '-infinity'";
        let database = stack.database.client().await;
        let is_charged = async || {
            let counted: Decimal = database.query_one(COUNTED, &[&key.to_string()]).await.unwrap().get(0);
            counted == cost
        };
        stack.until(what, is_charged).await;
    }
}

/// A call costs 66 cents, and a little for what it reads; the smaller budget has one and a half.
#[tokio::test]
async fn a_strict_budget_must_have_as_much_again_for_the_next_try() {
    let stack = patient().await;
    let retry = json!({ "retry": { "attempts": 1, "on_status_codes": [446] } });
    let configs = [denying(&stack, retry), fallback(denying(&stack, json!({})), target(&stack, json!({})))];
    for config in configs {
        for (dollars, expected) in [(1, 412), (5, 200)] {
            stack.mock.reset();
            stack.mock.script(json!([used("a leak", 10, 66_000), used("good", 10, 66_000)])).unwrap();
            let limits = json!({ "usage_limits": { "credit_limit": dollars, "strict": true } });
            let client = client(&stack, &config, limits).await;
            let short = json!({ "model": MODEL, "max_tokens": 66_000, "service_tier": "default",
                "messages": [{ "role": "user", "content": "Hello" }] });
            let got = client.post("/chat/completions", &short).await;
            assert_eq!(got.status, expected, "{dollars} {config}: {}", got.text());
            assert_eq!(stack.mock.requests().len(), if expected == 200 { 2 } else { 1 }, "{dollars} {config}");
        }
    }
}
