//! Files as they are written, cut and damaged, and what is read from them.

use super::*;
use crate::journal::body_frame::Parts;
use crate::journal::logged_body::captured::CapturedBody;
use proptest::prelude::*;
use std::io::BufReader;

fn written(bodies: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
    let mut out = Vec::new();
    let mut ends = Vec::new();
    for body in bodies {
        frame::push(&mut out, |out| out.extend_from_slice(body)).unwrap();
        ends.push(out.len());
    }
    (out, ends)
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    let kept = CapturedBody::default();
    let parts = Parts {
        heads: text,
        asked_end: 0,
        sent_end: 0,
        request: &kept,
        sent: b"",
        asks_usage: false,
        is_debug: true,
        response: &kept,
    };
    frame::push_body(out, &parts).unwrap();
    out.extend_from_slice(&parts.slices().concat());
}

/// Through a window of a few bytes, so that every frame is met in pieces.
fn reader(file: &[u8], at: u64) -> Reader<BufReader<&[u8]>> {
    let from = &file[usize::try_from(at).unwrap()..];
    Reader::new(BufReader::with_capacity(5, from), at, file.len() as u64)
}

fn all(file: &[u8]) -> (Vec<Vec<u8>>, u64, Tail) {
    let mut reader = reader(file, 0);
    let records = reader.records(usize::MAX, usize::MAX).unwrap();
    (records.iter().map(<[u8]>::to_vec).collect(), reader.at(), records.tail.unwrap())
}

/// The first byte of each record with bodies, how long they are, and where they end.
fn calls(file: &[u8], at: u64) -> Vec<(u8, usize, u64)> {
    let (mut reader, mut bytes, mut calls) = (reader(file, at), Vec::new(), Vec::new());
    while let Ok((record, body)) = reader.call(&mut bytes).unwrap() {
        let (first, length) = (record[0], body.len());
        calls.push((first, length, reader.at()));
    }
    calls
}

#[test]
fn bodies_are_found_with_their_records_and_passed_over_by_who_wants_records() {
    let mut file = Vec::new();
    frame::push(&mut file, |out| out.push(1)).unwrap();
    push_text(&mut file, b"one");
    let first = file.len() as u64;
    frame::push(&mut file, |out| out.push(2)).unwrap();
    frame::push(&mut file, |out| out.push(3)).unwrap();
    push_text(&mut file, b"three");
    let end = file.len() as u64;
    assert_eq!(all(&file), (vec![vec![1], vec![2], vec![3]], end, Tail::Nothing));
    assert_eq!(
        (reader(&file, 0).count(FrameKind::Record).unwrap(), reader(&file, first).count(FrameKind::Body).unwrap()),
        (3, 1)
    );
    let whole = calls(&file, 0);
    assert_eq!((whole[0].0, whole[1].0, whole[0].2, whole[1].2), (1, 3, first, end));
    assert_eq!(whole[1].1 - whole[0].1, 2);
    assert_eq!(calls(&file, first), whole[1..]);
    assert_eq!(calls(&file[..file.len() - 1], 0).len(), 1, "a torn one is none");
    let first = usize::try_from(first).unwrap();
    assert_eq!(all(&file[..first - 1]).2, Tail::Torn);
}

#[test]
fn however_long_a_file_is_only_a_piece_of_it_is_held() {
    let mut file = Vec::new();
    for number in 0..100 {
        frame::push(&mut file, |out| out.extend_from_slice(&[number; 100])).unwrap();
        push_text(&mut file, &[number; 5000]);
    }
    for (most, most_bytes, expected) in [(7, usize::MAX, 7), (usize::MAX, 1000, 10), (usize::MAX, 1, 1)] {
        let (mut at, mut found, mut bodies) = (0, Vec::new(), 0);
        loop {
            // Begun anew each time, as after a failure.
            let mut reader = reader(&file, at);
            let records = reader.records(most, most_bytes).unwrap();
            assert!(records.len() <= expected && records.bytes.len() <= expected * 100, "{most} {most_bytes}");
            found.extend(records.iter().map(|record| record[0]));
            (at, bodies) = (reader.at(), bodies + records.bodies);
            if records.tail.is_some() {
                break;
            }
        }
        assert_eq!((found, bodies, at), ((0..100).collect(), 100, file.len() as u64), "{most} {most_bytes}");
    }
}

#[test]
fn a_whole_frame_of_a_later_version_is_told_from_damage() {
    /// A frame of a kind that nobody has yet.
    fn push_newer(file: &mut Vec<u8>, bytes: &[u8]) {
        const NEWER: u8 = 200;
        let sum = crc32fast::hash(&[&[NEWER], bytes].concat());
        file.push(NEWER);
        file.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
        file.extend_from_slice(&sum.to_le_bytes());
        file.extend_from_slice(bytes);
    }
    let mut file = Vec::new();
    frame::push(&mut file, |out| out.push(1)).unwrap();
    push_text(&mut file, b"one");
    let end = file.len();
    push_newer(&mut file, b"newer");
    let newer_end = file.len();
    frame::push(&mut file, |out| out.push(2)).unwrap();
    assert_eq!(all(&file), (vec![vec![1]], end as u64, Tail::Unknown));
    let mut bodies = reader(&file, 0);
    assert!(bodies.call(&mut Vec::new()).unwrap().is_ok());
    assert_eq!(bodies.call(&mut Vec::new()).unwrap(), Err(Tail::Unknown));
    assert_eq!(all(&file[..newer_end - 1]).2, Tail::Torn);
    for at in end..newer_end {
        let mut damaged = file.clone();
        damaged[at] ^= 0x40;
        let tail = all(&damaged).2;
        assert!(matches!(tail, Tail::Damaged | Tail::Torn), "{at}: {tail:?}");
    }
}

proptest! {
    #[test]
    fn any_beginning_of_a_file_gives_back_every_whole_record(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
    ) {
        let (file, ends) = written(&bodies);
        for cut in 0..=file.len() {
            let (records, _, tail) = all(&file[..cut]);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            prop_assert_eq!(&records[..], &bodies[..whole]);
            let is_at_an_end = cut == 0 || ends.contains(&cut);
            prop_assert_eq!(tail, if is_at_an_end { Tail::Nothing } else { Tail::Torn });
        }
    }

    #[test]
    fn a_changed_byte_never_gives_a_changed_record(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..20), 1..5),
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let (mut file, ends) = written(&bodies);
        let before_bodies = file.len();
        push_text(&mut file, b"text");
        let at = at.index(before_bodies);
        file[at] ^= flip;
        let before = ends.iter().filter(|end| **end <= at).count();
        let (records, _, tail) = all(&file);
        prop_assert_eq!(records.len(), before);
        prop_assert_ne!(tail, Tail::Nothing);
    }
}
