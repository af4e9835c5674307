//! Answer → client, on the engine lane, in two halves. `hold` reads an answer from its source, a provider or memory,
//! until it is worth passing on; until then nothing has reached the client and another attempt may take its place.
//! `deliver` writes it: a plain answer whole, a stream event by event. In between stand the `Steps` that change an
//! answer; most answers have none.

mod changed;
mod client_frames;
mod content;
mod ending;
mod guarded;
mod heartbeat;
mod hold;
mod late_event;
mod own;
mod relayed;
mod reshaped;
pub mod soft_denial;
mod source;
mod steps;
mod stream;
mod strip_usage;
#[cfg(test)]
mod tests;
mod translated;
#[cfg(test)]
pub(crate) mod upper_case;
mod whole_body;
pub(crate) mod wire;

pub use client_frames::StreamFrames;
pub use guarded::{Answered, AsyncHooks, Guarded, GuardedCall, SeenRequest, results_event, with_denial, with_results};
pub use heartbeat::with_heartbeats;
pub use hold::{ChangedBody, HeldStart, HeldStream, hold, is_stream};
pub use own::{own, refuse};
pub use relayed::{Gathered, gather, pass_on, relayed_head};
pub use reshaped::{Reshaped, Reshaping, error_in_openai_form};
pub use source::{AnswerSource, StoredAnswer};
pub use steps::{MAX_CHANGED_BODY, ResponseStep, Steps, Unusable};
pub use strip_usage::StripUsage;
pub use translated::{Translated, Translation};
pub use whole_body::WholeBody;
pub use wire::WireDialect;

use crate::context::metrics::Outcome;
use crate::context::{PaidAnswer, Visit};
use crate::limits::admission::Tariff;
use crate::net::dial::{Class, UpstreamError};
use crate::net::downstream::{ClientGone, Downstream};
use crate::net::head_lines::HeadLines;
use crate::net::header_text::HeaderText;
use crate::net::own_cookies::drop_own_cookies;
use crate::request::refusal::Refusal;
use crate::runtime::memory::NoRoom;
use crate::runtime::timeout::with_deadline;
use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;
use shared::telemetry::{Brief, LogLimit};
use std::pin::pin;
use std::sync::Arc;

#[derive(Debug)]
pub enum Ended {
    /// The whole answer was delivered.
    Complete,
    /// Nothing was sent to the client yet: the caller may answer otherwise.
    Failed(AnswerFailure),
    /// The client has had a well-formed error event. None where the provider is not to blame.
    BrokenOff(Option<Class>),
    /// The client has half a body; its connection must not look complete. None as above.
    Torn(Option<Class>),
    ClientGone,
}

#[derive(Debug)]
pub struct AnswerFailure {
    pub refusal: Refusal,
    /// How the attempt ended, if there was one.
    pub outcome: Option<Outcome>,
    /// What the provider answered, if it will be paid for it. In a box, as all that is rare.
    pub paid: Option<Box<PaidAnswer>>,
}

impl AnswerFailure {
    pub fn new(refusal: Refusal, outcome: Option<Outcome>) -> Self {
        Self { refusal, outcome, paid: None }
    }
}

impl From<ClientGone> for Ended {
    fn from(_: ClientGone) -> Self {
        Self::ClientGone
    }
}

/// Passes on an answer that was held, and what is still to come of it.
pub async fn deliver(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    held: HeldStart,
    steps: &mut Steps,
    visit: &mut Visit,
) -> Ended {
    let delivered = match held {
        HeldStart::Plain(first) if visit.answer.pulse.has_begun => {
            Box::pin(late_event::as_event(client, source, first, visit)).await
        }
        HeldStart::Plain(first) => plain(client, source, first, steps, visit).await,
        HeldStart::Changed(body) => match changed::checked(body, steps, visit) {
            // It is in memory already: it becomes an event whatever its length.
            Ok(body) if visit.answer.pulse.has_begun => {
                Box::pin(late_event::tell(client, source, &body.read, &body.passed, visit)).await
            }
            Ok(body) => changed::deliver(client, source, body, steps, visit).await,
            Err(ended) => Err(ended),
        },
        HeldStart::Stream(held) => stream::deliver(client, source, held, steps, visit).await,
    };
    delivered.unwrap_or_else(|ended| ended)
}

async fn plain(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    first: Bytes,
    steps: &mut Steps,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    visit.answer.pulse.every = None;
    if source.is_done() {
        tell_cost(&first, None, source.head().status.as_u16(), visit).await;
    }
    if let AnswerSource::Stored(stored) = source
        && stored.is_done()
        && steps.is_empty()
        && visit.writes_lines()
    {
        return whole(client, stored.head(), first, visit).await;
    }
    let mut is_last = source.is_done();
    // What was stored does not say its length.
    let length = matches!(source, AnswerSource::Stored(_) if is_last).then_some(first.len());
    client.write_head(client_head(source.take_head(), length, steps, visit)).await?;
    visit.plain(&first, is_last);
    client.write_body(first, is_last).await?;
    while !is_last {
        let piece = next(client, source, visit).await?.map_err(|broken| torn(broken, visit))?;
        is_last = piece.is_none() || source.is_done();
        let piece = piece.unwrap_or_default();
        visit.plain(&piece, is_last);
        client.write_body(piece, is_last).await?;
    }
    Ok(Ended::Complete)
}

/// Works out what a whole plain answer costs, for its head, where that is told.
async fn tell_cost(read: &Bytes, passed: Option<&Bytes>, status: u16, visit: &mut Visit) {
    if !visit.observer.tells_costs {
        return;
    }
    learn_prices(visit.prices_to_learn()).await;
    visit.price_plain(read, passed, status);
}

/// Waits shortly for prices that are not in memory.
async fn learn_prices(wanted: Option<(Arc<Tariff>, String)>) {
    if let Some((tariff, service)) = wanted {
        Box::pin(async move { drop(tariff.learn(&service).await) }).await;
    }
}

/// An answer that is all in memory, and that nobody changes or looks at: its head is written as lines.
async fn whole(
    client: &mut impl Downstream,
    head: &ResponseHeader,
    body: Bytes,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    let mut lines = HeadLines::new(head.status);
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != header::CONTENT_LENGTH) {
        lines.push(name, HeaderText::Value(value));
    }
    visit.answer.status = head.status.as_u16();
    visit.warn_of_deprecated_model();
    visit.stamp_lines(&mut lines);
    visit.plain(&body, true);
    client.write_whole(lines, body).await?;
    Ok(Ended::Complete)
}

/// Why an answer that has begun does not go on.
struct Broken {
    /// None where the provider is not to blame.
    class: Option<Class>,
    refusal: Refusal,
}

impl Broken {
    fn from_upstream(error: &UpstreamError, visit: &Visit) -> Self {
        match error.lacks_room() {
            Some(why) => why.into(),
            None => {
                let refusal = Refusal::invalid_upstream_response(provider(visit), error);
                Self { class: Some(error.class()), refusal }
            }
        }
    }
}

/// The gateway cannot hold what came of it.
impl From<NoRoom> for Broken {
    fn from(why: NoRoom) -> Self {
        Self { class: None, refusal: why.into() }
    }
}

/// For an answer of which the client has had nothing.
impl From<Broken> for Ended {
    fn from(broken: Broken) -> Self {
        let outcome = broken.class.map(Outcome::Failed);
        Self::Failed(AnswerFailure::new(broken.refusal, outcome))
    }
}

/// The next piece of the answer, unless the client leaves first. The outer error ends everything at once.
async fn next(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    visit: &mut Visit,
) -> Result<Result<Option<Bytes>, Broken>, Ended> {
    let read = match visit.routing.deadline {
        None => Ok(with_heartbeats(client, visit, pin!(source.read_body())).await?),
        Some(deadline) => {
            with_heartbeats(client, visit, pin!(with_deadline(deadline, pin!(source.read_body())))).await?
        }
    };
    Ok(match read {
        Ok(piece) => piece.map_err(|error| Broken::from_upstream(&error, visit)),
        Err(_) => Err(Broken { class: Some(Class::FirstByteTimeout), refusal: Refusal::out_of_time() }),
    })
}

/// Of a body that has begun, and has no place in which its end could be told: the log has it.
fn torn(broken: Broken, visit: &mut Visit) -> Ended {
    visit.answer.error_code = Some(broken.refusal.code);
    Ended::Torn(broken.class)
}

/// Ends a stream that has begun: whole events were passed on, so one more is well-formed whatever happened.
async fn break_off(
    client: &mut impl Downstream,
    visit: &mut Visit,
    steps: &mut Steps,
    broken: Broken,
) -> Result<Ended, Ended> {
    let Broken { class, refusal } = broken;
    static BROKEN_OFF: LogLimit = LogLimit::new();
    if let Some(skipped) = BROKEN_OFF.pass() {
        let (request_id, class, why) = (visit.id(), class.map_or("no_room", Class::label), Brief(&refusal.message));
        tracing::warn!(request_id, class, %why, skipped, "a stream broke off");
    }
    visit.answer.error_code = Some(refusal.code);
    let event = refusal.event(visit.request.dialect, visit.id(), visit.tried_provider());
    visit.ends_with(&event);
    client.write_body(steps.framed(event, true), true).await?;
    Ok(Ended::BrokenOff(class))
}

fn provider(visit: &Visit) -> &str {
    visit.routing.provider.as_ref().and_then(|name| name.to_str().ok()).unwrap_or("the provider")
}

fn join(mut head: BytesMut, tail: Bytes) -> Bytes {
    if head.is_empty() {
        return tail;
    }
    head.extend_from_slice(&tail);
    head.freeze()
}

/// The provider's head without its hop, as the steps leave it, with our headers, and of this length where it is another. Edited
/// as plain parts: Pingora's setters also keep each header's spelling, which costs more than everything else here.
fn client_head(head: ResponseHeader, length: Option<usize>, steps: &Steps, visit: &mut Visit) -> ResponseHeader {
    let mut parts = http::response::Parts::from(head);
    if let Some(length) = length {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    let hops: Vec<HeaderName> = parts.headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    for name in hops {
        parts.headers.remove(name);
    }
    drop_own_cookies(&mut parts.headers);
    parts.version = http::Version::HTTP_11;
    steps.head(&mut parts);
    visit.answer.status = parts.status.as_u16();
    visit.warn_of_deprecated_model();
    visit.stamp_map(&mut parts.headers);
    visit.answers(&parts.headers);
    steps.framed_head(&mut parts);
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
