//! What a webhook is told, what it never is, and what its answers become.

use crate::guardrails::remote::{Answers, Question, RemoteAnswer, RemoteCall, RemoteContext};
use crate::guardrails::subject::testing::{said, subject};
use crate::guardrails::{Check, Subject, compile, validate};
use http::HeaderMap;
use serde_json::{Value, json};

fn webhook(more: Value) -> Box<dyn Check> {
    let mut parameters = json!({ "webhookURL": "https://hooks.test/judge?tenant=1" });
    parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    compile("default.webhook", &parameters).unwrap_or_else(|fault| panic!("{parameters}: {fault}"))
}

fn call(check: &dyn Check, subject: &Subject<'_>) -> RemoteCall {
    // Whoever calls knows them too.
    let headers = Some(subject.headers);
    let context = RemoteContext {
        provider: "openai",
        headers,
        trace_id: "trace-1",
        status: Some(200),
        ..RemoteContext::default()
    };
    match check.remote().unwrap().ask(subject, &context) {
        Ok(Question::Calls(mut calls)) if calls.len() == 1 => calls.remove(0),
        Ok(_) => panic!("it makes one call"),
        Err(verdict) => panic!("{verdict:?}"),
    }
}

#[test]
fn it_is_told_both_bodies_and_no_header_of_the_client() {
    let request = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let response = json!({ "choices": [{ "message": { "content": "ho" } }] });
    let mut headers = HeaderMap::new();
    headers.insert("authorization", "Bearer s3cret".parse().unwrap());
    headers.insert("x-team", "red".parse().unwrap());
    let sent = call(&*webhook(json!({})), &Subject { headers: &headers, ..subject(&request, None) });
    assert_eq!(sent.url, "https://hooks.test/judge?tenant=1");
    assert_eq!(
        serde_json::from_slice::<Value>(&sent.body).unwrap(),
        json!({
            "request": { "json": request, "text": "hi", "isStreamingRequest": true, "isTransformed": false },
            "response": { "json": null, "text": null, "statusCode": 200, "isTransformed": false },
            "provider": "openai", "requestType": "chatComplete", "metadata": {}, "eventType": "beforeRequestHook",
        })
    );
    let names: Vec<&str> = sent.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "accept", "user-agent"]);
    let sent = call(&*webhook(json!({})), &subject(&request, Some(&response)));
    let payload: Value = serde_json::from_slice(&sent.body).unwrap();
    assert_eq!((&payload["response"]["json"], &payload["response"]["text"]), (&response, &json!("ho")));
    assert_eq!((&payload["request"]["text"], &payload["eventType"]), (&json!("hi"), &json!("afterRequestHook")));
}

#[test]
fn listed_headers_are_sent_on_but_never_credentials() {
    let request = json!({ "messages": [] });
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer s3cret"),
        ("x-api-key", "s3cret"),
        ("cookie", "s3cret"),
        ("x-gateway-api-key", "s3cret"),
        ("x-team", "red"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    let listed = json!({ "forwardHeaders": ["Authorization", "x-api-key", "Cookie", "x-gateway-api-key", "X-Team", "traceparent"],
                         "headers": { "authorization": "Bearer own", "x-team": "blue" } });
    let sent = call(&*webhook(listed), &Subject { headers: &headers, ..subject(&request, None) });
    let value =
        |name: &str| sent.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.to_str().unwrap());
    assert_eq!((value("authorization"), value("x-team")), (Some("Bearer own"), Some("blue")), "its own win");
    assert!(value("traceparent").is_some());
    assert!(sent.headers.iter().all(|(_, value)| !value.to_str().unwrap().contains("s3cret")), "{:?}", sent.headers);
    assert_eq!(sent.secrets(), ["own", "blue"]);
}

#[test]
fn its_answer_is_a_verdict_and_may_be_a_body() {
    let changed = json!({ "messages": [{ "role": "user", "content": "changed" }] });
    let request = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    let response = json!({ "choices": [] });
    let transformed =
        |side: &str, json: Value| json!({ "verdict": true, "transformedData": { side: { "json": json } } });
    for (is_answer, status, body, expected, is_changed) in [
        (false, 200, json!({ "verdict": true }).to_string(), "pass", false),
        (false, 200, json!({ "verdict": false, "data": { "why": "no" } }).to_string(), "fail", false),
        (false, 201, json!({ "verdict": true, "data": [1] }).to_string(), "pass", false),
        (false, 200, json!({ "verdict": "true" }).to_string(), "error", false),
        (false, 200, json!({}).to_string(), "error", false),
        (false, 200, "[]".into(), "error", false),
        (false, 200, "rubbish".into(), "error", false),
        (false, 200, String::new(), "error", false),
        (false, 500, json!({ "verdict": true }).to_string(), "error", false),
        (false, 302, json!({ "verdict": true }).to_string(), "error", false),
        (false, 200, transformed("request", changed.clone()).to_string(), "pass", true),
        (false, 200, transformed("response", changed.clone()).to_string(), "pass", false),
        (true, 200, transformed("response", changed.clone()).to_string(), "pass", true),
        (true, 200, transformed("request", changed.clone()).to_string(), "pass", false),
        (false, 200, transformed("request", json!(null)).to_string(), "pass", false),
        (false, 200, transformed("request", json!("text")).to_string(), "error", false),
    ] {
        let check = webhook(json!({}));
        let subject = subject(&request, is_answer.then_some(&response));
        let answers = Answers::Calls(vec![RemoteAnswer::new(status, body.clone())]);
        let verdict = check.remote().unwrap().read(&subject, &answers);
        assert_eq!(
            (said(&verdict), verdict.transformed.is_some()),
            (expected, is_changed),
            "{status} {body}: {verdict:?}"
        );
    }
}

#[test]
fn what_it_says_is_told_with_its_own_explanation() {
    let request = json!({});
    let body = json!({ "verdict": false, "data": { "explanation": "too rude", "score": 7 } });
    let answers = Answers::Calls(vec![RemoteAnswer::new(200, body.to_string())]);
    let verdict = webhook(json!({})).remote().unwrap().read(&subject(&request, None), &answers);
    assert_eq!(*verdict.data.value(), json!({ "explanation": "too rude", "score": 7 }));
}

#[test]
fn parameters_that_cannot_be_called_are_refused() {
    for (parameters, is_taken) in [
        (json!({ "webhookURL": "https://a.test/x" }), true),
        (json!({ "webhookURL": "https://a.test" }), true),
        (json!({ "webhookURL": "http://10.0.0.1/x" }), true), // Who dials it refuses it: an operator may have listed it.
        (json!({ "webhookURL": "https://a.test/x", "timeout": 60_000 }), true),
        (json!({ "webhookURL": "https://a.test/x", "headers": "{\"x\": \"y\"}" }), true),
        (json!({}), false),
        (json!({ "webhookURL": "" }), false),
        (json!({ "webhookURL": "ftp://a.test" }), false),
        (json!({ "webhookURL": "https://" }), false),
        (json!({ "webhookURL": "https://user:password@a.test/x" }), false),
        (json!({ "webhookURL": "https://a.test/x", "timeout": 0 }), false),
        (json!({ "webhookURL": "https://a.test/x", "headers": { "host": "b" } }), false),
        (json!({ "webhookURL": "https://a.test/x", "forwardHeaders": ["a b"] }), false),
        (json!({ "webhookURL": "https://a.test/x", "url": "y" }), false),
    ] {
        let checks = json!([{ "id": "default.webhook", "parameters": parameters }]);
        assert_eq!(validate(&checks).is_ok(), is_taken, "{parameters} {:?}", validate(&checks));
    }
}

#[test]
fn a_stream_that_it_would_change_does_not_pass() {
    let request = json!({ "messages": [] });
    let body = json!({ "verdict": true, "transformedData": { "response": { "json": { "choices": [] } } } });
    let answers = Answers::Calls(vec![RemoteAnswer::new(200, body.to_string())]);
    let plain = json!({ "choices": [] });
    let check = webhook(json!({}));
    let verdict = check.remote().unwrap().read(&subject(&request, Some(&plain)), &answers);
    assert_eq!((said(&verdict), verdict.transformed), ("pass", Some(plain.clone())));
    let stream = Subject { text: Some("said"), ..subject(&request, Some(&Value::Null)) };
    let verdict = check.remote().unwrap().read(&stream, &answers);
    assert_eq!((said(&verdict), verdict.transformed), ("fail", None));
}
