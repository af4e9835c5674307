//! Profiles that accounts of AWS made: the provider is asked once for the model behind one, and that model chooses the wire
//! and the price. A profile that cannot be read costs nobody an answer.

use crate::journal::calls::rows;
use harness::{Client, Stack, chat};
use rust_decimal::Decimal;
use serde_json::{Value, json};

const CLAUDE: &str = "anthropic.claude-3-haiku-20240307-v1:0";

fn arn(id: &str) -> String {
    format!("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/{id}")
}

/// Its place in a path.
fn escaped(id: &str) -> String {
    format!("arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2F{id}")
}

fn client(stack: &Stack) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    client.with("x-gateway-provider", "bedrock").with("x-gateway-custom-host", stack.mock.origin())
}

/// The next answer is a profile of this model.
fn tell_profile(stack: &Stack, model: &str) {
    let member = |region: &str| json!({ "modelArn": format!("arn:aws:bedrock:{region}::foundation-model/{model}") });
    let profile = json!({
        "inferenceProfileName": "team", "status": "ACTIVE", "type": "APPLICATION",
        "models": [member("us-east-1"), member("us-west-2")],
    });
    let fault = json!([{ "body": profile.to_string(), "content_type": "application/json" }]);
    stack.mock.script(fault).unwrap();
}

fn places(stack: &Stack) -> Vec<String> {
    stack.mock.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
}

async fn ask(client: &Client, model: &str) {
    let mut body = chat("Hello");
    body["model"] = json!(model);
    let answer = client.post("/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["model"], *model, "a client is told the name that it asked for");
}

#[tokio::test]
async fn a_profile_is_asked_for_once_and_its_model_chooses_the_wire() {
    let stack = Stack::start().await;
    tell_profile(&stack, "cohere.embed-english-v3");
    for _ in 0..2 {
        let asked = json!({ "model": arn("embed"), "input": ["a", "b"] });
        let answer = client(&stack).post("/embeddings", &asked).await;
        // Models that are not Cohere's take one text alone.
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["data"].as_array().map(Vec::len), Some(2), "{}", answer.text());
    }
    let invoked = format!("POST /model/{}/invoke", escaped("embed"));
    let expected = [format!("GET /inference-profiles/{}", escaped("embed")), invoked.clone(), invoked];
    assert_eq!(places(&stack), expected);
    assert_eq!(stack.mock.requests()[0].header("authorization"), "Bearer sk-mock");
}

#[tokio::test]
async fn a_call_of_a_profile_costs_what_its_model_costs() {
    let stack = Stack::start().await;
    ask(&client(&stack), CLAUDE).await;
    tell_profile(&stack, CLAUDE);
    ask(&client(&stack), &arn("chat")).await;
    let rows = rows(&stack, 2).await;
    let costs: Vec<Option<Decimal>> = rows.iter().map(|row| row.get("cost")).collect();
    assert!(costs[0].is_some_and(|cost| cost > Decimal::ZERO), "{costs:?}");
    assert_eq!(costs[0], costs[1]);
}

#[tokio::test]
async fn a_profile_that_cannot_be_read_is_one_of_an_unknown_model_and_is_not_asked_for_again_at_once() {
    let stack = Stack::start().await;
    for (id, fault) in [
        ("denied", json!([{ "status": 403 }])),
        ("rubbish", json!([{ "body": "<html>", "content_type": "text/html" }])),
        ("other", json!([{ "body": json!({ "models": [] }).to_string(), "content_type": "application/json" }])),
    ] {
        stack.mock.reset();
        stack.mock.script(fault).unwrap();
        for _ in 0..2 {
            ask(&client(&stack), &arn(id)).await;
        }
        let converse = format!("POST /model/{}/converse", escaped(id));
        let expected = [format!("GET /inference-profiles/{}", escaped(id)), converse.clone(), converse];
        assert_eq!(places(&stack), expected, "{id}");
    }
}

#[tokio::test]
async fn a_name_with_a_region_or_an_account_before_it_needs_no_question() {
    let stack = Stack::start().await;
    let asked: Value = json!(["a", "b"]);
    for model in ["us.cohere.embed-english-v3", "arn:aws:bedrock:us-east-1::foundation-model/cohere.embed-english-v3"] {
        let answer = client(&stack).post("/embeddings", &json!({ "model": model, "input": asked })).await;
        assert_eq!(answer.status, 200, "{model}: {}", answer.text());
    }
    assert!(places(&stack).iter().all(|place| place.starts_with("POST ")), "{:?}", places(&stack));
}
