//! What is denied never goes out, and what passes goes out as it came, however it is cut.

use super::*;
use crate::wire::sse::{events, raw_events};
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Map, json};
use shared::guardrails::Shape;

fn hooks(checks: Value, more: Value) -> Vec<Arc<CompiledHook>> {
    let mut hook = json!({ "id": "h", "deny": true, "stream": "hold", "checks": checks });
    hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    vec![Arc::new(CompiledHook::from_hook(hook.as_object().unwrap()))]
}

struct Passed {
    bytes: Vec<u8>,
    is_denied: bool,
    /// The most text that waited.
    most_held: usize,
    report: Option<SideResult>,
}

const SHAPES: [(StreamShape, Shape); 6] = [
    (StreamShape::Chat, Shape::Chat),
    (StreamShape::Completions, Shape::Completions),
    (StreamShape::Messages, Shape::Messages),
    (StreamShape::Responses, Shape::Responses),
    (StreamShape::Gemini, Shape::Gemini),
    (StreamShape::Converse, Shape::Converse),
];

/// A stream of a dialect whose text comes in these pieces.
fn dialect(shape: StreamShape, pieces: &[&str]) -> Vec<Bytes> {
    let said = |text: &&str| match shape {
        StreamShape::Chat => json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }),
        StreamShape::Completions => json!({ "choices": [{ "index": 0, "text": text }] }),
        StreamShape::Messages => {
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } })
        }
        StreamShape::Responses => {
            json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": text })
        }
        StreamShape::Gemini => json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] }),
        StreamShape::Converse => json!({ "contentBlockIndex": 0, "delta": { "text": text } }),
    };
    let end = match shape {
        StreamShape::Chat | StreamShape::Completions => "[DONE]".to_owned(),
        StreamShape::Messages => json!({ "type": "message_stop" }).to_string(),
        StreamShape::Responses => {
            let whole = [json!({ "type": "message", "content": [{ "type": "output_text", "text": pieces.concat() }] })];
            json!({ "type": "response.completed", "response": { "output": whole } }).to_string()
        }
        StreamShape::Gemini => json!({ "candidates": [{ "finishReason": "STOP" }], "usageMetadata": {} }).to_string(),
        StreamShape::Converse => json!({ "usage": {}, "metrics": { "latencyMs": 1 } }).to_string(),
    };
    let all = pieces.iter().map(|piece| said(piece).to_string()).chain([end]);
    all.map(|data| Bytes::from(format!("data: {data}\n\n"))).collect()
}

/// What a client of a dialect has read, without what is repeated.
fn said_in(shape: StreamShape, bytes: &[u8]) -> String {
    let mut said = String::new();
    for event in events(bytes) {
        let Ok(read) = serde_json::from_slice::<Value>(&event.data) else { continue };
        for text in event_texts(shape, &read).unwrap().iter().filter(|text| !text.channel.is_empty()) {
            said.push_str(read.pointer(&text.place).and_then(Value::as_str).unwrap());
        }
    }
    said
}

/// A chat whose text comes in these pieces.
fn stream(pieces: &[&str]) -> Vec<Bytes> {
    let said =
        pieces.iter().map(|text| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] }).to_string());
    let role = json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "" } }] }).to_string();
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }).to_string();
    let all = std::iter::once(role).chain(said).chain([end, "[DONE]".to_owned()]);
    all.map(|data| Bytes::from(format!("data: {data}\n\n"))).collect()
}

fn text_of(bytes: &[u8]) -> String {
    let said = |data: &[u8]| {
        serde_json::from_slice::<Value>(data).ok()?["choices"][0]["delta"]["content"].as_str().map(str::to_owned)
    };
    events(bytes).filter_map(|event| said(&event.data)).collect()
}

fn pass(hooks: Vec<Arc<CompiledHook>>, stream: &[Bytes]) -> Passed {
    pass_in(SHAPES[0], hooks, stream)
}

fn pass_in((dialect, shape): (StreamShape, Shape), hooks: Vec<Arc<CompiledHook>>, stream: &[Bytes]) -> Passed {
    let (request, metadata, headers, meters) = (json!({}), Map::new(), HeaderMap::new(), GuardMeters::unregistered());
    let inputs = GuardInputs {
        hook: Hook::AfterRequest,
        shape,
        request_type: "stream-chatComplete",
        request: &request,
        metadata: &metadata,
        headers: &headers,
        text: None,
    };
    let mut held = HeldBack::new(hooks, dialect);
    let mut passed = Passed { bytes: Vec::new(), is_denied: false, most_held: 0, report: None };
    let mut came = 0;
    for event in stream {
        let data = events(event).next().map(|event| event.data.into_owned()).unwrap_or_default();
        let read: Option<Value> = serde_json::from_slice(&data).ok();
        came += said_in(dialect, event).len();
        match held.push(event.clone(), read.as_ref(), &data, inputs, &meters, &mut passed.report) {
            Release::Pass(bytes) => passed.bytes.extend_from_slice(&bytes),
            Release::Denied(_) => {
                passed.is_denied = true;
                return passed;
            }
            Release::TooLong => panic!("too long"),
        }
        passed.most_held = passed.most_held.max(came - said_in(dialect, &passed.bytes).len());
    }
    match held.finish(inputs, &meters, &mut passed.report) {
        Release::Pass(bytes) => passed.bytes.extend_from_slice(&bytes),
        Release::Denied(_) => passed.is_denied = true,
        Release::TooLong => panic!("too long"),
    }
    passed
}

fn checks() -> Vec<Value> {
    vec![
        json!([{ "id": "contains", "parameters": { "words": ["bad", "éb"], "operator": "none" } }]),
        json!([{ "id": "regexMatch", "parameters": { "rule": "b[ad ]{1,4}d\\b", "not": true } }]),
        json!([{ "id": "pii", "parameters": {} }]),
        // Only the whole can say this.
        json!([{ "id": "wordCount", "parameters": { "maxWords": 12 } }]),
    ]
}

/// Words that may stand at the borders of pieces, one inside another, or twice over each other.
fn words() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("[ab]{1,4}|é[ab]|a b", 1..4)
}

proptest! {
    #[test]
    fn in_every_dialect_no_word_goes_out_whole_and_what_passes_is_byte_identical(
        pieces in prop::collection::vec("[abcé ]{0,5}", 0..30),
        words in words(),
        more in 0usize..3,
        which in 0usize..SHAPES.len(),
    ) {
        let shape = SHAPES[which];
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let whole = pieces.concat();
        let mut checks = vec![json!({ "id": "contains", "parameters": { "words": words, "operator": "none" } })];
        // Beside it checks that deny nothing: one more that judges a window, and one that must see the whole.
        checks.extend((more > 0).then(|| json!({ "id": "secrets", "parameters": {} })));
        checks.extend((more > 1).then(|| json!({ "id": "wordCount", "parameters": { "maxWords": 9999 } })));
        let hooks = hooks(Value::Array(checks), json!({}));
        let window = hooks[0].checks.iter().map(|check| check.check.window()).try_fold(0, |most, one| Some(most.max(one?)));
        let stream = dialect(shape.0, &pieces);
        let passed = pass_in(shape, hooks, &stream);
        let is_bad = words.iter().any(|word| whole.contains(word.as_str()));
        prop_assert_eq!(passed.is_denied, is_bad, "{:?} in {:?}", words, whole);
        match is_bad {
            true => {
                let out = said_in(shape.0, &passed.bytes);
                prop_assert!(!words.iter().any(|word| out.contains(word.as_str())), "{:?} went out of {:?}", out, whole);
                prop_assert!(whole.starts_with(&out));
            }
            false => prop_assert_eq!(passed.bytes, stream.concat()),
        }
        if let Some(window) = window {
            prop_assert!(window <= 1024 && passed.most_held <= window + 16, "{} held of {}", passed.most_held, window);
        }
    }

    #[test]
    fn nothing_that_a_check_denies_ever_goes_out_and_what_passes_is_byte_identical(
        pieces in prop::collection::vec("[abdé @.]{0,6}|a@b\\.ad|bad|192\\.168\\.0\\.1", 0..40),
        which in 0usize..4,
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let whole: String = pieces.concat();
        let stream = stream(&pieces);
        let hooks = hooks(checks()[which].clone(), json!({}));
        let check = &hooks[0].checks[0];
        let (request, metadata, headers) = (json!({}), Map::new(), HeaderMap::new());
        let judge = |text: &str, is_growing: bool| {
            let verdict = check.check.run(&Subject { hook: Hook::AfterRequest, shape: Shape::Chat, request_type: "chatComplete",
                request: &request, response: Some(&Value::Null), metadata: &metadata, headers: &headers, now: 0,
                text: Some(text), is_growing, scope: hooks[0].scope(check) });
            verdict.passes(false)
        };
        let passed = pass(hooks.clone(), &stream);
        prop_assert_eq!(passed.is_denied, !judge(&whole, false), "{:?}", whole);
        if passed.is_denied {
            // With the letter behind it, which decides where a word ends.
            let out = text_of(&passed.bytes);
            let more = whole[out.len()..].chars().next().map_or(0, char::len_utf8);
            prop_assert!(out.is_empty() || judge(&whole[..out.len() + more], true), "{:?} went out of {:?}", out, whole);
        } else {
            prop_assert_eq!(passed.bytes, stream.concat());
        }
        if let Some(window) = check.check.window() {
            prop_assert!(window <= 1024 && passed.most_held <= window + 16, "{} held", passed.most_held);
        }
    }
}

#[test]
fn a_denial_before_the_first_content_lets_nothing_out() {
    let none_of = |word: &str| {
        hooks(json!([{ "id": "contains", "parameters": { "words": [word], "operator": "none" } }]), json!({}))
    };
    let passed = pass(none_of("bad"), &stream(&["ba", "d"]));
    assert!(passed.is_denied && passed.bytes.is_empty());
    let passed = pass(none_of("bad"), &stream(&["good", " and long", " bad"]));
    assert!(passed.is_denied && text_of(&passed.bytes) == "good", "what was judged is out");
}

#[test]
fn a_hook_that_reports_makes_nothing_wait_and_tells_at_the_end() {
    for more in [json!({ "stream": "report" }), json!({ "deny": false }), json!({ "async": true })] {
        let reports =
            hooks(json!([{ "id": "contains", "parameters": { "words": ["bad"], "operator": "none" } }]), more);
        let stream = stream(&["ba", "d"]);
        let passed = pass(reports, &stream);
        assert_eq!((passed.is_denied, passed.most_held), (false, 0));
        assert_eq!(passed.bytes, stream.concat());
        assert!(!passed.report.unwrap().hooks[0].verdict);
    }
}

#[test]
fn a_text_that_only_comes_whole_is_judged_although_another_grew() {
    let none_of = json!({ "id": "contains", "parameters": { "words": ["secret"], "operator": "none" } });
    let pass_responses = |words: u32, called: &str| {
        let whole = json!({ "id": "wordCount", "parameters": { "maxWords": words } });
        let item = json!({ "type": "function_call", "arguments": called });
        let said = json!({ "type": "message", "content": [{ "type": "output_text", "text": "hello" }] });
        let stream: Vec<Bytes> = [
            json!({ "type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "hello" }),
            json!({ "type": "response.output_text.done", "text": "hello" }),
            json!({ "type": "response.output_item.done", "output_index": 1, "item": item }),
            json!({ "type": "response.completed", "response": { "output": [said, item] } }),
        ]
        .iter()
        .map(|event| Bytes::from(format!("data: {event}\n\n")))
        .collect();
        pass_in(SHAPES[3], hooks(json!([none_of, whole]), json!({})), &stream).is_denied
    };
    assert!(pass_responses(99, "secret"));
    assert!(!pass_responses(2, "other"), "what is repeated counts once");
    assert!(pass_responses(1, "other"));
}

#[test]
fn arguments_of_legacy_and_custom_calls_are_held() {
    for delta in [
        json!({ "function_call": { "arguments": "secret" } }),
        json!({ "tool_calls": [{ "index": 0, "custom": { "input": "secret" } }] }),
        json!({ "content": [{ "type": "text", "text": "secret" }] }),
    ] {
        let none_of = json!([{ "id": "contains", "parameters": { "words": ["secret"], "operator": "none" } }]);
        let event = json!({ "choices": [{ "index": 0, "delta": delta }] });
        let stream = [Bytes::from(format!("data: {event}\n\n")), Bytes::from_static(b"data: [DONE]\n\n")];
        assert!(pass(hooks(none_of, json!({})), &stream).is_denied, "{event}");
    }
}

#[test]
fn raw_events_are_the_bytes_that_came() {
    let bytes = Bytes::from_static(b": ping\n\ndata: a\r\n\r\ndata: b\n\ndata: cut");
    assert_eq!(raw_events(&bytes), ["\u{3a} ping\n\n", "data: a\r\n\r\n", "data: b\n\n", "data: cut"]);
}
