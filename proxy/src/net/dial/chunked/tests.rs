//! Chunked bodies, whole, in pieces and broken.

use super::*;
use proptest::prelude::*;

fn decode_in(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, usize), MalformedChunk> {
    let (mut chunks, mut buffer, mut out) = (Chunked::default(), BytesMut::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        out.extend_from_slice(&chunks.decode(&mut buffer)?);
    }
    Ok((out, chunks.is_done(), buffer.len()))
}

#[test]
fn chunks_are_read_as_the_standard_says() {
    for (wire, expected) in [
        ("5\r\nhello\r\n0\r\n\r\n", Ok(("hello", true, 0))),
        ("5;x=\"y\"\r\nhello\r\n00\r\nTrailer: t\r\n\r\n", Ok(("hello", true, 0))),
        ("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\nHTTP/1.1 200", Ok(("hello", true, 12))),
        ("A\r\n0123456789\r\n", Ok(("0123456789", false, 0))),
        ("5\r\nhel", Ok(("hel", false, 0))),
        ("0\r\n", Ok(("", false, 0))),
        ("5\nhello\r\n", Err(MalformedChunk)),
        ("5\r\nhelloX\r\n", Err(MalformedChunk)),
        ("-5\r\nhello", Err(MalformedChunk)),
        ("0x5\r\nhello", Err(MalformedChunk)),
        ("\r\nhello", Err(MalformedChunk)),
        ("ffffffffffffffffff\r\n", Err(MalformedChunk)),
        (" 5\r\nhello", Err(MalformedChunk)),
    ] {
        let found = decode_in(&[wire.as_bytes()]);
        let found = found.map(|(body, done, left)| (String::from_utf8(body).unwrap(), done, left));
        let found = found.as_ref().map(|(body, done, left)| (body.as_str(), *done, *left));
        assert_eq!(found, expected.as_ref().map(|found| *found), "{wire:?}");
    }
}

#[test]
fn endless_lines_and_trailers_are_refused() {
    let extension = format!("5;{}", "x".repeat(MAX_LINE));
    assert_eq!(decode_in(&[extension.as_bytes()]), Err(MalformedChunk));
    let trailers = format!("0\r\n{}", "a: b\r\n".repeat(MAX_TRAILERS));
    assert_eq!(decode_in(&[trailers.as_bytes()]), Err(MalformedChunk));
}

proptest! {
    #[test]
    fn any_split_gives_the_same_body(body in prop::collection::vec("[a-z]{1,9}", 0..6), cut in 0usize..100) {
        let mut wire: String = body.iter().map(|chunk| format!("{:x}\r\n{chunk}\r\n", chunk.len())).collect();
        wire.push_str("0\r\n\r\n");
        let cut = cut.min(wire.len());
        let (head, tail) = wire.as_bytes().split_at(cut);
        prop_assert_eq!(decode_in(&[head, tail]), Ok((body.concat().into_bytes(), true, 0)));
        let bytes: Vec<&[u8]> = wire.as_bytes().chunks(1).collect();
        prop_assert_eq!(decode_in(&bytes), Ok((body.concat().into_bytes(), true, 0)));
    }
}
