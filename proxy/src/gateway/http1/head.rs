//! Which heads are plain: what nearly every call to a model looks like, and nothing about which two readers of HTTP could
//! differ. A head that is unusual in anything is Pingora's, which knows all of the protocol; so nothing is refused here.

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, header};
use pingora_http::RequestHeader;
use proxy::request::classify::is_engine_call;

/// Plain heads are no longer, and have no more headers.
pub const LONGEST: usize = 16 << 10;
const MOST_HEADERS: usize = 48;

/// What is known of the bytes that have come.
pub enum Found {
    /// They could be the beginning of one.
    Part,
    Plain(Box<PlainHead>),
    Other,
}

pub struct PlainHead {
    pub head: RequestHeader,
    /// Of the head, and of the body behind it.
    pub length: usize,
    pub body_length: u64,
    /// The client means to use its connection again.
    pub is_kept_alive: bool,
}

/// Looks at what has come of a request. The bytes stay where they are.
pub fn find(bytes: &BytesMut) -> Found {
    const BEGINNING: &[u8] = b"POST /";
    let beginning = bytes.len().min(BEGINNING.len());
    if bytes[..beginning] != BEGINNING[..beginning] {
        return Found::Other;
    }
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) if length <= LONGEST => match plain(&request, &bytes[..length]) {
            Some(head) => Found::Plain(Box::new(head)),
            None => Found::Other,
        },
        Ok(httparse::Status::Partial) if bytes.len() < LONGEST => Found::Part,
        _ => Found::Other,
    }
}

/// Takes the head off the bytes, of which it was found to be the beginning.
pub fn take(bytes: &mut BytesMut, head: &PlainHead) {
    bytes.advance(head.length.min(bytes.len()));
}

fn plain(request: &httparse::Request<'_, '_>, text: &[u8]) -> Option<PlainHead> {
    // Bare line feeds are taken for ends of lines by some and not by others.
    if request.version != Some(1) || has_bare_line_feed(text) {
        return None;
    }
    let path = request.path.filter(|path| is_engine_call(path))?;
    let mut head = RequestHeader::build_no_case(Method::POST, path.as_bytes(), Some(request.headers.len())).ok()?;
    // One copy for all values: the bytes around them are used for what comes next.
    let shared = Bytes::copy_from_slice(text);
    let (mut hosts, mut length, mut is_kept_alive) = (0, None, true);
    for field in request.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        match name {
            header::TRANSFER_ENCODING | header::EXPECT | header::UPGRADE | header::TE | header::TRAILER => return None,
            header::HOST if hosts > 0 || !is_host(field.value) => return None,
            header::HOST => hosts += 1,
            header::CONTENT_LENGTH if length.is_some() => return None,
            header::CONTENT_LENGTH => length = Some(number(field.value)?),
            header::CONNECTION if field.value.eq_ignore_ascii_case(b"keep-alive") => {}
            header::CONNECTION if field.value.eq_ignore_ascii_case(b"close") => is_kept_alive = false,
            header::CONNECTION => return None,
            _ => {}
        }
        let value = HeaderValue::from_maybe_shared(copied_part(&shared, text, field.value)?).ok()?;
        head.append_header(name, value).ok()?;
    }
    let body_length = length.filter(|_| hosts == 1)?;
    Some(PlainHead { head, length: text.len(), body_length, is_kept_alive })
}

/// The part of a copy that is where a part of its original is.
fn copied_part(copy: &Bytes, original: &[u8], part: &[u8]) -> Option<Bytes> {
    let begin = (part.as_ptr() as usize).checked_sub(original.as_ptr() as usize)?;
    let end = begin.checked_add(part.len()).filter(|end| *end <= copy.len())?;
    Some(copy.slice(begin..end))
}

fn has_bare_line_feed(text: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', text).any(|place| place == 0 || text[place - 1] != b'\r')
}

/// Digits alone, and not more than any body has.
fn number(text: &[u8]) -> Option<u64> {
    const MOST_DIGITS: usize = 15;
    if text.is_empty() || text.len() > MOST_DIGITS {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, digit| digit.is_ascii_digit().then(|| sum * 10 + u64::from(digit - b'0')))
}

fn is_host(text: &[u8]) -> bool {
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || b".-:".contains(byte);
    !text.is_empty() && text.len() <= 255 && text.iter().all(is_usual)
}

#[cfg(test)]
mod tests;
