//! Budgets as applications meet them, and what they come to in Postgres.

use super::{limited, limited_key, patient, policy};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

/// A call whose length is bounded, as strict budgets want it.
fn short() -> Value {
    let mut body = chat("Hello");
    body["max_tokens"] = json!(5);
    body
}

async fn ask(client: &Client) -> Answer {
    client.post("/chat/completions", &short()).await
}

async fn one(stack: &Stack, query: &str) -> Option<f64> {
    let row = stack.database.client().await.query_opt(query, &[]).await.unwrap();
    row.and_then(|row| row.get(0))
}

#[tokio::test]
async fn a_budget_of_tokens_is_used_up_by_what_calls_use_and_is_counted_in_postgres() {
    let stack = patient().await;
    let (_, client) = limited_key(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 1 } })).await;
    let first = ask(&client).await;
    assert_eq!(first.status, 200, "passes while anything is left: {}", first.text());
    let used = first.json()["usage"]["total_tokens"].as_f64().unwrap();
    let refused = ask(&client).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    let error = &refused.json()["error"];
    assert_eq!((&error["code"], &error["type"]), (&json!("budget_exhausted"), &json!("usage_limit_exceeded")));
    assert!(error["message"].as_str().unwrap().contains("this API key"), "{error}");
    const COUNTED: &str = "SELECT c.value::float8 FROM usage_counters c JOIN api_keys k ON c.scope_id = k.id::text
        WHERE c.scope = 'api_key' AND c.unit = 'tokens' AND c.period = 'total'
          AND c.starts_at = (k.usage_limits ->> 'last_reset_at')::timestamptz";
    stack.until("usage arrives", async || one(&stack, COUNTED).await == Some(used)).await;
}

#[tokio::test]
async fn a_strict_budget_wants_to_know_the_most_a_call_may_cost() {
    let stack = patient().await;
    let client = limited(&stack, json!({ "usage_limits": { "credit_limit": 1, "strict": true } })).await;
    let unbounded = client.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(unbounded.status, 412, "{}", unbounded.text());
    assert!(unbounded.text().contains("max_tokens"), "{}", unbounded.text());
    let bounded = ask(&client).await;
    assert_eq!(bounded.status, 200, "{}", bounded.text());
    let mut dear = short();
    dear["max_tokens"] = json!(1_000_000_000);
    assert_eq!(client.post("/chat/completions", &dear).await.status, 412, "more than there is");
    let mut unpriced = short();
    unpriced["model"] = json!("nobody-has-a-price-for-this");
    assert_eq!(client.post("/chat/completions", &unpriced).await.status, 412, "unknown price");
}

#[tokio::test]
async fn a_policy_budgets_each_group_and_a_reset_of_one_lets_it_go_on() {
    let stack = patient().await;
    let body = json!({
        "name": "few-tokens", "type": "tokens", "credit_limit": 100, "group_by": [{ "key": "metadata._user" }],
        "conditions": [{ "key": "metadata._user", "value": "*" }],
    });
    let id = policy(&stack, "/policies/usage-limits", body).await;
    let as_user = |name: &str| stack.client().with("x-gateway-metadata", json!({ "_user": name }).to_string());
    let alice = as_user("alice");
    stack.until("the policy is known", async || ask(&alice).await.status == 412).await;
    let refused = ask(&alice).await;
    assert!(refused.text().contains("few-tokens") && refused.text().contains(&id), "{}", refused.text());
    assert_eq!(ask(&as_user("bob")).await.status, 200, "another group has its own");
    let reset = json!({ "reset_usage_for_value": "metadata._user:alice" });
    let path = format!("/policies/usage-limits/{id}");
    let answer = stack.administrator().put(&path, &reset).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    stack.until("the group begins anew", async || ask(&alice).await.status == 200).await;
}
