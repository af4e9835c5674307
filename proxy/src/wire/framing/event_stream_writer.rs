//! Events as frames of an AWS event stream, for clients that read nothing else. The layout stands in `event_stream`.

use super::event_stream::{CHECKSUM, PRELUDE};

/// One frame. What is named like an exception is one: clients raise it.
pub fn write_frame(name: &str, payload: &[u8], out: &mut Vec<u8>) {
    let (kind, named) = match name.ends_with("Exception") {
        true => ("exception", ":exception-type"),
        false => ("event", ":event-type"),
    };
    let mut headers = Vec::with_capacity(96);
    for (header, value) in [(named, name), (":content-type", "application/json"), (":message-type", kind)] {
        write_header(header, value, &mut headers);
    }
    let length = PRELUDE + headers.len() + payload.len() + CHECKSUM;
    let start = out.len();
    out.reserve(length);
    out.extend_from_slice(&number(length));
    out.extend_from_slice(&number(headers.len()));
    write_checksum(start, out);
    out.extend_from_slice(&headers);
    out.extend_from_slice(payload);
    write_checksum(start, out);
}

/// Of everything from `start` on.
fn write_checksum(start: usize, out: &mut Vec<u8>) {
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_be_bytes());
}

/// Names of events are short; of a longer one the beginning stays.
fn write_header(name: &str, value: &str, out: &mut Vec<u8>) {
    const TEXT: u8 = 7;
    let value = &value.as_bytes()[..value.len().min(255)];
    out.push(name.len() as u8);
    out.extend_from_slice(name.as_bytes());
    out.push(TEXT);
    out.extend_from_slice(&(value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
}

/// An event is never as long as a number of four bytes can say.
fn number(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::framing::EventStream;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(name in "[a-zA-Z]{1,40}", text in "[^\r\n]{0,200}") {
            let payload = serde_json::json!({ "text": text }).to_string();
            let mut bytes = Vec::new();
            write_frame(&name, payload.as_bytes(), &mut bytes);
            let read = EventStream::default().push(&bytes).unwrap();
            prop_assert_eq!(read, format!("event: {name}\ndata: {payload}\n\n"));
        }
    }
}
