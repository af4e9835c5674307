//! Frames found in the bytes of a websocket, however they are cut, and what is ended between two of them.

use super::*;
use crate::runtime::memory::body_memory;
use crate::runtime::tenant_share::Tenant;
use http::HeaderValue;
use serde_json::{Value, json};

fn session() -> Box<Websocket> {
    upgraded("WebSocket").unwrap()
}

fn upgraded(to: &'static str) -> Option<Box<Websocket>> {
    let owner = MemoryOwner { memory: &body_memory(1 << 20), tenant: Tenant::test(1, 1) };
    Websocket::from_answer_head(&HeaderMap::from_iter([(header::UPGRADE, HeaderValue::from_static(to))]), owner)
}

fn text(payload: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 126];
    frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    frame.extend_from_slice(payload.as_bytes());
    frame
}

fn event(event: &Value) -> Vec<u8> {
    text(&event.to_string())
}

fn done(usage: &Value) -> Vec<u8> {
    event(&json!({ "type": "response.done", "response": { "id": "r", "output": [], "usage": usage } }))
}

/// What the engine does with what it hears.
fn hear(session: &mut Websocket, piece: &[u8]) -> Vec<Option<String>> {
    let mut over = Vec::new();
    for event in session.provider_sends(piece, |_| {}) {
        match event {
            RealtimeEvent::Began => assert!(session.begin() > 0),
            RealtimeEvent::Done(done) => {
                session.finish(&done);
                over.push(done.usage);
            }
            _ => {}
        }
    }
    over
}

fn say(session: &mut Websocket, event: &Value) -> SessionNeeds {
    session.client_sends(&text(&event.to_string()), |_| {})
}

#[test]
fn each_response_says_what_it_used() {
    let mut session = session();
    let mut piece = done(&json!({ "input_tokens": 3 }));
    piece.extend(event(&json!({ "type": "conversation.item.created", "item": "\"response.done\"" })));
    piece.extend(done(&json!({ "input_tokens": 4 })));
    let used = hear(&mut session, &piece);
    assert_eq!(used, [r#"{"input_tokens":3}"#, r#"{"input_tokens":4}"#].map(|usage| Some(usage.to_owned())));
    assert_eq!(hear(&mut session, &done(&json!(null))), [None]);
    assert_eq!(session.guess(), None);
    session.client_sends(&[0x88, 0x82, 0, 0, 0, 0, 3, 232], |_| {});
    assert!(!session.has_rest(), "all of it is noted");
}

#[test]
fn a_response_that_never_ended_is_guessed_at() {
    let mut session = session();
    hear(&mut session, &done(&json!({ "input_tokens": 100 })));
    hear(&mut session, &event(&json!({ "type": "response.created" })));
    hear(&mut session, &event(&json!({ "type": "response.output_text.delta", "delta": "x".repeat(398) })));
    assert_eq!(session.guess(), Some((100, 100)));
    session.client_ends();
    assert!(session.has_rest() && session.is_rest_charged());
}

#[test]
fn what_could_not_be_read_is_known_to_be_missing() {
    for bytes in [vec![0xc1, 2, 1, 2], text(r#"{"type":"response.done","response":"#)] {
        let mut session = session();
        hear(&mut session, &bytes);
        assert_eq!(session.guess(), Some((0, 0)), "{bytes:?}");
    }
}

#[test]
fn every_response_that_is_asked_for_needs_leave() {
    let mut session = session();
    let create = json!({ "type": "response.create" });
    let audio = json!({ "type": "input_audio_buffer.append", "audio": "AAAA" });
    assert_eq!(say(&mut session, &audio), SessionNeeds { responses: 0, is_message: true });
    assert_eq!(say(&mut session, &json!({ "type": "new" })).responses, 1, "nobody knows what it does");
    assert_eq!(say(&mut session, &create).responses, 1);
    assert_eq!(say(&mut session, &create).responses, 2, "the first is under way");
    hear(&mut session, &event(&json!({ "type": "error" })));
    hear(&mut session, &done(&json!(null)));
    assert_eq!(say(&mut session, &create).responses, 1);
    assert_eq!(session.client_sends(&[0x82, 1, 0], |_| {}).responses, 1, "nor of what is no text");
    assert_eq!(session.client_sends(&[0x89, 0], |_| {}), SessionNeeds::default(), "a ping asks for nothing");
}

#[test]
fn the_first_who_ends_a_session_counts() {
    const CLOSED: &[u8] = &[0x88, 2, 3, 232];
    const MASKED: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 3, 232];
    const FAULT: &[u8] = &[0x88, 2, 3, 243];
    type Act = fn(&mut Websocket);
    let acts: [(Act, u16, bool); 8] = [
        (|_| {}, 502, true),
        (|session| drop(hear(session, CLOSED)), 200, false),
        (|session| assert!(!session.client_sends(MASKED, |_| {}).is_message), 200, false),
        (|session| drop(hear(session, FAULT)), 502, false),
        (
            |session| {
                session.client_sends(MASKED, |_| {});
                hear(session, FAULT);
            },
            200,
            false,
        ),
        (Websocket::client_ends, 499, false),
        (|session| drop(hear(session, &[0x81, 5, b'a'])), 502, false),
        (|session| session.refuse(&Refusal::invalid_api_key()), 401, true),
    ];
    for (number, (act, status, is_told)) in acts.into_iter().enumerate() {
        let mut session = session();
        act(&mut session);
        session.provider_ends();
        let told = session.closing_frame().is_some();
        assert_eq!((session.outcome().0, told), (status, is_told), "{number}");
    }
}

#[test]
fn a_refused_session_ends_after_the_last_whole_frame_and_nothing_follows() {
    let mut session = session();
    let whole = done(&json!(null));
    let piece = [&whole[..], &[0x81, 9, b'a']].concat();
    hear(&mut session, &piece);
    session.refuse(&Refusal::expired_api_key());
    let mut body = Some(Bytes::from(piece));
    assert!(session.pass(&mut body, false));
    let sent = body.unwrap();
    let frame = sent.strip_prefix(&whole[..]).expect("the whole frame comes first");
    assert_eq!((frame[0], usize::from(frame[1])), (0x88, frame.len() - 2));
    assert_eq!(frame[2..4], 1008u16.to_be_bytes());
    let mut more = Some(Bytes::from_static(b"rest of it"));
    assert!(!session.pass(&mut more, false) && more.is_none());
    assert!(session.closing_frame().is_none(), "it was said");
}

#[test]
fn inside_a_long_frame_a_refusal_waits_for_its_end() {
    let mut session = session();
    hear(&mut session, &[0x81, 4, b'a']);
    session.refuse(&Refusal::expired_api_key());
    hear(&mut session, b"bc");
    let mut body = Some(Bytes::from_static(b"bc"));
    assert!(!session.pass(&mut body, false) && body.as_deref() == Some(b"bc"));
    hear(&mut session, b"d");
    let mut body = Some(Bytes::from_static(b"d"));
    assert!(session.pass(&mut body, false));
    assert_eq!(body.unwrap()[..2], [b'd', 0x88]);
}

#[test]
fn the_close_frame_has_a_code_and_a_reason_that_fit() {
    for reason in [LOST, &"é".repeat(200)] {
        let frame = close(INTERNAL_ERROR, reason);
        assert_eq!((frame[0], usize::from(frame[1])), (0x88, frame.len() - 2));
        assert_eq!(frame[2..4], 1011u16.to_be_bytes());
        assert!(frame.len() <= 127 && std::str::from_utf8(&frame[4..]).is_ok());
    }
}

#[test]
fn other_upgrades_are_not_watched() {
    assert!(upgraded("h2c").is_none());
}
