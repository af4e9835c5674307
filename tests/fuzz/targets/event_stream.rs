//! Frames of AWS are the same events in whatever pieces they come. Arbitrary bytes hardly ever have a right checksum, so
//! they are also tried as the headers and the payload of frames that have.
#![no_main]

use fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use proxy::wire::framing::{BadFrame, EventStream};
use proxy::wire::sse::events;

fuzz_target!(|data: &[u8]| {
    let (whole, _) = pieces(data);
    let framed: Vec<u8> = whole.split(|byte| *byte == b'|').flat_map(frame).collect();
    let length = usize::from(data.first().copied().unwrap_or_default() % 64) + 1;
    for bytes in [whole, &framed] {
        let in_pieces = told(bytes.chunks(length));
        assert_eq!(in_pieces, told(std::iter::once(bytes)));
        let _ = events(&in_pieces.0).count();
    }
});

fn told<'p>(parts: impl Iterator<Item = &'p [u8]>) -> (Vec<u8>, Option<BadFrame>) {
    let (mut stream, mut out) = (EventStream::default(), Vec::new());
    for part in parts {
        match stream.push(part) {
            Ok(events) => out.extend_from_slice(&events),
            Err(bad) => return (out, Some(bad)),
        }
    }
    // Whatever stood before a bad frame was told first.
    let bad = stream.push(b"").err();
    (out, bad)
}

/// Headers up to the first `;`, then the payload.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == b';').unwrap_or(0);
    let (headers, payload) = bytes.split_at(end);
    let length = u32::try_from(16 + bytes.len()).expect("it is short");
    let mut frame = length.to_be_bytes().to_vec();
    frame.extend_from_slice(&u32::try_from(headers.len()).expect("it is short").to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}
