//! What a provider answered with a status of success, and what the client does not get: a guardrail denies it, it is of no
//! use, or another answer takes its place. It is paid for all the same. So, very likely, is a call that was sent whole and
//! that nobody heard an answer of.

use bytes::Bytes;

#[derive(Debug, Clone, Default)]
pub struct PaidAnswer {
    /// As far as it was read.
    pub read: Bytes,
    pub is_stream: bool,
    /// It is an error in spite of its status.
    pub is_error: bool,
    /// Nothing of it was heard: what the provider did is a guess.
    pub is_unheard: bool,
}

impl PaidAnswer {
    /// To a call that was sent whole.
    pub fn unheard() -> Self {
        Self { is_unheard: true, ..Self::default() }
    }

    /// As far as it was read.
    pub fn heard(read: Bytes, is_stream: bool) -> Self {
        Self { read, is_stream, ..Self::default() }
    }
}
