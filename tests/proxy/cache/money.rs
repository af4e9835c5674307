//! What a hit costs: nothing. It counts as a request of its key and workspace, takes neither tokens nor money nor a limit of
//! its provider, and what it saved stands beside it.

use super::{ask, cache_status};
use crate::journal::calls::{rows, tokens};
use crate::limits::limited;
use crate::routing::target;
use harness::{Client, Stack, chat};
use rust_decimal::Decimal;
use serde_json::{Value, json};

fn answer() -> String {
    let usage = json!({ "prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100 });
    let message = json!({ "role": "assistant", "content": "Hello" });
    json!({ "id": "c", "object": "chat.completion", "model": "gpt-4o", "usage": usage,
            "choices": [{ "index": 0, "message": message, "finish_reason": "stop" }] })
    .to_string()
}

fn body() -> Value {
    let mut body = chat("Dear");
    body["model"] = json!("gpt-4o");
    body["max_tokens"] = json!(10);
    body
}

fn keeping(stack: &Stack, client: &Client) -> Client {
    client.with("x-gateway-config", target(stack, json!({ "cache": { "mode": "simple" } })).to_string())
}

#[tokio::test]
async fn a_hit_costs_nothing_and_what_it_saved_is_written_down() {
    let stack = Stack::start().await;
    let client = keeping(&stack, &stack.anonymous().with_key(&stack.home.workspace_key));
    const ATTEMPTS: &str = r#"gateway_upstream_attempts_total{outcome="answered"}"#;
    let attempts = stack.metric(ATTEMPTS).await;
    stack.mock.script(json!([{ "body": answer(), "content_type": "application/json" }])).unwrap();
    assert_eq!(cache_status(&ask(&client, &body()).await), "MISS");
    assert_eq!(cache_status(&ask(&client, &body()).await), "HIT");
    let mut stream = body();
    stream["stream"] = json!(true);
    assert_eq!(cache_status(&ask(&client, &stream).await), "HIT");
    let rows = rows(&stack, 3).await;
    let cents = |row: usize, column: &str| rows[row].get::<_, Option<Decimal>>(column);
    let paid = cents(0, "cost").unwrap();
    assert!(paid > Decimal::ZERO);
    assert_eq!(cents(0, "cache_saved_cost"), None);
    for hit in [1, 2] {
        assert_eq!(cents(hit, "cost"), Some(Decimal::ZERO), "row {hit}");
        assert_eq!(cents(hit, "cache_saved_cost"), Some(paid), "row {hit}");
        assert_eq!(tokens(&rows[hit]), tokens(&rows[0]), "row {hit}");
        assert_eq!(rows[hit].get::<_, i32>("upstream_response_time"), 0, "row {hit}");
    }
    assert!(rows[2].get::<_, bool>("stream_mode"));
    let database = stack.database.client().await;
    const TOTAL: &str = "SELECT value FROM usage_counters WHERE scope = 'workspace' AND unit = $1 AND period = 'total'
        AND starts_at = '-infinity'";
    for (unit, value) in [("requests", Decimal::from(3)), ("tokens", Decimal::from(1100)), ("cost", paid)] {
        let row = database.query_one(TOTAL, &[&unit]).await.unwrap();
        assert_eq!(row.get::<_, Decimal>(0), value, "{unit}");
    }
    assert_eq!(stack.metric(ATTEMPTS).await, attempts.map(|before| before + 1.0), "a hit is no attempt");
}

#[tokio::test]
async fn a_hit_takes_a_request_of_its_key_and_no_tokens() {
    let stack = Stack::start().await;
    let by_tokens = json!({ "rate_limits": [{ "type": "tokens", "unit": "rpd", "value": 1500 }] });
    let client = keeping(&stack, &limited(&stack, by_tokens).await);
    stack.mock.script(json!([{ "body": answer(), "content_type": "application/json" }])).unwrap();
    assert_eq!(cache_status(&ask(&client, &body()).await), "MISS");
    for _ in 0..3 {
        assert_eq!(cache_status(&ask(&client, &body()).await), "HIT", "it uses no tokens");
    }
    let by_requests = json!({ "rate_limits": [{ "type": "requests", "unit": "rpd", "value": 2 }] });
    let client = keeping(&stack, &limited(&stack, by_requests).await);
    for _ in 0..2 {
        assert_eq!(cache_status(&ask(&client, &body()).await), "HIT", "another key of the same workspace");
    }
    assert_eq!(ask(&client, &body()).await.status, 429);
}
