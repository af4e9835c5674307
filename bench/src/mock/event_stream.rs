//! AWS's framing of a stream: lengths, headers and payload, each guarded by a CRC32. The layout is
//! total length, header length, CRC of those eight bytes, headers, payload, CRC of everything before it.

use bytes::{BufMut, Bytes, BytesMut};

/// Lengths and the first checksum.
const PRELUDE: usize = 12;
const CHECKSUM: usize = 4;
/// A header's value is a string.
const STRING: u8 = 7;

/// An event of this kind with a JSON payload.
pub fn event(kind: &str, payload: &[u8]) -> Bytes {
    frame(&[(":event-type", kind), (":content-type", "application/json"), (":message-type", "event")], payload)
}

/// What ends a stream that fails.
pub fn exception(kind: &str, payload: &[u8]) -> Bytes {
    frame(&[(":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception")], payload)
}

/// Names and values are the mock's own and shorter than the 255 and 65,535 bytes that the layout allows.
fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Bytes {
    let mut written = BytesMut::new();
    for (name, value) in headers {
        written.put_u8(name.len() as u8);
        written.put_slice(name.as_bytes());
        written.put_u8(STRING);
        written.put_u16(value.len() as u16);
        written.put_slice(value.as_bytes());
    }
    let total = PRELUDE + written.len() + payload.len() + CHECKSUM;
    let mut frame = BytesMut::with_capacity(total);
    frame.put_u32(total as u32);
    frame.put_u32(written.len() as u32);
    frame.put_u32(crc32fast::hash(&frame));
    frame.put_slice(&written);
    frame.put_slice(payload);
    frame.put_u32(crc32fast::hash(&frame));
    frame.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// That botocore's own parser takes the frames is tested in `tests/clients/oracles`.
    #[test]
    fn the_bytes_are_those_of_the_layout() {
        let frame = frame(&[("a", "b")], b"{}");
        assert_eq!(frame.len(), 12 + 6 + 2 + 4);
        assert_eq!(frame[..8], [0, 0, 0, 24, 0, 0, 0, 6]);
        assert_eq!(frame[8..12], crc32fast::hash(&frame[..8]).to_be_bytes());
        assert_eq!(frame[12..20], *b"\x01a\x07\x00\x01b{}");
        assert_eq!(frame[20..], crc32fast::hash(&frame[..20]).to_be_bytes());
    }

    /// CRC32 as everyone else counts it.
    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xCBF4_3926);
    }
}
