//! Calls that were sent whole and that nobody heard an answer of: the provider very likely worked on them. Each has its row with
//! an estimate of what it read, and is charged; what never left, and what was refused by the provider, costs nothing.

use super::{limited_key, patient};
use crate::journal::calls::{rows, status, tokens};
use crate::routing::target;
use harness::{Client, Stack, chat};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio_postgres::Row;

/// A route that is answered by the engine, and one that is relayed.
const LANES: [&str; 2] = ["/chat/completions", "/threads/runs"];
const SILENT: u64 = 3_600_000;

async fn client(stack: &Stack, config: &Value) -> (Client, Value) {
    let (key, _) = limited_key(stack, json!({ "usage_limits": { "credit_limit": 5 } })).await;
    let mut body = chat(&"word ".repeat(100));
    body["model"] = json!("gpt-4o");
    (stack.anonymous().with_key(&key).with("x-gateway-config", config.to_string()), body)
}

fn cost(row: &Row) -> Decimal {
    row.get::<_, Option<Decimal>>("cost").expect("it has a known price")
}

/// What it read is guessed, nothing is supposed to have been written, and it is paid for.
fn assert_guessed(row: &Row, what: &str) {
    let (prompt, completion) = tokens(row);
    assert!((80..200).contains(&prompt) && completion == 0, "{what}: {prompt} {completion}");
    assert!(row.get::<_, bool>("usage_estimated") && cost(row) > Decimal::ZERO, "{what}: {}", cost(row));
}

async fn is_charged(stack: &Stack, found: &[&Row], what: &str) {
    const COUNTED: &str = "SELECT coalesce(sum(value), 0) FROM usage_counters
        WHERE scope_id = $1 AND unit = 'cost' AND period = 'total' AND starts_at > '-infinity'";
    let key: uuid::Uuid = found[0].get("api_key_id");
    let spent: Decimal = found.iter().map(|row| cost(row)).sum();
    let database = stack.database.client().await;
    let agree = async || {
        let counted: Decimal = database.query_one(COUNTED, &[&key.to_string()]).await.unwrap().get(0);
        counted == spent
    };
    stack.until(what, agree).await;
}

#[tokio::test]
async fn a_call_that_was_sent_whole_and_not_answered_is_charged_by_estimate_on_both_lanes() {
    let stack = patient().await;
    let mut before = 0;
    for lane in LANES {
        for (fault, more, expected) in [
            (json!({ "latency_ms": SILENT }), json!({ "request_timeout": 300 }), 408),
            (json!({ "latency_ms": SILENT }), json!({ "total_timeout": 300 }), 408),
            (json!({ "no_answer": true }), json!({}), 503),
            (json!({ "no_answer": true, "reset": true }), json!({}), 503),
        ] {
            let what = format!("{lane} {fault} {more}");
            stack.mock.script(json!([fault])).unwrap();
            let (client, body) = client(&stack, &target(&stack, more)).await;
            let got = client.post(lane, &body).await;
            assert_eq!(got.status, expected, "{what}: {}", got.text());
            let all = rows(&stack, before + 1).await;
            before = all.len();
            let row = all.last().unwrap();
            assert_eq!(status(row), i32::from(expected), "{what}");
            assert_guessed(row, &what);
            is_charged(&stack, &[row], &what).await;
        }
    }
}

#[tokio::test]
async fn a_call_whose_client_leaves_while_the_provider_works_on_it_is_charged_by_estimate() {
    let stack = patient().await;
    for (number, lane) in LANES.into_iter().enumerate() {
        stack.mock.reset();
        stack.mock.script(json!([{ "latency_ms": SILENT }])).unwrap();
        let (client, body) = client(&stack, &target(&stack, json!({}))).await;
        let waiting = tokio::spawn(async move { client.post(lane, &body).await });
        stack.until("the provider has the call", async || !stack.mock.requests().is_empty()).await;
        waiting.abort();
        let all = rows(&stack, number + 1).await;
        let row = all.last().unwrap();
        assert_eq!(status(row), 499, "{lane}");
        assert_guessed(row, lane);
        is_charged(&stack, &[row], lane).await;
    }
}

#[tokio::test]
async fn each_try_that_was_not_answered_has_its_row_when_another_one_follows() {
    let stack = patient().await;
    let hasty = || target(&stack, json!({ "request_timeout": 300 }));
    let fallback = json!({ "strategy": { "mode": "fallback" }, "targets": [hasty(), target(&stack, json!({}))] });
    let mut retry = hasty();
    retry["retry"] = json!({ "attempts": 1, "on_status_codes": [408] });
    for (number, config) in [fallback, retry].into_iter().enumerate() {
        stack.mock.script(json!([{ "latency_ms": SILENT }])).unwrap();
        let (client, body) = client(&stack, &config).await;
        assert_eq!(client.post(LANES[0], &body).await.status, 200, "{config}");
        let all = rows(&stack, 2 * (number + 1)).await;
        let mut found: Vec<&Row> = all[2 * number..].iter().collect();
        found.sort_by_key(|row| row.get::<_, i16>("attempt"));
        assert_eq!((status(found[0]), status(found[1])), (408, 200), "{config}");
        assert_guessed(found[0], "the first");
        assert!(!found[1].get::<_, bool>("usage_estimated"), "{config}");
        is_charged(&stack, &found, "both are charged").await;
    }
}

#[tokio::test]
async fn what_never_left_and_what_the_provider_refused_costs_nothing() {
    let stack = patient().await;
    let mut before = 0;
    for lane in LANES {
        for (fault, more, expected) in [
            (json!([]), json!({ "custom_host": "http://127.0.0.1:1/v1" }), 503),
            (json!([{ "status": 500 }]), json!({}), 500),
            (json!([{ "status": 429 }]), json!({}), 429),
            (json!([{ "status": 400 }]), json!({}), 400),
        ] {
            let what = format!("{lane} {fault} {more}");
            stack.mock.script(fault).unwrap();
            let (client, body) = client(&stack, &target(&stack, more)).await;
            assert_eq!(client.post(lane, &body).await.status, expected, "{what}");
            stack.mock.script(json!([])).unwrap();
            let all = rows(&stack, before + 1).await;
            before = all.len();
            let row = all.last().unwrap();
            assert_eq!((tokens(row), cost(row)), ((0, 0), Decimal::ZERO), "{what}");
            assert!(!row.get::<_, bool>("usage_estimated"), "{what}");
        }
    }
}

/// The provider may have made the whole answer, and bills it.
#[tokio::test]
async fn under_a_strict_budget_all_that_the_answer_may_have_had_is_charged() {
    let stack = patient().await;
    let limits = json!({ "usage_limits": { "credit_limit": 5, "strict": true } });
    let (key, _) = limited_key(&stack, limits).await;
    let config = target(&stack, json!({ "request_timeout": 300 }));
    let client = stack.anonymous().with_key(&key).with("x-gateway-config", config.to_string());
    stack.mock.script(json!([{ "latency_ms": SILENT }])).unwrap();
    let mut body = chat(&"word ".repeat(100));
    (body["model"], body["max_tokens"]) = (json!("gpt-4o"), json!(1234));
    assert_eq!(client.post(LANES[0], &body).await.status, 408);
    let all = rows(&stack, 1).await;
    let (prompt, completion) = tokens(&all[0]);
    assert!((80..200).contains(&prompt) && completion == 1234, "{prompt} {completion}");
    assert!(all[0].get::<_, bool>("usage_estimated"));
    is_charged(&stack, &[&all[0]], "both are charged").await;
}
