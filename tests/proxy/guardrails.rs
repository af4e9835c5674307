//! Guardrails of configs over HTTP: what is denied, marked and told, what the log keeps of it, and what is counted.

mod async_hooks;
mod defaults;
mod graded;
mod inline_images;
pub mod lanes;
mod matrix;
mod methods;
mod native_routes;
mod relayed;
mod remote;
mod token_claims;

use crate::journal::calls::{rows, status};
use crate::routing::{asked, client, target};
use harness::{Stack, chat};
use serde_json::{Value, json};

fn none_of(word: &str, more: Value) -> Value {
    let mut hook = json!({ "default.contains": { "words": [word], "operator": "none" } });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    hook
}

#[tokio::test]
async fn a_denied_request_is_446_in_every_dialect_and_no_provider_hears_of_it() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "input_guardrails": [none_of("secret", json!({ "deny": true }))] }));
    let said = json!([{ "role": "user", "content": "a secret" }]);
    for (path, body) in [
        ("/chat/completions", json!({ "model": "m", "messages": said })),
        ("/chat/completions", json!({ "model": "m", "messages": said, "stream": true })),
        ("/completions", json!({ "model": "m", "prompt": "a secret" })),
        ("/messages", json!({ "model": "m", "max_tokens": 5, "messages": said })),
        ("/responses", json!({ "model": "m", "input": "a secret" })),
        ("/embeddings", json!({ "model": "m", "input": "a secret" })),
    ] {
        let answer = client(&stack, &config).post(path, &body).await;
        assert_eq!(answer.status, 446, "{path}: {}", answer.text());
        let told = answer.json();
        assert_eq!(told["error"]["type"], "hooks_failed", "{path}");
        assert_eq!(told["hook_results"]["before_request_hooks"][0]["checks"][0]["id"], "default.contains", "{path}");
    }
    assert_eq!(asked(&stack), 0);
    let counted = stack.metric(r#"gateway_guardrail_checks_total{check="default.contains",verdict="fail"}"#).await;
    assert_eq!(counted, Some(6.0));
}

#[tokio::test]
async fn the_log_keeps_what_hooks_said_and_their_feedback_is_on_the_trace() {
    let stack = Stack::start().await;
    let feedback = json!({ "on_fail": { "feedback": { "value": -3, "weight": 0.5, "metadata": { "why": "word" } } } });
    let config = target(&stack, json!({ "input_guardrails": [none_of("secret", feedback)] }));
    let client = client(&stack, &config).with("x-gateway-trace-id", "trace-guarded");
    let answer = client.post("/chat/completions", &chat("a secret")).await;
    assert_eq!(answer.status, 246, "{}", answer.text());
    let row = &rows(&stack, 1).await[0];
    assert_eq!(status(row), 246);
    let told: Value = row.get("hook_results");
    assert_eq!(told["before_request_hooks"][0]["verdict"], false, "{told}");
    let database = stack.database.client().await;
    let found =
        database.query("SELECT value, metadata FROM feedback WHERE trace_id = 'trace-guarded'", &[]).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].get::<_, i32>("value"), -3);
    assert_eq!(found[0].get::<_, Value>("metadata")["failedChecks"], "default.contains");
}

#[tokio::test]
async fn a_config_with_a_check_that_does_not_exist_is_refused_with_the_nearest_name() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "input_guardrails": [{ "default.contain": { "words": ["x"] } }] }));
    let answer = client(&stack, &config).post("/chat/completions", &chat("hi")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("did you mean `default.contains`?"), "{}", answer.text());
    assert_eq!(asked(&stack), 0);
}

#[tokio::test]
async fn kinds_of_requests_are_judged_on_the_relay_lane_too() {
    let stack = Stack::start().await;
    let kinds = json!({ "default.allowedRequestTypes": { "allowedTypes": ["chatComplete"] }, "deny": true });
    let config = target(&stack, json!({ "input_guardrails": [kinds] }));
    let client = client(&stack, &config);
    assert_eq!(client.post("/chat/completions", &chat("hi")).await.status, 200);
    let relayed = client.get("/files").await;
    assert_eq!(relayed.status, 446, "{}", relayed.text());
}

#[tokio::test]
async fn what_fails_on_the_relay_lane_and_is_not_denied_comes_as_the_provider_sent_it_with_a_header() {
    let stack = Stack::start().await;
    let client = |hooks: Value| client(&stack, &target(&stack, json!({ "input_guardrails": hooks })));
    let plain = client(json!([])).get("/fine_tuning/jobs").await;
    let kinds = json!({ "default.allowedRequestTypes": { "allowedTypes": ["chatComplete"] } });
    let marked = client(json!([kinds])).get("/fine_tuning/jobs").await;
    // The mock numbers its answers.
    let told = |answer: &harness::Answer| (answer.status.as_u16(), answer.text().replace("0002", "0001"));
    let (status, text) = told(&plain);
    assert_eq!(told(&marked), (status, text));
    let header = |answer: &harness::Answer| answer.header("x-gateway-guardrails").to_owned();
    assert_eq!((header(&plain), header(&marked)), (String::new(), "failed".to_owned()));
    assert_eq!(status, 200, "the mock answers it");
    let rows = rows(&stack, 2).await;
    let statuses: Vec<i32> = rows.iter().map(crate::journal::calls::status).collect();
    assert_eq!(statuses, [200, 200]);
}

#[tokio::test]
async fn saved_guardrails_run_by_name_and_as_defaults_of_workspace_and_organisation() {
    let stack = Stack::start().await;
    let admin = stack.administrator();
    let checks = json!([{ "id": "default.contains", "parameters": { "words": ["secret"], "operator": "none" } }]);
    let body = json!({ "name": "No secrets", "checks": checks, "actions": { "deny": true }, "organisation_id": stack.home.id });
    let made = admin.post("/guardrails", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let made = made.json();
    let slug = made["slug"].as_str().unwrap().to_owned();
    let plain = target(&stack, json!({}));
    assert_eq!(client(&stack, &plain).post("/chat/completions", &chat("a secret")).await.status, 200);
    let named = client(&stack, &target(&stack, json!({ "input_guardrails": [slug] })));
    stack
        .until("the guardrail is known", async || {
            named.post("/chat/completions", &chat("a secret")).await.status == 446
        })
        .await;
    assert_eq!(named.post("/chat/completions", &chat("fine")).await.status, 200);
    let defaults = json!({ "input_guardrails": [made["id"]] });
    let set = admin.put("/admin/organisation/defaults", &defaults).await;
    assert_eq!(set.status, 200, "{}", set.text());
    stack
        .until("the default holds", async || {
            client(&stack, &plain).post("/chat/completions", &chat("a secret")).await.status == 446
        })
        .await;
}

#[tokio::test]
async fn what_a_guardrail_denies_is_in_the_audit_trail_if_it_asks_for_it() {
    let stack = Stack::start().await;
    for (word, audit) in [("secret", true), ("quiet", false)] {
        let hook = none_of(word, json!({ "id": word, "deny": true, "audit": audit }));
        let client = client(&stack, &target(&stack, json!({ "input_guardrails": [hook] })));
        for _ in 0..3 {
            assert_eq!(client.post("/chat/completions", &chat(word)).await.status, 446);
        }
    }
    rows(&stack, 6).await;
    let database = stack.database.client().await;
    let found = "SELECT * FROM audit_logs WHERE resource_type = 'guardrail' AND action = 'deny'";
    let found = database.query(found, &[]).await.unwrap();
    let told =
        |row: &tokio_postgres::Row| row.get::<_, String>("error").split(' ').nth(1).unwrap().parse::<u32>().unwrap();
    assert_eq!(found.iter().map(told).sum::<u32>(), 3, "one row may stand for several");
    assert!(found.iter().all(|row| row.get::<_, String>("resource_id") == "secret"));
    assert!(found.iter().all(|row| row.get::<_, Option<uuid::Uuid>>("workspace_id").is_some()));
}

#[tokio::test]
async fn kinds_hold_for_what_is_kept_at_providers_and_for_sessions() {
    let stack = Stack::start().await;
    let kinds =
        json!({ "default.allowedRequestTypes": { "blockedTypes": ["realtime", "retrieveFileContent"] }, "deny": true });
    let client = client(&stack, &target(&stack, json!({ "input_guardrails": [kinds] })));
    for (path, is_denied) in
        [("/files/f-1/content", true), ("/files/f-1", false), ("/realtime?model=m", true), ("/anything", false)]
    {
        let status = client.get(path).await.status;
        assert_eq!(status == 446, is_denied, "{path}: {status}");
    }
}
