//! The `id` of an event: where to go on after it, on any admin.

use crate::http::ApiError;
use std::fmt;

/// Every arrival behind it is either of a transaction that was not over when its event was made (`settled`), or came in the
/// same look at arrivals (`from`) with a higher number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub from: i64,
    pub settled: i64,
    pub number: i64,
    /// When, in seconds since 1970.
    pub seconds: i64,
}

impl Cursor {
    /// As a client sends it back.
    pub fn parse(text: &str) -> Result<Self, ApiError> {
        let wrong = || ApiError::field("Last-Event-ID", "must be the id of an event of this operation");
        let mut parts = text.split('-').map(|part| match part.bytes().all(|byte| byte.is_ascii_digit()) {
            true => part.parse().map_err(|_| wrong()),
            false => Err(wrong()),
        });
        let mut next = || parts.next().ok_or_else(wrong)?;
        let cursor = Self { from: next()?, settled: next()?, number: next()?, seconds: next()? };
        match parts.next() {
            None => Ok(cursor),
            Some(_) => Err(wrong()),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}-{}", self.from, self.settled, self.number, self.seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_nothing_else_is_one() {
        let cursor = Cursor { from: 7, settled: 9, number: 41, seconds: 1_768_473_000 };
        assert_eq!(cursor.to_string(), "7-9-41-1768473000");
        assert_eq!(Cursor::parse("7-9-41-1768473000").unwrap(), cursor);
        for wrong in
            ["", "7", "7-9-41", "7-9-41-1-1", "7-9--1-1", "7-9-x-1", "+7-9-41-1", "99999999999999999999-9-41-1"]
        {
            assert!(Cursor::parse(wrong).is_err(), "{wrong}");
        }
    }
}
