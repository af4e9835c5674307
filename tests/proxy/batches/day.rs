//! Managed batches that a provider runs within a day: uploaded, started, watched, read; priced as a batch, logged row by row,
//! judged by guardrails, and stopped.

use super::{asked, begin, ended, id, jsonl, options, results, row, shown, upload};
use crate::families::application;
use crate::limits::{limited_key, patient};
use crate::routing::target;
use harness::Stack;
use rust_decimal::Decimal;
use serde_json::{Value, json};

fn decimal(value: &Value) -> Decimal {
    value.to_string().parse().unwrap()
}

/// Status and cost of each row of the batch in the log.
async fn logged(stack: &Stack, batch: &str, count: usize) -> Vec<(i32, Option<Decimal>)> {
    const ROWS: &str =
        "SELECT response_status_code::int, cost FROM request_logs WHERE metadata->>'_batch_id' = $1 ORDER BY 1";
    let database = stack.database.client().await;
    stack
        .until("the rows are in the log", async || database.query(ROWS, &[&batch]).await.unwrap().len() >= count)
        .await;
    let rows = database.query(ROWS, &[&batch]).await.unwrap();
    assert_eq!(rows.len(), count);
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn a_provider_runs_the_rows_and_each_is_priced_as_a_batch() {
    let stack = Stack::start().await;
    let mut streamed = row("a", "gpt-4o-mini", "Hello");
    streamed["body"]["stream"] = true.into();
    let rows = [streamed, row("b", "gpt-4o-mini", "Hello"), row("c", "gpt-4o-mini", r#"{"mock":{"status":500}}"#)];
    let batch = begin(&stack, &rows, "24h", json!({ "metadata": { "team": "a" } })).await;
    let over = ended(&stack, &batch).await;
    assert_eq!(over["status"], "completed", "{over}");
    assert_eq!(over["request_counts"], json!({ "total": 3, "completed": 2, "failed": 1 }), "{over}");
    assert_eq!(over["provider_details"]["status"], "completed", "{over}");
    assert_eq!(over["provider_details"]["metadata"]["gateway_batch_id"], batch["id"], "{over}");
    for name in ["in_progress_at", "finalizing_at", "completed_at"] {
        assert_ne!(over[name], Value::Null, "{name}");
    }
    let good = results(&stack, &over["output_file_id"]).await;
    assert_eq!(good.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(good[0].1["response"]["body"]["object"], "chat.completion", "{good:?}");
    let bad = results(&stack, &over["error_file_id"]).await;
    assert_eq!((bad[0].0.as_str(), &bad[0].1["response"]["status_code"]), ("c", &json!(500)), "{bad:?}");
    assert_ne!(bad[0].1["error"], Value::Null);

    let logs = logged(&stack, id(&batch), 3).await;
    assert_eq!(logs.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [200, 200, 500]);
    let cost = logs.iter().filter_map(|(_, cost)| *cost).sum::<Decimal>();
    assert!(cost > Decimal::ZERO && cost.normalize() == decimal(&over["cost"]).normalize(), "{cost}: {over}");

    let output = application(&stack).get(&format!("/batches/{}/output", id(&batch))).await;
    assert_eq!((output.status.as_u16(), output.text().lines().count()), (200, 2), "{}", output.text());
    let listed = application(&stack).get("/files").await.json();
    assert_eq!(listed["data"].as_array().unwrap().len(), 3, "the copy that was uploaded is gone: {listed}");
}

#[tokio::test]
async fn rows_that_do_not_say_what_they_used_are_estimated_and_charged() {
    let stack = patient().await;
    let (key, _) = limited_key(&stack, json!({ "usage_limits": { "credit_limit": 5 } })).await;
    let silent = json!({ "mock": { "no_usage": true, "words": 60 } }).to_string();
    let rows = [row("a", "gpt-4o-mini", &silent), row("b", "gpt-4o-mini", "Hello")];
    let client = stack.anonymous().with_key(&key);
    let mut asked = asked(&upload(&application(&stack), &jsonl(&rows)).await, "24h");
    asked["gateway_options"] = options(&stack);
    let made = client.post("/batches", &asked).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let batch = made.json();
    let over = ended(&stack, &batch).await;
    assert_eq!(over["status"], "completed", "{over}");
    let logs = logged(&stack, id(&batch), rows.len()).await;
    let cost: Decimal = logs.iter().filter_map(|(_, cost)| *cost).sum();
    assert!(logs.iter().all(|(_, cost)| cost.is_some_and(|cost| cost > Decimal::ZERO)), "{logs:?}");
    assert_eq!(cost.normalize(), decimal(&over["cost"]).normalize(), "{over}");
    const GUESSED: &str = "SELECT usage_estimated, req_units, res_units FROM request_logs
        WHERE metadata->>'_batch_id' = $1 ORDER BY usage_estimated DESC";
    let database = stack.database.client().await;
    let found = database.query(GUESSED, &[&id(&batch)]).await.unwrap();
    assert!(found[0].get::<_, bool>(0) && !found[1].get::<_, bool>(0), "one of them says it itself");
    let (prompt, completion): (i64, i64) = (found[0].get(1), found[0].get(2));
    assert!((5..60).contains(&prompt) && (30..200).contains(&completion), "{prompt} {completion}");
    const CHARGED: &str =
        "SELECT coalesce(sum(value), 0) FROM usage_counters c WHERE c.unit = 'cost' AND c.period = 'total'
        AND c.starts_at > '-infinity'
        AND c.scope_id = (SELECT min(api_key_id::text) FROM request_logs WHERE metadata->>'_batch_id' = $1)";
    let is_charged = async || database.query_one(CHARGED, &[&id(&batch)]).await.unwrap().get::<_, Decimal>(0) == cost;
    stack.until("what the rows cost is charged", is_charged).await;
}

/// What it used is guessed from its beginning and its length, and nothing of it is held.
#[tokio::test]
async fn an_answer_that_is_longer_than_a_line_may_be_is_estimated_and_all_other_rows_are_there() {
    const LONG: usize = 17 << 20;
    let stack = Stack::start().await;
    let long = json!({ "mock": { "reply_bytes": LONG } }).to_string();
    let rows = [row("a", "gpt-4o-mini", "Hello"), row("b", "gpt-4o-mini", &long), row("c", "gpt-4o-mini", "Hello")];
    let batch = begin(&stack, &rows, "24h", json!({})).await;
    let over = ended(&stack, &batch).await;
    assert_eq!(over["status"], "completed", "{over}");
    let good = results(&stack, &over["output_file_id"]).await;
    assert_eq!(good.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    let bad = results(&stack, &over["error_file_id"]).await;
    assert_eq!((bad.len(), bad[0].0.as_str()), (1, "b"), "{bad:?}");
    assert!(bad[0].1.to_string().contains("answer_too_long"), "{bad:?}");
    let logs = logged(&stack, id(&batch), 3).await;
    let cost: Decimal = logs.iter().filter_map(|(_, cost)| *cost).sum();
    assert_eq!(cost.normalize(), decimal(&over["cost"]).normalize(), "{over}");
    const GUESSED: &str = "SELECT req_units, res_units FROM request_logs
        WHERE metadata->>'_batch_id' = $1 AND usage_estimated";
    let found = stack.database.client().await.query(GUESSED, &[&id(&batch)]).await.unwrap();
    let (prompt, completion): (i64, i64) = (found[0].get(0), found[0].get(1));
    assert!(found.len() == 1 && (5..60).contains(&prompt), "{prompt}");
    // Of the text at least what a line may have is known to be there.
    assert!(completion >= (1 << 20) && completion <= i64::try_from(LONG).unwrap(), "{completion}");
}

#[tokio::test]
async fn a_batch_price_is_charged_where_there_is_one() {
    let rates =
        |read: f64, written: f64| json!({ "request_token": { "price": read }, "response_token": { "price": written } });
    let prices = json!({ "own-model": { "pricing_config": { "pay_as_you_go": rates(0.002, 0.004),
        "batch_config": rates(0.001, 0.002) } } });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("openai.json"), prices.to_string()).unwrap();
    let local = folder.path().to_str().unwrap();
    let stack = Stack::builder().proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", local).start().await;
    let live = stack.client();
    let question = row("a", "own-model", "Hello");
    let answer = live.post("/chat/completions", &question["body"]).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let batch = begin(&stack, &[question], "24h", json!({})).await;
    let over = ended(&stack, &batch).await;
    assert_eq!(over["status"], "completed", "{over}");
    let database = stack.database.client().await;
    const LIVE: &str =
        "SELECT cost FROM request_logs WHERE request_url = '/v1/chat/completions' AND NOT metadata ? '_batch_id'";
    stack.until("the live call is logged", async || !database.query(LIVE, &[]).await.unwrap().is_empty()).await;
    let live: Decimal = database.query_one(LIVE, &[]).await.unwrap().get(0);
    assert_eq!((decimal(&over["cost"]) * Decimal::TWO).normalize(), live.normalize(), "{over}");
}

#[tokio::test]
async fn a_row_that_a_guardrail_denies_is_not_sent_and_others_are() {
    let stack = Stack::start().await;
    let none_of = |word: &str| json!([{ "default.contains": { "words": [word], "operator": "none" }, "deny": true }]);
    let config = target(
        &stack,
        json!({ "input_guardrails": none_of("secret"), "output_guardrails": none_of("forbidden"),
        "override_params": { "temperature": 0.5 } }),
    );
    let rows = [
        row("a", "gpt-4o-mini", "Hello"),
        row("b", "gpt-4o-mini", "a secret"),
        row("c", "gpt-4o-mini", r#"{"mock":{"reply":"something forbidden"}}"#),
    ];
    let batch = begin(&stack, &rows, "24h", json!({ "gateway_options": { "x-gateway-config": config } })).await;
    let over = ended(&stack, &batch).await;
    assert_eq!(over["status"], "completed", "{over}");
    let good = results(&stack, &over["output_file_id"]).await;
    assert_eq!(good.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["a"]);
    let bad = results(&stack, &over["error_file_id"]).await;
    let told: Vec<(&str, &Value)> = bad.iter().map(|(id, row)| (id.as_str(), &row["error"]["code"])).collect();
    assert_eq!(told, [("b", &json!("hooks_failed")), ("c", &json!("hooks_failed"))]);
    let uploaded = stack.mock.requests().into_iter().find(|one| one.path.ends_with("/files")).unwrap();
    let text = String::from_utf8_lossy(&uploaded.body).into_owned();
    assert!(!text.contains("a secret") && text.contains("\"temperature\":0.5"), "{text}");
}

#[tokio::test]
async fn what_a_provider_refuses_fails_the_batch_and_what_passes_is_waited_for() {
    let stack = Stack::start().await;
    let rows = [row("a", "gpt-4o-mini", "Hello")];
    let options = json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": stack.mock.url(),
        "authorization": "Bearer sk-bad" });
    let batch = begin(&stack, &rows, "24h", json!({ "gateway_options": options })).await;
    let over = ended(&stack, &batch).await;
    assert_eq!(
        (&over["status"], &over["errors"]["data"][0]["code"]),
        (&json!("failed"), &json!("provider_error")),
        "{over}"
    );
    let nowhere = begin(&stack, &rows, "24h", json!({ "gateway_options": {} })).await;
    let over = ended(&stack, &nowhere).await;
    assert_eq!(
        (&over["status"], &over["errors"]["data"][0]["code"]),
        (&json!("failed"), &json!("missing_provider")),
        "{over}"
    );
}

#[tokio::test]
async fn a_batch_that_is_cancelled_at_once_ends_cancelled() {
    let stack = Stack::start().await;
    let batch = begin(&stack, &[row("a", "gpt-4o-mini", "Hello")], "24h", json!({})).await;
    let told = application(&stack).post(&format!("/batches/{}/cancel", id(&batch)), &json!({})).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let over = ended(&stack, &batch).await;
    assert_eq!(over["status"], "cancelled", "{over}");
    assert_ne!(over["cancelled_at"], Value::Null);
}

/// Looks again and again, without the waits between two steps, until the batch has this status.
async fn until_status(stack: &Stack, batch: &Value, status: &str) -> Value {
    let database = stack.database.client().await;
    let has_status = async || {
        database.execute("UPDATE batches SET next_step_at = now() WHERE next_step_at > now()", &[]).await.unwrap();
        shown(stack, id(batch)).await["status"] == status
    };
    stack.until(&format!("the batch is {status}"), has_status).await;
    shown(stack, id(batch)).await
}

async fn until_told(stack: &Stack, batch: &Value) -> Value {
    let is_told = async || shown(stack, id(batch)).await["errors"]["data"][0]["code"] == "provider_error";
    stack.until("it is told what holds the batch up", is_told).await;
    shown(stack, id(batch)).await
}

#[tokio::test]
async fn what_runs_at_a_provider_is_waited_for_though_it_refuses_to_tell() {
    let stack = Stack::start().await;
    // The file, the list and the batch are taken as usual.
    stack.mock.script(json!([{ "times": 3 }, { "status": 401 }])).unwrap();
    let batch = begin(&stack, &[row("a", "gpt-4o-mini", "Hello")], "24h", json!({})).await;
    let now = until_told(&stack, &batch).await;
    assert_eq!(now["status"], "in_progress", "{now}");
    let over = until_status(&stack, &batch, "completed").await;
    assert_eq!((&over["errors"], results(&stack, &over["output_file_id"]).await.len()), (&Value::Null, 1), "{over}");
    let made =
        stack.mock.requests().iter().filter(|one| one.method == "POST" && one.path.ends_with("/batches")).count();
    assert_eq!(made, 1);
}

#[tokio::test]
async fn a_batch_that_no_provider_takes_expires() {
    let stack = Stack::start().await;
    stack.mock.script(json!([{ "status": 503, "times": 100_000 }])).unwrap();
    let batch = begin(&stack, &[row("a", "gpt-4o-mini", "Hello")], "24h", json!({})).await;
    let now = until_told(&stack, &batch).await;
    assert_eq!(now["status"], "in_progress", "{now}");
    stack.database.client().await.execute("UPDATE batches SET expires_at = now()", &[]).await.unwrap();
    let over = until_status(&stack, &batch, "expired").await;
    let errors = results(&stack, &over["error_file_id"]).await;
    assert_eq!((errors.len(), &errors[0].1["error"]["code"]), (1, &json!("batch_expired")), "{errors:?}");
    assert!(over["expired_at"].is_i64() && over["completed_at"].is_null(), "{over}");
}

/// Message batches of Anthropic, as they are told one after the other.
fn scripted(answers: &[Value]) -> Value {
    let fault = |one: &Value| json!({ "body": one.to_string(), "content_type": "application/json" });
    answers.iter().map(fault).collect::<Vec<_>>().into()
}

fn message_result(custom_id: &str) -> Value {
    let message = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-20250514",
        "content": [{ "type": "text", "text": "Hello." }], "stop_reason": "end_turn",
        "usage": { "input_tokens": 10, "output_tokens": 3 } });
    json!({ "custom_id": custom_id, "result": { "type": "succeeded", "message": message } })
}

#[tokio::test]
async fn a_batch_at_anthropic_that_was_started_and_not_noted_is_not_started_again() {
    let stack = Stack::start().await;
    let told = |id: &str, status: &str, rows: u64, at: &str| {
        let (running, done) = if status == "ended" { (0, rows) } else { (rows, 0) };
        json!({ "id": id, "type": "message_batch", "processing_status": status, "created_at": at,
            "request_counts": { "processing": running, "succeeded": done } })
    };
    let now = chrono::Utc::now().to_rfc3339();
    let listed = json!({ "data": [told("msgbatch_other", "in_progress", 2, &now), told("msgbatch_1", "in_progress", 1, &now),
        told("msgbatch_old", "in_progress", 1, "2025-01-01T00:00:00Z")], "has_more": false });
    // Whoever started it was cut off before it was told of it.
    let mut faults = json!([{ "status": 502 }]);
    let rest = scripted(&[listed, told("msgbatch_1", "ended", 1, &now), message_result("a")]);
    faults.as_array_mut().unwrap().extend(rest.as_array().unwrap().clone());
    stack.mock.script(faults).unwrap();
    let options = json!({ "x-gateway-provider": "anthropic", "x-gateway-custom-host": stack.mock.url(),
        "authorization": "Bearer sk-mock" });
    let rows = [row("a", "claude-sonnet-4-20250514", "Hello")];
    let batch = begin(&stack, &rows, "24h", json!({ "gateway_options": options })).await;
    let over = until_status(&stack, &batch, "completed").await;
    assert_eq!(over["provider_details"]["id"], "msgbatch_1", "{over}");
    assert_eq!(results(&stack, &over["output_file_id"]).await.len(), 1);
    let asked: Vec<String> = stack.mock.requests().iter().map(|one| one.method.clone()).collect();
    assert_eq!(asked, ["POST", "GET", "GET", "GET"], "it is made once, found, looked at and read");
}

#[tokio::test]
async fn rows_become_message_batches_at_anthropic() {
    let stack = Stack::start().await;
    let told = |status: &str, succeeded: u64| {
        json!({ "id": "msgbatch_1", "type": "message_batch", "processing_status": status,
            "created_at": "2025-01-01T00:00:00Z", "request_counts": { "processing": 1 - succeeded, "succeeded": succeeded } })
    };
    let answers = [told("in_progress", 0), told("ended", 1), message_result("a")];
    stack.mock.script(scripted(&answers)).unwrap();
    let options = json!({ "x-gateway-provider": "anthropic", "x-gateway-custom-host": stack.mock.url(),
        "authorization": "Bearer sk-mock" });
    let rows = [row("a", "claude-sonnet-4-20250514", "Hello")];
    let batch = begin(&stack, &rows, "24h", json!({ "gateway_options": options })).await;
    let over = ended(&stack, &batch).await;
    assert_eq!(over["status"], "completed", "{over}");
    let good = results(&stack, &over["output_file_id"]).await;
    assert_eq!(good[0].1["response"]["body"]["choices"][0]["message"]["content"], "Hello.", "{good:?}");
    let sent: Value = serde_json::from_slice(&stack.mock.requests()[0].body).unwrap();
    assert_eq!(sent["requests"][0]["params"]["messages"][0]["role"], "user", "{sent}");
}

#[tokio::test]
async fn an_input_for_anthropic_may_be_longer_than_what_is_held() {
    const ROWS: usize = 20;
    let stack = Stack::start().await;
    let told = json!({ "id": "msgbatch_1", "type": "message_batch", "processing_status": "ended",
        "created_at": "2025-01-01T00:00:00Z", "request_counts": { "succeeded": ROWS } });
    let output: String = (0..ROWS - 1).map(|number| format!("{}\n", message_result(&format!("r{number}")))).collect();
    let fault = |body: &str| json!({ "body": body, "content_type": "application/json" });
    stack.mock.script(json!([fault(&told.to_string()), fault(&told.to_string()), fault(&output)])).unwrap();
    let options = json!({ "x-gateway-provider": "anthropic", "x-gateway-custom-host": stack.mock.url(),
        "authorization": "Bearer sk-mock" });
    let long = "x".repeat(1 << 20);
    let mut rows: Vec<Value> =
        (0..ROWS).map(|number| row(&format!("r{number}"), "claude-sonnet-4-20250514", &long)).collect();
    rows.push(json!({ "custom_id": "odd", "method": "POST", "url": super::CHAT,
        "body": { "model": "claude-sonnet-4-20250514", "messages": "none" } }));
    let batch = begin(&stack, &rows, "24h", json!({ "gateway_options": options })).await;
    let over = ended(&stack, &batch).await;
    assert_eq!(over["request_counts"], json!({ "total": 21, "completed": 19, "failed": 2 }), "{over}");
    let sent = &stack.mock.requests()[0];
    assert!(sent.body_bytes > (ROWS as u64) << 20, "{}", sent.body_bytes);
    assert!(sent.body.starts_with(b"{\"requests\":[{\"custom_id\":\"r0\""));
    let errors = results(&stack, &over["error_file_id"]).await;
    let codes: Vec<(&str, &Value)> = errors.iter().map(|(id, row)| (id.as_str(), &row["error"]["code"])).collect();
    assert_eq!(codes, [("odd", &json!("invalid_parameter")), ("r19", &json!("no_answer"))]);
}

#[tokio::test]
async fn all_rows_name_one_model() {
    let stack = Stack::start().await;
    let rows = [row("a", "gpt-4o-mini", "Hello"), row("b", "gpt-4o", "Hello")];
    let batch = begin(&stack, &rows, "24h", json!({})).await;
    let over = ended(&stack, &batch).await;
    let error = &over["errors"]["data"][0];
    assert_eq!(
        (&over["status"], &error["code"], &error["line"]),
        (&json!("failed"), &json!("mismatched_model"), &json!(2))
    );
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn a_budget_is_charged_past_its_end_and_a_strict_one_refuses_the_batch() {
    let stack = patient().await;
    for (strict, expected) in [(false, "completed"), (true, "failed")] {
        let limits = json!({ "usage_limits": { "type": "tokens", "credit_limit": 1, "strict": strict } });
        let (key, _) = limited_key(&stack, limits).await;
        let rows = ["a", "b", "c"].map(|id| row(id, "gpt-4o-mini", "Hello"));
        let client = stack.anonymous().with_key(&key);
        let mut asked = asked(&upload(&application(&stack), &jsonl(&rows)).await, "24h");
        asked["gateway_options"] = options(&stack);
        let made = client.post("/batches", &asked).await;
        if strict && made.status == 412 {
            assert!(made.text().contains("strict"), "{}", made.text());
            continue;
        }
        let batch = made.json();
        let over = ended(&stack, &batch).await;
        assert_eq!(over["status"], expected, "{over}");
        if strict {
            assert!(over.to_string().contains("strict budget"), "{over}");
            continue;
        }
        logged(&stack, id(&batch), rows.len()).await;
        const SUMS: &str =
            "SELECT sum(req_units + res_units)::bigint = (SELECT sum(value)::bigint FROM usage_counters c
                WHERE c.unit = 'tokens' AND c.period = 'total' AND c.starts_at > '-infinity' AND c.scope_id = min(l.api_key_id::text))
            FROM request_logs l WHERE metadata->>'_batch_id' = $1";
        let database = stack.database.client().await;
        let is_charged =
            async || database.query_one(SUMS, &[&id(&batch)]).await.unwrap().get::<_, Option<bool>>(0) == Some(true);
        stack.until("what was spent is what is shown", is_charged).await;
    }
}

/// Files that the provider was asked to delete, by the last part of their path.
fn deleted(stack: &Stack) -> Vec<String> {
    let requests = stack.mock.requests();
    let deleted = requests.iter().filter(|one| one.method == "DELETE" && one.path.contains("/files/"));
    deleted.map(|one| one.path.rsplit('/').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_a_batch_leaves_at_the_provider_is_deleted_there_however_it_ends() {
    let stack = Stack::start().await;
    let rows = [row("a", "gpt-4o-mini", "Hello"), row("b", "gpt-4o-mini", r#"{"mock":{"status":500}}"#)];
    let over = ended(&stack, &begin(&stack, &rows, "24h", json!({})).await).await;
    assert_eq!(over["status"], "completed", "{over}");
    let details = &over["provider_details"];
    for name in ["input_file_id", "output_file_id", "error_file_id"] {
        let file = details[name].as_str().unwrap().to_owned();
        stack.until(&format!("{name} is deleted"), async || deleted(&stack).contains(&file)).await;
    }
    assert_eq!(results(&stack, &over["output_file_id"]).await.len(), 1, "ours are kept");

    // The provider takes the file and refuses the batch.
    stack.mock.reset();
    stack.mock.script(json!([{ "times": 2 }, { "status": 400 }])).unwrap();
    let over = ended(&stack, &begin(&stack, &rows, "24h", json!({})).await).await;
    assert_eq!(over["status"], "failed", "{over}");
    stack.until("the input of a failed batch is deleted", async || deleted(&stack).len() == 1).await;

    stack.mock.reset();
    let batch = begin(&stack, &rows, "24h", json!({})).await;
    let is_started =
        async || stack.mock.requests().iter().any(|one| one.method == "POST" && one.path.ends_with("/batches"));
    stack.until("the provider has it", is_started).await;
    application(&stack).post(&format!("/batches/{}/cancel", id(&batch)), &json!({})).await;
    let over = ended(&stack, &batch).await;
    assert!(["cancelled", "completed"].contains(&over["status"].as_str().unwrap()), "{over}");
    stack.until("the input of a cancelled batch is deleted", async || !deleted(&stack).is_empty()).await;
}
