//! The first half of an answer: everything up to the point where it is worth passing on.
//!
//! A plain answer of ordinary size is gathered whole, so that a cut one is a failed attempt and not half a JSON. A
//! stream is held until its first content event: an error inside a 200, a cut or a stall before that is a failed
//! attempt too.

use super::content::{Meaning, meaning, meaning_of_answer};
use super::{Ended, Failure, join, next, provider};
use crate::dial::{Class, Upstream, UpstreamError};
use crate::downstream::Downstream;
use crate::events::{Splitter, events};
use crate::metrics::Outcome;
use crate::refusal::Refusal;
use crate::visit::Visit;
use bytes::{Bytes, BytesMut};
use http::header;
use pingora_http::ResponseHeader;

/// A plain answer up to this size is held until it is whole.
const HELD_WHOLE: usize = 256 << 10;

/// A stream that sends this much without content is passed on as it is.
const HELD_EVENTS: usize = 64 << 10;

/// What has been read of an answer that can be passed on.
pub enum Held {
    /// The first bytes: all of them unless the answer is large.
    Plain(Bytes),
    /// Whole events up to the first with content.
    Stream { first: Bytes, splitter: Splitter },
}

pub async fn hold(client: &mut impl Downstream, upstream: &mut Upstream, visit: &Visit) -> Result<Held, Ended> {
    match is_event_stream(upstream.head()) {
        true => stream(client, upstream, visit).await,
        false => plain(client, upstream, visit).await,
    }
}

/// JSON is looked at before it counts as an answer; other kinds, as speech, are passed on from their first piece.
async fn plain(client: &mut impl Downstream, upstream: &mut Upstream, visit: &Visit) -> Result<Held, Ended> {
    let is_success = upstream.head().status.is_success();
    let is_json = has_content_type(upstream.head(), b"application/json");
    let mut held = BytesMut::new();
    loop {
        let piece = next(client, upstream).await?.map_err(|error| failed(&error, visit))?;
        let is_whole = piece.is_none() || upstream.is_done();
        let piece = piece.unwrap_or_default();
        if is_whole || held.len() + piece.len() > HELD_WHOLE || (is_success && !is_json) {
            let first = join(held, piece);
            if is_whole && is_success && is_json && !first.is_empty() {
                check(&first, visit)?;
            }
            return Ok(Held::Plain(first));
        }
        held.extend_from_slice(&piece);
    }
}

fn check(body: &[u8], visit: &Visit) -> Result<(), Ended> {
    match meaning_of_answer(body) {
        Meaning::Content | Meaning::Preamble => Ok(()),
        Meaning::Malformed => Err(unusable(&"it is not JSON", visit)),
        Meaning::Error(refusal) => {
            Err(Ended::Failed(Failure { refusal: *refusal, outcome: Some(Outcome::StreamError) }))
        }
    }
}

async fn stream(client: &mut impl Downstream, upstream: &mut Upstream, visit: &Visit) -> Result<Held, Ended> {
    let mut splitter = Splitter::default();
    let mut held = BytesMut::new();
    let mut has_begun = false;
    loop {
        let piece = next(client, upstream).await?.map_err(|error| failed(&error, visit))?;
        let is_end = piece.is_none();
        let whole = match piece {
            Some(piece) => splitter.push(piece).map_err(|error| unusable(&error, visit))?,
            None => splitter.rest(),
        };
        // A last event need not be followed by a blank line.
        let mut has_content = is_end && !whole.is_empty();
        for event in events(&whole) {
            match meaning(&event.data) {
                Meaning::Preamble => has_begun = true,
                Meaning::Content => has_content = true,
                Meaning::Error(refusal) => {
                    return Err(Ended::Failed(Failure { refusal: *refusal, outcome: Some(Outcome::StreamError) }));
                }
                Meaning::Malformed => return Err(unusable(&"an event is not JSON", visit)),
            }
            if has_content {
                break;
            }
        }
        if is_end && !has_content && (has_begun || held.is_empty()) {
            return Err(unusable(&"the stream ended before its first content", visit));
        }
        if has_content || is_end || held.len() + whole.len() > HELD_EVENTS {
            return Ok(Held::Stream { first: join(held, whole), splitter });
        }
        held.extend_from_slice(&whole);
    }
}

fn failed(error: &UpstreamError, visit: &Visit) -> Ended {
    let refusal = Refusal::invalid_upstream_response(provider(visit), error);
    Ended::Failed(Failure { refusal, outcome: Some(Outcome::Failed(error.class())) })
}

fn unusable(why: &dyn std::fmt::Display, visit: &Visit) -> Ended {
    let refusal = Refusal::invalid_upstream_response(provider(visit), why);
    Ended::Failed(Failure { refusal, outcome: Some(Outcome::Failed(Class::Protocol)) })
}

fn is_event_stream(head: &ResponseHeader) -> bool {
    head.status.is_success() && has_content_type(head, b"text/event-stream")
}

fn has_content_type(head: &ResponseHeader, kind: &[u8]) -> bool {
    head.headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(kind))
}
