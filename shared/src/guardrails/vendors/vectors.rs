//! One vector for each vendor: what is sent, and what its answers mean. The shapes of answers are those that vendors publish.

use super::VENDORS;
use super::wires::WIRES;
use crate::guardrails::remote::{Answers, Question, RemoteAnswer, RemoteCall, RemoteContext};
use crate::guardrails::subject::testing::{said, subject};
use crate::guardrails::{Check, Runs, Subject, Verdict, compile, validate};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

#[derive(Deserialize)]
struct Vector {
    id: String,
    side: String,
    parameters: Value,
    credentials: Map<String, Value>,
    url: String,
    header: Vec<String>,
    body: Value,
    passes: Value,
    fails: Option<Value>,
    /// What stands in place of the text that was found.
    redacted: Option<String>,
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("vectors.json")).unwrap()
}

fn bodies() -> (Value, Value) {
    let request = json!({ "model": "m", "messages": [{ "role": "user", "content": "hello" }] });
    let response = json!({ "choices": [{ "index": 0, "message": { "role": "assistant", "content": "said" } }] });
    (request, response)
}

fn asked(
    check: &dyn Check,
    subject: &Subject<'_>,
    credentials: Option<&Map<String, Value>>,
) -> Result<Vec<RemoteCall>, Box<Verdict>> {
    let context = RemoteContext { credentials, provider: "openai", trace_id: "trace-1", ..RemoteContext::default() };
    match check.remote().unwrap().ask(subject, &context) {
        Ok(Question::Calls(calls)) => Ok(calls),
        Ok(_) => panic!("a vendor is asked by calls"),
        Err(verdict) => Err(verdict),
    }
}

#[test]
fn every_vendor_is_asked_as_it_wants_to_be() {
    let (request, response) = bodies();
    for vector in vectors() {
        let id = &vector.id;
        let checks = json!([{ "id": id, "parameters": vector.parameters }]);
        assert_eq!(validate(&checks), Ok(()), "{id}");
        let check = compile(id, &vector.parameters).unwrap();
        let subject = subject(&request, (vector.side == "output").then_some(&response));
        let calls = asked(&*check, &subject, Some(&vector.credentials)).unwrap_or_else(|said| panic!("{id} {said:?}"));
        assert_eq!(calls.len(), 1, "{id}");
        let call = &calls[0];
        assert_eq!(call.url, vector.url, "{id}");
        assert_eq!(serde_json::from_slice::<Value>(&call.body).unwrap(), vector.body, "{id}");
        if let [name, value] = &vector.header[..] {
            let sent = call.headers.iter().find(|(known, _)| known.as_str() == name).map(|(_, value)| value);
            assert_eq!(sent.and_then(|sent| sent.to_str().ok()), Some(value.as_str()), "{id}");
            assert!(sent.unwrap().is_sensitive(), "{id}");
        }
        assert!(!String::from_utf8_lossy(&call.body).contains("s3cret"), "{id}: a credential is in a head alone");
        assert!(!call.url.contains("s3cret"), "{id}");
    }
}

#[test]
fn every_vendors_answer_is_a_verdict() {
    let (request, response) = bodies();
    for vector in vectors() {
        let id = &vector.id;
        let check = compile(id, &vector.parameters).unwrap();
        let subject = subject(&request, (vector.side == "output").then_some(&response));
        let read = |status: u16, body: String| {
            check.remote().unwrap().read(&subject, &Answers::Calls(vec![RemoteAnswer::new(status, body)]))
        };
        assert_eq!(said(&read(200, vector.passes.to_string())), "pass", "{id}");
        if let Some(fails) = &vector.fails {
            let verdict = read(200, fails.to_string());
            match &vector.redacted {
                None => assert_eq!((said(&verdict), verdict.transformed), ("fail", None), "{id}"),
                Some(redacted) => {
                    assert_eq!(said(&verdict), "pass", "{id} {verdict:?}");
                    let place = match vector.side.as_str() {
                        "output" => "/choices/0/message/content",
                        _ => "/messages/0/content",
                    };
                    let changed = verdict.transformed.unwrap_or_default();
                    assert_eq!(changed.pointer(place), Some(&json!(redacted)), "{id}");
                }
            }
        }
        for (status, body) in [(500, "{}"), (200, "rubbish"), (200, ""), (200, "[]"), (401, "s3cret-key"), (302, "{}")]
        {
            let verdict = read(status, body.to_owned());
            assert_eq!(said(&verdict), "error", "{id}: {status} {body} {verdict:?}");
            assert!(!verdict.to_json().to_string().contains("s3cret"), "{id}");
        }
    }
}

#[test]
fn redaction_is_asked_for_or_a_find_stays_a_find() {
    let (request, response) = bodies();
    for vector in vectors().into_iter().filter(|vector| vector.redacted.is_some()) {
        let mut parameters = vector.parameters.clone();
        for name in ["redact", "pii_redact"] {
            parameters.as_object_mut().unwrap().shift_remove(name);
        }
        let check = compile(&vector.id, &parameters).unwrap();
        let fails = vector.fails.unwrap().to_string();
        let subject = subject(&request, (vector.side == "output").then_some(&response));
        let answers = || Answers::Calls(vec![RemoteAnswer::new(200, fails.clone())]);
        let verdict = check.remote().unwrap().read(&subject, &answers());
        assert_eq!((said(&verdict), verdict.transformed), ("fail", None), "{}", vector.id);
        // The text of a stream cannot be replaced any more.
        let check = compile(&vector.id, &vector.parameters).unwrap();
        let text = if vector.side == "output" { "said" } else { "hello" };
        let verdict = check.remote().unwrap().read(&Subject { text: Some(text), ..subject }, &answers());
        assert_eq!((said(&verdict), verdict.transformed), ("fail", None), "{}", vector.id);
    }
}

#[test]
fn what_a_redactor_found_and_did_not_replace_must_not_go_on() {
    let request =
        json!({ "messages": [{ "role": "user", "content": "a@b.ch" }, { "role": "user", "content": "c@d.ch" }] });
    let check = compile("promptfoo.pii", &json!({ "redact": true })).unwrap();
    let answer = |end: usize| {
        let found = json!({ "entity_type": "email", "start": 0, "end": end });
        let body = json!({ "results": [{ "flagged": true, "payload": { "pii": [found] } }] });
        RemoteAnswer::new(200, body.to_string())
    };
    let read = |ends: [usize; 2]| {
        check.remote().unwrap().read(&subject(&request, None), &Answers::Calls(ends.map(answer).into()))
    };
    let verdict = read([6, 6]);
    assert_eq!((said(&verdict), verdict.transformed.is_some()), ("pass", true));
    for ends in [[6, 99], [99, 6], [99, 99]] {
        let verdict = read(ends);
        assert!(verdict.forbids() && verdict.transformed.is_none(), "{verdict:?}");
    }
}

#[test]
fn what_would_be_changed_of_a_stream_is_a_find() {
    let request = json!({ "messages": [] });
    let check = compile("crowdstrike-aidr.guardChatCompletions", &json!({})).unwrap();
    let body = json!({ "status": "Success", "result": { "blocked": false, "transformed": true, "guard_output": {} } });
    let answers = Answers::Calls(vec![RemoteAnswer::new(200, body.to_string())]);
    let stream = Subject { text: Some("said"), ..subject(&request, Some(&Value::Null)) };
    let verdict = check.remote().unwrap().read(&stream, &answers);
    assert_eq!((said(&verdict), verdict.transformed), ("fail", None));
}

#[test]
fn a_search_puts_what_it_found_before_the_conversation() {
    let (request, _) = bodies();
    for vector in vectors().into_iter().filter(|vector| vector.fails.is_none()) {
        let check = compile(&vector.id, &vector.parameters).unwrap();
        let answers = Answers::Calls(vec![RemoteAnswer::new(200, vector.passes.to_string())]);
        let verdict = check.remote().unwrap().read(&subject(&request, None), &answers);
        let changed = verdict.transformed.unwrap();
        let context = changed["messages"][0]["content"].as_str().unwrap();
        assert!(context.contains("[1] \"T\"\nURL: https://w.test\nfound"), "{context}");
        assert_eq!(changed["messages"][1], request["messages"][0]);
    }
}

#[test]
fn without_credentials_a_vendor_is_not_asked_and_lets_pass_with_a_note() {
    let (request, response) = bodies();
    for vector in vectors().into_iter().filter(|vector| !vector.credentials.is_empty()) {
        let check = compile(&vector.id, &vector.parameters).unwrap();
        let subject = subject(&request, (vector.side == "output").then_some(&response));
        let verdict = asked(&*check, &subject, None).unwrap_err();
        assert_eq!(verdict.error.as_ref().map(|error| error.name), Some("NoCredentials"), "{}", vector.id);
        assert!(verdict.verdict, "{}", vector.id);
        let empty = asked(&*check, &subject, Some(&Map::new())).unwrap_err();
        assert_eq!(empty.error.map(|error| error.name), Some("BadCredentials"), "{}", vector.id);
    }
}

#[test]
fn there_is_a_row_and_a_vector_for_every_check_that_a_vendor_runs() {
    let asked: HashSet<&str> = WIRES.iter().map(|wire| wire.id).collect();
    let listed: HashSet<&str> = VENDORS.iter().filter(|spec| spec.runs == Runs::Vendor).map(|spec| spec.id).collect();
    assert_eq!(asked, listed);
    let vectors = vectors();
    let tried: HashSet<&str> = vectors.iter().map(|vector| vector.id.as_str()).collect();
    assert_eq!(tried, listed);
    for wire in WIRES {
        assert!(serde_json::from_str::<Value>(wire.body).is_ok(), "{}", wire.id);
        assert!(wire.addresses.iter().all(|address| address.starts_with("https://") || address.starts_with('{')));
    }
}

#[test]
fn more_texts_than_a_vendor_is_asked_about_never_pass_unseen() {
    let parts: Vec<Value> = (0..40).map(|n| json!({ "type": "text", "text": format!("t{n}") })).collect();
    let request = json!({ "messages": [{ "role": "user", "content": parts }] });
    let credentials = json!({ "apiKey": "k", "resourceName": "r" });
    let [judges, redacts] = [false, true].map(|redact| compile("azure.pii", &json!({ "redact": redact })).unwrap());
    let verdict = asked(&*redacts, &subject(&request, None), credentials.as_object()).unwrap_err();
    assert!(verdict.is_bound() && verdict.forbids());
    let calls = asked(&*judges, &subject(&request, None), credentials.as_object()).unwrap();
    assert_eq!(calls.len(), 1, "as one text, where nothing has to be put back");
}
