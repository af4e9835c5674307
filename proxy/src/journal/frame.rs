//! How records stand in a segment: kind, length, checksum, bytes. The bodies of a call follow its record. A process can
//! die in the middle of a write, so whatever does not check out at the end of a file is dropped; what stands before it
//! is whole.

use super::body::Parts;

/// Written before every record. A reader leaves kinds that it does not know to a later program.
const RECORD: u8 = 1;
/// Written before the bodies of the record that stands before them.
const BODY: u8 = 2;
const HEAD: usize = 9;

/// No record comes near this; a longer one is damage.
const LONGEST_RECORD: usize = 1 << 20;
/// Three bodies of the longest that the settings allow, and their heads.
const LONGEST_BODY: usize = 64 << 20;

/// Appends a frame; `write` puts the record's bytes.
pub fn push(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[RECORD, 0, 0, 0, 0, 0, 0, 0, 0]);
    write(out);
    let body = &out[start + HEAD..];
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    let sum = crc32fast::hash(body).to_le_bytes();
    out[start + 1..start + 5].copy_from_slice(&length);
    out[start + 5..start + HEAD].copy_from_slice(&sum);
}

/// Appends the beginning of a frame that these parts complete.
pub fn push_body(out: &mut Vec<u8>, parts: &Parts<'_>) {
    let head = parts.head();
    // The kind is part of the sum, so that one damaged byte cannot make a record of a body.
    let mut sum = crc32fast::Hasher::new();
    sum.update(&[BODY]);
    sum.update(&head);
    let mut length = head.len();
    for slice in parts.slices() {
        sum.update(slice);
        length += slice.len();
    }
    out.push(BODY);
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&sum.finalize().to_le_bytes());
    out.extend_from_slice(&head);
}

/// What was found in the bytes of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Frames<'b> {
    pub records: Vec<&'b [u8]>,
    /// Records with bodies, passed over.
    pub bodies: u64,
    /// Where the last whole record ends.
    pub end: usize,
    pub tail: Tail,
}

/// What stands after the last whole record.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub enum Tail {
    #[default]
    Nothing,
    /// The beginning of a record.
    Torn,
    /// Bytes that no process of ours wrote so.
    Damaged,
    /// Written by a later version.
    Unknown,
}

/// Reads from the start up to `most` records.
pub fn read(bytes: &[u8], most: usize) -> Frames<'_> {
    let mut frames = Frames::default();
    while frames.records.len() < most {
        match next(&bytes[frames.end..]) {
            Ok(Frame::Record(record)) => {
                frames.records.push(record);
                frames.end += HEAD + record.len();
            }
            Ok(Frame::Body(body)) => {
                frames.bodies += 1;
                frames.end += HEAD + body.len();
            }
            Err(tail) => {
                frames.tail = tail;
                break;
            }
        }
    }
    frames
}

/// The records from `start` on that have bodies, each with them and with where it ends. Stops at what cannot be read.
pub fn bodies(bytes: &[u8], start: usize) -> impl Iterator<Item = (&[u8], &[u8], usize)> {
    let (mut at, mut record) = (start, None);
    std::iter::from_fn(move || {
        loop {
            match next(bytes.get(at..)?).ok()? {
                Frame::Record(found) => {
                    at += HEAD + found.len();
                    record = Some(found);
                }
                Frame::Body(body) => {
                    at += HEAD + body.len();
                    if let Some(record) = record.take() {
                        return Some((record, body, at));
                    }
                }
            }
        }
    })
}

enum Frame<'b> {
    Record(&'b [u8]),
    Body(&'b [u8]),
}

fn next(bytes: &[u8]) -> Result<Frame<'_>, Tail> {
    let is_record = match bytes.first() {
        None => return Err(Tail::Nothing),
        Some(&RECORD) => true,
        Some(&BODY) => false,
        Some(0) => return Err(Tail::Damaged),
        Some(_) => return Err(Tail::Unknown),
    };
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Err(Tail::Torn) };
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(1) as usize;
    if length > if is_record { LONGEST_RECORD } else { LONGEST_BODY } {
        return Err(Tail::Damaged);
    }
    let Some(body) = rest.get(..length) else { return Err(Tail::Torn) };
    let mut sum = crc32fast::Hasher::new();
    if !is_record {
        sum.update(&[BODY]);
    }
    sum.update(body);
    if sum.finalize() != number(5) {
        // The last of a file may have been torn; pages of it can reach the disk in any order.
        return Err(if rest.len() == length { Tail::Torn } else { Tail::Damaged });
    }
    Ok(if is_record { Frame::Record(body) } else { Frame::Body(body) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    use crate::bodies::kept::Kept;

    fn written(bodies: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let mut out = Vec::new();
        let mut ends = Vec::new();
        for body in bodies {
            push(&mut out, |out| out.extend_from_slice(body));
            ends.push(out.len());
        }
        (out, ends)
    }

    fn push_text(out: &mut Vec<u8>, text: &[u8]) {
        let kept = Kept::default();
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
        push_body(out, &parts);
        out.extend_from_slice(&parts.slices().concat());
    }

    #[test]
    fn bodies_are_found_with_their_records_and_passed_over_by_who_wants_records() {
        let mut file = Vec::new();
        push(&mut file, |out| out.push(1));
        push_text(&mut file, b"one");
        let first = file.len();
        push(&mut file, |out| out.push(2));
        push(&mut file, |out| out.push(3));
        push_text(&mut file, b"three");
        let frames = read(&file, usize::MAX);
        assert_eq!((frames.records, frames.bodies, frames.end), (vec![&[1][..], &[2], &[3]], 2, file.len()));
        let found =
            |start| bodies(&file, start).map(|(record, body, end)| (record[0], body.len(), end)).collect::<Vec<_>>();
        let whole = found(0);
        assert_eq!((whole[0].0, whole[1].0), (1, 3));
        assert_eq!((whole[1].1 - whole[0].1, whole[0].2, whole[1].2), (2, first, file.len()));
        assert_eq!(found(first), whole[1..]);
        assert_eq!(bodies(&file[..file.len() - 1], 0).count(), 1, "a torn one is none");
        assert_eq!(read(&file[..first - 1], 9).tail, Tail::Torn);
    }

    proptest! {
        #[test]
        fn any_beginning_of_a_file_gives_back_every_whole_record(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        ) {
            let (file, ends) = written(&bodies);
            for cut in 0..=file.len() {
                let frames = read(&file[..cut], usize::MAX);
                let whole = ends.iter().filter(|end| **end <= cut).count();
                prop_assert_eq!(frames.records.len(), whole);
                prop_assert!(frames.records.iter().zip(&bodies).all(|(found, body)| *found == body.as_slice()));
                let is_at_an_end = cut == 0 || ends.contains(&cut);
                prop_assert_eq!(frames.tail, if is_at_an_end { Tail::Nothing } else { Tail::Torn });
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
            let frames = read(&file, usize::MAX);
            prop_assert_eq!(frames.records.len(), before);
            prop_assert_ne!(frames.tail, Tail::Nothing);
        }
    }

    #[test]
    fn no_more_than_asked_for_is_read() {
        let (file, ends) = written(&[vec![1], vec![2], vec![3]]);
        let frames = read(&file, 2);
        assert_eq!((frames.records, frames.end, frames.tail), (vec![&[1][..], &[2]], ends[1], Tail::Nothing));
    }
}
