//! Calls over HTTP, and the rows they leave behind.

use crate::routing::{client as with_config, target};
use bench::process::Signal;
use futures::StreamExt as _;
use harness::client::whole;
use harness::{Stack, chat};
use http::Method;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_postgres::Row;
use uuid::Uuid;

/// Far beyond anything a healthy run needs: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// The rows of the stack, the oldest first, once there are so many.
pub async fn rows(stack: &Stack, count: usize) -> Vec<Row> {
    let client = stack.database.client().await;
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        const ROWS: &str = "SELECT * FROM request_logs ORDER BY created_at, attempt DESC, id";
        let rows = client.query(ROWS, &[]).await.unwrap();
        if rows.len() >= count {
            assert_eq!(rows.len(), count);
            return rows;
        }
        assert!(tokio::time::Instant::now() < end, "{} rows instead of {count}", rows.len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub fn text<'r>(row: &'r Row, column: &str) -> Option<&'r str> {
    row.get(column)
}

pub fn status(row: &Row) -> i32 {
    row.get("response_status_code")
}

pub fn tokens(row: &Row) -> (i64, i64) {
    (row.get("req_units"), row.get("res_units"))
}

fn reported(usage: &Value) -> (i64, i64) {
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage[name].as_i64()).unwrap_or(0);
    (count(["prompt_tokens", "input_tokens"]), count(["completion_tokens", "output_tokens"]))
}

#[tokio::test]
async fn a_plain_call_leaves_one_row_that_says_everything_about_it() {
    let stack = Stack::start().await;
    let client =
        stack.client().with("x-gateway-metadata", r#"{"_user":"u1","n":1}"#).with("x-gateway-trace-id", "trace-1");
    let client = client.with("x-gateway-runtime", "node").with("x-gateway-span-name", "step");
    let answer = client.post("/chat/completions", &chat("How are you?")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let row = &rows(&stack, 1).await[0];
    assert_eq!(row.get::<_, Uuid>("id").to_string(), answer.header("x-gateway-request-id"));
    assert_eq!(row.get::<_, Uuid>("internal_trace_id"), row.get::<_, Uuid>("id"));
    assert_eq!(row.get::<_, Uuid>("organisation_id"), stack.home.id);
    assert_eq!(row.get::<_, Uuid>("workspace_id"), stack.home.workspace_id);
    assert_eq!((text(row, "ai_org"), text(row, "mode")), (Some("openai"), Some("single")));
    assert_eq!(text(row, "ai_model"), answer.json()["model"].as_str());
    assert_eq!((status(row), row.get::<_, bool>("is_success")), (200, true));
    assert_eq!((text(row, "request_url"), text(row, "request_method")), (Some("/v1/chat/completions"), Some("POST")));
    assert_eq!(
        (text(row, "trace_id"), text(row, "span_name"), text(row, "runtime")),
        (Some("trace-1"), Some("step"), Some("node"))
    );
    assert_eq!(row.get::<_, Value>("metadata"), json!({"_user": "u1", "n": "1"}), "values are texts");
    assert_eq!(tokens(row), reported(&answer.json()["usage"]));
    assert_eq!(row.get::<_, Value>("usage"), answer.json()["usage"]);
    let flags = ["usage_estimated", "stream_mode", "is_proxy_call"].map(|name| row.get::<_, bool>(name));
    assert_eq!(flags, [false; 3]);
    assert!(row.get::<_, Decimal>("cost") > Decimal::ZERO);
    assert_eq!((text(row, "config"), text(row, "virtual_key"), text(row, "error_code")), (None, None, None));
}

#[tokio::test]
async fn every_dialect_is_counted_as_its_answer_says() {
    let stack = Stack::start().await;
    let body = json!({
        "model": "gpt-4o-mini", "messages": [{"role": "user", "content": "How are you?"}], "prompt": "How are you?",
        "input": "How are you?", "max_tokens": 50,
    });
    let mut expected = Vec::new();
    for path in ["/chat/completions", "/completions", "/embeddings", "/messages"] {
        let client = if path == "/messages" { anthropic(&stack) } else { stack.client() };
        let answer = client.post(path, &body).await;
        assert_eq!(answer.status, 200, "{path} {}", answer.text());
        expected.push((format!("/v1{path}"), reported(&answer.json()["usage"])));
    }
    let found: Vec<_> = rows(&stack, expected.len())
        .await
        .iter()
        .map(|row| (row.get::<_, String>("request_url"), tokens(row)))
        .collect();
    assert_eq!(found, expected);
    assert!(found.iter().all(|(_, (prompt, _))| *prompt > 0), "{found:?}");
}

pub fn anthropic(stack: &Stack) -> harness::Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", "anthropic");
    client.with("authorization", "Bearer sk-mock").with("x-gateway-custom-host", stack.mock.url())
}

#[tokio::test]
async fn a_refused_call_is_somebodys_and_has_no_provider() {
    let stack = Stack::start().await;
    let stranger = stack.anonymous().with_key("pk_unknown").post("/chat/completions", &chat("Hello")).await;
    assert_eq!(stranger.status, 401);
    let keyed = stack.anonymous().with_key(&stack.home.workspace_key);
    let nowhere = keyed.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(nowhere.status, 400, "{}", nowhere.text());
    let rows = rows(&stack, 1).await;
    assert_eq!(rows[0].get::<_, Uuid>("id").to_string(), nowhere.header("x-gateway-request-id"));
    assert_eq!((status(&rows[0]), text(&rows[0], "ai_org")), (400, None));
    assert_eq!(text(&rows[0], "error_code"), nowhere.json()["error"]["code"].as_str());
    assert_eq!(rows[0].get::<_, Option<Decimal>>("cost"), None);
}

#[tokio::test]
async fn a_fallback_leaves_a_row_for_each_target_under_one_id() {
    let stack = Stack::start().await;
    let config = json!({
        "strategy": {"mode": "fallback"}, "retry": {"attempts": 1, "on_status_codes": [500]},
        "targets": [target(&stack, json!({})), target(&stack, json!({"override_params": {"model": "gpt-4o"}}))],
    });
    stack.mock.script(json!([{ "status": 500, "times": 2 }])).unwrap();
    let answer = with_config(&stack, &config).post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut rows = rows(&stack, 2).await;
    rows.sort_by_key(|row| row.get::<_, i16>("attempt"));
    let seen: Vec<_> =
        rows.iter().map(|row| (status(row), text(row, "last_used_option_index"), text(row, "ai_model"))).collect();
    assert_eq!(seen[0], (500, Some("config.targets[0]"), Some("gpt-4o-mini")));
    assert_eq!((seen[1].0, seen[1].1), (200, Some("config.targets[1]")));
    assert_eq!(rows[1].get::<_, Uuid>("id").to_string(), answer.header("x-gateway-request-id"));
    assert_ne!(rows[0].get::<_, Uuid>("id"), rows[1].get::<_, Uuid>("id"));
    for row in &rows {
        assert_eq!(row.get::<_, Uuid>("internal_trace_id"), rows[1].get::<_, Uuid>("id"));
        assert_eq!((text(row, "mode"), text(row, "config")), (Some("fallback"), Some("inline")));
        assert_eq!(text(row, "trace_id"), Some(answer.header("x-gateway-trace-id")));
    }
    assert_eq!(rows[0].get::<_, Decimal>("cost"), Decimal::ZERO);
}

fn stream(content: &str) -> Value {
    let mut body = chat(content);
    body["stream"] = json!(true);
    body
}

#[tokio::test]
async fn a_stream_is_counted_by_its_own_words() {
    let stack = Stack::start().await;
    let mut body = stream("How are you?");
    body["stream_options"] = json!({"include_usage": true});
    let answer = stack.client().post("/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let usage = answer.text().lines().filter_map(|line| line.strip_prefix("data: ")).find_map(|data| {
        let event: Value = serde_json::from_str(data).ok()?;
        event["usage"].is_object().then(|| event["usage"].clone())
    });
    let row = &rows(&stack, 1).await[0];
    assert_eq!(tokens(row), reported(&usage.unwrap()));
    assert_eq!((row.get::<_, bool>("stream_mode"), row.get::<_, bool>("usage_estimated")), (true, false));
    assert!(row.get::<_, Option<i32>>("time_to_first_token").is_some());
    assert!(row.get::<_, Decimal>("cost") > Decimal::ZERO);
}

#[tokio::test]
async fn usage_that_only_we_asked_for_is_counted_and_not_passed_on() {
    let stack = Stack::start().await;
    let mut asked = stream("How are you?");
    let plain = stack.client().post("/chat/completions", &asked).await;
    asked["stream_options"] = json!({"include_usage": false});
    let declined = stack.client().post("/chat/completions", &asked).await;
    asked["stream_options"] = json!({"include_usage": true});
    let wanted = stack.client().post("/chat/completions", &asked).await;
    let usage = |text: &str| text.matches("\"usage\":{").count();
    assert_eq!([&plain, &declined, &wanted].map(|answer| usage(&answer.text())), [0, 0, 1]);
    assert!(plain.text().ends_with("data: [DONE]\n\n"), "{}", plain.text());
    let rows = rows(&stack, 3).await;
    assert!(rows.iter().all(|row| tokens(row) == tokens(&rows[2]) && tokens(row).1 > 0));
    assert!(rows.iter().all(|row| !row.get::<_, bool>("usage_estimated")));
    let bodies: Vec<Value> =
        stack.mock.requests().iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect();
    assert!(bodies.iter().all(|body| body["stream_options"] == json!({"include_usage": true})), "{bodies:?}");
    assert!(bodies.iter().all(|body| body["messages"] == asked["messages"]));
}

#[tokio::test]
async fn a_client_that_leaves_pays_for_what_it_received() {
    let stack = Stack::start().await;
    let said = "A sentence that is forty characters long";
    let events = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{said}\"}}}}]}}\n\n");
    let fault = json!({
        "body": format!("{}data: [DONE]\n\n", events.repeat(50)), "content_type": "text/event-stream",
        "no_content_length": true, "stall_after_bytes": events.len() * 10, "chunk_bytes": events.len(),
    });
    stack.mock.script(json!([fault])).unwrap();
    let request = stack.client().request(Method::POST, "/chat/completions").json(&stream("1234"));
    let mut answer = request.send().await.unwrap().bytes_stream();
    let mut received = 0;
    while received < events.len() * 10 {
        received += answer.next().await.unwrap().unwrap().len();
    }
    drop(answer);
    let row = &rows(&stack, 1).await[0];
    assert_eq!((status(row), row.get::<_, bool>("usage_estimated")), (499, true));
    // Two for the prompt's digits and three each for its message and the answer; seven words, ten times.
    assert_eq!(tokens(row), (8, 70));
    assert!(row.get::<_, Decimal>("cost") > Decimal::ZERO);
}

#[tokio::test]
async fn a_provider_that_says_nothing_of_usage_is_counted_by_its_text() {
    let stack = Stack::start().await;
    let silent = json!({ "no_usage": true, "words": 30 });
    for body in [chat(&json!({ "mock": silent }).to_string()), stream(&json!({ "mock": silent }).to_string())] {
        let answer = stack.client().post("/chat/completions", &body).await;
        assert!(answer.status == 200 && !answer.text().contains("prompt_tokens"), "{}", answer.text());
    }
    for row in rows(&stack, 2).await {
        assert!(row.get::<_, bool>("usage_estimated"));
        assert!(tokens(&row).0 > 10 && tokens(&row).1 == 30, "{:?}", tokens(&row));
        assert!(row.get::<_, Decimal>("cost") > Decimal::ZERO);
    }
}

#[tokio::test]
async fn a_relayed_call_leaves_a_row_too() {
    let stack = Stack::start().await;
    let body = json!({ "model": "gpt-4o-mini", "prompt": "How are you?" });
    let answer = stack.client().post("/threads/runs", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let gone = whole(stack.client().request(Method::GET, "/no/such/thing")).await;
    let rows = rows(&stack, 2).await;
    assert_eq!(rows[0].get::<_, Uuid>("id").to_string(), answer.header("x-gateway-request-id"));
    assert_eq!((status(&rows[0]), text(&rows[0], "ai_org")), (200, Some("openai")));
    assert!(rows[0].get::<_, bool>("is_proxy_call"));
    assert_eq!(i32::from(gone.status.as_u16()), status(&rows[1]));
}

#[tokio::test]
async fn rows_belong_to_whoever_asked() {
    let stack = Stack::start().await;
    let other = stack.organisation().await;
    let client = stack.database.client().await;
    for (key, organisation, workspace) in [
        (&stack.home.workspace_key, stack.home.id, stack.home.workspace_id),
        (&other.workspace_key, other.id, other.workspace_id),
    ] {
        let answer = stack.as_application(key).post("/chat/completions", &chat("Hello")).await;
        let id: Uuid = answer.header("x-gateway-request-id").parse().unwrap();
        const ROW: &str = "SELECT organisation_id, workspace_id FROM request_logs WHERE id = $1";
        stack.until("the row is there", async || client.query_opt(ROW, &[&id]).await.unwrap().is_some()).await;
        let row = client.query_one(ROW, &[&id]).await.unwrap();
        assert_eq!((row.get::<_, Uuid>(0), row.get::<_, Uuid>(1)), (organisation, workspace));
    }
}

#[tokio::test]
async fn a_proxy_that_leaves_has_sent_its_logs() {
    let mut stack = Stack::builder().proxy("JOURNAL_SHIP_MS", "600000").start().await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    stack.proxy.signal(Signal::TERM);
    stack.proxy.ended_within(PATIENCE).await;
    rows(&stack, 1).await;
}
