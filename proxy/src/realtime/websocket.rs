//! A websocket session, watched from aside while its bytes pass as they are: what its responses used, whether somebody
//! closed it, and who broke it off if nobody did.

use super::frames::{Frames, Part};
use bytes::Bytes;
use http::{HeaderMap, header};
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// What the client is told when its provider is gone: an internal error (1011), and why.
const LOST: &str = "the provider's connection was lost";
const INTERNAL_ERROR: u16 = 1011;
/// Most counts of a session's usage, those inside its objects included, and the longest name of one, in bytes.
const MOST_COUNTS: usize = 64;
const LONGEST_NAME: usize = 64;

#[derive(Debug)]
pub struct Websocket {
    from_provider: Frames,
    from_client: Frames,
    ending: Ending,
    used: Map<String, Value>,
    /// Something was said that could not be read, so what was used may be more.
    has_gaps: bool,
}

/// How a session ended; the first to end it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    None,
    /// By a close frame of either side.
    Closed,
    /// The provider closed it, and its code says that something is wrong.
    Failed,
    ProviderLost,
    ClientLost,
}

/// An event that says what a response used. Everything else of it is skipped.
#[derive(Deserialize)]
struct Event<'e> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'e, str>,
    response: Option<Done>,
}

#[derive(Deserialize)]
struct Done {
    usage: Option<Map<String, Value>>,
}

impl Websocket {
    /// Of an upgrade to a websocket; other protocols are not watched.
    pub fn of(head: &HeaderMap) -> Option<Box<Self>> {
        let upgrade = head.get(header::UPGRADE)?;
        upgrade.as_bytes().eq_ignore_ascii_case(b"websocket").then(|| {
            Box::new(Self {
                from_provider: Frames::new(true),
                from_client: Frames::new(false),
                ending: Ending::None,
                used: Map::new(),
                has_gaps: false,
            })
        })
    }

    pub fn provider_sends(&mut self, piece: &[u8]) {
        let Self { from_provider, ending, used, has_gaps, .. } = self;
        from_provider.push(piece, |part| match part {
            Part::Text(text) => *has_gaps |= !note(used, text),
            Part::Unread => *has_gaps = true,
            Part::Close(code) if *ending == Ending::None => {
                *ending = if code.is_some_and(is_fault) { Ending::Failed } else { Ending::Closed };
            }
            Part::Close(_) => {}
        });
    }

    pub fn client_sends(&mut self, piece: &[u8]) {
        let Self { from_client, ending, .. } = self;
        from_client.push(piece, |part| {
            if matches!(part, Part::Close(_)) && *ending == Ending::None {
                *ending = Ending::Closed;
            }
        });
    }

    /// The provider's side is over. If nobody closed the session, the client is to be sent this; inside a frame there is
    /// nothing that it would take for more than a part of that frame.
    pub fn provider_ends(&mut self) -> Option<Bytes> {
        if self.ending != Ending::None {
            return None;
        }
        self.ending = Ending::ProviderLost;
        self.from_provider.is_between_frames().then(|| close(INTERNAL_ERROR, LOST))
    }

    pub fn client_ends(&mut self) {
        if self.ending == Ending::None {
            self.ending = Ending::ClientLost;
        }
    }

    /// The sum of what all responses used, as the provider counts it.
    pub fn usage(&self) -> Option<String> {
        (!self.used.is_empty()).then(|| Value::Object(self.used.clone()).to_string())
    }

    pub fn has_gaps(&self) -> bool {
        self.has_gaps
    }

    /// The status and the code of the whole session, for the log: what the client got was a 101 in any case.
    pub fn outcome(&self) -> (u16, Option<&'static str>) {
        match self.ending {
            Ending::None | Ending::Closed => (200, None),
            Ending::Failed => (502, Some("upstream_error")),
            Ending::ProviderLost => (502, Some("invalid_upstream_response")),
            Ending::ClientLost => (499, None),
        }
    }
}

/// Codes with which a side says that it cannot go on. Those from 3000 on are the application's own.
fn is_fault(code: u16) -> bool {
    (1002..3000).contains(&code) && code != 1005
}

/// Adds up what an event says of usage. False when it should say so and cannot be read.
fn note(used: &mut Map<String, Value>, text: &[u8]) -> bool {
    if memmem::find(text, b"response.done").is_none() {
        return true;
    }
    match serde_json::from_slice::<Event<'_>>(text) {
        Ok(event) if event.kind != "response.done" => true,
        Ok(Event { response: Some(Done { usage: Some(usage) }), .. }) => {
            let mut room = MOST_COUNTS.saturating_sub(counts(used));
            add(used, usage, &mut room);
            true
        }
        // A response that was cancelled before it began uses nothing and says so by saying nothing.
        Ok(_) => true,
        Err(_) => false,
    }
}

fn counts(object: &Map<String, Value>) -> usize {
    object.values().map(|value| 1 + value.as_object().map_or(0, counts)).sum()
}

/// Number by number, and inside objects alike; what is new as long as there is room.
fn add(total: &mut Map<String, Value>, more: Map<String, Value>, room: &mut usize) {
    for (name, value) in more {
        let has_room = *room > 0 && name.len() <= LONGEST_NAME;
        match (total.get_mut(&name), value) {
            (Some(Value::Object(total)), Value::Object(more)) => add(total, more, room),
            (Some(total @ Value::Number(_)), more @ Value::Number(_)) => *total = sum(total, &more),
            (None, value @ Value::Number(_)) if has_room => {
                *room -= 1;
                total.insert(name, value);
            }
            (None, Value::Object(more)) if has_room => {
                *room -= 1;
                let mut inner = Map::new();
                add(&mut inner, more, room);
                total.insert(name, inner.into());
            }
            _ => {}
        }
    }
}

fn sum(one: &Value, other: &Value) -> Value {
    match (one.as_u64(), other.as_u64()) {
        (Some(one), Some(other)) => one.saturating_add(other).into(),
        _ => (one.as_f64().unwrap_or_default() + other.as_f64().unwrap_or_default()).into(),
    }
}

/// A close frame of a server, which are not masked.
fn close(code: u16, reason: &'static str) -> Bytes {
    let length = (2 + reason.len()) as u8;
    Bytes::from([&[0x88, length][..], &code.to_be_bytes(), reason.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use serde_json::json;

    fn session() -> Box<Websocket> {
        Websocket::of(&HeaderMap::from_iter([(header::UPGRADE, HeaderValue::from_static("WebSocket"))])).unwrap()
    }

    fn text(payload: &str) -> Vec<u8> {
        let mut frame = vec![0x81, 126];
        frame.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        frame.extend_from_slice(payload.as_bytes());
        frame
    }

    fn done(usage: Value) -> Vec<u8> {
        text(&json!({ "type": "response.done", "response": { "id": "r", "output": [], "usage": usage } }).to_string())
    }

    #[test]
    fn what_all_responses_used_is_added_up() {
        let mut session = session();
        assert_eq!(session.usage(), None);
        session.provider_sends(&done(json!({ "input_tokens": 3, "input_token_details": { "audio_tokens": 2 } })));
        session.provider_sends(&text(
            &json!({ "type": "conversation.item.created", "item": "\"response.done\"" }).to_string(),
        ));
        session.provider_sends(&done(
            json!({ "input_tokens": 4, "input_token_details": { "audio_tokens": 1 }, "output_tokens": 9 }),
        ));
        session.provider_sends(&done(json!(null)));
        let usage: Value = serde_json::from_str(&session.usage().unwrap()).unwrap();
        assert_eq!(
            usage,
            json!({ "input_tokens": 7, "input_token_details": { "audio_tokens": 3 }, "output_tokens": 9 })
        );
        assert!(!session.has_gaps());
    }

    #[test]
    fn what_could_not_be_read_is_known_to_be_missing() {
        for bytes in [vec![0xc1, 2, 1, 2], text(r#"{"type":"response.done","response":"#)] {
            let mut session = session();
            session.provider_sends(&bytes);
            assert!(session.has_gaps(), "{bytes:?}");
        }
    }

    #[test]
    fn usage_does_not_grow_without_end() {
        let mut session = session();
        for n in 0..1000 {
            session.provider_sends(&done(json!({ format!("k{n}"): 1, "text": "x" })));
        }
        assert_eq!(session.used.len(), MOST_COUNTS);
    }

    #[test]
    fn neither_names_nor_objects_make_usage_longer_than_its_bound() {
        let mut session = session();
        let many: Map<String, Value> = (0..1000).map(|n| (format!("k{n}"), 1.into())).collect();
        session.provider_sends(&done(json!({ "x".repeat(5000): 1, "input_tokens": 3, "details": many, "more": many })));
        let used = session.usage().unwrap();
        assert!(
            counts(&session.used) == MOST_COUNTS && used.contains("input_tokens") && used.len() < 8 << 10,
            "{used}"
        );
    }

    #[test]
    fn the_first_who_ends_a_session_counts() {
        const CLOSED: &[u8] = &[0x88, 2, 3, 232];
        const MASKED: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 3, 232];
        const FAULT: &[u8] = &[0x88, 2, 3, 243];
        type Act = fn(&mut Websocket);
        let acts: [(Act, u16, bool); 7] = [
            (|_| {}, 502, true),
            (|session| session.provider_sends(CLOSED), 200, false),
            (|session| session.client_sends(MASKED), 200, false),
            (|session| session.provider_sends(FAULT), 502, false),
            (
                |session| {
                    session.client_sends(MASKED);
                    session.provider_sends(FAULT);
                },
                200,
                false,
            ),
            (Websocket::client_ends, 499, false),
            (|session| session.provider_sends(&[0x81, 5, b'a']), 502, false),
        ];
        for (number, (act, status, is_told)) in acts.into_iter().enumerate() {
            let mut session = session();
            act(&mut session);
            let told = session.provider_ends().is_some();
            assert_eq!((session.outcome().0, told), (status, is_told), "{number}");
        }
    }

    #[test]
    fn the_close_frame_has_a_code_and_a_reason_that_fit() {
        let frame = session().provider_ends().unwrap();
        assert_eq!((frame[0], usize::from(frame[1])), (0x88, frame.len() - 2));
        assert_eq!(frame[2..4], 1011u16.to_be_bytes());
        assert!(frame.len() <= 127);
    }

    #[test]
    fn other_upgrades_are_not_watched() {
        assert!(Websocket::of(&HeaderMap::new()).is_none());
        assert!(Websocket::of(&HeaderMap::from_iter([(header::UPGRADE, HeaderValue::from_static("h2c"))])).is_none());
    }
}
