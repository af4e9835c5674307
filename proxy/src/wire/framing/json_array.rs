//! A stream that is one JSON list, as Google sends it where nobody asks for server-sent events: each object of the list
//! becomes an event. A body that is one object and no list is one event.

use super::event_stream::{BadFrame, MAX_SIZE};
use crate::runtime::memory::{HeldSize, MemoryOwner, SMALL};
use bytes::Bytes;

/// Finds the objects, whatever pieces the list comes in. Nothing is parsed: brackets and texts are followed.
#[derive(Debug, Default)]
pub struct JsonArray {
    /// The object that has begun.
    object: Vec<u8>,
    size: HeldSize,
    depth: usize,
    is_in_text: bool,
    is_escaped: bool,
    list: ListState,
    /// What came after something that is no list means nothing.
    failure: Option<BadFrame>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum ListState {
    #[default]
    Nothing,
    Open,
    Closed,
}

impl JsonArray {
    pub fn new(owner: MemoryOwner<'_>) -> Self {
        Self { size: HeldSize::new(owner), ..Self::default() }
    }

    /// The objects that are whole now, as server-sent events. What is no list is told when there are none before it, else
    /// the next time.
    pub fn push(&mut self, piece: &[u8]) -> Result<Bytes, BadFrame> {
        let mut events = Vec::new();
        for byte in piece {
            if self.failure.is_some() {
                break;
            }
            if let Err(bad) = self.take(*byte, &mut events) {
                self.failure = Some(bad);
            }
        }
        if let Err(why) = self.size.set(self.object.capacity()) {
            self.failure.get_or_insert(why.into());
        }
        match self.failure {
            Some(bad) if events.is_empty() => Err(bad),
            _ => Ok(Bytes::from(events)),
        }
    }

    /// Whether half an object is left, or the list has no end.
    pub fn is_cut(&self) -> bool {
        self.depth > 0 || self.list == ListState::Open || self.failure.is_some()
    }

    fn take(&mut self, byte: u8, events: &mut Vec<u8>) -> Result<(), BadFrame> {
        if self.depth == 0 {
            return self.between(byte);
        }
        if self.object.len() >= MAX_SIZE {
            return Err(BadFrame::TooLarge);
        }
        // A line break ends a line of an event; between the tokens of JSON a blank says the same.
        self.object.push(if matches!(byte, b'\n' | b'\r') { b' ' } else { byte });
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.is_in_text => self.is_escaped = true,
            b'"' => self.is_in_text = !self.is_in_text,
            _ if self.is_in_text => {}
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
        if self.depth == 0 {
            events.extend_from_slice(b"data: ");
            events.append(&mut self.object);
            self.object.shrink_to(SMALL);
            events.extend_from_slice(b"\n\n");
        }
        Ok(())
    }

    fn between(&mut self, byte: u8) -> Result<(), BadFrame> {
        match (byte, &self.list) {
            (b' ' | b'\t' | b'\n' | b'\r', _) => {}
            (b'{', ListState::Nothing | ListState::Open) => {
                self.object.push(b'{');
                self.depth = 1;
            }
            (b'[', ListState::Nothing) => self.list = ListState::Open,
            (b',', ListState::Open) => {}
            (b']', ListState::Open) => self.list = ListState::Closed,
            _ => return Err(BadFrame::List),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str = "[{\n  \"a\": \"]}\\\"[\",\r\n  \"b\": [{}, []]\n}\n,\r\n{\"c\":\"é\"}\n]\n";
    const EVENTS: &str = "data: {   \"a\": \"]}\\\"[\",    \"b\": [{}, []] }\n\ndata: {\"c\":\"é\"}\n\n";

    #[test]
    fn objects_become_events_wherever_the_list_is_cut() {
        for cut in 0..=LIST.len() {
            let mut list = JsonArray::default();
            let first = list.push(&LIST.as_bytes()[..cut]).unwrap();
            let second = list.push(&LIST.as_bytes()[cut..]).unwrap();
            assert_eq!(String::from_utf8([first, second].concat()).unwrap(), EVENTS, "cut at {cut}");
            assert!(!list.is_cut());
        }
    }

    #[test]
    fn what_is_cut_or_no_list_is_told() {
        for (text, expected, is_cut) in [
            ("{\"x\":1}", Ok("data: {\"x\":1}\n\n"), false),
            ("[]", Ok(""), false),
            ("[{\"x\":1}", Ok("data: {\"x\":1}\n\n"), true),
            ("[{\"x\":", Ok(""), true),
            ("[1]", Err(BadFrame::List), true),
            ("<html>", Err(BadFrame::List), true),
            ("[][", Err(BadFrame::List), true),
        ] {
            let mut list = JsonArray::default();
            let read = list.push(text.as_bytes());
            assert_eq!(read, expected.map(|text| Bytes::copy_from_slice(text.as_bytes())), "{text}");
            assert_eq!(list.is_cut(), is_cut, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut list = JsonArray::default();
            let _ = list.push(&bytes);
            let _ = list.is_cut();
        }
    }
}
