//! Why something could not be stored or read, in words that hold no secret.

use std::error::Error as _;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("there is no such object in the log store")]
    NotFound,
    #[error("the log store refuses its credentials or lacks a permission")]
    Refused,
    #[error("the name of an object is not possible")]
    Path,
    #[error("an object of the log store is longer than it may be")]
    TooLong,
    #[error("an object of the log store is damaged")]
    Damaged,
    #[error("the log store failed: {0}")]
    Away(String),
}

impl Error {
    /// The client's own words quote addresses, answers and what was signed; only what is surely harmless is kept.
    pub(super) fn from_store(error: &object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::NotFound,
            object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => Self::Refused,
            object_store::Error::InvalidPath { .. } => Self::Path,
            other => Self::Away(reason(other)),
        }
    }
}

/// The system's reason (a full disk, a refused connection) or the status that was answered.
fn reason(error: &object_store::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return io.kind().to_string();
        }
        cause = inner.source();
    }
    let text = error.to_string();
    let after = text.split_once("status code: ").map(|(_, rest)| rest);
    let status: String = after.unwrap_or_default().chars().take_while(char::is_ascii_digit).take(3).collect();
    match status.is_empty() {
        true => "it cannot be reached, or does not answer as it should".into(),
        false => format!("it answered {status}"),
    }
}
