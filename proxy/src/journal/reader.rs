//! A file of the journal, frame by frame. Files wait on disk while Postgres or the log store is away, bodies and all; no
//! more of one is ever in memory than what is being sent of it.

use super::frame::{self, FrameKind, Tail};
use std::io::{self, BufRead};
use std::ops::Range;

#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    /// Where the next frame begins.
    at: u64,
    length: u64,
}

/// Some records of a file.
#[derive(Debug, Default)]
pub struct Records {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
    intents: Vec<Range<usize>>,
    /// Bodies that were passed over.
    pub bodies: u64,
    /// What stands after the last of the file; none when there may be more.
    pub tail: Option<Tail>,
}

/// The bytes of a record and of its bodies.
type RecordAndBodies<'b> = (&'b [u8], &'b [u8]);

impl Records {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|place| &self.bytes[place.clone()])
    }

    /// Promises to calls, whose records may be among these or come later.
    pub fn intents(&self) -> impl Iterator<Item = &[u8]> {
        self.intents.iter().map(|place| &self.bytes[place.clone()])
    }

    pub fn is_empty(&self) -> bool {
        self.places.is_empty() && self.intents.is_empty()
    }
}

impl<R: BufRead> Reader<R> {
    /// `from` stands at `at` of a file of this length.
    pub fn new(from: R, at: u64, length: u64) -> Self {
        Self { from, at, length }
    }

    /// Up to where whole frames were read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// The next records: no more than `most`, and no more bytes than a record beyond `most_bytes`. Bodies are checked
    /// and not kept.
    pub fn records(&mut self, most: usize, most_bytes: usize) -> io::Result<Records> {
        let mut records = Records::default();
        while records.len() < most && records.bytes.len() < most_bytes {
            let start = records.bytes.len();
            match self.next(&mut records.bytes, |kind| kind != FrameKind::Body)? {
                Ok(FrameKind::Record) => records.places.push(start..records.bytes.len()),
                Ok(FrameKind::Intent) => records.intents.push(start..records.bytes.len()),
                Ok(FrameKind::Body) => records.bodies += 1,
                Err(tail) => {
                    records.tail = Some(tail);
                    break;
                }
            }
        }
        Ok(records)
    }

    /// The next record that has bodies, with them; `bytes` is where they are put. Else what stands after the last one.
    pub fn call<'b>(&mut self, bytes: &'b mut Vec<u8>) -> io::Result<Result<RecordAndBodies<'b>, Tail>> {
        let mut record_end = None;
        bytes.clear();
        loop {
            let start = bytes.len();
            match (self.next(bytes, |kind| kind != FrameKind::Intent)?, record_end) {
                (Ok(FrameKind::Record), _) => {
                    bytes.drain(..start);
                    record_end = Some(bytes.len());
                }
                (Ok(FrameKind::Body), Some(end)) => return Ok(Ok(bytes.split_at(end))),
                (Ok(FrameKind::Body), None) => bytes.clear(),
                (Ok(FrameKind::Intent), _) => {}
                (Err(tail), _) => return Ok(Err(tail)),
            }
        }
    }

    /// How many of a kind are left.
    pub fn count(&mut self, kind: FrameKind) -> io::Result<u64> {
        let mut count = 0;
        loop {
            match self.next(&mut Vec::new(), |_| false)? {
                Ok(found) => count += u64::from(found == kind),
                Err(_) => return Ok(count),
            }
        }
    }

    /// Goes past one frame, whose bytes are added to `out` if its kind is wanted.
    fn next(
        &mut self,
        out: &mut Vec<u8>,
        is_wanted: impl Fn(FrameKind) -> bool,
    ) -> io::Result<Result<FrameKind, Tail>> {
        let left = self.length.saturating_sub(self.at);
        let mut head = [0; frame::HEAD];
        let head = &mut head[..usize::try_from(left).unwrap_or(usize::MAX).min(frame::HEAD)];
        self.from.read_exact(head)?;
        let head = match frame::FrameHead::parse(head, left) {
            Ok(head) => head,
            Err(tail) => return Ok(Err(tail)),
        };
        let (start, is_wanted) = (out.len(), head.kind.is_some_and(is_wanted));
        let (mut sum, mut missing) = (head.begin_sum(), head.length);
        while missing > 0 {
            let piece = self.from.fill_buf()?;
            let piece = &piece[..piece.len().min(missing)];
            if piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            sum.update(piece);
            if is_wanted {
                out.extend_from_slice(piece);
            }
            let taken = piece.len();
            self.from.consume(taken);
            missing -= taken;
        }
        let checked = head.check(sum);
        match checked {
            Ok(_) => self.at += (frame::HEAD + head.length) as u64,
            Err(_) => out.truncate(start),
        }
        Ok(checked)
    }
}

#[cfg(test)]
mod tests;
