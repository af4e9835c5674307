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
            let room = most.saturating_sub(self.kept());
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

    pub fn kept(&self) -> usize {
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
mod tests {
    use super::*;

    fn of(kind: &'static str) -> CapturedBody {
        let mut head = HeaderMap::new();
        head.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        CapturedBody::begin(&head)
    }

    fn text(kept: &CapturedBody) -> String {
        String::from_utf8([&kept.whole[..], &kept.more].concat()).unwrap()
    }

    #[test]
    fn no_more_than_allowed_is_kept_and_all_is_measured() {
        for pieces in [&["abcdef"][..], &["abc", "def"], &["a", "b", "c", "d", "e", "f"]] {
            for (most, expected) in [(0, ""), (2, "ab"), (3, "abc"), (4, "abcd"), (6, "abcdef"), (100, "abcdef")] {
                let (mut shared, mut gathered) = (of("text/plain"), of("text/event-stream; charset=utf-8"));
                for piece in pieces {
                    shared.piece(&Bytes::from_static(piece.as_bytes()), most);
                    gathered.gather(piece.as_bytes(), most);
                }
                for kept in [shared, gathered] {
                    assert_eq!((text(&kept).as_str(), kept.length), (expected, 6), "{pieces:?} {most}");
                }
            }
        }
    }

    #[test]
    fn what_is_whole_is_shared() {
        let body = Bytes::from_static(b"abc");
        let mut kept = of("application/json");
        kept.piece(&body, 100);
        assert_eq!(
            (kept.whole.as_ptr(), CapturedBody::whole(&body, 100).whole.as_ptr()),
            (body.as_ptr(), body.as_ptr())
        );
    }

    #[test]
    fn a_kept_head_tells_text_as_the_head_itself_does() {
        for kind in ["application/json; charset=utf-8", "text/plain", "application/problem+json", "audio/mpeg"] {
            let lines = format!("/v1/x\nhost: a\ncontent-type: {kind}\nx-b: c\n");
            assert_eq!(CapturedBody::begin_after(lines.as_bytes()).is_text, of(kind).is_text, "{kind}");
        }
    }

    #[test]
    fn what_is_no_text_is_only_measured() {
        let mut encoded = HeaderMap::new();
        encoded.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        encoded.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        let mut lines = Vec::new();
        head_lines::write(&mut lines, &encoded, None);
        for mut kept in [
            of("audio/mpeg"),
            of("multipart/form-data"),
            CapturedBody::begin(&encoded),
            CapturedBody::begin(&HeaderMap::new()),
            CapturedBody::begin_after(&lines),
            CapturedBody::begin_after(b"content-type: audio/mpeg\n"),
            CapturedBody::begin_after(b""),
        ] {
            kept.piece(&Bytes::from_static(b"abc"), 100);
            kept.gather(b"def", 100);
            assert_eq!((kept.kept(), kept.length), (0, 6));
        }
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands() {
        for (whole, more) in [("a sk-12345 b", ""), ("", "a sk-12345 b"), ("a sk-1", "2345 b")] {
            let mut kept = CapturedBody { whole: Bytes::from(whole), more: more.into(), length: 12, is_text: true };
            kept.scrub(b"sk-12345", &memmem::Finder::new("2345"));
            assert_eq!((text(&kept).as_str(), kept.length), ("a ***** b", 9));
        }
    }
}
