//! Stored prompts that applications run: which version answers, what the provider is asked, what the log says of it, and who
//! may not.

mod accounted;
mod refused;
mod served;
mod splits;
mod targets;

use crate::families::{application, integrate};
use crate::journal::calls::text;
use harness::{Answer, Client, Stack};
use serde_json::{Value, json};
use tokio_postgres::Row;
use uuid::Uuid;

/// A stack with the provider `main`, at which the mock answers.
async fn start() -> Stack {
    let stack = Stack::start().await;
    integrate(&stack, "main", "openai").await;
    stack
}

/// Who writes prompts: a key of the same workspace.
fn author(stack: &Stack) -> Client {
    application(stack)
}

fn messages(content: &str) -> String {
    json!([{ "role": "user", "content": content }]).to_string()
}

fn greeting(content: &str) -> Value {
    json!({
        "name": "Greeting", "string": messages(content), "virtual_key": "main",
        "parameters": { "model": "gpt-4o-mini", "temperature": 0.5 },
    })
}

struct Made {
    id: String,
    slug: String,
}

async fn create(stack: &Stack, body: &Value) -> Made {
    let answer = author(stack).post("/prompts", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let made = answer.json();
    let field = |name: &str| made[name].as_str().unwrap().to_owned();
    Made { id: field("id"), slug: field("slug") }
}

/// A further version, which is the latest and not the default.
async fn add_version(stack: &Stack, prompt: &Made, content: &str) {
    let body = json!({ "patch": true, "string": messages(content) });
    let answer = author(stack).put(&format!("/prompts/{}", prompt.slug), &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn label(stack: &Stack, prompt: &Made, version: u32, name: &str) {
    let labels = author(stack).get("/labels").await.json();
    let label = labels["data"].as_array().unwrap().iter().find(|label| label["name"] == name).unwrap()["id"].clone();
    let path = format!("/prompts/{}/versions/{version}", prompt.slug);
    let answer = author(stack).put(&path, &json!({ "label_id": label })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn run(stack: &Stack, reference: &str, body: &Value) -> Answer {
    application(stack).post(&format!("/prompts/{reference}/completions"), body).await
}

/// Waits until the proxy has heard of what was made.
async fn until_runs(stack: &Stack, reference: &str) {
    stack.until(reference, async || run(stack, reference, &json!({})).await.status == 200).await;
    stack.mock.reset();
}

/// What the provider was asked last.
fn asked(stack: &Stack) -> Value {
    let request = stack.mock.requests().pop().expect("the provider was asked");
    serde_json::from_slice(&request.body).unwrap()
}

fn content(stack: &Stack) -> String {
    asked(stack)["messages"][0]["content"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_prompt_runs_by_id_and_slug_and_in_the_version_that_is_named() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("One {{name}}")).await;
    add_version(&stack, &prompt, "Two {{name}}").await;
    add_version(&stack, &prompt, "Three {{name}}").await;
    label(&stack, &prompt, 2, "staging").await;
    let labelled = format!("{}@staging", prompt.slug);
    until_runs(&stack, &labelled).await;
    for (reference, expected) in [
        (prompt.id.clone(), "One Ada"),
        (prompt.slug.clone(), "One Ada"),
        (format!("{}@1", prompt.slug), "One Ada"),
        (format!("{}@2", prompt.id), "Two Ada"),
        (format!("{}@latest", prompt.slug), "Three Ada"),
        (format!("{}%40latest", prompt.slug), "Three Ada"),
        (format!("{}@3", prompt.slug), "Three Ada"),
        (format!("{}@default", prompt.slug), "One Ada"),
        (labelled, "Two Ada"),
    ] {
        let answer = run(&stack, &reference, &json!({ "variables": { "name": "Ada" } })).await;
        assert_eq!(answer.status, 200, "{reference}: {}", answer.text());
        assert_eq!(answer.json()["object"], "chat.completion", "{reference}");
        assert_eq!(content(&stack), expected, "{reference}");
    }
}

#[tokio::test]
async fn the_provider_is_asked_what_rendering_says_with_the_calls_own_parameters_on_top() {
    let stack = start().await;
    let mut body = greeting("Hi {{name}}, {{tone}}");
    body["parameters"]["tone"] = "kindly".into();
    body["tools"] = json!([{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } }]);
    body["tool_choice"] = "auto".into();
    let prompt = create(&stack, &body).await;
    until_runs(&stack, &prompt.slug).await;
    let sent = json!({ "variables": { "name": "\"Ada\"\n" }, "temperature": 1, "max_tokens": 7, "seed": null });
    let rendered = author(&stack).post(&format!("/prompts/{}/render", prompt.slug), &sent).await.json();
    let answer = run(&stack, &prompt.slug, &sent).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let asked = asked(&stack);
    assert_eq!(asked, rendered["data"]);
    assert_eq!(asked["messages"][0]["content"], "Hi \"Ada\"\n, kindly");
    assert_eq!((&asked["temperature"], &asked["max_tokens"]), (&json!(1), &json!(7)));
    assert_eq!((&asked["model"], &asked["tool_choice"]), (&json!("gpt-4o-mini"), &json!("auto")));
    assert!(asked.get("tone").is_none() && asked.get("variables").is_none());
    assert_eq!(asked["tools"][0]["function"]["name"], "look");
}

#[tokio::test]
async fn a_prompt_streams_where_the_call_or_the_version_says_so() {
    let stack = start().await;
    let plain = create(&stack, &greeting("Hi")).await;
    let mut body = greeting("Hi");
    body["parameters"]["stream"] = true.into();
    let streaming = create(&stack, &body).await;
    until_runs(&stack, &streaming.slug).await;
    until_runs(&stack, &plain.slug).await;
    for (prompt, sent) in [(&plain, json!({ "stream": true })), (&streaming, json!({}))] {
        let answer = run(&stack, &prompt.slug, &sent).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(answer.header("content-type").starts_with("text/event-stream"), "{sent}");
        assert!(answer.text().trim_end().ends_with("data: [DONE]"), "{}", answer.text());
    }
    let whole = run(&stack, &streaming.slug, &json!({ "stream": false })).await;
    assert_eq!(whole.json()["object"], "chat.completion");
}

#[tokio::test]
async fn a_text_is_run_as_a_completion_and_a_whole_body_as_what_it_is() {
    let stack = start().await;
    let mut text = greeting("");
    text["string"] = "Once {{what}}".into();
    let text = create(&stack, &text).await;
    let mut whole = greeting("");
    whole["string"] =
        json!({ "messages": [{ "role": "system", "content": "Be {{what}}" }], "top_p": 0.5 }).to_string().into();
    whole["is_raw_template"] = 1.into();
    let whole = create(&stack, &whole).await;
    until_runs(&stack, &text.slug).await;
    until_runs(&stack, &whole.slug).await;
    let sent = json!({ "variables": { "what": "upon" } });
    let answer = run(&stack, &text.slug, &sent).await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["object"].as_str()),
        (200, Some("text_completion")),
        "{}",
        answer.text()
    );
    assert_eq!(asked(&stack)["prompt"], "Once upon");
    assert!(stack.mock.requests()[0].path.ends_with("/completions"));
    let answer = run(&stack, &whole.slug, &sent).await;
    assert_eq!(answer.json()["object"], "chat.completion", "{}", answer.text());
    assert_eq!((&asked(&stack)["messages"][0]["content"], &asked(&stack)["top_p"]), (&json!("Be upon"), &json!(0.5)));
}

#[tokio::test]
async fn the_log_names_the_prompt_and_its_version_and_analytics_its_slug() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("One {{name}}")).await;
    add_version(&stack, &prompt, "Two").await;
    label(&stack, &prompt, 2, "production").await;
    until_runs(&stack, &format!("{}@production", prompt.slug)).await;
    let answer = run(&stack, &format!("{}@production", prompt.slug), &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let row = &rows_of(&stack, &answer, 1).await[0];
    let version = author(&stack).get(&format!("/prompts/{}@2", prompt.slug)).await.json();
    assert_eq!(row.get::<_, Uuid>("prompt_id").to_string(), prompt.id);
    assert_eq!(text(row, "prompt_slug"), Some(prompt.slug.as_str()));
    assert_eq!(version["prompt_version_id"], row.get::<_, Uuid>("prompt_version_id").to_string());
    assert_eq!((text(row, "virtual_key"), text(row, "ai_org")), (Some("main"), Some("openai")));
    assert!(text(row, "request_url").unwrap().ends_with("@production/completions"));
    assert!(row.get::<_, i64>("req_units") > 0);
    let found = author(&stack).get(&format!("/logs?prompt_slug={}", prompt.slug)).await;
    assert!(found.text().contains(answer.header("x-gateway-request-id")), "{}", found.text());
}

/// The rows that a call left, the first target's first, once there are so many.
async fn rows_of(stack: &Stack, answer: &Answer, count: usize) -> Vec<Row> {
    const ROWS: &str = "SELECT * FROM request_logs WHERE internal_trace_id = $1 ORDER BY attempt";
    let database = stack.database.client().await;
    let id: Uuid = answer.header("x-gateway-request-id").parse().unwrap();
    let rows = async || database.query(ROWS, &[&id]).await.unwrap();
    stack.until("the call is logged", async || rows().await.len() == count).await;
    rows().await
}
