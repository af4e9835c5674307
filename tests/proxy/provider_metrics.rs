//! What an operator sees of providers: attempts that fallbacks hide from clients, what calls used and cost, and that no
//! tenant can make series without end.

use crate::routing::{ask, target};
use harness::{Client, Stack, chat};
use serde_json::json;

const ATTEMPTS: &str = "gateway_provider_attempts_total";

#[tokio::test]
async fn a_failure_that_a_fallback_made_good_is_a_failed_attempt_of_its_provider() {
    let stack = Stack::start().await;
    let first = target(&stack, json!({ "retry": { "attempts": 1 } }));
    let config = json!({ "strategy": { "mode": "fallback", "cb_config": { "failure_threshold": 1, "cooldown_interval": 60000 } },
        "targets": [first, target(&stack, json!({}))] });
    stack.mock.script(json!([{ "status": 500 }, { "status": 429 }])).unwrap();
    let answer = ask(&stack, &config).await;
    assert_eq!((answer.status.as_u16(), answer.header("x-gateway-attempt-count")), (200, "3"), "{}", answer.text());
    let labels =
        |outcome: &str, status: &str| format!("{{provider=\"openai\",status=\"{status}\",outcome=\"{outcome}\"}}");
    for (name, labels, count) in [
        (ATTEMPTS, labels("server_error", "5xx"), 1.0),
        (ATTEMPTS, labels("rate_limited", "429"), 1.0),
        (ATTEMPTS, labels("succeeded", "2xx"), 1.0),
        ("gateway_provider_retries_total", "{provider=\"openai\"}".into(), 1.0),
        ("gateway_provider_fallbacks_total", "{provider=\"openai\"}".into(), 1.0),
        ("gateway_provider_first_byte_seconds_count", "{provider=\"openai\"}".into(), 3.0),
        ("gateway_provider_circuits", "{provider=\"openai\",state=\"closed\"}".into(), 2.0),
    ] {
        stack.until_metric(&format!("{name}{labels}"), count).await;
    }
    let relayed = stack.client().post("/rerank", &json!({ "query": "q", "documents": [] })).await;
    let line = format!("{ATTEMPTS}{}", labels("succeeded", "2xx"));
    assert!(relayed.status.is_success(), "{}", relayed.text());
    stack.until_metric(&line, 2.0).await;
}

#[tokio::test]
async fn tokens_and_costs_are_counted_by_models_that_the_price_list_has() {
    let stack = Stack::builder().proxy("METRICS_WORKSPACES", "1").start().await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    let home = stack.home.workspace_id;
    let counted = format!("gateway_workspace_calls_total{{outcome=\"succeeded\",workspace=\"{home}\"}}");
    stack.until("the first workspace is counted", async || stack.metric(&counted).await == Some(1.0)).await;
    let other = stack.organisation().await;
    let mut unheard = chat("Hello");
    for number in 0..3 {
        unheard["model"] = json!(format!("a-tenants-own-{number}"));
        assert_eq!(stack.as_application(&other.workspace_key).post("/chat/completions", &unheard).await.status, 200);
    }
    let page = async || Client::new(&stack.metrics_url).get("/metrics").await.text();
    stack
        .until("the calls are counted", async || page().await.matches("gateway_workspace_calls_total{").count() == 2)
        .await;
    let listed = "gateway_tokens_total{kind=\"prompt\",model=\"gpt-4o-mini\",provider=\"openai\"}";
    stack
        .until("all of them are", async || {
            let calls = stack.metric("gateway_workspace_calls_total{outcome=\"succeeded\",workspace=\"other\"}").await;
            calls == Some(3.0) && stack.metric(listed).await.is_some_and(|tokens| tokens > 0.0)
        })
        .await;
    let text = page().await;
    assert!(text.contains("gateway_cost_cents_total{model=\"gpt-4o-mini\",provider=\"openai\"}"), "{text}");
    assert!(text.contains(&format!("workspace=\"{}\"", stack.home.workspace_id)), "{text}");
    assert!(!text.contains("a-tenants-own") && !text.contains(&other.workspace_id.to_string()), "{text}");
    assert!(text.contains(&format!("gateway_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"))), "{text}");
}

#[tokio::test]
async fn counters_are_counters() {
    let stack = Stack::start().await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    let text = Client::new(&stack.metrics_url).get("/metrics").await.text();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE gateway_")) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert_eq!(name.ends_with("_total"), kind == "counter", "gateway_{name} is a {kind}");
    }
}
