//! A file of the journal with anything in it is read to its last whole frame, and what was written is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxy::fuzzing::{Reader, push_frame};
use proxy::journal::Record;
use proxy::journal::body_frame::StoredBodies;

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader::new(data, 0, data.len() as u64);
    let mut read = 0;
    while let Ok(records) = reader.records(16, 1 << 16) {
        for bytes in records.iter() {
            read += bytes.len();
            let _ = Record::decode(bytes);
        }
        if records.tail.is_some() {
            break;
        }
    }
    assert!(read <= data.len() && reader.at() <= data.len() as u64);
    let (mut reader, mut bytes) = (Reader::new(data, 0, data.len() as u64), Vec::new());
    while let Ok(Ok((record, body))) = reader.call(&mut bytes) {
        let _ = (Record::decode(record).is_ok(), StoredBodies::decode(body));
    }
    let _ = (Record::decode(data).is_ok(), StoredBodies::decode(data));
    let mut written = Vec::new();
    push_frame(&mut written, |out| out.extend_from_slice(data)).expect("it is short");
    let mut reader = Reader::new(&written[..], 0, written.len() as u64);
    let records = reader.records(2, usize::MAX).expect("memory can be read");
    assert_eq!(records.iter().collect::<Vec<_>>(), [data]);
});
