//! The golden cost vectors, end to end: a provider answers with their usage in each dialect, plain and as a stream, and
//! the log of the call costs what was worked out by hand.

mod forms;
mod own;

use crate::families::{Body, FORM_TYPE, body as family_body};
use forms::{Call, calls};
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tempfile::TempDir;
use uuid::Uuid;

/// Dearer than the column of costs can hold: logs of such calls have no cost.
const TOO_DEAR: &str = "a_large_bill_loses_no_digit";

/// The provider of a vector, and the vector.
fn vectors() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cost");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let mut vectors = Vec::new();
    for path in files {
        let provider = path.file_stem().unwrap().to_string_lossy().into_owned();
        let read: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        vectors.extend(read.into_iter().map(|vector| (provider.clone(), vector)));
    }
    vectors
}

/// A folder in which every provider lists each vector's prices under the name of its rule.
fn lists(vectors: &[(String, Value)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let named = |vector: &Value| (vector["rule"].as_str().unwrap().to_owned(), vector["entry"].clone());
    let list: Map<String, Value> = vectors.iter().map(|(_, vector)| named(vector)).collect();
    let list = serde_json::to_string(&list).unwrap();
    let of_vectors = vectors.iter().map(|(provider, _)| provider.as_str());
    for provider in of_vectors.chain(["openai", "anthropic"]).collect::<BTreeSet<_>>() {
        std::fs::write(folder.path().join(format!("{provider}.json")), &list).unwrap();
    }
    folder
}

async fn stack_with(prices: &TempDir) -> Stack {
    let folder = prices.path().to_str().unwrap();
    Stack::builder().proxy("MODEL_CONFIGS_PRICING_LOCAL_PATH", folder).start().await
}

/// With the caller's own credential for the provider.
fn direct(stack: &Stack, call: &Call) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", &*call.provider);
    client.with("authorization", "Bearer sk-mock").with("x-gateway-custom-host", stack.mock.url())
}

async fn ask(stack: &Stack, client: &Client, call: &Call) -> Uuid {
    let kind = if call.is_stream { "text/event-stream" } else { "application/json" };
    stack.mock.script(json!([{ "body": call.answer, "content_type": kind }])).unwrap();
    let answer = match &call.body {
        Some(body) => client.post(&call.path, body).await,
        None => {
            let request = client.request(Method::POST, &call.path).header("content-type", FORM_TYPE);
            whole(request.body(family_body(Body::Form, &call.rule))).await
        }
    };
    assert_eq!(answer.status, 200, "{call}: {}", answer.text());
    answer.header("x-gateway-request-id").parse().unwrap()
}

/// Waits for the logs of all calls and compares their costs.
async fn judge(stack: &Stack, sent: &BTreeMap<Uuid, Call>) {
    const ROWS: &str = "SELECT id, cost, usage_estimated FROM request_logs WHERE id = ANY ($1)";
    let (database, ids) = (stack.database.client().await, sent.keys().copied().collect::<Vec<_>>());
    let arrived = async || database.query(ROWS, &[&ids]).await.unwrap().len() == sent.len();
    stack.until("all logs have arrived", arrived).await;
    let reader = stack.anonymous().with_key(&stack.home.workspace_key);
    for row in database.query(ROWS, &[&ids]).await.unwrap() {
        let (id, call) = (row.get::<_, Uuid>("id"), &sent[&row.get("id")]);
        assert!(!row.get::<_, bool>("usage_estimated"), "{call}");
        assert_eq!(row.get::<_, Option<Decimal>>("cost"), Some(call.cents), "{call}");
        let log = reader.get(&format!("/logs/{id}")).await;
        assert_eq!(log.status, 200, "{call}: {}", log.text());
        assert_eq!(log.json()["metrics"]["cost"].as_f64(), call.cents.to_f64(), "{call}");
    }
}

#[tokio::test]
async fn every_vector_costs_in_every_dialect_what_was_worked_out_by_hand() {
    let vectors: Vec<_> = vectors().into_iter().filter(|(_, vector)| !own::has_terms(vector)).collect();
    let prices = lists(&vectors);
    let stack = stack_with(&prices).await;
    let (mut sent, mut forms) = (BTreeMap::new(), BTreeMap::<&str, usize>::new());
    for (provider, vector) in &vectors {
        let calls = calls(provider, vector);
        assert_eq!(calls.is_empty(), vector["rule"] == TOO_DEAR, "{} can be told", vector["rule"]);
        for call in calls {
            *forms.entry(call.form).or_default() += 1;
            sent.insert(ask(&stack, &direct(&stack, &call), &call).await, call);
        }
    }
    assert_eq!(forms.keys().copied().collect::<BTreeSet<_>>(), BTreeSet::from(forms::ALL), "{forms:?}");
    assert!(sent.len() >= 90, "only {forms:?}");
    judge(&stack, &sent).await;
}
