//! Where the bytes of an answer come from: a provider's connection, or memory, for an answer that was kept or that the
//! gateway makes itself. Whoever delivers an answer does not know which. Only tests make a `StoredAnswer` yet; a cache would
//! return one in `walk::attempts::exchange`, after admission and before the attempts.
//!
//! An enum and not a trait object, because it is asked for every piece of every answer.

use crate::net::dial::{Upstream, UpstreamError};
use bytes::Bytes;
use pingora_http::ResponseHeader;
use std::collections::VecDeque;

pub enum AnswerSource {
    /// A call whose head was read.
    Upstream(Upstream),
    /// In a box, so that it makes the other kind no larger.
    Stored(Box<StoredAnswer>),
}

impl AnswerSource {
    pub fn head(&self) -> &ResponseHeader {
        match self {
            Self::Upstream(upstream) => upstream.head(),
            Self::Stored(stored) => &stored.head,
        }
    }

    /// The head as the caller's own, for the one who writes it to the client.
    pub fn take_head(&mut self) -> ResponseHeader {
        match self {
            Self::Upstream(upstream) => upstream.take_head(),
            Self::Stored(stored) => stored.head.clone(),
        }
    }

    /// The next piece of the body, never an empty one; `None` when it is complete.
    pub async fn read_body(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        match self {
            Self::Upstream(upstream) => upstream.read_body().await,
            Self::Stored(stored) => Ok(stored.pieces.pop_front()),
        }
    }

    /// The whole body was read.
    pub fn is_done(&self) -> bool {
        match self {
            Self::Upstream(upstream) => upstream.is_done(),
            Self::Stored(stored) => stored.pieces.is_empty(),
        }
    }

    /// From here on `read_body` undoes the compression of the answer, if it has one. The error names one that it cannot
    /// undo.
    pub fn inflate(&mut self) -> Result<(), String> {
        match self {
            Self::Upstream(upstream) => upstream.inflate(),
            Self::Stored(_) => Ok(()),
        }
    }

    /// Its bytes are compressed, and `read_body` leaves them so.
    pub fn is_encoded(&self) -> bool {
        match self {
            Self::Upstream(upstream) => upstream.is_encoded(),
            Self::Stored(_) => false,
        }
    }

    /// Gives back the connection, if there is one that can serve again.
    pub fn release(self) {
        match self {
            Self::Upstream(upstream) => upstream.release(),
            Self::Stored(_) => {}
        }
    }
}

impl From<Upstream> for AnswerSource {
    fn from(upstream: Upstream) -> Self {
        Self::Upstream(upstream)
    }
}

impl From<StoredAnswer> for AnswerSource {
    fn from(stored: StoredAnswer) -> Self {
        Self::Stored(Box::new(stored))
    }
}

/// An answer in memory: plain, or a stream, as its content type says. Never compressed.
#[derive(Debug, Clone)]
pub struct StoredAnswer {
    head: ResponseHeader,
    pieces: VecDeque<Bytes>,
}

impl StoredAnswer {
    /// A plain answer has one piece; a stream is delivered piece by piece, wherever its events end.
    pub fn new(head: ResponseHeader, pieces: impl IntoIterator<Item = Bytes>) -> Self {
        Self { head, pieces: pieces.into_iter().filter(|piece| !piece.is_empty()).collect() }
    }
}
