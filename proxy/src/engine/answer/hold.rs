//! The first half of an answer: everything up to the point where it is worth passing on.
//!
//! A plain answer of ordinary size is gathered whole, so that a cut one is a failed attempt and not half a JSON; so is
//! one that a step changes. A stream is held until its first content event: an error inside a 200, a cut or a stall before
//! that is a failed attempt too.

use super::content::Meaning;
use super::ending::StreamEnding;
use super::{AnswerFailure, AnswerSource, Ended, MAX_CHANGED_BODY, Steps, Unusable, WireDialect, join};
use crate::catalog::target::Target;
use crate::context::metrics::Outcome;
use crate::net::dial::{Class, UpstreamError};
use crate::request::receive::{MemoryOwner, NoRoom, OwnedShare};
use crate::request::refusal::Refusal;
use crate::runtime::heavy::heavy;
use crate::runtime::timeout::with_deadline;
use crate::wire::sse::{Splitter, Unheld, events};
use bytes::{Bytes, BytesMut};
use http::header;
use pingora_http::ResponseHeader;
use std::pin::pin;
use std::time::Instant;

/// A plain answer up to this size is held until it is whole.
const HELD_WHOLE: usize = 256 << 10;

/// A stream that sends this much without content is passed on as it is.
const HELD_EVENTS: usize = 64 << 10;

/// An answer that is gathered to be changed counts towards the memory of bodies from here on.
const UNCOUNTED: usize = 64 << 10;

/// What has been read of an answer that can be passed on.
pub enum HeldStart {
    /// The first bytes: all of them unless the answer is large.
    Plain(Bytes),
    /// All of a plain answer, which the steps have changed.
    Changed(ChangedBody),
    Stream(HeldStream),
}

pub struct ChangedBody {
    /// What the provider sent.
    pub read: Bytes,
    /// What the client gets.
    pub passed: Bytes,
    /// Why it gets something else.
    pub denial: Option<Box<Refusal>>,
    /// What it takes of the memory of bodies, until it is delivered.
    pub share: Option<OwnedShare>,
}

pub struct HeldStream {
    /// Whole events up to the first with content.
    pub first: Bytes,
    pub splitter: Splitter,
    pub ending: StreamEnding,
}

impl HeldStart {
    /// What the provider sent, as far as it was read.
    pub fn read(&self) -> &Bytes {
        match self {
            Self::Plain(first) => first,
            Self::Changed(body) => &body.read,
            Self::Stream(held) => &held.first,
        }
    }
}

/// Reads the beginning of an answer that is written in `wire`. A stream has until `limit` for its first piece. Of an answer
/// that is of no use, `read` gets what was read of it.
pub async fn hold(
    source: &mut AnswerSource,
    target: &Target,
    wire: WireDialect,
    steps: &mut Steps,
    limit: Instant,
    room: MemoryOwner<'_>,
    read: &mut Bytes,
) -> Result<HeldStart, Ended> {
    let provider = &*target.provider.name;
    if let Err(encoding) = source.inflate(room)
        && is_read(source.head())
    {
        return Err(unusable(&format!("it is compressed ({encoding}) although it was asked not to be"), provider));
    }
    let is_stream = is_stream(source);
    steps.begin(source.head(), is_stream);
    match is_stream {
        true => stream(source, target, wire, limit, room, read).await,
        false => plain(source, provider, wire, steps, room, read).await,
    }
}

/// JSON is looked at before it counts as an answer; other kinds, as speech, are passed on from their first piece. What a
/// step changes is gathered whole, whatever it is.
async fn plain(
    source: &mut AnswerSource,
    provider: &str,
    wire: WireDialect,
    steps: &mut Steps,
    room: MemoryOwner<'_>,
    read: &mut Bytes,
) -> Result<HeldStart, Ended> {
    let is_success = source.head().status.is_success();
    let is_json = has_content_type(source.head(), b"application/json");
    let is_changed = !steps.is_empty() && steps.take_body(source.head());
    if is_changed && source.is_encoded() {
        return Err(unusable(&"it is compressed although it was asked not to be, and cannot be changed", provider));
    }
    let mut held = BytesMut::new();
    let mut share: Option<OwnedShare> = None;
    let mut counted = 0;
    loop {
        let piece = match source.read_body().await {
            Ok(piece) => piece,
            Err(error) => {
                *read = held.freeze();
                return Err(failed(&error, provider));
            }
        };
        let is_whole = piece.is_none() || source.is_done();
        let piece = piece.unwrap_or_default();
        let length = held.len() + piece.len();
        if is_changed && length > MAX_CHANGED_BODY {
            let why = format!("it is longer than the {MAX_CHANGED_BODY} bytes up to which answers can be changed");
            *read = held.freeze();
            return Err(unusable(&why, provider));
        }
        if is_changed && length > UNCOUNTED {
            let share = share.get_or_insert_with(|| room.share());
            if let Err(why) = share.grow(length - std::mem::replace(&mut counted, length)) {
                *read = held.freeze();
                return Err(no_room(why));
            }
        }
        if is_whole || (!is_changed && (length > HELD_WHOLE || (is_success && !is_json))) {
            let first = join(held, piece);
            if is_whole && is_success && is_json && !first.is_empty() {
                check(wire.body_meaning(&first), provider).inspect_err(|_| *read = first.clone())?;
            }
            if is_changed {
                *read = first.clone();
            }
            return match is_changed {
                true if steps.is_heavy_body(first.len()) => {
                    Box::pin(changed_aside(first, provider, steps, share, room)).await.map(HeldStart::Changed)
                }
                true => changed(first, provider, steps, share).await.map(HeldStart::Changed),
                false => Ok(HeldStart::Plain(first)),
            };
        }
        held.extend_from_slice(&piece);
    }
}

async fn changed(
    read: Bytes,
    provider: &str,
    steps: &mut Steps,
    share: Option<OwnedShare>,
) -> Result<ChangedBody, Ended> {
    let mut made = steps.body(read.clone());
    if steps.is_asking() {
        made = Box::pin(steps.settled(made)).await;
    }
    outcome(read, made, provider, steps, share)
}

/// The same beside the threads that carry requests. What it takes stays counted until the work is done, also when the client has
/// left meanwhile.
async fn changed_aside(
    read: Bytes,
    provider: &str,
    steps: &mut Steps,
    share: Option<OwnedShare>,
    room: MemoryOwner<'_>,
) -> Result<ChangedBody, Ended> {
    let mut share = share.unwrap_or_else(|| room.share());
    // It is read into a tree beside the text.
    share.grow(read.len()).map_err(no_room)?;
    let (mut taken, body) = (std::mem::take(steps), read.clone());
    let done = heavy(room.tenant, move || {
        let made = taken.body(body);
        (taken, made, share)
    });
    let Some((taken, made, share)) = done.await else {
        return Err(Ended::Failed(AnswerFailure::new(Refusal::internal(), None)));
    };
    *steps = taken;
    let made = steps.settled(made).await;
    outcome(read, made, provider, steps, Some(share))
}

fn outcome(
    read: Bytes,
    made: Result<Bytes, Unusable>,
    provider: &str,
    steps: &mut Steps,
    share: Option<OwnedShare>,
) -> Result<ChangedBody, Ended> {
    match made {
        Ok(passed) => Ok(ChangedBody { read, passed, denial: None, share }),
        // Not the provider's fault: it has answered, and is paid for it.
        Err(why) => match steps.denial() {
            Some(refusal) => Ok(ChangedBody { read, passed: Bytes::new(), denial: Some(refusal), share }),
            None => Err(unusable(&why, provider)),
        },
    }
}

/// The gateway cannot hold it.
fn no_room(why: NoRoom) -> Ended {
    Ended::Failed(AnswerFailure::new(why.into(), None))
}

fn unheld(why: &Unheld, provider: &str) -> Ended {
    match why {
        Unheld::NoRoom(why) => no_room(*why),
        Unheld::TooLarge => unusable(why, provider),
    }
}

fn check(meaning: Meaning, provider: &str) -> Result<(), Ended> {
    match meaning {
        Meaning::Content | Meaning::Preamble => Ok(()),
        Meaning::Malformed => Err(unusable(&"it is not JSON", provider)),
        Meaning::Error(refusal) => Err(Ended::Failed(AnswerFailure::new(*refusal, Some(Outcome::StreamError)))),
    }
}

async fn stream(
    source: &mut AnswerSource,
    target: &Target,
    wire: WireDialect,
    limit: Instant,
    room: MemoryOwner<'_>,
    read: &mut Bytes,
) -> Result<HeldStart, Ended> {
    let mut held = BytesMut::new();
    let begun = first_events(source, target, wire, limit, room, &mut held).await;
    match begun {
        Ok((first, splitter)) => Ok(HeldStart::Stream(HeldStream { first, splitter, ending: wire.ending() })),
        Err(ended) => {
            *read = held.freeze();
            Err(ended)
        }
    }
}

/// The whole events up to the first with content. What was read of a stream without any is in `held`.
async fn first_events(
    source: &mut AnswerSource,
    target: &Target,
    wire: WireDialect,
    limit: Instant,
    room: MemoryOwner<'_>,
    held: &mut BytesMut,
) -> Result<(Bytes, Splitter), Ended> {
    let provider = &*target.provider.name;
    let mut splitter = Splitter::new(room);
    let mut watch = wire.watch();
    let (mut has_begun, mut is_first) = (false, true);
    loop {
        let piece = match is_first {
            true => with_deadline(limit, pin!(source.read_body())).await,
            false => Ok(source.read_body().await),
        };
        is_first = false;
        let piece = piece.map_err(|_| too_late(target))?.map_err(|error| failed(&error, provider))?;
        let is_end = piece.is_none();
        let whole = match piece {
            Some(piece) => splitter.push(piece).map_err(|why| unheld(&why, provider))?,
            None => splitter.rest(),
        };
        // A last event need not be followed by a blank line.
        let mut has_content = is_end && !whole.is_empty();
        for event in events(&whole) {
            match watch.meaning(event.name.as_deref(), &event.data) {
                Meaning::Preamble => has_begun = true,
                Meaning::Content => has_content = true,
                Meaning::Error(refusal) => {
                    held.extend_from_slice(&whole);
                    return Err(Ended::Failed(AnswerFailure::new(*refusal, Some(Outcome::StreamError))));
                }
                Meaning::Malformed => {
                    held.extend_from_slice(&whole);
                    return Err(unusable(&"an event is not JSON", provider));
                }
            }
            if has_content {
                break;
            }
        }
        if is_end && !has_content && (has_begun || held.is_empty()) {
            return Err(unusable(&"the stream ended before its first content", provider));
        }
        if has_content || is_end || held.len() + whole.len() > HELD_EVENTS {
            return Ok((join(std::mem::take(held), whole), splitter));
        }
        held.extend_from_slice(&whole);
    }
}

/// The head came in time, and nothing after it.
fn too_late(target: &Target) -> Ended {
    Ended::Failed(AnswerFailure::new(target.timed_out(), Some(Outcome::Failed(Class::FirstByteTimeout))))
}

fn failed(error: &UpstreamError, provider: &str) -> Ended {
    if let Some(why) = error.lacks_room() {
        return no_room(why);
    }
    let refusal = Refusal::invalid_upstream_response(provider, error);
    Ended::Failed(AnswerFailure::new(refusal, Some(Outcome::Failed(error.class()))))
}

fn unusable(why: &dyn std::fmt::Display, provider: &str) -> Ended {
    let refusal = Refusal::invalid_upstream_response(provider, why);
    Ended::Failed(AnswerFailure::new(refusal, Some(Outcome::Failed(Class::Protocol))))
}

pub fn is_stream(source: &AnswerSource) -> bool {
    source.is_framed() || is_event_stream(source.head())
}

fn is_event_stream(head: &ResponseHeader) -> bool {
    head.status.is_success() && has_content_type(head, b"text/event-stream")
}

/// Whether we look inside. Others are passed on in whatever they are wrapped.
fn is_read(head: &ResponseHeader) -> bool {
    is_event_stream(head) || (head.status.is_success() && has_content_type(head, b"application/json"))
}

fn has_content_type(head: &ResponseHeader, kind: &[u8]) -> bool {
    head.headers.get(header::CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(kind))
}
