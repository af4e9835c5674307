//! The head of an answer as HTTP/1.1 spells it. A map hashes each name to find that it is new, and is then read again to
//! be written; an answer of which every header is known to be the only one of its name needs none.

use super::header_text::HeaderText;
use http::{HeaderName, HeaderValue, StatusCode, header};
use pingora_http::ResponseHeader;

/// Most answers have room in it with their bodies.
const ROOM: usize = 2048;
const DELIMITER: &[u8] = b": ";
const END: &[u8] = b"\r\n";

/// The line of the status and whole lines of headers, without what is said of the body's length and of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadLines {
    status: StatusCode,
    text: Vec<u8>,
}

impl HeadLines {
    pub fn new(status: StatusCode) -> Self {
        let mut text = Vec::with_capacity(ROOM);
        text.extend_from_slice(b"HTTP/1.1 ");
        text.extend_from_slice(status.as_str().as_bytes());
        text.push(b' ');
        text.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
        text.extend_from_slice(END);
        Self { status, text }
    }

    /// A header that is not among them yet.
    pub fn push(&mut self, name: &HeaderName, text: HeaderText<'_>) {
        // As Pingora spells it.
        let name = if *name == header::CONTENT_TYPE { "Content-Type" } else { name.as_str() };
        self.text.extend_from_slice(name.as_bytes());
        self.text.extend_from_slice(DELIMITER);
        text.push_to(&mut self.text);
        self.text.extend_from_slice(END);
    }

    /// All that a client is sent.
    pub fn into_answer(self, date: &HeaderValue, keeps_alive: bool, body: &[u8]) -> Vec<u8> {
        let mut text = self.text;
        text.extend_from_slice(b"Content-Length: ");
        text.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
        text.extend_from_slice(b"\r\nDate: ");
        text.extend_from_slice(date.as_bytes());
        text.extend_from_slice(match keeps_alive {
            true => b"\r\nConnection: keep-alive\r\n\r\n",
            false => b"\r\nConnection: close\r\n\r\n",
        });
        text.extend_from_slice(body);
        text
    }

    /// The head of an answer of this length, for connections that take no lines.
    pub fn head(&self, length: usize) -> ResponseHeader {
        let (mut head, ()) = http::Response::new(()).into_parts();
        head.status = self.status;
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        let mut rest = split(&self.text, END).map_or(&[][..], |(_, lines)| lines);
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

/// Neither a name nor a value has a line's end in it, and no name a colon.
fn split<'t>(text: &'t [u8], at: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let place = text.windows(at.len()).position(|window| window == at)?;
    Some((text.get(..place)?, text.get(place + at.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(status: u16) -> HeadLines {
        let mut lines = HeadLines::new(StatusCode::from_u16(status).unwrap());
        lines.push(&header::CONTENT_TYPE, HeaderText::Static("application/json"));
        lines.push(&HeaderName::from_static("server-timing"), HeaderText::Static("a;dur=1, b: 2"));
        lines.push(&HeaderName::from_static("x-empty"), HeaderText::Static(""));
        lines.push(&HeaderName::from_static("x-bytes"), HeaderText::Value(&HeaderValue::from_bytes(b"\xe9").unwrap()));
        lines
    }

    #[test]
    fn an_answer_says_its_length_and_what_becomes_of_the_connection() {
        let date = HeaderValue::from_static("Thu, 01 Jan 1970 00:00:01 GMT");
        for (status, begins, keeps_alive, connection) in
            [(200, "HTTP/1.1 200 OK", true, "keep-alive"), (246, "HTTP/1.1 246 ", false, "close")]
        {
            let mut expected = format!(
                "{begins}\r\nContent-Type: application/json\r\nserver-timing: a;dur=1, b: 2\r\nx-empty: \r\nx-bytes: "
            )
            .into_bytes();
            expected.push(0xe9);
            let rest = format!(
                "\r\nContent-Length: 4\r\nDate: Thu, 01 Jan 1970 00:00:01 GMT\r\nConnection: {connection}\r\n\r\nbody"
            );
            expected.extend_from_slice(rest.as_bytes());
            assert_eq!(lines(status).into_answer(&date, keeps_alive, b"body"), expected);
        }
    }

    #[test]
    fn a_head_is_made_of_all_of_them() {
        let head = lines(246).head(7);
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
