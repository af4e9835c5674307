//! The chunked coding gives the same body in whatever pieces it arrives, and ends at the same byte.
#![no_main]

use bytes::BytesMut;
use fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use proxy::fuzzing::Chunked;

/// The body, whether it is complete, and what was left over; none when it is malformed.
fn decode<'d>(pieces: impl Iterator<Item = &'d [u8]>) -> Option<(Vec<u8>, bool, Vec<u8>)> {
    let (mut chunked, mut buffer, mut body) = (Chunked::default(), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        body.extend_from_slice(&chunked.decode(&mut buffer).ok()?);
    }
    Some((body, chunked.is_done(), buffer.to_vec()))
}

fuzz_target!(|data: &[u8]| {
    let (whole, parts) = pieces(data);
    let at_once = decode(std::iter::once(whole));
    assert_eq!(decode(parts), at_once);
    if let Some((body, _, left)) = at_once {
        assert!(body.len() + left.len() <= whole.len());
    }
});
