//! Compressed answers as they arrive in pieces.

use super::*;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use http::HeaderValue;

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zlibbed(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn inflated(encoding: &ContentEncoding<'_>, bytes: &[u8], step: usize) -> io::Result<Vec<u8>> {
    let mut inflate = Inflate::new(encoding).unwrap();
    let mut text = Vec::new();
    for piece in bytes.chunks(step) {
        text.extend_from_slice(&inflate.push(piece, false)?);
    }
    text.extend_from_slice(&inflate.push(&[], true)?);
    Ok(text)
}

#[test]
fn what_was_compressed_comes_back_however_it_is_cut() {
    let text: Vec<u8> = (0..20_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
    for step in [1, 7, 1000, usize::MAX] {
        assert_eq!(inflated(&ContentEncoding::Gzip, &gzipped(&text), step).unwrap(), text, "{step}");
        assert_eq!(inflated(&ContentEncoding::Deflate, &zlibbed(&text), step).unwrap(), text, "{step}");
    }
}

#[test]
fn what_is_cut_damaged_or_too_much_is_an_error() {
    let whole = gzipped(b"some text that is worth it");
    assert!(inflated(&ContentEncoding::Gzip, &whole[..whole.len() - 9], 5).is_err(), "cut");
    assert!(inflated(&ContentEncoding::Gzip, b"{\"is\":\"no gzip\"}", 5).is_err());
    let bomb = gzipped(&vec![b' '; 2 * MOST]);
    assert!(inflated(&ContentEncoding::Gzip, &bomb, usize::MAX).is_err());
}

#[test]
fn an_encoding_is_known_by_its_name() {
    for (value, expected) in [
        ("gzip", ContentEncoding::Gzip),
        ("X-GZIP", ContentEncoding::Gzip),
        ("deflate", ContentEncoding::Deflate),
        ("identity", ContentEncoding::Identity),
        ("br", ContentEncoding::Other("br")),
        ("gzip, br", ContentEncoding::Other("gzip, br")),
    ] {
        let head = HeaderMap::from_iter([(header::CONTENT_ENCODING, HeaderValue::from_static(value))]);
        assert_eq!(ContentEncoding::from_headers(&head), expected, "{value}");
    }
    assert_eq!(ContentEncoding::from_headers(&HeaderMap::new()), ContentEncoding::Identity);
}
