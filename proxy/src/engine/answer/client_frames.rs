//! How a client takes a stream: as server-sent events, which is what everything before this works with, or in the frames
//! of a vendor's own interface, which are put around the events at the very end. Logs keep the events.

use crate::wire::framing::write_frame;
use crate::wire::sse;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamFrames {
    #[default]
    Events,
    /// One JSON list, an entry for each event: Google's streams, unless events are asked for.
    JsonArray,
    /// AWS's binary frames.
    EventStream,
}

impl StreamFrames {
    const fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream; charset=utf-8",
            Self::JsonArray => "application/json; charset=UTF-8",
            Self::EventStream => "application/vnd.amazon.eventstream",
        }
    }

    pub fn write_content_type(self, headers: &mut HeaderMap) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type()));
    }
}

/// Puts the frames around the events of one stream.
#[derive(Debug)]
pub struct Framer {
    frames: StreamFrames,
    has_begun: bool,
}

impl Framer {
    pub fn new(frames: StreamFrames) -> Self {
        Self { frames, has_begun: false }
    }

    pub fn frames(&self) -> StreamFrames {
        self.frames
    }

    /// Whole events, the last of which may lack its blank line; `is_end` when no more will come.
    pub fn push(&mut self, events: Bytes, is_end: bool) -> Bytes {
        let mut out = Vec::with_capacity(events.len() + 64);
        match self.frames {
            StreamFrames::Events => return events,
            StreamFrames::JsonArray => {
                for event in sse::events(&sse::with_blank_line(events)) {
                    self.separate(&mut out);
                    out.extend_from_slice(&event.data);
                }
                if is_end {
                    if !self.has_begun {
                        out.push(b'[');
                    }
                    out.push(b']');
                }
            }
            StreamFrames::EventStream => {
                for event in sse::events(&sse::with_blank_line(events)) {
                    write_frame(event.name.as_deref().unwrap_or_default(), &event.data, &mut out);
                }
            }
        }
        Bytes::from(out)
    }

    fn separate(&mut self, out: &mut Vec<u8>) {
        match std::mem::replace(&mut self.has_begun, true) {
            false => out.push(b'['),
            true => out.extend_from_slice(b",\r\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::framing::EventStream;

    const EVENTS: &[u8] = b"event: a\ndata: {\"x\":1}\n\ndata: {\"y\":2}\n\n";

    fn framed(frames: StreamFrames, pieces: &[(&'static [u8], bool)]) -> Vec<u8> {
        let mut framer = Framer::new(frames);
        pieces.iter().flat_map(|(events, is_end)| framer.push(Bytes::from_static(events), *is_end)).collect()
    }

    #[test]
    fn a_list_is_whole_json_however_its_events_come() {
        for pieces in [
            vec![(EVENTS, true)],
            vec![(EVENTS, false), (&b""[..], true)],
            vec![(&EVENTS[..24], false), (&EVENTS[24..], false), (&b""[..], true)],
        ] {
            let list: serde_json::Value = serde_json::from_slice(&framed(StreamFrames::JsonArray, &pieces)).unwrap();
            assert_eq!(list, serde_json::json!([{ "x": 1 }, { "y": 2 }]), "{pieces:?}");
        }
        assert_eq!(framed(StreamFrames::JsonArray, &[(b"", true)]), b"[]");
        assert_eq!(framed(StreamFrames::Events, &[(EVENTS, true)]), EVENTS);
    }

    #[test]
    fn frames_of_aws_are_what_its_readers_take_off() {
        let events: &[u8] = b"event: messageStart\ndata: {\"role\":\"assistant\"}\n\nevent: throttlingException\ndata: {\"message\":\"m\"}";
        let bytes = framed(StreamFrames::EventStream, &[(events, false), (b"", true)]);
        let read = EventStream::default().push(&bytes).unwrap();
        assert_eq!(read, [events, b"\n\n"].concat());
        assert!(bytes.windows(9).any(|part| part == b"exception"));
    }
}
