//! One thread's end of the journal: the file it appends to, and what could not be written there yet.
//!
//! A disk that is full or read-only does not cost a record at once: up to `KEPT` bytes wait in memory for it to come
//! back. Only beyond that are records lost, and counted.

use super::body_frame::Parts;
use super::frame;
use super::intent::Intent;
use super::record::Record;
use super::segment::{ClosedSegment, Segment};
use std::io::{self, IoSlice};
use std::time::{Duration, Instant};

/// Bytes of records that wait in memory while the disk refuses them.
const MAX_WAITING: usize = 4 << 20;

#[derive(Debug, Default)]
pub struct JournalWriter {
    pub segment: Option<Segment>,
    buffer: Vec<u8>,
    /// Frames the disk did not take.
    waiting: Vec<u8>,
    waiting_records: u64,
    /// When the first of them came.
    waiting_since: Option<Instant>,
    /// Files that end in something which could not be cut off.
    broken: Vec<ClosedSegment>,
}

/// What became of a record.
#[derive(Debug)]
pub enum Written {
    OnDisk,
    /// The record is; its bodies are longer than any reader takes.
    OnDiskAlone,
    /// The disk refused; it waits in memory.
    Waiting(io::Error),
    /// Nor is there room in memory.
    Lost(io::Error),
    /// Longer than any reader takes.
    TooLong,
}

impl JournalWriter {
    /// Writes a record, and its bodies behind it, with one call; `create` makes the file when there is none. Bodies are
    /// not kept in memory: what the disk refuses of them is lost, and so is what no reader would take.
    pub fn append(
        &mut self,
        record: &Record<'_>,
        body: Option<&Parts<'_>>,
        create: impl FnOnce() -> io::Result<Segment>,
    ) -> Written {
        self.buffer.clear();
        if frame::push(&mut self.buffer, |out| record.encode(out)).is_err() {
            return Written::TooLong;
        }
        let record_end = self.buffer.len();
        let framed = body.filter(|parts| frame::push_body(&mut self.buffer, parts).is_ok());
        let (is_alone, body) = (body.is_some() && framed.is_none(), framed);
        let buffer = std::mem::take(&mut self.buffer);
        let [request, more, sent, answer, rest] = body.map(Parts::slices).unwrap_or_default();
        let mut slices = [&buffer[..], request, more, sent, answer, rest].map(IoSlice::new);
        let slices = if body.is_some() { &mut slices[..] } else { &mut slices[..1] };
        let written = match self.waiting.is_empty() {
            true => self.write(slices, create),
            false => self.retry(create).and_then(|_| self.write(slices, unopened)),
        };
        let written = match written {
            Ok(()) if is_alone => Written::OnDiskAlone,
            Ok(()) => Written::OnDisk,
            Err(error) if self.waiting.len() + record_end <= MAX_WAITING => {
                self.waiting.extend_from_slice(&buffer[..record_end]);
                self.waiting_records += 1;
                self.waiting_since.get_or_insert_with(Instant::now);
                Written::Waiting(error)
            }
            Err(error) => Written::Lost(error),
        };
        self.buffer = buffer;
        written
    }

    /// Writes what a call was promised. Nothing is kept in memory: what the disk refuses is not promised.
    pub fn append_intent(
        &mut self,
        intent: &Intent<'_>,
        create: impl FnOnce() -> io::Result<Segment>,
    ) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let pushed = frame::push_intent(&mut buffer, |out| intent.encode(out));
        let slice = &mut [IoSlice::new(&buffer)];
        let written = match (pushed, self.waiting.is_empty()) {
            (Err(frame::TooLong), _) => Err(io::Error::other("it is longer than any that can be read")),
            (Ok(()), true) => self.write(slice, create),
            (Ok(()), false) => self.retry(create).and_then(|_| self.write(slice, unopened)),
        };
        self.buffer = buffer;
        written
    }

    /// Offers the disk again what it refused. Answers how many records it took.
    pub fn retry(&mut self, create: impl FnOnce() -> io::Result<Segment>) -> io::Result<u64> {
        if self.waiting.is_empty() {
            return Ok(0);
        }
        let waiting = std::mem::take(&mut self.waiting);
        match self.write(&mut [IoSlice::new(&waiting)], create) {
            Ok(()) => {
                let since = self.waiting_since.take();
                if let (Some(segment), Some(since)) = (&mut self.segment, since) {
                    segment.holds_from(since);
                }
                Ok(std::mem::take(&mut self.waiting_records))
            }
            Err(error) => {
                self.waiting = waiting;
                Err(error)
            }
        }
    }

    pub fn waiting(&self) -> u64 {
        self.waiting_records
    }

    /// No record that was not written or is not shipped yet came before this; none when there is none.
    pub fn since(&self) -> Option<Instant> {
        let open = self.segment.as_ref().filter(|segment| segment.length() > 0).and_then(Segment::created);
        let broken = self.broken.iter().filter_map(ClosedSegment::created);
        broken.chain(open).chain(self.waiting_since).min()
    }

    /// Makes what was written survive a loss of power.
    pub fn sync(&mut self) -> io::Result<()> {
        self.segment.as_mut().map_or(Ok(()), Segment::sync)
    }

    /// The file so far, if anything is in it and it is this old. The next record begins another.
    pub fn close(&mut self, age: Duration) -> impl Iterator<Item = ClosedSegment> {
        let is_due = |segment: &mut Segment| {
            segment.length() > 0 && segment.created().is_none_or(|created| created.elapsed() >= age)
        };
        let whole = self.segment.take_if(is_due).map(Segment::close);
        std::mem::take(&mut self.broken).into_iter().chain(whole)
    }

    fn write(&mut self, bytes: &mut [IoSlice<'_>], create: impl FnOnce() -> io::Result<Segment>) -> io::Result<()> {
        let segment = match &mut self.segment {
            Some(segment) => segment,
            None => self.segment.insert(create()?),
        };
        let length = segment.length();
        let written = segment.append(bytes);
        if written.is_err() && segment.handle().and_then(|file| file.metadata()).is_ok_and(|file| file.len() != length)
        {
            // It could not be cut back to its last whole record: what is in it is good up to there, and it ends there.
            self.broken.extend(self.segment.take().map(Segment::close));
        }
        written
    }
}

/// After a retry that went well there is a file.
fn unopened() -> io::Result<Segment> {
    Err(io::Error::other("there is no file"))
}
