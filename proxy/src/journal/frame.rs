//! How records stand in a segment: kind, length, checksum, bytes. The bodies of a call follow its record. A process can
//! die in the middle of a write, so whatever does not check out at the end of a file is dropped; what stands before it
//! is whole.

use super::body::Parts;

/// Written before every record. A reader leaves kinds that it does not know to a later program.
const RECORD: u8 = 1;
/// Written before the bodies of the record that stands before them.
const BODY: u8 = 2;
/// The checksum of that byte.
const SUM_OF_BODY: u32 = 0x3c0c_8ea1;
pub const HEAD: usize = 9;

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

/// Appends the beginning of a frame, heads and all, that the slices of these parts complete.
pub fn push_body(out: &mut Vec<u8>, parts: &Parts<'_>) {
    let start = out.len();
    out.extend_from_slice(&[BODY, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&parts.head());
    out.extend_from_slice(parts.heads);
    // Begun with the kind, so that one damaged byte cannot make a record of a body.
    let mut sum = crc32fast::Hasher::new_with_initial(SUM_OF_BODY);
    sum.update(&out[start + HEAD..]);
    let mut length = out.len() - start - HEAD;
    for slice in parts.slices().into_iter().filter(|slice| !slice.is_empty()) {
        sum.update(slice);
        length += slice.len();
    }
    out[start + 1..start + 5].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    out[start + 5..start + HEAD].copy_from_slice(&sum.finalize().to_le_bytes());
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Record,
    Body,
}

/// What stands before a record or its bodies.
#[derive(Debug)]
pub struct Head {
    pub kind: Kind,
    pub length: usize,
    sum: u32,
    /// Nothing comes after it in the file.
    is_last: bool,
}

/// What stands after the last whole record.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub enum Tail {
    Nothing,
    /// The beginning of a record.
    Torn,
    /// Bytes that no process of ours wrote so.
    Damaged,
    /// Written by a later version.
    Unknown,
}

impl Head {
    /// From the next bytes of a file of which so many are left.
    pub fn read(bytes: &[u8], left: u64) -> Result<Self, Tail> {
        let kind = match bytes.first() {
            None => return Err(Tail::Nothing),
            Some(&RECORD) => Kind::Record,
            Some(&BODY) => Kind::Body,
            Some(0) => return Err(Tail::Damaged),
            Some(_) => return Err(Tail::Unknown),
        };
        let Some(head) = bytes.first_chunk::<HEAD>() else { return Err(Tail::Torn) };
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = number(1) as usize;
        let longest = match kind {
            Kind::Record => LONGEST_RECORD,
            Kind::Body => LONGEST_BODY,
        };
        match (HEAD + length) as u64 {
            _ if length > longest => Err(Tail::Damaged),
            whole if whole > left => Err(Tail::Torn),
            whole => Ok(Self { kind, length, sum: number(5), is_last: whole == left }),
        }
    }

    /// A sum to which the frame's bytes are to be added.
    pub fn begin_sum(&self) -> crc32fast::Hasher {
        match self.kind {
            Kind::Record => crc32fast::Hasher::new(),
            Kind::Body => crc32fast::Hasher::new_with_initial(SUM_OF_BODY),
        }
    }

    pub fn check(&self, sum: crc32fast::Hasher) -> Result<(), Tail> {
        match sum.finalize() == self.sum {
            true => Ok(()),
            // The last of a file may have been torn; pages of it can reach the disk in any order.
            false if self.is_last => Err(Tail::Torn),
            false => Err(Tail::Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_body_begins_with_its_kind() {
        assert_eq!(SUM_OF_BODY, crc32fast::hash(&[BODY]));
    }
}
