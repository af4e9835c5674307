//! The lines of a file that comes in pieces: what is pushed is cut at line breaks, and only a line that is not whole yet is
//! held. Lines count from 1, empty ones too, so that a number is what an editor shows.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memchr;

/// Of one row: as long as the longest JSON body a request may have is wide enough for images in it.
pub const MAX_LINE: usize = 16 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub number: u64,
    /// How many bytes of the file stand before it.
    pub at: u64,
    /// Without its line break.
    pub bytes: Bytes,
}

/// Nothing can be read after it unless it is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the line is longer than {MAX_LINE} bytes")]
pub struct LineTooLong {
    pub number: u64,
}

#[derive(Debug, Default)]
pub struct Lines {
    waiting: BytesMut,
    /// How much of what waits is known to have no line break.
    searched: usize,
    read: u64,
    /// Bytes before what waits.
    passed: u64,
    is_over: bool,
    /// The rest of a line that was too long is passed over.
    is_skipping: bool,
}

impl Lines {
    pub fn push(&mut self, piece: &[u8]) {
        self.waiting.extend_from_slice(piece);
    }

    /// Nothing more comes: what waits is the last line.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// Passes over a line that is too long, and answers how it begins. Nothing more of it is held.
    pub fn skip_long_line(&mut self) -> Bytes {
        /// Enough for the ids that stand at the beginning of a row.
        const BEGINNING: usize = 4096;
        self.is_skipping = true;
        Bytes::copy_from_slice(&self.waiting[..self.waiting.len().min(BEGINNING)])
    }

    /// False while the line that is skipped goes on.
    fn has_skipped(&mut self) -> bool {
        if !self.is_skipping {
            return true;
        }
        let end = memchr(b'\n', &self.waiting).map(|at| at + 1);
        let length = end.unwrap_or(self.waiting.len());
        self.waiting.advance(length);
        self.passed += length as u64;
        self.searched = 0;
        if end.is_some() {
            self.is_skipping = false;
            self.read += 1;
        }
        !self.is_skipping
    }

    /// None when more must be pushed, or all were read. Lines of blanks alone are passed over.
    pub fn next_line(&mut self) -> Result<Option<Line>, LineTooLong> {
        if !self.has_skipped() {
            return Ok(None);
        }
        loop {
            if self.searched == 0 {
                // Of empty lines there may be as many as bytes.
                let empty = self.waiting.iter().take_while(|byte| **byte == b'\n').count();
                self.waiting.advance(empty);
                self.read += empty as u64;
                self.passed += empty as u64;
            }
            let found = memchr(b'\n', &self.waiting[self.searched..]).map(|at| self.searched + at);
            let length = match found {
                Some(at) => at,
                None => self.waiting.len(),
            };
            if length > MAX_LINE {
                return Err(LineTooLong { number: self.read + 1 });
            }
            if found.is_none() && (!self.is_over || self.waiting.is_empty()) {
                self.searched = self.waiting.len();
                return Ok(None);
            }
            let at = self.passed;
            let mut bytes = self.waiting.split_to(length).freeze();
            self.passed += length as u64;
            if found.is_some() {
                self.waiting.advance(1);
                self.passed += 1;
            }
            self.searched = 0;
            self.read += 1;
            if bytes.last() == Some(&b'\r') {
                bytes.truncate(bytes.len() - 1);
            }
            if !bytes.trim_ascii().is_empty() {
                return Ok(Some(Line { number: self.read, at, bytes }));
            }
        }
    }
}
