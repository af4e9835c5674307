//! What is kept of answers and streams, and what never is.

use super::*;
use crate::cache::flight::Boarding;
use crate::cache::replay;
use crate::cache::store::Found;
use crate::request::receive::body_memory;
use crate::runtime::tenant_share::Tenant;
use crate::wire::codecs;
use http::HeaderName;
use serde_json::{Value, json};
use uuid::Uuid;

fn key() -> CacheKey {
    CacheKey { tenant: Tenant::test(1, 1), digest: [1; 32] }
}

fn organisation() -> OrganisationId {
    Uuid::from_u128(9).into()
}

fn options() -> AnswerOptions<'static> {
    AnswerOptions {
        is_strict: false,
        id: "made".into(),
        created: 1,
        model: "m".into(),
        provider: "".into(),
        include_usage: false,
        request: None,
    }
}

fn keeper(cache: &Arc<Cache>, format: Option<WireFormat>) -> Keeper {
    let codec = format.and_then(codecs::by_format);
    let terms = StoreTerms {
        organisation: organisation(),
        key: key(),
        tags: Tags::default(),
        max_age: Duration::from_secs(60),
        form: AnswerForm { client: codec, provider: codec, options: options(), is_speech: false },
        asked: Bytes::new(),
    };
    Keeper::new(cache.clone(), terms, None)
}

fn head(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pair =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    pairs.iter().map(pair).collect()
}

async fn terms(cache: &Cache) -> Option<Arc<Entry>> {
    match cache.find(organisation(), &key()).await {
        Found::Entry(entry) => Some(entry),
        Found::Absent | Found::Away => None,
    }
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    let chunk =
        json!({ "id": "c-1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [choice] });
    format!("data: {chunk}\n\n")
}

/// What is kept of these events, each told by itself; `is_over` when the stream came to its end.
async fn of_stream(format: WireFormat, events: &[String], is_over: bool) -> Option<Arc<Entry>> {
    let cache = Arc::new(Cache::new(1 << 20));
    let mut keeper = keeper(&cache, Some(format));
    assert!(keeper.begins(200, &head(&[("content-type", "text/event-stream; charset=utf-8")])));
    events.iter().for_each(|event| keeper.events(event.as_bytes()));
    if is_over {
        keeper.keep();
    }
    terms(&cache).await
}

#[tokio::test]
async fn a_stream_is_kept_as_the_plain_answer_that_it_would_have_been() {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    let last = json!({ "id": "c-1", "object": "chat.completion.chunk", "created": 7, "model": "m", "choices": [],
        "usage": usage });
    let events = [
        chunk(json!({ "role": "assistant", "content": "" }), None),
        chunk(json!({ "content": "Hé" }), None),
        chunk(json!({ "content": "llo" }), None),
        chunk(json!({}), Some("stop")),
        format!("data: {last}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ];
    let entry = of_stream(WireFormat::Chat, &events, true).await.unwrap();
    let body: Value = serde_json::from_slice(&entry.body).unwrap();
    assert_eq!((&body["id"], &body["created"], &body["object"]), (&json!("c-1"), &json!(7), &json!("chat.completion")));
    assert_eq!(body["choices"][0]["message"]["content"], "Héllo");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body["usage"]["total_tokens"], 5, "{body}");
    assert_eq!(body.get("provider"), None);
    assert_eq!(entry.content_type, "application/json");
    assert_eq!(of_stream(WireFormat::Chat, &events, false).await, None, "one that has not ended");
    assert_eq!(of_stream(WireFormat::Chat, &events[..3], true).await, None, "one without a reason for its end");
    let error = "data: {\"error\":{\"message\":\"m\"}}\n\n".to_owned();
    assert_eq!(of_stream(WireFormat::Chat, &[events[0].clone(), error], true).await, None);
}

#[tokio::test]
async fn in_every_format_what_is_kept_of_a_stream_says_what_the_plain_answer_said() {
    for (format, body) in replay::tests::kept() {
        let codec = codecs::by_format(format).unwrap();
        let original = codec.read_answer(body.to_string().as_bytes()).unwrap();
        let telling = AnswerOptions { include_usage: true, ..options() };
        let events = replay::as_events(body.to_string().as_bytes(), codec, &telling).unwrap();
        let events: Vec<String> =
            String::from_utf8(events.to_vec()).unwrap().split_inclusive("\n\n").map(str::to_owned).collect();
        let entry = of_stream(format, &events, true).await.unwrap_or_else(|| panic!("{format:?}: {body}"));
        let terms = codec.read_answer(&entry.body).unwrap();
        assert_eq!(
            replay::tests::seen(&terms),
            replay::tests::seen(&original),
            "{format:?}: {}",
            String::from_utf8_lossy(&entry.body)
        );
    }
}

#[tokio::test]
async fn a_stream_of_responses_is_kept_as_its_last_event_says_it() {
    let response = json!({ "id": "resp_1", "object": "response", "status": "completed", "created_at": 7, "model": "m",
        "output": [{ "type": "message", "id": "msg_own", "role": "assistant", "status": "completed",
            "content": [{ "type": "output_text", "text": "Hi", "annotations": [] }] }], "odd": { "kept": true } });
    let created = json!({ "type": "response.created", "response": { "id": "resp_1", "status": "in_progress",
        "output": [] } });
    let completed = json!({ "type": "response.completed", "response": response });
    let events =
        [created, completed].map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()));
    let entry = of_stream(WireFormat::Responses, &events, true).await;
    let body: Option<Value> = entry.map(|entry| serde_json::from_slice(&entry.body).unwrap());
    assert_eq!(body, Some(response));
}

async fn of_plain(format: Option<WireFormat>, status: u16, more: &[(&'static str, &'static str)], body: &str) -> bool {
    let cache = Arc::new(Cache::new(1 << 20));
    let mut keeper = keeper(&cache, format);
    let mut all = vec![("content-type", "application/json")];
    all.extend(more);
    if keeper.begins(status, &head(&all)) {
        keeper.plain(&Bytes::copy_from_slice(body.as_bytes()));
        keeper.keep();
    }
    terms(&cache).await.is_some()
}

#[tokio::test]
async fn what_is_no_common_answer_is_not_kept() {
    let large = "x".repeat(1 << 20);
    for (status, headers, body, is_kept) in [
        (200, &[][..], "{}", true),
        (201, &[], "{}", false),
        (246, &[], "{}", false),
        (500, &[], "{}", false),
        (200, &[], "", false),
        (200, &[], large.as_str(), false),
        (200, &[("set-cookie", "session=1")], "{}", false),
        (200, &[("set-cookie", "__cf_bm=1; path=/")], "{}", true),
        (200, &[("content-encoding", "gzip")], "{}", false),
    ] {
        assert_eq!(of_plain(None, status, headers, body).await, is_kept, "{status} {headers:?}");
    }
    for (status, is_kept) in [("completed", true), ("incomplete", true), ("queued", false), ("in_progress", false)] {
        let body = json!({ "id": "r", "status": status, "output": [] }).to_string();
        assert_eq!(of_plain(Some(WireFormat::Responses), 200, &[], &body).await, is_kept, "{status}");
    }
}

#[tokio::test]
async fn what_it_used_is_kept_with_it_or_guessed() {
    for (usage, estimate) in [(vec!["{\"total_tokens\":5}".to_owned()], false), (vec![], true)] {
        let cache = Arc::new(Cache::new(1 << 20));
        let mut keeper = keeper(&cache, Some(WireFormat::Chat));
        assert!(keeper.begins(200, &head(&[("content-type", "application/json")])));
        keeper.plain(&Bytes::from_static(br#"{"choices":[{"message":{"content":"some words of an answer"}}]}"#));
        keeper.learns(&usage, Some("m-1"), None);
        keeper.keep();
        let entry = terms(&cache).await.unwrap();
        assert_eq!((&entry.usage, entry.model.as_deref()), (&usage, Some("m-1")));
        assert_eq!(entry.estimate.is_some(), estimate);
    }
}

#[tokio::test]
async fn what_is_no_answer_of_a_model_is_not_kept_whatever_its_status() {
    for (format, is_speech, kind, body, is_kept) in [
        (Some(WireFormat::Chat), false, "text/html", "<h1>We are back soon</h1>", false),
        (Some(WireFormat::Chat), false, "application/json", r#"{"status":"maintenance"}"#, false),
        (Some(WireFormat::Chat), false, "application/json", r#"{"choices":[]}"#, false),
        (Some(WireFormat::Chat), false, "application/json", r#"{"choices":{"message":{}}}"#, false),
        (Some(WireFormat::Chat), false, "application/json", r#"{"choices":[{"message":null}]}"#, false),
        (Some(WireFormat::Chat), false, "application/json", r#"{"choices":[7,{"message":{}}]}"#, false),
        (Some(WireFormat::Chat), false, "application/json", r#"["choices"]"#, false),
        (Some(WireFormat::Messages), false, "application/json", r#"{"status":"maintenance"}"#, false),
        (Some(WireFormat::Chat), false, "application/json", r#"{"choices":[{"message":{"content":"a"}}]}"#, true),
        (None, false, "text/html; charset=utf-8", "<h1>We are back soon</h1>", false),
        (None, false, "Application/JSON; charset=utf-8", r#"{"data":[]}"#, true),
        (None, true, "audio/mpeg", "sound", true),
        (None, true, "text/html", "<h1>We are back soon</h1>", false),
    ] {
        let cache = Arc::new(Cache::new(1 << 20));
        let mut keeper = keeper(&cache, format);
        keeper.terms.form.is_speech = is_speech;
        if keeper.begins(200, &head(&[("content-type", kind)])) {
            keeper.plain(&Bytes::copy_from_slice(body.as_bytes()));
            keeper.keep();
        }
        assert_eq!(terms(&cache).await.is_some(), is_kept, "{kind} {body}");
    }
}

#[test]
fn a_message_is_found_however_a_chat_is_written() {
    for (body, has_one) in [
        (r#"{"id":"c","choices":[{"index":0,"message":{"content":"a"}}],"usage":{}}"#, true),
        ("\n{ \"choices\" : [ { \"message\" : {} } ] }", true),
        (r#"{"usage":{"a":[1]},"choices":[{"logprobs":{},"message":{}}]}"#, true),
        (r#"{"id":"[{","choices":[{"finish_reason":"]","message":{}}]}"#, true),
        (r#"{"choices":[{"message":"a"}]}"#, false),
        (r#"{"choices":[{"index":0}]}"#, false),
        (r#"{"choices":[[{"message":{}}]]}"#, false),
        (r#"{"choices":{"message":{}}}"#, false),
        (r#"{"my choices":[{"message":{}}]}"#, false),
        (r#"{"\"choices":[{"message":{}}]}"#, false),
        (r#"{"a":"\"choices\":[{\"message\":{"}"#, false),
        (r#"{"a":{"choices":[{"message":{}}]}}"#, false),
        (r#"["choices",[{"message":{}}]]"#, false),
        ("7", false),
        ("", false),
    ] {
        assert_eq!(has_message(body.as_bytes()), has_one, "{body}");
    }
}

#[tokio::test]
async fn what_finds_no_room_in_memory_or_is_too_long_is_not_kept() {
    let said = "x".repeat(100_000);
    let plain = json!({ "choices": [{ "message": { "content": said } }] }).to_string();
    let events = [chunk(json!({ "content": said }), None), chunk(json!({}), Some("stop"))].concat();
    for (limit, largest, is_kept) in [(4 << 20, 1 << 20, true), (150_000, 1 << 20, false), (4 << 20, 100_000, false)] {
        for (kind, is_stream) in [("application/json", false), ("text/event-stream", true)] {
            let cache = Arc::new(Cache::new(4 * largest));
            let memory = body_memory(limit);
            let share = OwnedShare::none(memory.clone(), Tenant::test(1, 1));
            let mut keeper = keeper(&cache, Some(WireFormat::Chat)).counted_in(share);
            assert!(keeper.begins(200, &head(&[("content-type", kind)])));
            match is_stream {
                true => keeper.events(events.as_bytes()),
                false => keeper.plain(&Bytes::from(plain.clone())),
            }
            assert_eq!(memory.used() > 0, is_kept, "{kind} {limit}: what is not kept is given back at once");
            keeper.keep();
            assert_eq!(terms(&cache).await.is_some(), is_kept, "{kind} {limit} {largest}");
            assert_eq!(memory.used(), 0);
        }
    }
}

#[test]
fn an_answer_that_will_not_be_kept_frees_those_who_wait_for_it_at_once() {
    let cache = Arc::new(Cache::new(1 << 20));
    let Boarding::First(flight) = cache.board(key()) else { panic!("somebody is under way") };
    let mut keeper = keeper(&cache, None);
    keeper.flight = Some(flight);
    assert!(keeper.begins(200, &head(&[("content-type", "application/json")])));
    keeper.plain(&Bytes::from_static(b"{"));
    assert!(matches!(cache.board(key()), Boarding::Waiting(_)));
    keeper.plain(&Bytes::from(vec![b'x'; 1 << 20]));
    assert!(matches!(cache.board(key()), Boarding::First(_)));
}
