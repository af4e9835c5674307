//! Server-sent events, byte by byte: any split, `\n`, `\r\n` and `\r` line ends, multi-line data, comments.
//!
//! `Splitter` passes on only whole events, as the bytes that came. A client cannot use half an event anyway, and
//! holding the half back means that a stream can always be ended with a well-formed error event.

use crate::runtime::memory::{HeldBytes, MemoryOwner, NoRoom};
use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use std::borrow::Cow;

/// An event larger than this is not a provider's answer any more.
pub const MAX_EVENT: usize = 16 << 20;

/// Why an event is not waited for any longer.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unheld {
    #[error("an event larger than {MAX_EVENT} bytes")]
    TooLarge,
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

#[derive(Debug)]
pub struct Splitter {
    held: HeldBytes,
    /// The line being read has no byte yet.
    line_is_empty: bool,
    /// The last byte seen was a `\r` that ended a line; a `\n` right after belongs to it.
    after_cr: bool,
    /// That `\r` also ended an event.
    cr_ended_event: bool,
}

/// For events that the gateway itself has made.
impl Default for Splitter {
    fn default() -> Self {
        Self { held: HeldBytes::default(), line_is_empty: true, after_cr: false, cr_ended_event: false }
    }
}

impl Splitter {
    pub fn new(owner: MemoryOwner<'_>) -> Self {
        Self { held: HeldBytes::new(owner), ..Self::default() }
    }

    /// The bytes up to the end of the last whole event; empty when no event has ended.
    pub fn push(&mut self, chunk: Bytes) -> Result<Bytes, Unheld> {
        let Some(end) = self.last_event_end(&chunk) else {
            self.hold(&chunk)?;
            return Ok(Bytes::new());
        };
        if self.held.is_empty() && end == chunk.len() {
            return Ok(chunk);
        }
        let whole = if self.held.is_empty() {
            chunk.slice(..end)
        } else {
            let mut whole = self.held.take();
            whole.extend_from_slice(&chunk[..end]);
            whole.freeze()
        };
        self.hold(&chunk[end..])?;
        Ok(whole)
    }

    /// What came after the last whole event. A stream may end without its final blank line.
    pub fn rest(&mut self) -> Bytes {
        self.held.take().freeze()
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), Unheld> {
        if self.held.len() + bytes.len() > MAX_EVENT {
            return Err(Unheld::TooLarge);
        }
        if bytes.is_empty() {
            return Ok(());
        }
        Ok(self.held.put(bytes)?)
    }

    fn last_event_end(&mut self, chunk: &[u8]) -> Option<usize> {
        let mut end_of_event = None;
        let mut at = 0;
        if self.after_cr && chunk.first() == Some(&b'\n') {
            at = 1;
            if self.cr_ended_event {
                end_of_event = Some(1);
            }
        }
        if !chunk.is_empty() {
            self.after_cr = false;
        }
        while let Some(offset) = memchr2(b'\n', b'\r', &chunk[at..]) {
            let newline = at + offset;
            let ends_event = self.line_is_empty && offset == 0;
            let is_cr = chunk[newline] == b'\r';
            at = newline + 1;
            if is_cr && chunk.get(at) == Some(&b'\n') {
                at += 1;
            } else if is_cr && at == chunk.len() {
                self.after_cr = true;
                self.cr_ended_event = ends_event;
            }
            if ends_event {
                end_of_event = Some(at);
            }
            self.line_is_empty = true;
        }
        if at < chunk.len() {
            self.line_is_empty = false;
        }
        end_of_event
    }
}

/// Whole events, the last of which may lack what ends it: the same with that.
pub fn with_blank_line(events: Bytes) -> Bytes {
    if events.is_empty() || [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].iter().any(|blank| events.ends_with(blank)) {
        return events;
    }
    let mut whole = BytesMut::from(events.as_ref());
    whole.extend_from_slice(b"\n\n");
    whole.freeze()
}

/// One event as a client would see it.
#[derive(Debug, PartialEq, Eq)]
pub struct SseEvent<'a> {
    pub name: Option<Cow<'a, str>>,
    /// The `data` lines, joined by `\n`.
    pub data: Cow<'a, [u8]>,
}

/// The events inside whole-event bytes. Comments and blocks without data yield nothing.
pub fn events(mut bytes: &[u8]) -> impl Iterator<Item = SseEvent<'_>> {
    if let Some(rest) = bytes.strip_prefix(b"\xef\xbb\xbf") {
        bytes = rest;
    }
    std::iter::from_fn(move || {
        let mut name = None;
        let mut data: Option<Cow<'_, [u8]>> = None;
        while let Some((line, rest)) = next_line(bytes) {
            bytes = rest;
            if line.is_empty() {
                match data {
                    Some(data) => return Some(SseEvent { name, data }),
                    None => name = None,
                }
                continue;
            }
            let (field, value) = split_field(line);
            match field {
                b"event" => name = Some(String::from_utf8_lossy(value)),
                b"data" => match &mut data {
                    None => data = Some(Cow::Borrowed(value)),
                    Some(joined) => {
                        let joined = joined.to_mut();
                        joined.push(b'\n');
                        joined.extend_from_slice(value);
                    }
                },
                _ => {}
            }
        }
        None
    })
}

/// The same as the bytes they came in, comments and what lacks its blank line included.
pub fn raw_events(bytes: &Bytes) -> Vec<Bytes> {
    let mut found = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some((line, rest)) = next_line(&bytes[at..]) {
        at = bytes.len() - rest.len();
        if line.is_empty() {
            found.push(bytes.slice(start..at));
            start = at;
        }
    }
    if start < bytes.len() {
        found.push(bytes.slice(start..));
    }
    found
}

fn next_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let newline = memchr2(b'\n', b'\r', bytes)?;
    let is_crlf = bytes[newline] == b'\r' && bytes.get(newline + 1) == Some(&b'\n');
    let next = newline + if is_crlf { 2 } else { 1 };
    Some((&bytes[..newline], &bytes[next..]))
}

fn split_field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', line) {
        None => (line, b""),
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(stream: &[u8]) -> Vec<(Option<String>, Vec<u8>)> {
        events(stream).map(|event| (event.name.map(Cow::into_owned), event.data.into_owned())).collect()
    }

    fn split_at(stream: &[u8], cuts: &[usize]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut splitter = Splitter::default();
        let mut out = Vec::new();
        let mut from = 0;
        for &cut in cuts.iter().chain([&stream.len()]) {
            out.push(splitter.push(Bytes::copy_from_slice(&stream[from..cut])).unwrap().to_vec());
            from = cut;
        }
        (out, splitter.rest().to_vec())
    }

    #[test]
    fn fields_are_read_as_the_standard_says() {
        for (stream, expected) in [
            ("data: a\n\n", vec![(None, "a")]),
            ("data:a\ndata: b\n\n", vec![(None, "a\nb")]),
            ("event: x\r\ndata: {}\r\n\r\n", vec![(Some("x"), "{}")]),
            (": comment\n\ndata: a\r\rdata: b\n\n", vec![(None, "a"), (None, "b")]),
            ("event: dropped\n\ndata\n\n", vec![(None, "")]),
            ("\u{feff}data: a\n\nid: 1\nretry: 2\n\n", vec![(None, "a")]),
            ("data: unfinished\n", vec![]),
        ] {
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(n, d): (Option<&str>, &str)| (n.map(str::to_owned), d.as_bytes().to_vec()))
                .collect();
            assert_eq!(read(stream.as_bytes()), expected, "{stream:?}");
        }
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut splitter = Splitter::default();
        let mebibyte = Bytes::from(vec![b'x'; 1 << 20]);
        let refused = (0..17).map(|_| splitter.push(mebibyte.clone())).find_map(Result::err);
        assert_eq!(refused, Some(Unheld::TooLarge));
    }

    fn a_stream() -> impl Strategy<Value = Vec<u8>> {
        let line =
            prop_oneof!["data: ?[a-zé€]{0,6}", "event: [a-z]{1,3}", ": [a-z]{0,4}", "[a-z]{0,3}", Just(String::new())];
        let newline = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
        prop::collection::vec((line, newline), 0..24)
            .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| (line + end).into_bytes()).collect())
    }

    proptest! {
        #[test]
        fn whatever_the_split_the_same_bytes_and_events_come_out_and_no_event_is_broken(stream in a_stream()) {
            let whole = read(&stream);
            for cut in 0..=stream.len() {
                let (parts, rest) = split_at(&stream, &[cut]);
                let joined: Vec<u8> = parts.iter().flatten().chain(&rest).copied().collect();
                prop_assert_eq!(&joined, &stream);
                let passed: Vec<_> = parts.iter().flat_map(|part| read(part)).collect();
                prop_assert_eq!(&passed, &whole, "cut at {}", cut);
            }
            let every: Vec<usize> = (0..stream.len()).collect();
            let (parts, rest) = split_at(&stream, &every);
            let joined: Vec<u8> = parts.iter().flatten().chain(&rest).copied().collect();
            prop_assert_eq!(&joined, &stream);
            let passed: Vec<_> = parts.iter().flat_map(|part| read(part)).collect();
            prop_assert_eq!(&passed, &whole);
        }
    }
}
