//! The captured part of one body: shared where it is whole already, gathered where it comes in pieces, never longer
//! than the settings allow. Of what is no text, only the length is kept.

use super::head_lines;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use memchr::memmem;

#[derive(Debug, Default)]
pub struct CapturedBody {
    /// Shared with the code that sends it on.
    pub whole: Bytes,
    /// What came after it, in small pieces.
    pub more: Vec<u8>,
    /// Of the body itself.
    pub length: u64,
    pub is_text: bool,
}

impl CapturedBody {
    /// A body that is whole.
    pub fn whole(body: &Bytes, most: usize) -> Self {
        Self { whole: body.slice(..body.len().min(most)), more: Vec::new(), length: body.len() as u64, is_text: true }
    }

    /// A body whose head has come.
    pub fn begin(head: &HeaderMap) -> Self {
        let kind = head.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        Self { is_text: is_text(kind) && !head.contains_key(header::CONTENT_ENCODING), ..Self::default() }
    }

    /// The same from a head as it is kept.
    pub fn begin_after(lines: &[u8]) -> Self {
        let find = |name: &HeaderName| head_lines::find(lines, name.as_str());
        let kind = find(&header::CONTENT_TYPE).unwrap_or_default();
        Self { is_text: is_text(kind) && find(&header::CONTENT_ENCODING).is_none(), ..Self::default() }
    }

    /// A large piece, which is shared when it is the first.
    pub fn piece(&mut self, piece: &Bytes, most: usize) {
        if self.is_text && self.length == 0 {
            self.whole = piece.slice(..piece.len().min(most));
            self.length = piece.len() as u64;
        } else {
            self.gather(piece, most);
        }
    }

    /// A small piece: sharing it would keep the much larger memory alive that it was read into.
    pub fn gather(&mut self, piece: &[u8], most: usize) {
        if self.is_text {
            let room = most.saturating_sub(self.stored_length());
            self.more.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        self.length += piece.len() as u64;
    }

    /// A text of its own, on a line of its own.
    pub fn line(&mut self, text: &[u8], most: usize) {
        self.is_text = true;
        self.gather(text, most);
        self.gather(b"\n", most);
    }

    pub fn stored_length(&self) -> usize {
        self.whole.len() + self.more.len()
    }

    /// Takes out what a provider repeats of a credential. `end` finds the last bytes of it, which is all that is searched
    /// for in an answer that does not repeat it.
    pub fn scrub(&mut self, secret: &[u8], end: &memmem::Finder<'_>) {
        let is_split = !self.whole.is_empty() && !self.more.is_empty();
        if !is_split && end.find(&self.whole).is_none() && end.find(&self.more).is_none() {
            return;
        }
        let text = [&self.whole[..], &self.more].concat();
        (self.whole, self.more) = (Bytes::new(), without(&text, secret));
        // Or it would look cut.
        self.length = self.length.saturating_sub(text.len() as u64) + self.more.len() as u64;
    }
}

/// The text with a mask in place of each occurrence.
pub fn without(text: &[u8], secret: &[u8]) -> Vec<u8> {
    let mut left = Vec::with_capacity(text.len());
    let mut at = 0;
    for found in memmem::find_iter(text, secret) {
        left.extend_from_slice(&text[at..found]);
        left.extend_from_slice(super::mask::MASK.as_bytes());
        at = found + secret.len();
    }
    left.extend_from_slice(&text[at..]);
    left
}

/// Whether a body of this kind can be read by people. What is compressed cannot.
fn is_text(kind: &[u8]) -> bool {
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    kind.starts_with(b"application/json")
        || kind.starts_with(b"text/")
        || kind.ends_with(b"+json")
        || matches!(kind, b"application/x-ndjson" | b"application/jsonl" | b"application/xml")
}

#[cfg(test)]
mod tests;
