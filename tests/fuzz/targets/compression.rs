//! Compressed answers become the same text in whatever pieces they come, or an error, and never more than they may.
#![no_main]

use fuzz::{chosen, pieces};
use libfuzzer_sys::fuzz_target;
use proxy::wire::framing::compression::{ContentEncoding, Decoder};

const ENCODINGS: [ContentEncoding; 4] =
    [ContentEncoding::Gzip, ContentEncoding::Deflate, ContentEncoding::Brotli, ContentEncoding::Zstd];

fuzz_target!(|data: &[u8]| {
    let Some((encoding, data)) = chosen(&ENCODINGS, data) else { return };
    let (whole, parts) = pieces(data);
    let mut decoder = Decoder::new(encoding);
    let mut plain = Vec::new();
    let mut has_failed = false;
    for part in parts {
        match decoder.push(part, false) {
            Ok(out) => plain.extend_from_slice(&out),
            Err(_) => {
                has_failed = true;
                break;
            }
        }
    }
    has_failed = has_failed || decoder.push(b"", true).is_err();
    if let (false, Ok(at_once)) = (has_failed, Decoder::new(encoding).push(whole, true)) {
        assert!(at_once.starts_with(&plain) || plain.starts_with(&at_once));
    }
});
