//! Where the bytes of an answer come from: a provider's connection, with or without frames around its events, or memory, for an answer that was kept or that the
//! gateway makes itself. Whoever delivers an answer does not know which.
//!
//! An enum and not a trait object, because it is asked for every piece of every answer.

use super::wire::WireDialect;
use crate::net::dial::{Upstream, UpstreamError};
use crate::runtime::memory::MemoryOwner;
use crate::wire::framing::{BadFrame, EventStream, JsonArray};
use bytes::Bytes;
use http::header;
use pingora_http::ResponseHeader;
use std::collections::VecDeque;

pub enum AnswerSource {
    /// A call whose head was read.
    Upstream(Upstream),
    /// In a box, as all that is rare, so that it makes the first kind no larger.
    Framed(Box<FramedAnswer>),
    Stored(Box<StoredAnswer>),
}

impl AnswerSource {
    /// A call of a target that speaks `wire`, and whether it was asked for a stream. The frames of an AWS event stream are
    /// taken off, and so is the list that Google's streams may be: what is read are server-sent events.
    pub fn new(upstream: Upstream, wire: WireDialect, is_stream: bool, owner: MemoryOwner<'_>) -> Self {
        let frames = match wire {
            WireDialect::Converse => is_kind(upstream.head(), b"application/vnd.amazon.eventstream")
                .then(|| AnswerFrames::EventStream(EventStream::new(owner))),
            WireDialect::Gemini if is_stream => {
                is_kind(upstream.head(), b"application/json").then(|| AnswerFrames::JsonArray(JsonArray::new(owner)))
            }
            _ => None,
        };
        match frames {
            Some(frames) => Self::Framed(Box::new(FramedAnswer { upstream, frames })),
            None => Self::Upstream(upstream),
        }
    }

    pub fn is_framed(&self) -> bool {
        matches!(self, Self::Framed(_))
    }

    pub fn head(&self) -> &ResponseHeader {
        match self {
            Self::Upstream(upstream) => upstream.head(),
            Self::Framed(framed) => framed.upstream.head(),
            Self::Stored(stored) => &stored.head,
        }
    }

    /// The head as the caller's own, for the one who writes it to the client.
    pub fn take_head(&mut self) -> ResponseHeader {
        match self {
            Self::Upstream(upstream) => upstream.take_head(),
            Self::Framed(framed) => framed.upstream.take_head(),
            Self::Stored(stored) => stored.take_head(),
        }
    }

    /// The next piece of the body, never an empty one; `None` when it is complete.
    pub async fn read_body(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        match self {
            Self::Upstream(upstream) => upstream.read_body().await,
            Self::Framed(framed) => framed.read_events().await,
            Self::Stored(stored) => Ok(stored.pieces.pop_front()),
        }
    }

    /// The whole body was read.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Upstream(upstream) => upstream.is_done(),
            Self::Framed(framed) => framed.upstream.is_done(),
            Self::Stored(stored) => stored.is_done(),
        }
    }

    /// From here on `read_body` undoes the compression of the answer, if it has one. The error names one that it cannot
    /// undo.
    pub fn inflate(&mut self, owner: MemoryOwner<'_>) -> Result<(), String> {
        match self {
            Self::Upstream(upstream) => upstream.inflate(Some(owner)),
            Self::Framed(framed) => framed.upstream.inflate(Some(owner)),
            Self::Stored(_) => Ok(()),
        }
    }

    /// Its bytes are compressed, and `read_body` leaves them so.
    pub fn is_encoded(&self) -> bool {
        match self {
            Self::Upstream(upstream) => upstream.is_encoded(),
            Self::Framed(framed) => framed.upstream.is_encoded(),
            Self::Stored(_) => false,
        }
    }

    /// Gives back the connection, if there is one that can serve again.
    pub fn release(self) {
        match self {
            Self::Upstream(upstream) => upstream.release(),
            Self::Framed(framed) => framed.upstream.release(),
            Self::Stored(_) => {}
        }
    }
}

impl From<StoredAnswer> for AnswerSource {
    fn from(stored: StoredAnswer) -> Self {
        Self::Stored(Box::new(stored))
    }
}

fn is_kind(head: &ResponseHeader, kind: &[u8]) -> bool {
    let stated = head.headers.get(header::CONTENT_TYPE);
    head.status.is_success() && stated.is_some_and(|stated| stated.as_bytes().starts_with(kind))
}

/// A provider's answer whose events stand in frames.
pub struct FramedAnswer {
    upstream: Upstream,
    frames: AnswerFrames,
}

enum AnswerFrames {
    EventStream(EventStream),
    JsonArray(JsonArray),
}

impl AnswerFrames {
    fn push(&mut self, piece: &[u8]) -> Result<Bytes, BadFrame> {
        match self {
            Self::EventStream(frames) => frames.push(piece),
            Self::JsonArray(list) => list.push(piece),
        }
    }

    fn is_cut(&self) -> bool {
        match self {
            Self::EventStream(frames) => frames.is_cut(),
            Self::JsonArray(list) => list.is_cut(),
        }
    }
}

impl FramedAnswer {
    async fn read_events(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        while let Some(piece) = self.upstream.read_body().await? {
            let events = self.frames.push(&piece).map_err(|why| match why {
                BadFrame::NoRoom(why) => UpstreamError::no_room(why),
                why => UpstreamError::protocol(why.to_string()),
            })?;
            if !events.is_empty() {
                return Ok(Some(events));
            }
        }
        match self.frames.is_cut() {
            true => Err(UpstreamError::protocol("it ends in the middle of a frame")),
            false => Ok(None),
        }
    }
}

/// An answer in memory: plain, or a stream, as its content type says. Never compressed.
#[derive(Debug, Clone)]
pub struct StoredAnswer {
    head: ResponseHeader,
    pieces: VecDeque<Bytes>,
}

impl StoredAnswer {
    /// Its head says no length. A plain answer has one piece; a stream is delivered piece by piece, wherever its events end.
    pub fn new(head: ResponseHeader, pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self { head, pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect() }
    }

    pub fn head(&self) -> &ResponseHeader {
        &self.head
    }

    /// Nothing of it is left to be read.
    pub fn is_done(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Leaves its status behind.
    fn take_head(&mut self) -> ResponseHeader {
        let (mut left, ()) = http::Response::new(()).into_parts();
        left.status = self.head.status;
        std::mem::replace(&mut self.head, left.into())
    }
}
