//! The request body: bounded, timed, and counted against what all requests may hold together. A large one that comes
//! too slowly is given up: it holds what others need. One that is compressed is made plain here.

pub use crate::runtime::memory::{BodyMemory, MemoryOwner, MemoryShare, NoRoom, OwnedShare, body_memory};

use super::packed_body;
use super::refusal::Refusal;
use crate::net::downstream::{ClientGone, Downstream};
use crate::runtime::tenant_share::Tenant;
use crate::runtime::timeout::with_timeout;
use crate::wire::framing::compression::ContentEncoding;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Version, header};
use pingora_http::RequestHeader;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct ReceivedBody<'m> {
    pub bytes: Bytes,
    _share: MemoryShare<'m>,
    /// Of one that came compressed.
    _plain_share: Option<OwnedShare>,
}

impl<'m> ReceivedBody<'m> {
    fn plain(bytes: Bytes, share: MemoryShare<'m>) -> Self {
        Self { bytes, _share: share, _plain_share: None }
    }
}

#[derive(Debug)]
pub enum NotReceived {
    Refused(Refusal),
    Gone,
}

impl From<Refusal> for NotReceived {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<NoRoom> for NotReceived {
    fn from(why: NoRoom) -> Self {
        Self::Refused(why.into())
    }
}

impl From<ClientGone> for NotReceived {
    fn from(_: ClientGone) -> Self {
        Self::Gone
    }
}

pub struct Bounds<'a> {
    pub max_bytes: usize,
    pub timeout: Duration,
    /// For large bodies.
    pub pace: BodyPace,
    pub memory: &'a Arc<BodyMemory>,
    /// Whose body it is.
    pub tenant: Tenant,
}

/// How fast a body must come: so many bytes in each period.
#[derive(Debug, Clone, Copy)]
pub struct BodyPace {
    pub period: Duration,
    pub bytes: usize,
}

/// What came in the present period.
struct PeriodProgress {
    began: Instant,
    bytes: usize,
}

impl PeriodProgress {
    /// False when a period is over in which too little came.
    fn goes_on(&mut self, bytes: usize, now: Instant, pace: BodyPace) -> bool {
        self.bytes += bytes;
        if now.saturating_duration_since(self.began) < pace.period {
            return true;
        }
        let is_enough = self.bytes >= pace.bytes;
        *self = Self { began: now, bytes: 0 };
        is_enough
    }
}

pub async fn receive<'m>(client: &mut impl Downstream, bounds: &Bounds<'m>) -> Result<ReceivedBody<'m>, NotReceived> {
    let headers = &client.head().headers;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(content_length);
    if announced.is_some_and(|length| length > bounds.max_bytes) {
        return Err(Refusal::body_too_large(bounds.max_bytes).into());
    }
    let encoding = packed_body::encoding(headers)?;
    if headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        client.write_continue().await?;
    }
    let received = with_timeout(bounds.timeout, pin!(gather(client, bounds, announced))).await;
    let received = received.map_err(|_| Refusal::body_timeout())??;
    match encoding {
        None => Ok(received),
        Some(encoding) => Ok(Box::pin(unpacked(received, encoding, bounds)).await?),
    }
}

async fn unpacked<'m>(
    received: ReceivedBody<'m>,
    encoding: ContentEncoding,
    bounds: &Bounds<'m>,
) -> Result<ReceivedBody<'m>, Refusal> {
    let share = OwnedShare::none(bounds.memory.clone(), bounds.tenant);
    let (bytes, share) = packed_body::unpack(received.bytes, encoding, bounds.max_bytes, share).await?;
    let none = MemoryShare::none(bounds.memory, bounds.tenant);
    Ok(ReceivedBody { bytes, _share: none, _plain_share: Some(share) })
}

async fn gather<'m>(
    client: &mut impl Downstream,
    bounds: &Bounds<'m>,
    announced: Option<usize>,
) -> Result<ReceivedBody<'m>, NotReceived> {
    let mut share = MemoryShare::none(bounds.memory, bounds.tenant);
    let Some(first) = client.read_body().await? else {
        return Ok(ReceivedBody::plain(Bytes::new(), share));
    };
    share.grow(first.len())?;
    if first.len() > bounds.max_bytes {
        return Err(Refusal::body_too_large(bounds.max_bytes).into());
    }
    // Most bodies arrive in one piece; only the others are copied together.
    if announced == Some(first.len()) {
        return Ok(ReceivedBody::plain(first, share));
    }
    let mut whole = BytesMut::with_capacity(announced.unwrap_or(first.len() * 2).max(first.len()));
    whole.extend_from_slice(&first);
    let mut progress = None;
    while let Some(piece) = next(client, share.is_large(), bounds.pace, &mut progress).await? {
        share.grow(piece.len())?;
        if whole.len() + piece.len() > bounds.max_bytes {
            return Err(Refusal::body_too_large(bounds.max_bytes).into());
        }
        whole.extend_from_slice(&piece);
    }
    Ok(ReceivedBody::plain(whole.freeze(), share))
}

/// The pieces of a body that nobody holds whole. It must come as fast as a large one that is held.
pub struct BodyPieces {
    pace: BodyPace,
    progress: Option<PeriodProgress>,
}

impl BodyPieces {
    pub fn new(pace: BodyPace) -> Self {
        Self { pace, progress: None }
    }

    /// None at the end.
    pub async fn next_piece(&mut self, client: &mut impl Downstream) -> Result<Option<Bytes>, NotReceived> {
        next(client, true, self.pace, &mut self.progress).await
    }
}

/// The next piece; of a large body, unless it comes too slowly.
async fn next(
    client: &mut impl Downstream,
    is_large: bool,
    pace: BodyPace,
    progress: &mut Option<PeriodProgress>,
) -> Result<Option<Bytes>, NotReceived> {
    if !is_large {
        return Ok(client.read_body().await?);
    }
    let progress = progress.get_or_insert_with(|| PeriodProgress { began: Instant::now(), bytes: 0 });
    let read = with_timeout(pace.period, pin!(client.read_body())).await;
    let Some(piece) = read.map_err(|_| Refusal::body_too_slow())?? else { return Ok(None) };
    match progress.goes_on(piece.len(), Instant::now(), pace) {
        true => Ok(Some(piece)),
        false => Err(Refusal::body_too_slow().into()),
    }
}

fn content_length(value: &HeaderValue) -> Option<usize> {
    value.to_str().ok()?.trim().parse().ok()
}

/// Whether the body claims to be JSON. Absent counts as JSON: many scripts forget it.
pub fn check_content_type(value: Option<&HeaderValue>) -> Result<(), Refusal> {
    let Some(value) = value else { return Ok(()) };
    let essence = value.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    if essence.eq_ignore_ascii_case(b"application/json") { Ok(()) } else { Err(Refusal::invalid_content_type()) }
}

/// Whether a request comes with a body, as far as its head tells.
pub fn has_body(head: &RequestHeader) -> bool {
    match head.headers.get(header::CONTENT_LENGTH) {
        Some(length) => length.as_bytes() != b"0",
        None => head.headers.contains_key(header::TRANSFER_ENCODING) || head.version == Version::HTTP_2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_json_content_types_are_taken() {
        for (value, accepted) in [
            (None, true),
            (Some("application/json"), true),
            (Some("Application/JSON; charset=utf-8"), true),
            (Some("text/plain"), false),
            (Some("application/jsonx"), false),
            (Some(""), false),
        ] {
            let value = value.map(HeaderValue::from_static);
            assert_eq!(check_content_type(value.as_ref()).is_ok(), accepted, "{value:?}");
        }
    }

    #[test]
    fn every_period_must_bring_enough_and_starts_anew() {
        let pace = BodyPace { period: Duration::from_secs(10), bytes: 100 };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut progress = PeriodProgress { began: start, bytes: 0 };
        for (second, bytes, goes_on) in
            [(1, 1, true), (9, 1, true), (10, 98, true), (11, 0, true), (25, 100, true), (30, 9, true), (36, 90, false)]
        {
            assert_eq!(progress.goes_on(bytes, at(second), pace), goes_on, "second {second}");
        }
    }
}
