//! Batches over HTTP: what is asked for and refused, whose they are, and those that a provider runs, for the gateway or for
//! whoever names it. How the gateway runs rows itself is in `batches_runner`.

mod buckets;
mod day;
mod provider;
mod refused;
mod routes;
mod stopped;
mod tenancy;

use crate::families::{FORM_TYPE, application};
use harness::client::whole;
use harness::{Answer, Client, Stack};
use http::Method;
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

/// A row whose only message is this; see the mock for what messages can make it do.
fn row(id: &str, model: &str, content: &str) -> Value {
    json!({ "custom_id": id, "method": "POST", "url": CHAT,
        "body": { "model": model, "messages": [{ "role": "user", "content": content }] } })
}

fn jsonl(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

async fn send(client: &Client, purpose: &str, content: &str) -> Answer {
    let form = format!(
        "--xYz\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\n{purpose}\r\n--xYz\r\nContent-Disposition: \
         form-data; name=\"file\"; filename=\"rows.jsonl\"\r\n\r\n{content}\r\n--xYz--\r\n"
    );
    whole(client.request(Method::POST, "/files").header("content-type", FORM_TYPE).body(form)).await
}

async fn upload(client: &Client, content: &str) -> String {
    let made = send(client, "batch", content).await;
    assert_eq!(made.status, 200, "{}", made.text());
    id(&made.json()).to_owned()
}

fn id(object: &Value) -> &str {
    object["id"].as_str().unwrap()
}

fn asked(file: &str, window: &str) -> Value {
    json!({ "input_file_id": file, "endpoint": CHAT, "completion_window": window })
}

/// The mock as OpenAI.
fn options(stack: &Stack) -> Value {
    json!({ "x-gateway-provider": "openai", "x-gateway-custom-host": stack.mock.url(), "authorization": "Bearer sk-mock" })
}

/// A batch over these rows, which the mock runs.
async fn begin(stack: &Stack, rows: &[Value], window: &str, more: Value) -> Value {
    begin_by(stack, &application(stack), rows, window, more).await
}

/// The same of this client.
async fn begin_by(stack: &Stack, client: &Client, rows: &[Value], window: &str, more: Value) -> Value {
    let mut body = asked(&upload(client, &jsonl(rows)).await, window);
    body["gateway_options"] = options(stack);
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    let made = client.post("/batches", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    made.json()
}

async fn shown(stack: &Stack, batch: &str) -> Value {
    let answer = application(stack).get(&format!("/batches/{batch}?include_provider_details=true")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

/// The batch once it is over.
async fn ended(stack: &Stack, batch: &Value) -> Value {
    const FINAL: [&str; 4] = ["completed", "failed", "expired", "cancelled"];
    let is_over = async || FINAL.contains(&shown(stack, id(batch)).await["status"].as_str().unwrap());
    stack.until("the batch is over", is_over).await;
    shown(stack, id(batch)).await
}

/// The rows of a file, by `custom_id`.
async fn results(stack: &Stack, file: &Value) -> Vec<(String, Value)> {
    let Some(file) = file.as_str() else { return Vec::new() };
    let content = application(stack).get(&format!("/files/{file}/content")).await;
    assert_eq!(content.status, 200, "{}", content.text());
    let rows = content.text();
    let mut rows: Vec<(String, Value)> = rows
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .map(|row: Value| (row["custom_id"].as_str().unwrap().to_owned(), row))
        .collect();
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    rows
}

async fn batches_made(stack: &Stack) -> i64 {
    stack.database.client().await.query_one("SELECT count(*) FROM batches", &[]).await.unwrap().get(0)
}
