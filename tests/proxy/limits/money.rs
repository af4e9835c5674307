//! Budgets in money, end to end: prices come from the catalogue, what is counted is what the logs cost to the last
//! nano-cent, and beyond the budget nothing passes.

use super::{patient, policy};
use futures::future::join_all;
use harness::{Answer, Client, Stack, chat};
use rust_decimal::Decimal;
use serde_json::{Value, json};

/// gpt-4o costs 0.00025 cents a token that it reads, half of that when it read it before, and 0.001 one that it writes.
const MODEL: &str = "gpt-4o";

fn answer(usage: Value) -> String {
    let message = json!({ "role": "assistant", "content": "Hello" });
    json!({ "id": "c", "object": "chat.completion", "model": MODEL, "usage": usage,
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
    .to_string()
}

fn long(most: Option<u64>) -> Value {
    let mut body = chat("Hello");
    body["model"] = json!(MODEL);
    if let Some(most) = most {
        body["max_tokens"] = json!(most);
        // Else a strict budget reserves what the dearest tier costs that the account may be set to.
        body["service_tier"] = json!("default");
    }
    body
}

async fn ask(client: &Client, most: Option<u64>) -> Answer {
    client.post("/chat/completions", &long(most)).await
}

struct Key {
    id: String,
    client: Client,
}

async fn key(stack: &Stack, budget: Value) -> Key {
    let mut body =
        json!({ "name": "k", "workspace_id": stack.home.workspace_id, "scopes": ["completions.write", "models.list"] });
    if !budget.is_null() {
        body["usage_limits"] = budget;
    }
    let made = stack.administrator().post("/api-keys/workspace/service", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let made = made.json();
    let secret = made["key"].as_str().unwrap();
    stack.until_known(secret).await;
    Key { id: made["id"].as_str().unwrap().to_owned(), client: stack.as_application(secret) }
}

async fn sums(stack: &Stack, key: &Key, scope: &str) -> (Option<Decimal>, Option<Decimal>) {
    const LOGGED: &str = "SELECT sum(cost) FROM request_logs WHERE api_key_id = $1::text::uuid";
    const COUNTED: &str =
        "SELECT sum(value) FROM usage_counters WHERE scope = $1 AND unit = 'cost' AND period = 'total'
        AND starts_at > '-infinity' AND (scope_id = $2 OR scope_id LIKE '%/api_key:' || $2)";
    let database = stack.database.client().await;
    let logged = database.query_one(LOGGED, &[&key.id]).await.unwrap().get(0);
    (logged, database.query_one(COUNTED, &[&scope, &key.id]).await.unwrap().get(0))
}

#[tokio::test]
async fn what_is_spent_is_what_the_logs_cost_and_the_budget_ends_there() {
    let stack = patient().await;
    let usage = json!({ "prompt_tokens": 123_457, "completion_tokens": 40_009, "total_tokens": 163_466,
                        "prompt_tokens_details": { "cached_tokens": 1_000 } });
    stack.mock.script(json!([{ "body": answer(usage), "times": 1000 }])).unwrap();
    // 122,457 × 0.00025 + 1,000 × 0.000125 + 40,009 × 0.001
    let each: Decimal = "70.74825".parse().unwrap();
    let of_policy = key(&stack, Value::Null).await;
    let body = json!({
        "name": "two dollars", "type": "cost", "credit_limit": 2, "group_by": [{ "key": "api_key" }],
        "conditions": [{ "key": "api_key", "value": of_policy.id }],
    });
    let id = policy(&stack, "/policies/usage-limits", body).await;
    const LAST: &str = "SELECT max(changed_xid::text::bigint)::float8 FROM usage_limits_policies";
    let last: f64 = stack.database.client().await.query_one(LAST, &[]).await.unwrap().get(0);
    let arrived = async || stack.metric("gateway_snapshot_cursor").await.is_some_and(|cursor| cursor > last);
    stack.until("the policy has arrived", arrived).await;
    for (key, scope) in [(key(&stack, json!({ "credit_limit": 2 })).await, "api_key"), (of_policy, "policy")] {
        // A default budget lets the call pass that goes beyond it, and no other.
        for expected in [200, 200, 200, 412, 412] {
            let answer = ask(&key.client, None).await;
            assert_eq!(answer.status, expected, "{scope}: {}", answer.text());
        }
        let spent = each * Decimal::from(3);
        let agree = async || sums(&stack, &key, scope).await == (Some(spent), Some(spent));
        stack.until("what is counted is what the logs cost", agree).await;
        assert_eq!(ask(&key.client, None).await.status, 412, "also when everything is settled");
    }
    let shown = stack.administrator().get(&format!("/policies/usage-limits/{id}/entities")).await.json();
    assert_eq!(shown["data"][0]["current_usage"], 2.122_447_5, "in dollars");
}

#[tokio::test]
async fn a_strict_budget_of_money_is_never_overspent_by_calls_at_once() {
    const MAX: u64 = 20_000;
    let stack = patient().await;
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": MAX, "total_tokens": MAX + 9 });
    stack.mock.script(json!([{ "body": answer(usage), "times": 1000, "latency_ms": 100 }])).unwrap();
    let strict = json!({ "credit_limit": 1, "strict": true });
    let first = key(&stack, strict.clone()).await;
    stack.until("prices are known", async || ask(&first.client, Some(1)).await.status == 200).await;
    let key = key(&stack, strict).await;
    let answers = join_all((0..12).map(|_| ask(&key.client, Some(MAX)))).await;
    let mut passed = answers.iter().filter(|answer| answer.status == 200).count();
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.status == 412));
    // Each may cost 20 cents and the prompt; the fifth would go beyond the dollar.
    while passed < 4 {
        let answer = ask(&key.client, Some(MAX)).await;
        assert_eq!(answer.status, 200, "there is room for {} more: {}", 4 - passed, answer.text());
        passed += 1;
    }
    assert_eq!(passed, 4);
    let refused = ask(&key.client, Some(MAX)).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    let spent: Decimal = "80.009".parse().unwrap();
    let agree = async || sums(&stack, &key, "api_key").await == (Some(spent), Some(spent));
    stack.until("what is counted is what the logs cost", agree).await;
    assert_eq!(ask(&key.client, Some(MAX)).await.status, 412, "nor when everything is settled");
    stack.mock.reset();
    assert_eq!(ask(&key.client, Some(10_000)).await.status, 200, "what still fits passes");
}
