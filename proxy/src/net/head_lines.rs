//! Headers of an answer as HTTP/1.1 spells them. A map hashes each name to find that it is new, and is then read again to
//! be written; an answer of which every header is known to be the only one of its name needs none.

use super::header_text::HeaderText;
use http::{HeaderName, HeaderValue, StatusCode, header};
use pingora_http::ResponseHeader;

/// Most heads have room in it.
const ROOM: usize = 1024;
const DELIMITER: &[u8] = b": ";
const END: &[u8] = b"\r\n";

/// Whole lines, without the status and the length of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadLines(Vec<u8>);

impl Default for HeadLines {
    fn default() -> Self {
        Self(Vec::with_capacity(ROOM))
    }
}

impl HeadLines {
    /// A header that is not among them yet.
    pub fn push(&mut self, name: &HeaderName, text: HeaderText<'_>) {
        // As Pingora spells it.
        let name = if *name == header::CONTENT_TYPE { "Content-Type" } else { name.as_str() };
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(DELIMITER);
        text.push_to(&mut self.0);
        self.0.extend_from_slice(END);
    }

    /// With the blank line that ends a head.
    pub fn into_end_of_head(mut self) -> Vec<u8> {
        self.0.extend_from_slice(END);
        self.0
    }

    /// The whole head of an answer of this length, for connections that take no lines.
    pub fn head(&self, status: StatusCode, length: usize) -> ResponseHeader {
        let mut head = bare_head(status, length);
        let mut rest = self.0.as_slice();
        while let Some((line, after)) = split(rest, END) {
            rest = after;
            if let Some((name, value)) = split(line, DELIMITER)
                && let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
            {
                head.headers.append(name, value);
            }
        }
        ResponseHeader::from(head)
    }
}

/// What is left of a head when its lines are written apart.
pub fn bare_head(status: StatusCode, length: usize) -> http::response::Parts {
    let (mut head, ()) = http::Response::new(()).into_parts();
    head.status = status;
    head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    head
}

/// Neither a name nor a value has a line's end in it, and no name a colon.
fn split<'t>(text: &'t [u8], at: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let place = text.windows(at.len()).position(|window| window == at)?;
    Some((text.get(..place)?, text.get(place + at.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> HeadLines {
        let mut lines = HeadLines::default();
        lines.push(&header::CONTENT_TYPE, HeaderText::Static("application/json"));
        lines.push(&HeaderName::from_static("server-timing"), HeaderText::Static("a;dur=1, b: 2"));
        lines.push(&HeaderName::from_static("x-empty"), HeaderText::Static(""));
        lines.push(&HeaderName::from_static("x-bytes"), HeaderText::Value(&HeaderValue::from_bytes(b"\xe9").unwrap()));
        lines
    }

    #[test]
    fn lines_end_a_head_that_begins_elsewhere() {
        let expected =
            b"Content-Type: application/json\r\nserver-timing: a;dur=1, b: 2\r\nx-empty: \r\nx-bytes: \xe9\r\n\r\n";
        assert_eq!(lines().into_end_of_head(), expected);
    }

    #[test]
    fn a_head_is_made_of_all_of_them() {
        let head = lines().head(StatusCode::from_u16(246).unwrap(), 7);
        assert_eq!(head.status.as_u16(), 246);
        let told = |name: &str| head.headers.get(name).map(|value| value.as_bytes().to_vec());
        assert_eq!(told("content-length").as_deref(), Some(&b"7"[..]));
        assert_eq!(told("content-type").as_deref(), Some(&b"application/json"[..]));
        assert_eq!(told("server-timing").as_deref(), Some(&b"a;dur=1, b: 2"[..]));
        assert_eq!(told("x-empty").as_deref(), Some(&b""[..]));
        assert_eq!(told("x-bytes").as_deref(), Some(&b"\xe9"[..]));
        assert_eq!(head.headers.len(), 5);
    }
}
