//! The head of a provider's answer is found as soon as it is there, is the same in whatever pieces it came, and takes no
//! byte of the body.
#![no_main]

use bytes::BytesMut;
use fuzz::pieces;
use libfuzzer_sys::fuzz_target;
use proxy::fuzzing::parse_head;

fuzz_target!(|data: &[u8]| {
    let (whole, parts) = pieces(data);
    let mut buffer = BytesMut::from(whole);
    let at_once = parse_head(&mut buffer);
    let (mut gathered, mut found) = (BytesMut::new(), None);
    for part in parts {
        gathered.extend_from_slice(part);
        if found.is_some() {
            continue;
        }
        match parse_head(&mut gathered) {
            Ok(head) => found = head,
            Err(_) => {
                assert!(at_once.is_err());
                return;
            }
        }
    }
    match (at_once, found) {
        (Ok(Some(once)), Some(found)) => {
            assert_eq!((once.status, once.version, once.headers), (found.status, found.version, found.headers));
            assert_eq!(buffer, gathered);
            assert!(whole.ends_with(&buffer) && buffer.len() < whole.len());
        }
        (Ok(None), None) => assert_eq!(buffer, whole),
        (once, found) => panic!("{once:?} {found:?}"),
    }
});
