//! Trying checks out: what they say, and what cannot be asked.

use super::{field, outcome};
use crate::service::Service;
use harness::{GuardService, Says};
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

#[tokio::test]
async fn services_are_asked_only_where_a_trial_says_so() {
    let service = Service::start_with(&["--trusted-custom-hosts=127.0.0.1"]).await;
    let client = service.administrator();
    let guard =
        GuardService::start(Says::Json(json!({ "verdict": false, "data": { "why": "key-of-the-hook" } }))).await;
    let webhook = json!({ "id": "default.webhook", "parameters":
        { "webhookURL": guard.url(), "headers": { "x-key": "key-of-the-hook" } } });
    let body = |runs: Value| json!({ "checks": [webhook, contains("any", &["t"])], "text": "t", "run_remote": runs });
    for runs in [json!(false), json!(null)] {
        let told = client.post(TEST, &body(runs)).await.json();
        assert_eq!(told["checks"][0]["error"]["name"], "NotRun", "{told}");
    }
    assert!(guard.asked().is_empty());
    let told = client.post(TEST, &body(json!(true))).await.json();
    assert_eq!((&told["verdict"], &told["checks"][0]["verdict"]), (&json!(false), &json!(false)), "{told}");
    assert_eq!((&told["checks"][1]["verdict"], guard.asked().len()), (&json!(true), 1), "{told}");
    assert_eq!(guard.asked()[0].body["request"]["text"], "t");
    assert!(!told.to_string().contains("key-of-the-hook"), "{told}");
}

#[tokio::test]
async fn a_trial_asks_vendors_with_the_organisations_credentials_and_no_address_inside() {
    let service = Service::start_with(&["--trusted-custom-hosts=127.0.0.1"]).await;
    let client = service.administrator();
    let guard = GuardService::start(Says::Json(json!({ "action": "BLOCK", "echo": "key-of-the-vendor" }))).await;
    let body = json!({ "checks": [{ "id": "aiguard.scan", "parameters": { "policyId": "7" } }], "text": "t", "run_remote": true });
    let told = client.post(TEST, &body).await.json();
    assert_eq!(told["checks"][0]["error"]["name"], "NoCredentials", "{told}");
    let stored = |base: String| json!({ "credentials": { "apiKey": "key-of-the-vendor", "baseUrl": base } });
    let mut new = stored(guard.url().replace("/judge", ""));
    new["id"] = json!("aiguard");
    assert_eq!(client.post("/plugins", &new).await.status, 200);
    let told = client.post(TEST, &body).await.json();
    assert_eq!((&told["checks"][0]["verdict"], &told["checks"][0]["error"]), (&json!(false), &Value::Null), "{told}");
    assert!(!told.to_string().contains("key-of-the-vendor"), "{told}");
    assert!(guard.asked()[0].head.to_ascii_lowercase().contains("authorization: bearer key-of-the-vendor"));
    let other = service.organisation().await;
    let told = service.client().with_key(&other.admin_key.key).post(TEST, &body).await.json();
    assert_eq!(told["checks"][0]["error"]["name"], "NoCredentials", "another organisation has none: {told}");
    assert_eq!(client.put("/plugins/aiguard", &stored("https://169.254.169.254".into())).await.status, 200);
    let told = client.post(TEST, &body).await.json();
    assert_eq!(told["checks"][0]["error"]["name"], "ForbiddenAddress", "{told}");
    for (says, name) in
        [(Says::Garbage, "InvalidAnswer"), (Says::Huge(2 << 20), "AnswerTooLong"), (Says::HangUp, "ConnectionError")]
    {
        guard.says(says);
        assert_eq!(client.put("/plugins/aiguard", &stored(guard.url().replace("/judge", ""))).await.status, 200);
        let told = client.post(TEST, &body).await.json();
        assert_eq!(told["checks"][0]["error"]["name"], name, "{told}");
    }
}
