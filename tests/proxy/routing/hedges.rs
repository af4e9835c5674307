//! Hedged requests: a second attempt beside a slow first one, and never more than the budget allows.

use super::{ask, asked, target};
use crate::journal::calls::{rows, status, tokens};
use crate::limits::{limited_key, patient};
use harness::Stack;
use rust_decimal::Decimal;
use serde_json::{Value, json};

const SLOW: u64 = 60_000;

fn hedged(stack: &Stack, more: Value) -> Value {
    let mut config = target(stack, json!({ "hedge": { "after_ms": 100 } }));
    config.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    config
}

#[tokio::test]
async fn a_slow_attempt_is_overtaken_by_a_second_one_and_cancelled() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "latency_ms": SLOW }])).unwrap();
    let answer = ask(&stack, &hedged(&stack, json!({}))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-gateway-retry-attempt-count"), "0", "a hedge is no retry");
    stack.mock.until(|counts| counts.in_flight == 0).await;
    stack.until_metric(r#"gateway_hedges_total{winner="second"}"#, 1.0).await;
    stack.until_metric(r#"gateway_upstream_attempts_total{outcome="overtaken"}"#, 1.0).await;
    assert_eq!(asked(&stack), 2);
}

#[tokio::test]
async fn a_prompt_answer_needs_no_second_attempt() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "hedge": { "after_ms": SLOW } }));
    for fault in [json!([]), json!([{ "status": 500 }])] {
        stack.mock.script(fault).unwrap();
        let before = asked(&stack);
        ask(&stack, &config).await;
        assert_eq!(asked(&stack) - before, 1);
    }
}

#[tokio::test]
async fn a_failure_waits_for_the_other_attempt() {
    let stack = Stack::start().await;
    for (what, faults, status) in [
        ("the second fails", json!([{ "latency_ms": 600 }, { "status": 500 }]), 200),
        ("the first fails late", json!([{ "latency_ms": 400, "status": 500 }, { "latency_ms": 600 }]), 200),
        ("both fail", json!([{ "latency_ms": 400, "status": 503 }, { "status": 500 }]), 503),
        (
            "a caller's mistake is one for both",
            json!([{ "latency_ms": 400, "status": 400 }, { "latency_ms": SLOW }]),
            400,
        ),
    ] {
        stack.mock.script(faults).unwrap();
        let answer = ask(&stack, &hedged(&stack, json!({}))).await;
        assert_eq!(answer.status, status, "{what} {}", answer.text());
    }
}

#[tokio::test]
async fn a_hedge_comes_out_of_the_retry_budget() {
    let stack = Stack::start().await;
    let config = hedged(&stack, json!({ "retry": { "attempts": 0, "budget_percent": 0 } }));
    stack.mock.script(json!([{ "latency_ms": 1000, "times": 60 }])).unwrap();
    let begun = std::time::Instant::now();
    let calls = (0..20).map(|_| ask(&stack, &config));
    let answers = futures::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    // Ten are free, and one comes back each second.
    let most = 20 + 10 + begun.elapsed().as_secs() + 1;
    assert!((21..=most).contains(&asked(&stack)), "{} of at most {most}", asked(&stack));
}

#[tokio::test]
async fn a_percentile_waits_until_it_knows_enough() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "hedge": { "percentile": 90 } }));
    for _ in 0..100 {
        assert_eq!(ask(&stack, &config).await.status, 200);
    }
    assert_eq!(stack.metric(r#"gateway_hedges_total{winner="second"}"#).await, Some(0.0));
    stack.mock.script(json!([{ "latency_ms": SLOW }])).unwrap();
    assert_eq!(ask(&stack, &config).await.status, 200, "a hundred answers tell what slow is");
    stack.until_metric(r#"gateway_hedges_total{winner="second"}"#, 1.0).await;
}

#[tokio::test]
async fn a_call_that_was_overtaken_has_its_row_with_what_it_read_and_is_charged() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "latency_ms": SLOW }])).unwrap();
    assert_eq!(ask(&stack, &hedged(&stack, json!({}))).await.status, 200);
    let found = rows(&stack, 2).await;
    let by_status = |wanted: i32| found.iter().find(|row| status(row) == wanted).expect("a row");
    let (lost, won) = (by_status(499), by_status(200));
    assert!(lost.get::<_, bool>("usage_estimated") && !won.get::<_, bool>("usage_estimated"));
    assert!(tokens(lost).0 > 0 && tokens(lost).1 == 0, "{:?}", tokens(lost));
    assert!(lost.get::<_, Option<Decimal>>("cost").is_some_and(|cost| cost > 0.into()));
    assert_eq!(lost.get::<_, uuid::Uuid>("internal_trace_id"), won.get::<_, uuid::Uuid>("internal_trace_id"));
}

#[tokio::test]
async fn nothing_is_called_twice_where_a_limit_was_asked_for_one_call() {
    let stack = patient().await;
    let (key, _) = limited_key(&stack, json!({ "usage_limits": { "credit_limit": 1, "strict": true } })).await;
    let client = stack.anonymous().with_key(&key);
    let client = client.with("x-gateway-config", hedged(&stack, json!({})).to_string());
    stack.mock.script(json!([{ "latency_ms": 600 }])).unwrap();
    let mut body = harness::chat("Hello");
    body["max_tokens"] = json!(10);
    let answer = client.post("/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(asked(&stack), 1);
}
