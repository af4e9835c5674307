//! The request body: bounded, timed, and counted against what all requests may hold together.

use crate::downstream::{ClientGone, Downstream};
use crate::refusal::Refusal;
use crate::within::within;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, header};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Memory that request bodies may take, shared by all requests of the process.
#[derive(Debug)]
pub struct BodyMemory {
    limit: usize,
    used: AtomicUsize,
}

impl BodyMemory {
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0) })
    }

    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

/// A share of `BodyMemory`, given back when dropped.
#[derive(Debug)]
pub struct Share<'m> {
    memory: &'m BodyMemory,
    bytes: usize,
}

impl<'m> Share<'m> {
    pub fn none(memory: &'m BodyMemory) -> Self {
        Self { memory, bytes: 0 }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), Refusal> {
        let before = self.memory.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        if before + bytes > self.memory.limit { Err(Refusal::overloaded()) } else { Ok(()) }
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub struct Body<'m> {
    pub bytes: Bytes,
    _share: Share<'m>,
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

impl From<ClientGone> for NotReceived {
    fn from(_: ClientGone) -> Self {
        Self::Gone
    }
}

pub struct Bounds<'a> {
    pub max_bytes: usize,
    pub timeout: Duration,
    pub memory: &'a BodyMemory,
}

pub async fn receive<'m>(client: &mut impl Downstream, bounds: &Bounds<'m>) -> Result<Body<'m>, NotReceived> {
    let headers = &client.head().headers;
    let announced = headers.get(header::CONTENT_LENGTH).and_then(content_length);
    if announced.is_some_and(|length| length > bounds.max_bytes) {
        return Err(Refusal::body_too_large(bounds.max_bytes).into());
    }
    if headers.get(header::EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        client.write_continue().await?;
    }
    match within(bounds.timeout, pin!(gather(client, bounds, announced))).await {
        Ok(received) => received,
        Err(_) => Err(Refusal::body_timeout().into()),
    }
}

async fn gather<'m>(
    client: &mut impl Downstream,
    bounds: &Bounds<'m>,
    announced: Option<usize>,
) -> Result<Body<'m>, NotReceived> {
    let mut share = Share::none(bounds.memory);
    let Some(first) = client.read_body().await? else {
        return Ok(Body { bytes: Bytes::new(), _share: share });
    };
    share.grow(first.len())?;
    if first.len() > bounds.max_bytes {
        return Err(Refusal::body_too_large(bounds.max_bytes).into());
    }
    // Most bodies arrive in one piece; only the others are copied together.
    if announced == Some(first.len()) {
        return Ok(Body { bytes: first, _share: share });
    }
    let mut whole = BytesMut::with_capacity(announced.unwrap_or(first.len() * 2).max(first.len()));
    whole.extend_from_slice(&first);
    while let Some(piece) = client.read_body().await? {
        share.grow(piece.len())?;
        if whole.len() + piece.len() > bounds.max_bytes {
            return Err(Refusal::body_too_large(bounds.max_bytes).into());
        }
        whole.extend_from_slice(&piece);
    }
    Ok(Body { bytes: whole.freeze(), _share: share })
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
    fn a_share_is_given_back_even_when_it_was_refused() {
        let memory = BodyMemory::new(10);
        let mut share = Share::none(&memory);
        assert!(share.grow(8).is_ok());
        assert!(share.grow(8).is_err());
        drop(share);
        assert_eq!(memory.used(), 0);
    }
}
