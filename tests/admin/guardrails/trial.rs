//! Trying checks out: what they say, and what cannot be asked.

use super::{field, outcome};
use crate::service::Service;
use serde_json::{Value, json};
use shared::model::KeyKind;

const TEST: &str = "/guardrails/test";

fn contains(operator: &str, words: &[&str]) -> Value {
    json!({ "id": "default.contains", "parameters": { "operator": operator, "words": words } })
}

#[tokio::test]
async fn one_of_text_request_and_response_is_needed() {
    let service = Service::start().await;
    let client = service.administrator();
    let check = contains("none", &["x"]);
    for (body, expected) in [
        (json!({ "checks": [check] }), "text"),
        (json!({ "checks": [check], "text": "t", "request": {} }), "text"),
        (json!({ "checks": [check], "text": "t", "response": {} }), "text"),
        (json!({ "checks": [], "text": "t" }), "checks"),
        (json!({ "text": "t" }), "checks"),
        (json!({ "checks": [{ "id": "default.nothing" }], "text": "t" }), "checks[0].id"),
        (json!({ "checks": [check], "text": 7 }), "text"),
        (json!({ "checks": [check], "text": "t", "invented": 1 }), "invented"),
    ] {
        let refused = client.post(TEST, &body).await;
        assert_eq!(
            (outcome(&refused), field(&refused)),
            ((400, "AB01".into()), expected.to_owned()),
            "{}",
            refused.text()
        );
    }
}

#[tokio::test]
async fn trying_needs_to_read_and_leaves_no_trace() {
    let service = Service::start().await;
    let body = json!({ "checks": [contains("none", &["x"])], "text": "t" });
    let reader = service.key(KeyKind::WorkspaceService, &["guardrails.read"]).await;
    let writer = service.key(KeyKind::WorkspaceService, &["guardrails.create"]).await;
    assert_eq!(service.client().with_key(&reader.key).post(TEST, &body).await.status, 200);
    assert_eq!(service.client().with_key(&writer.key).post(TEST, &body).await.status, 403);
    assert_eq!(service.administrator().get("/guardrails").await.json()["total"], 0);
    assert!(service.trail(service.home.organisation_id).await.is_empty());
}

#[tokio::test]
async fn each_check_says_what_it_finds_and_an_error_fails_only_where_it_is_to() {
    let service = Service::start().await;
    let client = service.administrator();
    let counted =
        |fails: bool| json!({ "id": "default.wordCount", "parameters": { "maxWords": 9, "failOnError": fails } });
    let off = json!({ "id": "default.contains", "parameters": { "words": ["b"] }, "is_enabled": false });
    let keys = json!({ "id": "jsonKeys", "parameters": { "keys": ["a"], "operator": "all" } });
    let chat = |text: &str| json!({ "messages": [{ "role": "user", "content": text }] });
    let answered = |text: &str| json!({ "choices": [{ "message": { "role": "assistant", "content": text } }] });
    for (body, verdict, each) in [
        (json!({ "checks": [contains("none", &["x"])], "text": "an x" }), false, vec![(false, None)]),
        (json!({ "checks": [contains("none", &["x"])], "text": "a y" }), true, vec![(true, None)]),
        (json!({ "checks": [contains("any", &["y"]), off], "text": "a y" }), true, vec![(true, None)]),
        (json!({ "checks": [contains("any", &["y"])], "request": chat("a y") }), true, vec![(true, None)]),
        (json!({ "checks": [keys], "response": answered("{\"a\": 1}") }), true, vec![(true, None)]),
        (json!({ "checks": [keys], "response": answered("{\"b\": 1}") }), false, vec![(false, None)]),
        (json!({ "checks": [keys], "text": "{\"a\": 1}" }), true, vec![(true, None)]),
        (json!({ "checks": [keys], "request": chat("{\"a\": 1}") }), true, vec![(false, Some("WrongSide"))]),
        (json!({ "checks": [counted(false)], "text": "" }), true, vec![(false, Some("NoText"))]),
        (json!({ "checks": [counted(true)], "text": "" }), false, vec![(false, Some("NoText"))]),
        (
            json!({ "checks": [counted(true), contains("any", &["t"])], "text": "t" }),
            true,
            vec![(true, None), (true, None)],
        ),
    ] {
        let answer = client.post(TEST, &body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text());
        let told = answer.json();
        let seen: Vec<_> = told["checks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["verdict"].as_bool().unwrap(), one["error"]["name"].as_str()))
            .collect();
        assert_eq!((told["verdict"].as_bool(), seen), (Some(verdict), each), "{body}: {told}");
    }
}

#[tokio::test]
async fn what_a_check_would_change_is_shown() {
    let service = Service::start().await;
    let check = json!({ "id": "default.regexReplace", "parameters": { "rule": "[0-9]+" } });
    let told = service.administrator().post(TEST, &json!({ "checks": [check], "text": "call 555" })).await.json();
    let result = &told["checks"][0];
    assert_eq!((&told["verdict"], &result["transformed"]), (&json!(true), &json!(true)), "{told}");
    assert_eq!(result["transformed_data"]["messages"][0]["content"], "call [REDACTED]", "{told}");
}
