//! Server-sent events are the same in whatever pieces they arrive, and no byte of them is lost.
#![no_main]

use bytes::Bytes;
use fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use proxy::wire::sse::{Splitter, events};

fuzz_target!(|data: &[u8]| {
    let (whole, parts) = pieces(data);
    let mut splitter = Splitter::default();
    let mut passed = Vec::new();
    let mut found = 0;
    for part in parts {
        let Ok(out) = splitter.push(Bytes::copy_from_slice(part)) else { return };
        found += events(&out).count();
        passed.extend_from_slice(&out);
    }
    let (before, rest) = (passed.len(), splitter.rest());
    passed.extend_from_slice(&rest);
    assert_eq!(passed, whole);
    let at_once = Splitter::default().push(Bytes::copy_from_slice(whole)).expect("it is short");
    // A `\r` at the very end of a piece ends its event at once; the `\n` that belongs to it follows alone.
    assert!(before == at_once.len() || whole.contains(&b'\r'), "{before} of {}", at_once.len());
    // A mark of byte order is left out at the beginning of what is read, which a piece may be.
    if !whole.windows(3).any(|bytes| bytes == b"\xef\xbb\xbf") {
        assert_eq!(found, events(&passed[..before]).count());
    }
});
