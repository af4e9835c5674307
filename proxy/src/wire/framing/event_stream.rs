//! AWS event streams (`application/vnd.amazon.eventstream`): binary frames with checksums, of which each holds one event.
//! An event's type becomes the name of a server-sent event, its payload the data; an exception is an event of its name.
//!
//! A frame: length of the whole, length of the headers, checksum of these two, headers, payload, checksum of all before it.
//! Numbers are big-endian, checksums CRC-32.

use crate::runtime::memory::{HeldBytes, MemoryOwner, NoRoom};
use bytes::{Buf as _, Bytes};

/// A frame larger than this is no event of a model's; AWS itself allows as much.
pub(super) const MAX_SIZE: usize = 16 << 20;
pub(super) const PRELUDE: usize = 12;
pub(super) const CHECKSUM: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    #[error("a frame larger than {MAX_SIZE} bytes")]
    TooLarge,
    #[error("a frame whose lengths contradict each other")]
    Lengths,
    #[error("a frame whose checksum is wrong")]
    Checksum,
    #[error("a frame whose headers cannot be read")]
    Headers,
    #[error("a stream that is no list of objects")]
    List,
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// Gathers bytes into frames, whatever pieces they come in.
#[derive(Debug, Default)]
pub struct EventStream {
    held: HeldBytes,
    /// What came after a bad frame means nothing.
    failure: Option<BadFrame>,
}

impl EventStream {
    pub fn new(owner: MemoryOwner<'_>) -> Self {
        Self { held: HeldBytes::new(owner), failure: None }
    }

    /// The events of all frames that are whole now, as server-sent events. A bad frame is told when there are none before
    /// it, else the next time.
    pub fn push(&mut self, piece: &[u8]) -> Result<Bytes, BadFrame> {
        if let Err(why) = self.held.put(piece) {
            self.failure.get_or_insert(why.into());
        }
        let mut events = Vec::new();
        while self.failure.is_none() {
            match self.take_frame(&mut events) {
                Ok(true) => {}
                Ok(false) => break,
                Err(bad) => self.failure = Some(bad),
            }
        }
        match self.failure {
            Some(bad) if events.is_empty() => Err(bad),
            _ => Ok(Bytes::from(events)),
        }
    }

    /// Whether there was a whole one.
    fn take_frame(&mut self, events: &mut Vec<u8>) -> Result<bool, BadFrame> {
        match self.next_length()? {
            Some(length) if length <= self.held.len() => {
                let frame = self.held.split_to(length)?;
                write_event(&frame, events)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether half a frame is left, or one that was bad.
    pub fn is_cut(&self) -> bool {
        !self.held.is_empty() || self.failure.is_some()
    }

    /// How long the frame is that begins what is held, once its prelude is there and right.
    fn next_length(&self) -> Result<Option<usize>, BadFrame> {
        let Some(mut prelude) = self.held.get(..PRELUDE) else { return Ok(None) };
        let (length, headers) = (prelude.get_u32() as usize, prelude.get_u32() as usize);
        if crc32fast::hash(&self.held[..PRELUDE - CHECKSUM]) != prelude.get_u32() {
            return Err(BadFrame::Checksum);
        }
        if length > MAX_SIZE {
            return Err(BadFrame::TooLarge);
        }
        if length < PRELUDE + CHECKSUM || headers > length - PRELUDE - CHECKSUM {
            return Err(BadFrame::Lengths);
        }
        Ok(Some(length))
    }
}

/// Of a frame whose prelude is right.
fn write_event(frame: &[u8], out: &mut Vec<u8>) -> Result<(), BadFrame> {
    let (body, mut checksum) = frame.split_at(frame.len() - CHECKSUM);
    if crc32fast::hash(body) != checksum.get_u32() {
        return Err(BadFrame::Checksum);
    }
    let headers = (&body[4..8]).get_u32() as usize;
    let (headers, payload) = body[PRELUDE..].split_at(headers);
    let named = EventHeaders::read(headers)?;
    let name = match named.message {
        Some(b"exception") => named.exception,
        Some(b"error") => {
            write_error(&named, out);
            return Ok(());
        }
        _ => named.event,
    };
    out.extend_from_slice(b"event: ");
    write_line(name.unwrap_or_default(), out);
    out.extend_from_slice(b"\ndata: ");
    write_line(if payload.is_empty() { b"{}" } else { payload }, out);
    out.extend_from_slice(b"\n\n");
    Ok(())
}

/// A failure of the stream itself has no payload: its code and its words are headers.
fn write_error(named: &EventHeaders<'_>, out: &mut Vec<u8>) {
    let words = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
    out.extend_from_slice(b"event: ");
    write_line(named.code.unwrap_or(b"internalServer"), out);
    let ending: &[u8] = if named.code.is_some_and(|code| code.ends_with(b"Exception")) { b"" } else { b"Exception" };
    out.extend_from_slice(ending);
    out.extend_from_slice(b"\ndata: ");
    out.extend_from_slice(serde_json::json!({ "message": words(named.words) }).to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// A line break ends a line of a server-sent event; between the tokens of JSON a blank says the same.
fn write_line(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
}

/// The headers that say what a frame is.
#[derive(Default)]
struct EventHeaders<'f> {
    message: Option<&'f [u8]>,
    event: Option<&'f [u8]>,
    exception: Option<&'f [u8]>,
    code: Option<&'f [u8]>,
    words: Option<&'f [u8]>,
}

impl<'f> EventHeaders<'f> {
    fn read(mut bytes: &'f [u8]) -> Result<Self, BadFrame> {
        /// A text with its length before it.
        const TEXT: u8 = 7;
        let mut found = Self::default();
        while !bytes.is_empty() {
            let length = usize::from(take(&mut bytes, 1)?[0]);
            let name = take(&mut bytes, length)?;
            let kind = take(&mut bytes, 1)?[0];
            let length = match kind {
                0 | 1 => 0,
                2 => 1,
                3 => 2,
                4 => 4,
                5 | 8 => 8,
                6 | TEXT => usize::from(take(&mut bytes, 2)?.get_u16()),
                9 => 16,
                _ => return Err(BadFrame::Headers),
            };
            let value = take(&mut bytes, length)?;
            let slot = match name {
                b":message-type" => &mut found.message,
                b":event-type" => &mut found.event,
                b":exception-type" => &mut found.exception,
                b":error-code" => &mut found.code,
                b":error-message" => &mut found.words,
                _ => continue,
            };
            if kind == TEXT {
                *slot = Some(value);
            }
        }
        Ok(found)
    }
}

fn take<'f>(bytes: &mut &'f [u8], length: usize) -> Result<&'f [u8], BadFrame> {
    let (taken, rest) = bytes.split_at_checked(length).ok_or(BadFrame::Headers)?;
    *bytes = rest;
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(name: &str, value: &str) -> Vec<u8> {
        let mut bytes = vec![name.len() as u8];
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(7);
        bytes.extend_from_slice(&(value.len() as u16).to_be_bytes());
        bytes.extend_from_slice(value.as_bytes());
        bytes
    }

    fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
        let headers: Vec<u8> = headers.iter().flat_map(|(name, value)| header(name, value)).collect();
        let mut bytes = ((PRELUDE + headers.len() + payload.len() + CHECKSUM) as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&(headers.len() as u32).to_be_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes.extend_from_slice(&headers);
        bytes.extend_from_slice(payload.as_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
        bytes
    }

    fn stream() -> (Vec<u8>, &'static str) {
        let frames = [
            frame(&[(":message-type", "event"), (":event-type", "messageStart")], "{\"role\":\n\"assistant\"}"),
            frame(&[(":event-type", "metadata"), (":content-type", "application/json")], ""),
            frame(&[(":message-type", "exception"), (":exception-type", "throttlingException")], "{\"message\":\"m\"}"),
            frame(&[(":message-type", "error"), (":error-code", "Odd"), (":error-message", "say \"x\"")], ""),
        ];
        let events = "event: messageStart\ndata: {\"role\": \"assistant\"}\n\nevent: metadata\ndata: {}\n\n\
                      event: throttlingException\ndata: {\"message\":\"m\"}\n\n\
                      event: OddException\ndata: {\"message\":\"say \\\"x\\\"\"}\n\n";
        (frames.concat(), events)
    }

    #[test]
    fn frames_become_events_wherever_they_are_cut() {
        let (bytes, events) = stream();
        for cut in 0..=bytes.len() {
            let mut frames = EventStream::default();
            let first = frames.push(&bytes[..cut]).unwrap();
            let second = frames.push(&bytes[cut..]).unwrap();
            assert_eq!(String::from_utf8([first, second].concat()).unwrap(), events, "cut at {cut}");
            assert!(!frames.is_cut());
        }
        let mut frames = EventStream::default();
        frames.push(&bytes[..bytes.len() - 1]).unwrap();
        assert!(frames.is_cut());
    }

    /// The message without headers of the format's published examples.
    #[test]
    fn an_empty_message_is_as_published() {
        let published = [0, 0, 0, 16, 0, 0, 0, 0, 0x05, 0xc2, 0x48, 0xeb, 0x7d, 0x98, 0xc8, 0xff];
        assert_eq!(frame(&[], ""), published);
    }

    #[test]
    fn what_came_before_a_bad_frame_is_not_lost() {
        let good = frame(&[(":event-type", "x")], "{}");
        let mut bad = good.clone();
        bad[13] ^= 1;
        let mut frames = EventStream::default();
        assert_eq!(frames.push(&[good.clone(), bad].concat()).unwrap(), "event: x\ndata: {}\n\n");
        assert_eq!((frames.push(&good), frames.is_cut()), (Err(BadFrame::Checksum), true));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let good = frame(&[(":event-type", "x")], "{}");
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] ^= byte;
            EventStream::default().push(&bytes)
        };
        assert_eq!(with(3, 1), Err(BadFrame::Checksum), "a length");
        assert_eq!(with(good.len() - 6, 1), Err(BadFrame::Checksum), "a payload");
        let prelude = |length: u32, headers: u32| {
            let mut bytes = [length.to_be_bytes(), headers.to_be_bytes()].concat();
            bytes.extend_from_slice(&crc32fast::hash(&bytes).to_be_bytes());
            EventStream::default().push(&bytes)
        };
        assert_eq!(prelude(u32::MAX, 0), Err(BadFrame::TooLarge));
        assert_eq!(prelude(15, 0), Err(BadFrame::Lengths));
        assert_eq!(prelude(20, 5), Err(BadFrame::Lengths));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = EventStream::default().push(&bytes);
            let _ = EventHeaders::read(&bytes).is_ok();
        }
    }
}
