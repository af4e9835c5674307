//! How batches are run, through running proxies: every row once in a file of results, whatever happens on the way.

mod end;
mod held_up;
mod input;
mod notice;
mod run;
mod take_over;
mod tokens;

use crate::families::{FORM_TYPE, application};
use harness::client::whole;
use harness::stack::Builder;
use harness::{Client, Stack};
use http::Method;
use serde_json::{Value, json};

/// A stack that begins so many rows of a batch each second.
fn paced(rows: u32) -> Builder {
    Stack::builder()
        .proxy("BATCH_ROWS", rows.to_string())
        .proxy("BATCH_EVERY_SECONDS", "1")
        .proxy("LIMITS_WAIT_MS", "20000")
}

/// A row whose last message is this; see the mock for what messages can make it do.
fn row(id: &str, content: &str) -> Value {
    json!({ "custom_id": id, "method": "POST", "url": "/v1/chat/completions",
        "body": { "model": "gpt-4o-mini", "max_tokens": 50, "messages": [{ "role": "user", "content": content }] } })
}

fn rows(count: usize) -> Vec<Value> {
    (1..=count).map(|number| row(&format!("row-{number}"), &format!("question {number}"))).collect()
}

fn jsonl(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

async fn upload(client: &Client, content: &str) -> String {
    let form = format!(
        "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--xYz\r\nContent-Disposition: form-data; \
         name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{content}\r\n--xYz--\r\n"
    );
    let made = whole(client.request(Method::POST, "/files").header("content-type", FORM_TYPE).body(form)).await;
    assert_eq!(made.status, 200, "{}", made.text());
    made.json()["id"].as_str().unwrap().to_owned()
}

/// A batch over these lines, run with the mock as OpenAI and further options.
async fn begin_with(stack: &Stack, client: &Client, content: &str, more: Value) -> String {
    let file = upload(client, content).await;
    let mut options = json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": stack.mock.url(),
        "authorization": "Bearer sk-mock" });
    options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = json!({ "input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "immediate",
        "gateway_options": options });
    let made = client.post("/batches", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    made.json()["id"].as_str().unwrap().to_owned()
}

async fn begin(stack: &Stack, rows: &[Value]) -> String {
    begin_with(stack, &application(stack), &jsonl(rows), json!({})).await
}

async fn shown(stack: &Stack, batch: &str) -> Value {
    let answer = application(stack).get(&format!("/batches/{batch}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The batch once it has this status.
async fn until_status(stack: &Stack, batch: &str, status: &str) -> Value {
    let what = format!("the batch is {status}");
    stack.until(&what, async || shown(stack, batch).await["status"] == status).await;
    shown(stack, batch).await
}

async fn lines(stack: &Stack, file: &Value) -> Vec<Value> {
    let Some(file) = file.as_str() else { return Vec::new() };
    let content = application(stack).get(&format!("/files/{file}/content")).await;
    assert_eq!(content.status, 200, "{}", content.text());
    content.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["custom_id"].as_str().unwrap()).collect()
}

/// Runs a statement about all batches there are.
async fn sql(stack: &Stack, statement: &str) -> u64 {
    stack.database.client().await.execute(statement, &[]).await.unwrap()
}

async fn number(stack: &Stack, query: &str) -> i64 {
    stack.database.client().await.query_one(query, &[]).await.unwrap().get(0)
}

/// Whatever waits for a later time has come to it.
async fn hurry(stack: &Stack) {
    sql(stack, "UPDATE batch_rows SET not_before = NULL WHERE not_before IS NOT NULL").await;
    sql(stack, "UPDATE batches SET next_step_at = now() WHERE next_step_at > now()").await;
}

/// How often the mock was asked this.
fn asked(stack: &Stack, content: &str) -> usize {
    let is_asked = |body: &[u8]| String::from_utf8_lossy(body).contains(content);
    stack.mock.requests().iter().filter(|request| is_asked(&request.body)).count()
}
