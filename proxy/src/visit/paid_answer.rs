//! What a provider answered with a status of success, and what the client does not get: a guardrail denies it, it is of no
//! use, or another answer takes its place. It is paid for all the same.

use bytes::Bytes;

#[derive(Debug, Clone)]
pub struct PaidAnswer {
    /// As far as it was read.
    pub read: Bytes,
    pub is_stream: bool,
    /// It is an error in spite of its status.
    pub is_error: bool,
}
