//! Answers from memory through `hold` and `deliver`: untouched without steps, changed with them, whatever the pieces are
//! that they come in.

use super::upper_case::{UNSPEAKABLE, UpperCase};
use super::*;
use crate::catalog::providers::Providers;
use crate::catalog::target::{Credential, Target};
use crate::net::dial::lab::dialer;
use crate::net::downstream::lab::LabClient;
use crate::request::receive::{MemoryOwner, body_memory};
use crate::runtime::tenant_share::Tenant;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const STRASSE: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"straße\"}}]}\n\n";
const ENDE: &str = "data: {\"choices\":[{\"delta\":{\"content\":\" ende\"}}]}\n\n";
const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// A target that is never called: its name stands in errors.
fn target() -> Target {
    let provider = Providers::load(None, &dialer()).unwrap().get("openai").unwrap().clone();
    let long = Duration::from_secs(30);
    Target {
        placed: Vec::new(),
        called: None,
        origin: provider.origin.clone().unwrap(),
        provider,
        credential: Credential::Given(None),
        own_bearer: None,
        account: Ok(None),
        headers: Vec::new(),
        timeout: long,
        is_ceiling: true,
        stream_idle: long,
    }
}

fn pieces(texts: &[&str]) -> Vec<Bytes> {
    texts.iter().map(|text| Bytes::copy_from_slice(text.as_bytes())).collect()
}

fn upper_case() -> Steps {
    let mut steps = Steps::default();
    steps.push(UpperCase::default());
    steps
}

fn strip_usage() -> Steps {
    let mut steps = Steps::default();
    steps.push(StripUsage);
    steps
}

fn source(kind: &str, pieces: Vec<Bytes>) -> AnswerSource {
    let mut head = ResponseHeader::build(200, None).unwrap();
    head.insert_header("content-type", kind).unwrap();
    head.insert_header("content-length", pieces.iter().map(Bytes::len).sum::<usize>()).unwrap();
    StoredAnswer::new(head, pieces).into()
}

/// Reads an answer and passes it on, as the engine does.
async fn pass_in(target: &Target, visit: &mut Visit, mut source: AnswerSource, mut steps: Steps) -> (LabClient, Ended) {
    let mut client = LabClient::post("/v1/chat/completions", "{}", &[]);
    let limit = Instant::now() + target.timeout;
    let memory = body_memory(64 << 20);
    let room = MemoryOwner { memory: &memory, tenant: Tenant::test(1, 1) };
    let ended = match hold(&mut source, target, WireDialect::OpenAi, &mut steps, limit, room, &mut Bytes::new()).await {
        Ok(held) => deliver(&mut client, &mut source, held, &mut steps, visit).await,
        Err(ended) => ended,
    };
    (client, ended)
}

async fn pass(source: AnswerSource, steps: Steps) -> (LabClient, Ended) {
    pass_in(&target(), &mut Visit::begin(), source, steps).await
}

/// Every way to cut a text in two, and into single bytes.
fn cuts(text: &str) -> Vec<Vec<Bytes>> {
    let whole = Bytes::copy_from_slice(text.as_bytes());
    let in_two = (0..=whole.len()).map(|at| vec![whole.slice(..at), whole.slice(at..)]);
    in_two.chain([(0..whole.len()).map(|at| whole.slice(at..=at)).collect()]).collect()
}

fn refused(ended: &Ended) -> (u16, &str) {
    match ended {
        Ended::Failed(failure) => (failure.refusal.status, failure.refusal.code.as_str()),
        other => panic!("{other:?}"),
    }
}

/// The error that a stream ends with.
fn error_code(text: &str) -> Value {
    let events: Vec<_> = crate::wire::sse::events(text.as_bytes()).collect();
    let [.., error, done] = &events[..] else { panic!("{text}") };
    assert_eq!(&*done.data, b"[DONE]", "{text}");
    serde_json::from_slice::<Value>(&error.data).unwrap()["error"]["code"].clone()
}

#[tokio::test]
async fn without_steps_an_answer_is_delivered_in_the_very_bytes_that_came() {
    for (kind, texts) in [
        ("application/json", vec![r#"{"choices":[{"message":{"content":"straße"}}]}"#]),
        ("audio/mpeg", vec!["not", "text"]),
        ("text/event-stream", vec![STRASSE, ENDE, USAGE, DONE]),
    ] {
        let came = pieces(&texts);
        let (client, ended) = pass(source(kind, came.clone()), Steps::default()).await;
        assert!(matches!(ended, Ended::Complete) && client.is_ended, "{kind}: {ended:?}");
        assert_eq!(client.pieces, came, "{kind}");
        let places = |pieces: &[Bytes]| pieces.iter().map(|piece| piece.as_ptr()).collect::<Vec<_>>();
        assert_eq!(places(&client.pieces), places(&came), "{kind}: copied on the way");
        assert_eq!(client.header("x-upper-case"), None);
    }
}

#[tokio::test]
async fn a_changed_body_has_the_length_of_what_it_became() {
    // A ligature of three bytes becomes two letters.
    let body = r#"{"choices":[{"message":{"content":"ﬁn"}}],"usage":{"total_tokens":1}}"#;
    let changed = body.replace("ﬁn", "FIN");
    assert_ne!(changed.len(), body.len());
    let target = target();
    for cut in cuts(body) {
        let source = source("application/json", cut);
        let (client, ended) = pass_in(&target, &mut Visit::begin(), source, upper_case()).await;
        assert!(matches!(ended, Ended::Complete) && client.is_ended, "{ended:?}");
        assert_eq!(client.text(), changed);
        assert_eq!(client.header("content-length"), Some(&*changed.len().to_string()));
        assert_eq!(client.header("x-upper-case"), Some("yes"));
    }
}

#[tokio::test]
async fn a_stream_is_changed_alike_wherever_it_is_cut() {
    let (target, stream) = (target(), [STRASSE, ENDE, DONE].concat());
    let changed = stream.replace("straße", "STRASSE").replace(" ende", " ENDE") + ": 2 in capitals\n\n";
    for cut in cuts(&stream) {
        let source = source("text/event-stream", cut.clone());
        let (client, ended) = pass_in(&target, &mut Visit::begin(), source, upper_case()).await;
        assert!(matches!(ended, Ended::Complete) && client.is_ended, "{cut:?}: {ended:?}");
        assert_eq!(client.text(), changed, "{cut:?}");
        assert_eq!(client.header("content-length"), None);
        assert_eq!(client.header("x-upper-case"), Some("yes"));
    }
}

#[tokio::test]
async fn a_last_event_without_its_blank_line_does_not_run_into_what_a_step_adds() {
    let came = pieces(&[STRASSE, "data: [DONE]"]);
    let (client, _) = pass(source("text/event-stream", came), upper_case()).await;
    assert!(client.text().ends_with("data: [DONE]\n\n: 1 in capitals\n\n"), "{}", client.text());
}

#[tokio::test]
async fn unasked_usage_is_taken_out_wherever_the_stream_is_cut() {
    let target = target();
    for cut in cuts(&[STRASSE, USAGE, DONE].concat()) {
        let source = source("text/event-stream", cut.clone());
        let (client, ended) = pass_in(&target, &mut Visit::begin(), source, strip_usage()).await;
        assert!(matches!(ended, Ended::Complete), "{cut:?}: {ended:?}");
        assert_eq!(client.text(), [STRASSE, DONE].concat(), "{cut:?}");
    }
}

#[tokio::test]
async fn each_step_is_given_what_the_one_before_it_left() {
    let (mut strips_first, mut strips_last) = (strip_usage(), upper_case());
    strips_first.push(UpperCase::default());
    strips_last.push(StripUsage);
    for (steps, seen) in [(strips_first, 1), (strips_last, 2)] {
        let (client, _) = pass(source("text/event-stream", pieces(&[STRASSE, USAGE, DONE])), steps).await;
        let text = client.text();
        assert!(text.contains("STRASSE") && !text.contains("usage"), "{text}");
        assert!(text.ends_with(&format!(": {seen} in capitals\n\n")), "{text}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_in_an_error_event_and_is_not_finished() {
    for steps in [Steps::default(), upper_case()] {
        let is_changed = !steps.is_empty();
        let (client, ended) = pass(source("text/event-stream", pieces(&[STRASSE, "data: {\"cho"])), steps).await;
        assert!(matches!(ended, Ended::BrokenOff(Some(Class::Protocol))) && client.is_ended, "{ended:?}");
        let text = client.text();
        assert_eq!(text.contains("STRASSE"), is_changed, "{text}");
        assert!(!text.contains("in capitals"), "{text}");
        assert_eq!(error_code(&text), "invalid_upstream_response", "{text}");
    }
}

#[tokio::test]
async fn what_cannot_be_changed_fails_before_the_first_byte_and_breaks_off_after_it() {
    let unspeakable = ENDE.replace(" ende", UNSPEAKABLE);
    let mut visit = Visit::begin();
    let first = source("text/event-stream", pieces(&[&unspeakable, DONE]));
    let (client, ended) = pass_in(&target(), &mut visit, first, upper_case()).await;
    assert_eq!(refused(&ended), (502, "invalid_upstream_response"));
    assert!(client.answer.is_none() && client.pieces.is_empty() && !visit.answer.pulse.has_begun);

    let (client, ended) = pass(source("text/event-stream", pieces(&[STRASSE, &unspeakable, DONE])), upper_case()).await;
    assert!(matches!(ended, Ended::BrokenOff(Some(Class::Protocol))), "{ended:?}");
    assert!(client.text().contains("STRASSE") && !client.text().contains(UNSPEAKABLE), "{}", client.text());
    assert_eq!(error_code(&client.text()), "invalid_upstream_response");

    let body = json!({ "choices": [{ "message": { "content": UNSPEAKABLE } }] }).to_string();
    let (client, ended) = pass(source("application/json", pieces(&[&body])), upper_case()).await;
    assert_eq!(refused(&ended), (502, "invalid_upstream_response"));
    assert!(client.answer.is_none() && client.pieces.is_empty());
}

#[tokio::test]
async fn a_body_too_long_to_be_changed_is_refused_and_nothing_of_it_is_passed() {
    let mebibyte = Bytes::from(vec![b' '; 1 << 20]);
    let text = Bytes::from_static(br#"{"choices":[]}"#);
    let of = |blanks: usize| [text.clone()].into_iter().chain(vec![mebibyte.clone(); blanks]).collect::<Vec<_>>();
    let most = MAX_CHANGED_BODY / mebibyte.len();

    let (client, ended) = pass(source("application/json", of(most)), upper_case()).await;
    assert_eq!(refused(&ended), (502, "invalid_upstream_response"));
    assert!(client.answer.is_none() && client.pieces.is_empty());

    let (client, ended) = pass(source("application/json", of(most - 1)), upper_case()).await;
    assert!(matches!(ended, Ended::Complete), "{ended:?}");
    assert_eq!(client.text(), r#"{"choices":[]}"#);

    let (client, ended) = pass(source("application/json", of(most)), Steps::default()).await;
    assert!(matches!(ended, Ended::Complete), "{ended:?}");
    assert_eq!(client.pieces.concat().len(), MAX_CHANGED_BODY + text.len());
}

#[tokio::test]
async fn after_a_heartbeat_a_changed_body_becomes_an_event() {
    let mut visit = Visit::begin();
    visit.answer.pulse.has_begun = true;
    let body = r#"{"choices":[{"message":{"content":"straße"}}]}"#;
    let (client, ended) =
        pass_in(&target(), &mut visit, source("application/json", pieces(&[body])), upper_case()).await;
    assert!(matches!(ended, Ended::Complete) && client.answer.is_none(), "{ended:?}");
    assert_eq!(client.text(), format!("data: {}\n\ndata: [DONE]\n\n", body.replace("straße", "STRASSE")));
}

#[tokio::test]
async fn an_answer_that_is_gathered_counts_while_it_is_held_and_one_without_room_is_refused() {
    let text = json!({ "choices": [{ "message": { "content": "a".repeat(300 << 10) } }] }).to_string();
    let target = target();
    for (limit, has_room) in [(64 << 20, true), (200 << 10, false)] {
        let memory = body_memory(limit);
        let room = MemoryOwner { memory: &memory, tenant: Tenant::test(1, 1) };
        let (mut source, mut steps) = (source("application/json", pieces(&[&text])), upper_case());
        let until = Instant::now() + target.timeout;
        match hold(&mut source, &target, WireDialect::OpenAi, &mut steps, until, room, &mut Bytes::new()).await {
            Ok(held) => {
                assert!(has_room && memory.used() >= text.len(), "{}", memory.used());
                drop(held);
            }
            Err(Ended::Failed(failure)) => assert_eq!((failure.refusal.status, has_room), (503, false)),
            Err(other) => panic!("{other:?}"),
        }
        assert_eq!(memory.used(), 0, "all of it is given back");
    }
}
