//! Answer → client, on the engine lane, from a provider or from memory (`AnswerSource`), in two halves. `hold` reads until the answer is worth passing on;
//! until then nothing has reached the client and another attempt may take its place. `deliver` writes it: a plain
//! answer whole, a stream event by event, with one error event in the client's dialect should it break off or end
//! without having said that it is over.

mod content;
mod ending;
mod hold;
mod late;
mod pulse;
mod source;
mod wire;

pub use hold::{Held, hold};
pub use pulse::{Pulse, beside};
pub use source::{AnswerSource, StoredAnswer};
pub use wire::WireDialect;

use crate::dial::{Class, UpstreamError};
use crate::downstream::{ClientGone, Downstream};
use crate::events::Splitter;
use crate::metrics::Outcome;
use crate::refusal::Refusal;
use crate::usage::stream_options::without_usage;
use crate::visit::Visit;
use crate::within::until;
use bytes::{Bytes, BytesMut};
use ending::Ending;
use http::{HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;
use std::pin::pin;

#[derive(Debug)]
pub enum Ended {
    /// The whole answer was delivered.
    Complete,
    /// Nothing was sent to the client yet: the caller may answer otherwise.
    Failed(Failure),
    /// The client has had a well-formed error event.
    BrokenOff(Class),
    /// The client has half a body; its connection must not look complete.
    Torn(Class),
    ClientGone,
}

#[derive(Debug)]
pub struct Failure {
    pub refusal: Refusal,
    /// How the attempt ended, if there was one.
    pub outcome: Option<Outcome>,
}

impl From<ClientGone> for Ended {
    fn from(_: ClientGone) -> Self {
        Self::ClientGone
    }
}

/// Passes on an answer that was held, and what is still to come of it.
pub async fn deliver(client: &mut impl Downstream, source: &mut AnswerSource, held: Held, visit: &mut Visit) -> Ended {
    let delivered = match held {
        Held::Plain(first) if visit.pulse.has_begun => Box::pin(late::as_event(client, source, first, visit)).await,
        Held::Plain(first) => plain(client, source, first, visit).await,
        Held::Stream { first, splitter, ending } => stream(client, source, first, splitter, ending, visit).await,
    };
    delivered.unwrap_or_else(|ended| ended)
}

async fn plain(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    first: Bytes,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    visit.pulse.every = None;
    client.write_head(client_head(source.take_head(), visit)).await?;
    let mut is_last = source.is_done();
    visit.plain(&first, is_last);
    client.write_body(first, is_last).await?;
    while !is_last {
        let piece = next(client, source, visit).await?.map_err(|broken| Ended::Torn(broken.class))?;
        is_last = piece.is_none() || source.is_done();
        let piece = piece.unwrap_or_default();
        visit.plain(&piece, is_last);
        client.write_body(piece, is_last).await?;
    }
    Ok(Ended::Complete)
}

async fn stream(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    first: Bytes,
    mut splitter: Splitter,
    mut ending: Ending,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    let mut head = None;
    if !visit.pulse.has_begun {
        let mut new = client_head(source.take_head(), visit);
        // Should the stream break off, one event more will be written than was announced.
        new.remove_header(&header::CONTENT_LENGTH);
        head = Some(new);
        visit.pulse.has_begun = true;
    } else {
        visit.answers(&source.head().headers);
    }
    let mut whole = first;
    loop {
        let is_last = source.is_done();
        ending.see(&whole);
        let mut is_cut = false;
        if is_last {
            let rest = splitter.rest();
            ending.see(&rest);
            is_cut = ending.is_missing();
            if !is_cut {
                whole = join(BytesMut::from(whole.as_ref()), rest);
            }
        }
        let is_end = is_last && !is_cut;
        if head.is_some() || !whole.is_empty() || is_end {
            let passed = passed_on(&whole, visit);
            visit.events(&whole, &passed, is_end);
            match head.take() {
                Some(head) => client.write_beginning(head, passed, is_end).await?,
                None if passed.is_empty() && !is_end => {}
                None => client.write_body(passed, is_end).await?,
            }
        }
        if is_cut {
            let error = UpstreamError::protocol("the stream ended before it was complete");
            return Box::pin(break_off(client, visit, Broken::of(&error, visit))).await;
        }
        if is_last {
            return Ok(Ended::Complete);
        }
        let piece = match next(client, source, visit).await? {
            Ok(piece) => piece,
            Err(broken) => return Box::pin(break_off(client, visit, broken)).await,
        };
        whole = match splitter.push(piece.unwrap_or_default()) {
            Ok(whole) => whole,
            Err(_) => {
                let error = UpstreamError::protocol("an event is too large");
                return Box::pin(break_off(client, visit, Broken::of(&error, visit))).await;
            }
        };
    }
}

/// What the client asked for of these events.
fn passed_on(whole: &Bytes, visit: &Visit) -> Bytes {
    if visit.strips_usage { without_usage(whole.clone()) } else { whole.clone() }
}

/// Why an answer that has begun does not go on.
struct Broken {
    class: Class,
    refusal: Refusal,
}

impl Broken {
    fn of(error: &UpstreamError, visit: &Visit) -> Self {
        Self { class: error.class(), refusal: Refusal::invalid_upstream_response(provider(visit), error) }
    }
}

/// The next piece of the answer, unless the client leaves first. The outer error ends everything at once.
async fn next(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    visit: &mut Visit,
) -> Result<Result<Option<Bytes>, Broken>, Ended> {
    let read = match visit.deadline {
        None => Ok(beside(client, visit, pin!(source.read_body())).await?),
        Some(deadline) => beside(client, visit, pin!(until(deadline, pin!(source.read_body())))).await?,
    };
    Ok(match read {
        Ok(piece) => piece.map_err(|error| Broken::of(&error, visit)),
        Err(_) => Err(Broken { class: Class::FirstByteTimeout, refusal: Refusal::out_of_time() }),
    })
}

/// Ends a stream that has begun: whole events were passed on, so one more is well-formed whatever happened.
async fn break_off(client: &mut impl Downstream, visit: &mut Visit, broken: Broken) -> Result<Ended, Ended> {
    let Broken { class, refusal } = broken;
    tracing::warn!(request_id = visit.id(), class = class.label(), why = %refusal.message, "a stream broke off");
    visit.error_code = Some(refusal.code);
    let event = refusal.event(visit.dialect, visit.id());
    visit.ends_with(&event);
    client.write_body(event, true).await?;
    Ok(Ended::BrokenOff(class))
}

fn provider(visit: &Visit) -> &str {
    visit.provider.as_ref().and_then(|name| name.to_str().ok()).unwrap_or("the provider")
}

fn join(mut head: BytesMut, tail: Bytes) -> Bytes {
    if head.is_empty() {
        return tail;
    }
    head.extend_from_slice(&tail);
    head.freeze()
}

/// The provider's head without its hop, and with ours. Edited as plain parts: Pingora's setters also keep each header's
/// spelling, which costs more than everything else here.
fn client_head(head: ResponseHeader, visit: &mut Visit) -> ResponseHeader {
    let mut parts = http::response::Parts::from(head);
    let hops: Vec<HeaderName> = parts.headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    for name in hops {
        parts.headers.remove(name);
    }
    parts.version = http::Version::HTTP_11;
    visit.status = parts.status.as_u16();
    visit.stamp_map(&mut parts.headers);
    visit.answers(&parts.headers);
    ResponseHeader::from(parts)
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "transfer-encoding"
            | "upgrade"
            | "te"
            | "trailer"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
    )
}

/// Answers for the gateway itself.
pub async fn refuse(client: &mut impl Downstream, visit: &mut Visit, refusal: &Refusal) -> Result<(), ClientGone> {
    visit.error_code = Some(refusal.code);
    let is_event = visit.pulse.has_begun;
    let body = match is_event {
        true => refusal.event(visit.dialect, visit.id()),
        false => refusal.body(visit.dialect, visit.id()),
    };
    let head = refusal_head(visit, refusal, body.len());
    visit.answers(&head.headers);
    visit.ends_with(&body);
    if !is_event {
        client.write_head(head).await?;
    }
    client.write_body(body, true).await
}

/// A page of the gateway's own.
pub async fn own(client: &mut impl Downstream, visit: &mut Visit, page: &serde_json::Value) -> Result<(), ClientGone> {
    let body = Bytes::from(page.to_string());
    let mut head = ResponseHeader::build_no_case(200, Some(8)).expect("200 is a status");
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    visit.status = 200;
    visit.stamp(&mut head);
    client.write_head(head).await?;
    client.write_body(body, true).await
}

/// The head of a refusal, for lanes that write the body themselves.
pub fn refusal_head(visit: &mut Visit, refusal: &Refusal, body_length: usize) -> ResponseHeader {
    let mut head = ResponseHeader::build_no_case(refusal.status, Some(8))
        .unwrap_or_else(|_| ResponseHeader::build_no_case(500, None).expect("500 is a status"));
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body_length));
    if let Some(seconds) = refusal.retry_after_s {
        let _ = head.insert_header(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    visit.status = refusal.status;
    visit.stamp(&mut head);
    if let Some(hit) = &refusal.hit {
        hit.stamp(visit.alias.as_deref(), |name, value| drop(head.insert_header(name, value)));
    }
    head
}
