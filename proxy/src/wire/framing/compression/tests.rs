//! Compressed answers as they arrive in pieces.

use super::*;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use http::HeaderValue;

const ALL: [ContentEncoding; 4] =
    [ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Brotli, ContentEncoding::Zstd];
const TEXT: &[u8] = br#"data: {"usage":{"prompt_tokens":7}}"#;

fn compressed(encoding: ContentEncoding, text: &[u8]) -> Vec<u8> {
    match encoding {
        ContentEncoding::Gzip => {
            let mut out = GzEncoder::new(Vec::new(), Compression::default());
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        ContentEncoding::Deflate => {
            let mut out = ZlibEncoder::new(Vec::new(), Compression::default());
            out.write_all(text).unwrap();
            out.finish().unwrap()
        }
        ContentEncoding::Zstd => zstd::encode_all(text, 1).unwrap(),
        ContentEncoding::Brotli => stored_brotli(text),
    }
}

/// A window of 16 bits, one uncompressed block, and the empty last one (RFC 7932, 9.2).
fn stored_brotli(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len() - 1).unwrap();
    // Bits, lowest first: WBITS 0; ISLAST 0; MNIBBLES 00; MLEN - 1 in 16 bits; ISUNCOMPRESSED 1.
    let bits: u32 = (length << 4) | (1 << 20);
    let mut out = bits.to_le_bytes()[..3].to_vec();
    out.extend_from_slice(text);
    out.push(0b11);
    out
}

fn decoded(encoding: ContentEncoding, bytes: &[u8], step: usize) -> io::Result<Vec<u8>> {
    let mut decoder = Decoder::new(encoding, HeldSize::default());
    let mut text = Vec::new();
    for piece in bytes.chunks(step) {
        text.extend_from_slice(&decoder.push(piece, false)?);
    }
    text.extend_from_slice(&decoder.push(&[], true)?);
    Ok(text)
}

#[test]
fn what_was_compressed_comes_back_however_it_is_cut() {
    let long: Vec<u8> = (0..12_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
    for encoding in ALL {
        for text in [TEXT, &long] {
            let whole = compressed(encoding, text);
            for step in [1, 2, 7, 1000, usize::MAX] {
                assert_eq!(decoded(encoding, &whole, step).unwrap(), text, "{encoding:?} in pieces of {step}");
            }
            let last = Decoder::new(encoding, HeldSize::default()).push(&whole, true).unwrap();
            assert_eq!(last, text, "{encoding:?} in one that is the last");
        }
    }
    let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
    raw.write_all(TEXT).unwrap();
    assert_eq!(decoded(ContentEncoding::Deflate, &raw.finish().unwrap(), 5).unwrap(), TEXT, "without a wrapper");
}

#[test]
fn an_event_is_read_before_its_stream_ends() {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    out.write_all(TEXT).unwrap();
    out.flush().unwrap();
    assert_eq!(Decoder::new(ContentEncoding::Gzip, HeldSize::default()).push(out.get_ref(), false).unwrap(), TEXT);
}

#[test]
fn what_is_cut_damaged_or_too_much_is_an_error() {
    for encoding in [ContentEncoding::Gzip, ContentEncoding::Brotli, ContentEncoding::Zstd] {
        let whole = compressed(encoding, TEXT);
        assert!(decoded(encoding, &whole[..whole.len() - 9], 5).is_err(), "{encoding:?} cut");
    }
    assert!(decoded(ContentEncoding::Gzip, b"{\"is\":\"no gzip\"}", 5).is_err());
    for encoding in [ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Zstd] {
        let bomb = compressed(encoding, &vec![b' '; MAX_PIECE + 1]);
        assert!(decoded(encoding, &bomb, usize::MAX).is_err(), "{encoding:?} of a bomb");
    }
}

#[test]
fn a_head_says_how_its_body_is_written() {
    let unknown = |name: &str| Err(UnknownEncoding(name.into()));
    for (lines, expected) in [
        (&[][..], Ok(None)),
        (&["identity"], Ok(None)),
        (&["GZip "], Ok(Some(ContentEncoding::Gzip))),
        (&["X-GZIP"], Ok(Some(ContentEncoding::Gzip))),
        (&["deflate"], Ok(Some(ContentEncoding::Deflate))),
        (&["br"], Ok(Some(ContentEncoding::Brotli))),
        (&["gzip, br"], unknown("gzip, br")),
        (&["gzip", "gzip"], unknown("several at once")),
        (&["lz4"], unknown("lz4")),
    ] {
        let mut head = HeaderMap::new();
        for line in lines {
            head.append(header::CONTENT_ENCODING, HeaderValue::from_static(line));
        }
        assert_eq!(ContentEncoding::from_headers(&head), expected, "{lines:?}");
    }
}
