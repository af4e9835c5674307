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

/// Nothing can be read after it.
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
}

impl Lines {
    pub fn push(&mut self, piece: &[u8]) {
        self.waiting.extend_from_slice(piece);
    }

    /// Nothing more comes: what waits is the last line.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// None when more must be pushed, or all were read. Lines of blanks alone are passed over.
    pub fn next_line(&mut self) -> Result<Option<Line>, LineTooLong> {
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
