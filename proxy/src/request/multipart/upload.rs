//! A form that is read as it comes: an upload of any length is never held. Whoever reads pushes what the client sent and
//! takes out what is known then. What waits inside is bounded: the head of a part, a short field, or as many bytes of a
//! file as could be the beginning of a delimiter.

use super::parse::{disposition, parameter};
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, header};
use memchr::memmem;
use percent_encoding::percent_decode;

/// Of a part.
const MAX_HEAD: usize = 16 << 10;
/// Of a text field: settings, not content.
const MAX_FIELD: usize = 8 << 10;
const MAX_PARTS: usize = 32;
/// The standard allows 70.
const MAX_BOUNDARY: usize = 256;
/// Blanks after a delimiter.
const MAX_BLANKS: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub enum FormPiece {
    Field {
        name: String,
        value: String,
    },
    /// Its bytes follow, until something else does.
    File {
        field: String,
        filename: String,
    },
    Bytes(Bytes),
    /// Nothing that comes after it counts.
    End,
}

/// It is no form with the boundary that was announced, or one that nobody's client makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the form is broken")]
pub struct BrokenForm;

pub struct UploadForm {
    /// A line break, two dashes and the boundary.
    delimiter: Vec<u8>,
    waiting: BytesMut,
    state: State,
    parts: usize,
}

enum State {
    Preamble,
    AfterDelimiter,
    Head,
    Field(String),
    File,
    Done,
}

impl UploadForm {
    /// None when the body is no form.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let boundary = super::boundary(headers.get(header::CONTENT_TYPE))?;
        (boundary.len() <= MAX_BOUNDARY).then(|| Self::new(&boundary))
    }

    fn new(boundary: &[u8]) -> Self {
        // The first delimiter stands at the beginning of a line like all others.
        let waiting = BytesMut::from(&b"\r\n"[..]);
        Self { delimiter: [b"\r\n--", boundary].concat(), waiting, state: State::Preamble, parts: 0 }
    }

    pub fn push(&mut self, piece: &[u8]) {
        if !matches!(self.state, State::Done) {
            self.waiting.extend_from_slice(piece);
        }
    }

    /// None when more must be pushed first.
    pub fn next_piece(&mut self) -> Result<Option<FormPiece>, BrokenForm> {
        loop {
            let found = match &self.state {
                State::Preamble => self.preamble(),
                State::AfterDelimiter => self.after_delimiter()?,
                State::Head => self.head()?,
                State::Field(_) => self.field()?,
                State::File => self.file(),
                State::Done => return Ok(None),
            };
            match found {
                Step::Piece(piece) => return Ok(Some(piece)),
                Step::On => {}
                Step::Wait => return Ok(None),
            }
        }
    }

    fn preamble(&mut self) -> Step {
        match memmem::find(&self.waiting, &self.delimiter) {
            Some(at) => self.past_delimiter(at),
            None => {
                self.waiting.advance(self.waiting.len().saturating_sub(self.delimiter.len() - 1));
                Step::Wait
            }
        }
    }

    fn past_delimiter(&mut self, at: usize) -> Step {
        self.waiting.advance(at + self.delimiter.len());
        self.state = State::AfterDelimiter;
        Step::On
    }

    fn after_delimiter(&mut self) -> Result<Step, BrokenForm> {
        if self.waiting.starts_with(b"--") {
            self.state = State::Done;
            self.waiting = BytesMut::new();
            return Ok(Step::Piece(FormPiece::End));
        }
        let blanks = self.waiting.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let rest = &self.waiting[blanks..];
        if blanks > MAX_BLANKS || !(b"\r\n".starts_with(rest) || rest.starts_with(b"\r\n") || *rest == *b"-") {
            return Err(BrokenForm);
        }
        if rest.len() < 2 {
            return Ok(Step::Wait);
        }
        self.parts += 1;
        if self.parts > MAX_PARTS {
            return Err(BrokenForm);
        }
        // The line break stays: a part without a head has nothing before its second one.
        self.waiting.advance(blanks);
        self.state = State::Head;
        Ok(Step::On)
    }

    fn head(&mut self) -> Result<Step, BrokenForm> {
        let Some(end) = memmem::find(&self.waiting, b"\r\n\r\n") else {
            return if self.waiting.len() > MAX_HEAD { Err(BrokenForm) } else { Ok(Step::Wait) };
        };
        if end > MAX_HEAD {
            return Err(BrokenForm);
        }
        let head = self.waiting.split_to(end + 4);
        let parameters = disposition(&head);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let field = parameter(parameters, b"name").map(text).unwrap_or_default();
        let filename = parameter(parameters, b"filename").map(text);
        match filename.or_else(|| parameter(parameters, b"filename*").map(|value| extended(&value))) {
            Some(filename) => {
                self.state = State::File;
                Ok(Step::Piece(FormPiece::File { field, filename }))
            }
            None => {
                self.state = State::Field(field);
                Ok(Step::On)
            }
        }
    }

    fn field(&mut self) -> Result<Step, BrokenForm> {
        let Some(at) = memmem::find(&self.waiting, &self.delimiter) else {
            let is_long = self.waiting.len() > MAX_FIELD + self.delimiter.len();
            return if is_long { Err(BrokenForm) } else { Ok(Step::Wait) };
        };
        if at > MAX_FIELD {
            return Err(BrokenForm);
        }
        let value = String::from_utf8_lossy(&self.waiting[..at]).into_owned();
        let State::Field(name) = std::mem::replace(&mut self.state, State::AfterDelimiter) else {
            return Err(BrokenForm);
        };
        self.waiting.advance(at + self.delimiter.len());
        Ok(Step::Piece(FormPiece::Field { name, value }))
    }

    fn file(&mut self) -> Step {
        match memmem::find(&self.waiting, &self.delimiter) {
            Some(0) => self.past_delimiter(0),
            Some(at) => Step::Piece(FormPiece::Bytes(self.waiting.split_to(at).freeze())),
            None => match self.waiting.len().saturating_sub(self.delimiter.len() - 1) {
                0 => Step::Wait,
                sure => Step::Piece(FormPiece::Bytes(self.waiting.split_to(sure).freeze())),
            },
        }
    }
}

enum Step {
    Piece(FormPiece),
    On,
    Wait,
}

/// `UTF-8''na%C3%AFve.jsonl`
fn extended(value: &[u8]) -> String {
    let text = value.rsplit(|byte| *byte == b'\'').next().unwrap_or_default();
    percent_decode(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests;
