//! What was answered, read as JSON or told as an error that repeats nothing of it.

use super::super::verdict::Verdict;
use serde_json::Value;
use std::fmt;

#[derive(Clone)]
pub struct RemoteAnswer {
    pub status: u16,
    /// At most `MAX_ANSWER`.
    pub body: Vec<u8>,
}

impl RemoteAnswer {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into() }
    }

    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The body of a success.
    pub fn json(&self) -> Result<Value, Box<Verdict>> {
        if !self.is_success() {
            return Err(
                Verdict::error("HttpError", format!("the service answered with the status {}", self.status)).into()
            );
        }
        match serde_json::from_slice(&self.body) {
            Ok(json) => Ok(json),
            Err(_) => Err(Self::senseless("it is not JSON").into()),
        }
    }

    pub fn senseless(why: &str) -> Verdict {
        Verdict::error("InvalidAnswer", format!("the service's answer cannot be used: {why}"))
    }
}

impl fmt::Debug for RemoteAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} bytes", self.status, self.body.len())
    }
}
