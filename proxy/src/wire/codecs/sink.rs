//! Events between codecs and framing: a codec writes the JSON of an event, a sink puts the frame around it.

/// One event of a stream, framing taken off.
#[derive(Debug, Clone, Copy)]
pub struct WireEvent<'a> {
    /// `event:` of server-sent events, `:event-type` of an AWS event stream.
    pub name: Option<&'a str>,
    pub data: &'a [u8],
}

pub trait EventSink {
    /// Begins an event; its data is appended to the returned buffer.
    fn begin(&mut self, name: Option<&str>) -> &mut Vec<u8>;
    fn end(&mut self);
}

/// Server-sent events. The data must have no line breaks, which JSON without white space has not.
#[derive(Debug, Default)]
pub struct SseSink {
    pub bytes: Vec<u8>,
}

impl EventSink for SseSink {
    fn begin(&mut self, name: Option<&str>) -> &mut Vec<u8> {
        if let Some(name) = name {
            self.bytes.extend_from_slice(b"event: ");
            self.bytes.extend_from_slice(name.as_bytes());
            self.bytes.push(b'\n');
        }
        self.bytes.extend_from_slice(b"data: ");
        &mut self.bytes
    }

    fn end(&mut self) {
        self.bytes.extend_from_slice(b"\n\n");
    }
}
