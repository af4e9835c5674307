//! How records stand in a segment: version, length, checksum, bytes. A process can die in the middle of a write, so
//! whatever does not check out at the end of a file is dropped; what stands before it is whole.

/// Written before every record. A reader leaves records of a later version to a later program.
const VERSION: u8 = 1;
const HEAD: usize = 9;

/// No record comes near this; a longer one is damage.
const LONGEST: usize = 1 << 20;

/// Appends a frame; `write` puts the record's bytes.
pub fn push(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[VERSION, 0, 0, 0, 0, 0, 0, 0, 0]);
    write(out);
    let body = &out[start + HEAD..];
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes();
    let sum = crc32fast::hash(body).to_le_bytes();
    out[start + 1..start + 5].copy_from_slice(&length);
    out[start + 5..start + HEAD].copy_from_slice(&sum);
}

/// What was found in the bytes of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Frames<'b> {
    pub records: Vec<&'b [u8]>,
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
            Ok(record) => {
                frames.records.push(record);
                frames.end += HEAD + record.len();
            }
            Err(tail) => {
                frames.tail = tail;
                break;
            }
        }
    }
    frames
}

fn next(bytes: &[u8]) -> Result<&[u8], Tail> {
    match bytes.first() {
        None => return Err(Tail::Nothing),
        Some(&VERSION) => {}
        Some(0) => return Err(Tail::Damaged),
        Some(_) => return Err(Tail::Unknown),
    }
    let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Err(Tail::Torn) };
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let length = number(1) as usize;
    if length > LONGEST {
        return Err(Tail::Damaged);
    }
    let Some(body) = rest.get(..length) else { return Err(Tail::Torn) };
    if crc32fast::hash(body) != number(5) {
        // The last of a file may have been torn; pages of it can reach the disk in any order.
        return Err(if rest.len() == length { Tail::Torn } else { Tail::Damaged });
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(bodies: &[Vec<u8>]) -> (Vec<u8>, Vec<usize>) {
        let mut out = Vec::new();
        let mut ends = Vec::new();
        for body in bodies {
            push(&mut out, |out| out.extend_from_slice(body));
            ends.push(out.len());
        }
        (out, ends)
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
            let at = at.index(file.len());
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
