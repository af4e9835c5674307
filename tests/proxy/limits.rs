//! Limits that several proxies share, against a real Postgres; and what requests meet when limits speak of them.

mod admission;
mod attempts;
mod budgets;
pub mod fairness;
mod fetched_media;
mod free_calls;
mod integrations;
mod leases;
mod lost;
mod money;
mod options;
mod rates;
mod replica;
mod seconds;
mod set_aside;
mod stalled_readers;
mod states;
mod strict;
mod switches;
mod tenants;
mod together;
mod tokens;
mod unconfirmed;
mod unheard;
mod verified;
mod walk;

use harness::{Client, Stack};
use serde_json::{Value, json};

/// A key of the first workspace with these limits, as an application.
pub async fn limited_key(stack: &Stack, limits: Value) -> (String, Client) {
    let mut body = json!({
        "name": "limited", "workspace_id": stack.home.workspace_id,
        "scopes": ["completions.write", "models.list"],
    });
    body.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
    let answer = stack.administrator().post("/api-keys/workspace/service", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let key = answer.json()["key"].as_str().unwrap().to_owned();
    stack.until_known(&key).await;
    (key.clone(), stack.as_application(&key))
}

pub fn requests(unit: &str, value: u64) -> Value {
    json!([{ "type": "requests", "unit": unit, "value": value }])
}

/// Makes a policy of the first workspace.
pub async fn policy(stack: &Stack, path: &str, mut body: Value) -> String {
    body["workspace_id"] = json!(stack.home.workspace_id);
    let answer = stack.administrator().post(path, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["id"].as_str().unwrap().to_owned()
}

/// The same for those who do not need the key itself.
pub async fn limited(stack: &Stack, limits: Value) -> Client {
    limited_key(stack, limits).await.1
}

/// A stack whose requests wait for the store of limits however busy the machine is.
pub async fn patient() -> Stack {
    Stack::builder().proxy("LIMITS_WAIT_MS", "20000").start().await
}
