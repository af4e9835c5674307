//! How records stand in a segment: kind, length, checksum, bytes. The bodies of a call follow its record. A process can
//! die in the middle of a write, so whatever does not check out at the end of a file is dropped; what stands before it
//! is whole.

use super::body_frame::Parts;

/// Written before every record. A reader leaves kinds that it does not know to a later program.
const RECORD: u8 = 1;
/// Written before the bodies of the record that stands before them.
const BODY: u8 = 2;
/// What a call was promised that is about to leave.
const INTENT: u8 = 3;
pub const HEAD: usize = 9;

/// No record comes near this. The writer refuses a longer one, and the reader takes it for damage: what stands behind
/// it could not be found any more.
pub const MAX_RECORD: usize = 1 << 20;
/// Three bodies of the longest that the settings allow, and their heads. Kinds that a later version adds keep within it.
pub const MAX_BODY: usize = 64 << 20;

/// A frame that no reader would take; nothing was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLong;

/// Appends a frame; `write` puts the record's bytes.
pub fn push(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLong> {
    push_whole(out, RECORD, write)
}

/// Appends a frame; `write` puts the intent's bytes.
pub fn push_intent(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLong> {
    push_whole(out, INTENT, write)
}

fn push_whole(out: &mut Vec<u8>, code: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), TooLong> {
    let start = out.len();
    out.extend_from_slice(&[code, 0, 0, 0, 0, 0, 0, 0, 0]);
    write(out);
    let body = &out[start + HEAD..];
    let Some(length) = written_length(body.len(), MAX_RECORD) else {
        out.truncate(start);
        return Err(TooLong);
    };
    let mut sum = begin_sum(code);
    sum.update(body);
    out[start + 1..start + 5].copy_from_slice(&length);
    out[start + 5..start + HEAD].copy_from_slice(&sum.finalize().to_le_bytes());
    Ok(())
}

/// Appends the beginning of a frame, heads and all, that the slices of these parts complete.
pub fn push_body(out: &mut Vec<u8>, parts: &Parts<'_>) -> Result<(), TooLong> {
    let start = out.len();
    out.extend_from_slice(&[BODY, 0, 0, 0, 0, 0, 0, 0, 0]);
    out.extend_from_slice(&parts.head());
    out.extend_from_slice(parts.heads);
    // Begun with the kind, so that one damaged byte cannot make a record of a body.
    let mut sum = begin_sum(BODY);
    sum.update(&out[start + HEAD..]);
    let mut length = out.len() - start - HEAD;
    for slice in parts.slices().into_iter().filter(|slice| !slice.is_empty()) {
        sum.update(slice);
        length += slice.len();
    }
    let Some(length) = written_length(length, MAX_BODY) else {
        out.truncate(start);
        return Err(TooLong);
    };
    out[start + 1..start + 5].copy_from_slice(&length);
    out[start + 5..start + HEAD].copy_from_slice(&sum.finalize().to_le_bytes());
    Ok(())
}

/// As a head has it, if a reader takes so much.
fn written_length(length: usize, longest: usize) -> Option<[u8; 4]> {
    u32::try_from(length).ok().filter(|_| length <= longest).map(u32::to_le_bytes)
}

/// Sums of everything but records begin with the kind, so that one damaged byte cannot make one kind of another. Later
/// kinds have to do the same: it is how an older reader tells them from damage.
fn begin_sum(code: u8) -> crc32fast::Hasher {
    match code {
        RECORD => crc32fast::Hasher::new(),
        code => crc32fast::Hasher::new_with_initial(crc32fast::hash(&[code])),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    Record,
    Body,
    Intent,
}

/// What stands before a record or its bodies.
#[derive(Debug)]
pub struct FrameHead {
    /// None of a later version's.
    pub kind: Option<FrameKind>,
    code: u8,
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
    /// A whole frame that a later version wrote.
    Unknown,
}

impl FrameHead {
    /// From the next bytes of a file of which so many are left.
    pub fn parse(bytes: &[u8], left: u64) -> Result<Self, Tail> {
        let code = *bytes.first().ok_or(Tail::Nothing)?;
        let kind = match code {
            RECORD => Some(FrameKind::Record),
            BODY => Some(FrameKind::Body),
            INTENT => Some(FrameKind::Intent),
            0 => return Err(Tail::Damaged),
            _ => None,
        };
        let Some(head) = bytes.first_chunk::<HEAD>() else { return Err(Tail::Torn) };
        let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let length = number(1) as usize;
        let longest = match kind {
            Some(FrameKind::Record | FrameKind::Intent) => MAX_RECORD,
            Some(FrameKind::Body) | None => MAX_BODY,
        };
        match (HEAD + length) as u64 {
            _ if length > longest => Err(Tail::Damaged),
            whole if whole > left => Err(Tail::Torn),
            whole => Ok(Self { kind, code, length, sum: number(5), is_last: whole == left }),
        }
    }

    /// A sum to which the frame's bytes are to be added.
    pub fn begin_sum(&self) -> crc32fast::Hasher {
        begin_sum(self.code)
    }

    /// The kind of a frame whose bytes add up to this.
    pub fn check(&self, sum: crc32fast::Hasher) -> Result<FrameKind, Tail> {
        match sum.finalize() == self.sum {
            true => self.kind.ok_or(Tail::Unknown),
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
    fn what_no_reader_would_take_is_not_written() {
        for (length, is_taken) in [(MAX_RECORD, true), (MAX_RECORD + 1, false)] {
            let mut out = b"before".to_vec();
            let pushed = push(&mut out, |out| out.resize(out.len() + length, b'x'));
            assert_eq!((pushed.is_ok(), out.len() > b"before".len()), (is_taken, is_taken), "{length}");
            let head = FrameHead::parse(&out[b"before".len()..], out.len() as u64);
            assert_eq!(head.is_ok(), is_taken, "{length}");
        }
    }

    #[test]
    fn sums_are_those_of_the_files_of_older_versions() {
        assert_eq!(begin_sum(BODY).finalize(), 0x3c0c_8ea1);
        assert_eq!(begin_sum(RECORD).finalize(), 0);
    }
}
