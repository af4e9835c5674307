//! Checks that a model of the workspace's own answers: it is asked by an ordinary call that is logged as internal, meets no
//! guardrail and no cache itself, and whose rubbish, errors and silence are errors of its check.

use crate::journal::calls::{rows, status};
use crate::limits::{limited_key, patient};
use crate::routing::{asked, client, target};
use harness::{Stack, chat};
use serde_json::{Value, json};

/// A saved config that leads to the mock, known to the proxy.
async fn judge(stack: &Stack, more: Value) -> String {
    let mut config = target(stack, json!({ "override_params": { "model": "gpt-4o" } }));
    config.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let body = json!({ "name": "Judge", "workspace_id": stack.home.workspace_id, "config": config });
    let slug = stack.home.create("/configs", body).await["slug"].as_str().unwrap().to_owned();
    let known = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", &slug);
    let question = json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-config": slug } });
    stack.until("the config is known", async || known.post("/explain", &question).await.status == 200).await;
    slug
}

fn hook(parameters: Value, more: Value) -> Value {
    let mut judged = json!({ "instructions": "It is polite.", "timeout": 10_000 });
    judged.as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
    let mut hook = json!({ "gateway.judge": judged, "deny": true });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hook
}

fn verdict(passes: bool) -> String {
    json!({ "verdict": passes, "explanation": "because of its tone" }).to_string()
}

#[tokio::test]
async fn a_model_passes_and_denies_requests_and_answers() {
    let stack = Stack::start().await;
    let slug = judge(&stack, json!({})).await;
    for (side, first) in [("input_guardrails", true), ("output_guardrails", false)] {
        let client = client(&stack, &target(&stack, json!({ side: [hook(json!({ "config": slug }), json!({}))] })));
        for (passes, expected) in [(true, 200), (false, 446)] {
            let (said, answer) = (json!({ "reply": verdict(passes) }), json!({ "reply": "an answer" }));
            stack.mock.script(if first { json!([said, answer]) } else { json!([answer, said]) }).unwrap();
            let answer = client.post("/chat/completions", &chat("hello")).await;
            assert_eq!(answer.status, expected, "{side}: {}", answer.text());
            assert!(answer.text().contains("because of its tone"), "{side}: {}", answer.text());
            stack.mock.reset();
        }
    }
}

#[tokio::test]
async fn its_call_is_logged_as_internal_with_its_cost_and_meets_no_guardrail_and_no_cache() {
    let stack = Stack::start().await;
    // What it leads to has guardrails of its own, which ask it again, and a cache.
    let denies = json!({ "default.contains": { "words": ["text"], "operator": "none" }, "deny": true });
    let slug = judge(&stack, json!({ "input_guardrails": [denies], "cache": { "mode": "simple" } })).await;
    let config = target(&stack, json!({ "input_guardrails": [hook(json!({ "config": slug }), json!({}))] }));
    let client = client(&stack, &config).with("x-gateway-trace-id", "trace-judged");
    for _ in 0..2 {
        stack.mock.script(json!([{ "reply": verdict(true) }, { "reply": "an answer" }])).unwrap();
        let answer = client.post("/chat/completions", &chat("hello")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(asked(&stack), 4, "each request is judged anew");
    let rows = rows(&stack, 4).await;
    let internal: Vec<_> =
        rows.iter().filter(|row| row.get::<_, Value>("metadata")["_internal"] == "guardrail").collect();
    assert_eq!(internal.len(), 2);
    for row in internal {
        assert_eq!(status(row), 200);
        assert_eq!(row.get::<_, &str>("trace_id"), "trace-judged");
        assert_eq!(row.get::<_, Option<&str>>("ai_model"), Some("gpt-4o"));
        assert!(row.get::<_, i64>("res_units") > 0);
    }
}

#[tokio::test]
async fn what_is_no_verdict_is_an_error_and_fails_only_where_it_is_to() {
    let stack = Stack::start().await;
    let slug = judge(&stack, json!({})).await;
    let long = "x".repeat(2 << 20);
    for (fault, name) in [
        (json!({ "reply": "It is fine, I think." }), "InvalidAnswer"),
        (json!({ "reply": "{\"verdict\": \"yes\"}" }), "InvalidAnswer"),
        (json!({ "status": 400 }), "HttpError"),
        (json!({ "reply": long }), "AnswerTooLong"),
        (json!({ "latency_ms": 3_600_000 }), "TimeoutError"),
    ] {
        for (fails, expected) in [(false, 200), (true, 446)] {
            stack.mock.script(json!([fault, { "reply": "an answer" }])).unwrap();
            let timeout = if name == "TimeoutError" { 300 } else { 10_000 };
            let hook = hook(json!({ "config": slug, "timeout": timeout, "failOnError": fails }), json!({}));
            let client = client(&stack, &target(&stack, json!({ "input_guardrails": [hook] })));
            let answer = client.post("/chat/completions", &chat("hello")).await;
            assert_eq!(answer.status, expected, "{name} {fails}: {}", answer.text());
            let check = &answer.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
            assert_eq!(check["error"]["name"], name, "{check}");
            stack.mock.reset();
        }
    }
}

#[tokio::test]
async fn a_config_of_another_workspace_judges_nobody() {
    let stack = Stack::start().await;
    let other = stack.organisation().await;
    let config = json!({ "name": "Theirs", "workspace_id": other.workspace_id, "config": target(&stack, json!({})) });
    let slug = other.create("/configs", config).await["slug"].as_str().unwrap().to_owned();
    let theirs = stack.anonymous().with_key(&other.workspace_key).with("x-gateway-config", &slug);
    stack
        .until("their config is known", async || theirs.post("/chat/completions", &chat("hello")).await.status == 200)
        .await;
    let before = asked(&stack);
    for parameters in [json!({ "config": slug }), json!({ "provider": "@nobody", "model": "m" })] {
        let mut parameters = parameters;
        parameters["failOnError"] = json!(true);
        let config = target(&stack, json!({ "input_guardrails": [hook(parameters, json!({}))] }));
        let answer = client(&stack, &config).post("/chat/completions", &chat("hello")).await;
        assert_eq!(answer.status, 446, "{}", answer.text());
        let check = &answer.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
        assert_eq!(check["error"]["name"], "HttpError", "{check}");
    }
    assert_eq!(asked(&stack), before);
}

/// A model that judges is a call of whoever's request it judges: its budgets have it, and a strict one must promise it.
#[tokio::test]
async fn its_call_is_charged_to_the_budgets_of_whoever_caused_it() {
    let stack = patient().await;
    let slug = judge(&stack, json!({})).await;
    let hook = hook(json!({ "config": slug, "failOnError": true }), json!({}));
    let config = target(&stack, json!({ "input_guardrails": [hook] })).to_string();
    let mut body = chat("hello");
    body["max_tokens"] = json!(50);
    for (budget, answered) in [
        (json!({ "type": "tokens", "credit_limit": 1_000_000 }), 200),
        (json!({ "type": "tokens", "credit_limit": 1_000_000, "strict": true }), 200),
        // Enough for the answer, and not for its judge.
        (json!({ "type": "tokens", "credit_limit": body.to_string().len() + 60, "strict": true }), 446),
    ] {
        stack.mock.reset();
        stack.mock.script(json!([{ "reply": verdict(true) }, { "reply": "an answer" }])).unwrap();
        let (key, _) = limited_key(&stack, json!({ "usage_limits": budget })).await;
        let client = stack.anonymous().with_key(&key).with("x-gateway-config", &config);
        let answer = client.post("/chat/completions", &body).await;
        assert_eq!(answer.status, answered, "{budget}: {}", answer.text());
        if answered != 200 {
            assert_eq!(asked(&stack), 0, "{budget}: nobody was asked");
            continue;
        }
        const SUMS: &str = "SELECT coalesce(sum(c.value), -1) = (SELECT sum(req_units + res_units) FROM request_logs l
                WHERE l.api_key_id::text = k.id::text) AND (SELECT count(*) FROM request_logs l
                WHERE l.api_key_id = k.id AND res_units > 0) = 2
            FROM api_keys k JOIN usage_counters c ON c.scope_id = k.id::text AND c.scope = 'api_key' AND c.unit = 'tokens'
                AND c.period = 'total' AND c.starts_at > '-infinity'
            WHERE k.created_at = (SELECT max(created_at) FROM api_keys) GROUP BY k.id";
        let database = stack.database.client().await;
        let is_charged = async || {
            let row = database.query_opt(SUMS, &[]).await.unwrap();
            row.is_some_and(|row| row.get::<_, Option<bool>>(0) == Some(true))
        };
        stack.until("the judge and the answer are charged", is_charged).await;
    }
}
