//! Server-sent events as they arrive, in pieces of any size. Only the data of an event is of interest here.

/// An event is longer than whoever reads would keep.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

#[derive(Debug)]
pub struct EventReader {
    line: Vec<u8>,
    data: String,
    most: usize,
}

impl EventReader {
    /// `most` bounds what is kept of an event that is not whole yet.
    pub fn new(most: usize) -> Self {
        Self { line: Vec::new(), data: String::new(), most }
    }

    /// The data of the events that this piece completes.
    pub fn push(&mut self, piece: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut whole = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            if self.line.len() + self.data.len() + part.len() > self.most {
                return Err(TooLong);
            }
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                whole.extend(self.end_line(&String::from_utf8_lossy(&line)));
            }
        }
        Ok(whole)
    }

    fn end_line(&mut self, line: &str) -> Option<String> {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some(data);
        }
        if let Some(data) = line.strip_prefix("data:") {
            if !self.data.is_empty() {
                self.data.push('\n');
            }
            self.data.push_str(data.strip_prefix(' ').unwrap_or(data));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_whatever_the_pieces() {
        let text = ": hello\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid: 7\ndata: two\n\n\n";
        for size in [1, 3, 1000] {
            let mut reader = EventReader::new(100);
            let pieces = text.as_bytes().chunks(size).map(|piece| reader.push(piece).unwrap());
            let events: Vec<String> = pieces.flatten().collect();
            assert_eq!(events, ["{\"a\":\n1}", "two"], "{size}");
        }
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut reader = EventReader::new(10);
        assert_eq!(reader.push(b"data: 0"), Ok(vec![]));
        assert_eq!(reader.push(b"123456"), Err(TooLong));
    }
}
