//! What is wrong with the checks that somebody wrote, and where.

use crate::nearest::nearest;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: FaultKind,
    /// As `[0].parameters.rule`: from the list of checks on.
    pub path: String,
    /// What is allowed there.
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    WrongType,
    Missing,
    Empty,
    UnknownName,
    NotOneOf,
    OutOfRange,
    TooMany,
    /// An entry that is both allowed and blocked.
    Exclusive,
    /// A pattern, a schema or an address that cannot be used.
    Unusable,
}

impl Fault {
    pub fn new(kind: FaultKind, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, path: path.into(), message: message.into() }
    }

    /// A name that nobody knows, with the one that was probably meant.
    pub fn unknown<'a>(path: String, what: &str, sent: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let meant = nearest(sent, known).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        Self::new(FaultKind::UnknownName, path, format!("is not {what}{meant}"))
    }

    /// The same fault, seen from further outside.
    #[must_use]
    pub fn under(mut self, path: &str) -> Self {
        let joint = if self.path.is_empty() || self.path.starts_with('[') || path.is_empty() { "" } else { "." };
        self.path = format!("{path}{joint}{}", self.path);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path, self.message)
    }
}
