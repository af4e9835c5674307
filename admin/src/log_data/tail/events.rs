//! Server-sent events, as bytes.

use super::cursor::Cursor;
use bytes::Bytes;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A comment, which no client shows: the stream is alive.
pub const HEARTBEAT: &[u8] = b": heartbeat\n\n";

/// Logs that were left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Skipped {
    pub logs: u64,
    /// And nobody knows how many more.
    pub is_unknown: bool,
}

impl Skipped {
    pub const UNKNOWN: Self = Self { logs: 0, is_unknown: true };

    pub const fn is_none(self) -> bool {
        self.logs == 0 && !self.is_unknown
    }

    pub fn add(&mut self, more: Self) {
        self.logs = self.logs.saturating_add(more.logs);
        self.is_unknown |= more.is_unknown;
    }
}

/// The first bytes of a stream: who loses the connection before the first event resumes from here.
pub fn opening(cursor: Cursor) -> Bytes {
    format!(": following\nid: {cursor}\n\n").into()
}

/// JSON has no line breaks but those in its texts, which are escaped.
pub fn log(cursor: Cursor, row: &Value) -> String {
    format!("id: {cursor}\nevent: log\ndata: {row}\n\n")
}

/// How many logs are missing here; null when nobody knows.
pub fn gap(cursor: Cursor, skipped: Skipped) -> String {
    let count = (!skipped.is_unknown).then_some(skipped.logs);
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write!(text, "id: {cursor}\nevent: gap\ndata: {}\n\n", json!({ "skipped": count }));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line_of_data() {
        let cursor = Cursor { from: 1, settled: 2, number: 3, seconds: 4 };
        let row = json!({ "trace_id": "a\nb\r\u{2028}", "n": 1 });
        assert_eq!(log(cursor, &row), "id: 1-2-3-4\nevent: log\ndata: {\"trace_id\":\"a\\nb\\r\u{2028}\",\"n\":1}\n\n");
        let mut skipped = Skipped::default();
        skipped.add(Skipped { logs: 7, is_unknown: false });
        assert_eq!(gap(cursor, skipped), "id: 1-2-3-4\nevent: gap\ndata: {\"skipped\":7}\n\n");
        skipped.add(Skipped::UNKNOWN);
        assert!(gap(cursor, skipped).ends_with("data: {\"skipped\":null}\n\n"));
    }
}
