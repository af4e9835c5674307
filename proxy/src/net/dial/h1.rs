//! One HTTP/1.1 exchange as a client: a request out, an answer in. Pingora's own session keeps the spelling of every
//! header, digests and retry state that nobody here asks for; that was a sixth of what a request cost us.
//!
//! Stricter than a browser: an answer whose end is ambiguous is an error, never a guess.

use std::io;
use std::mem::MaybeUninit;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{StatusCode, Version};
use pingora_http::ResponseHeader;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::error::Elapsed;

use super::Origin;
use super::chunked::Chunked;
use super::cork::Cork;
use super::error::Class;
use super::framing;
use super::repeat::is_acknowledged;
use super::request::UpstreamRequest;
use crate::runtime::timeout::with_timeout;

const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 100;
/// What one read asks for: an ordinary answer whole, a long one in pieces worth a system call.
const READ: usize = 8 << 10;
const READ_LONG: usize = 64 << 10;
/// Each piece of a large body gets its own write timeout.
const PIECE: usize = 1 << 20;
/// Interim answers (1xx) before we stop believing in a real one.
const MAX_INTERIM: usize = 16;

pub struct Http1 {
    cork: Box<Cork>,
    /// Read and not yet passed on.
    buffer: BytesMut,
    head: Option<ResponseHeader>,
    body: RemainingBody,
    keeps_alive: bool,
    promised: Option<Duration>,
}

/// What is left of the answer's body.
enum RemainingBody {
    Length(u64),
    Chunked(Chunked),
    UntilClose,
    Done,
}

impl Http1 {
    pub fn new(cork: Box<Cork>) -> Self {
        Self {
            cork,
            buffer: BytesMut::new(),
            head: None,
            body: RemainingBody::Done,
            keeps_alive: false,
            promised: None,
        }
    }

    /// Any byte of the answer came in.
    pub fn has_heard(&self) -> bool {
        self.cork.has_heard()
    }

    /// Whether the other end's machine has taken everything that was written.
    pub fn is_taken(&self) -> bool {
        is_acknowledged(self.cork.socket())
    }

    /// Head and body leave together. A server that takes nothing for `stall` is given up.
    pub async fn send(
        &mut self,
        request: &UpstreamRequest,
        origin: &Origin,
        body: &[u8],
        stall: Duration,
    ) -> Result<(), Class> {
        self.begin(request, origin, body.len());
        self.send_piece(body, stall).await?;
        self.flush(stall).await
    }

    /// The head of a request whose body follows; it leaves with the first of that.
    pub fn begin(&mut self, request: &UpstreamRequest, origin: &Origin, length: usize) {
        self.cork.start(length > 0, |wire| framing::write_h1(wire, request, length, origin));
    }

    /// Bytes of the body.
    pub async fn send_piece(&mut self, bytes: &[u8], stall: Duration) -> Result<(), Class> {
        for piece in bytes.chunks(PIECE) {
            in_time(with_timeout(stall, pin!(self.cork.write_all(piece))).await)?;
        }
        Ok(())
    }

    /// Everything was given.
    pub async fn flush(&mut self, stall: Duration) -> Result<(), Class> {
        in_time(with_timeout(stall, pin!(self.cork.flush())).await)
    }

    /// Waits for the head of the final answer. The caller limits the time.
    pub async fn read_head(&mut self) -> Result<(), Class> {
        for _ in 0..MAX_INTERIM {
            let head = loop {
                if let Some(head) = parse_head(&mut self.buffer)? {
                    break head;
                }
                if self.buffer.len() > MAX_HEAD {
                    return Err(Class::Protocol);
                }
                if self.fill(READ).await? == 0 {
                    return Err(Class::Reset);
                }
            };
            match head.status {
                // We never ask for an upgrade, so 101 is as wrong as no answer.
                StatusCode::SWITCHING_PROTOCOLS => return Err(Class::Protocol),
                status if status.is_informational() => {}
                _ => return self.begin_answer(head),
            }
        }
        Err(Class::Protocol)
    }

    fn begin_answer(&mut self, mut parts: http::response::Parts) -> Result<(), Class> {
        let has = PresentHeaders::from_headers(&parts.headers);
        let has_both = has.coding && has.length;
        self.body = body_of(parts.status, &has, &parts.headers)?;
        if has_both {
            parts.headers.remove(CONTENT_LENGTH);
        }
        let closes = has.connection && says_close(&parts.headers);
        self.keeps_alive = parts.version == Version::HTTP_11
            && !has_both
            && !matches!(self.body, RemainingBody::UntilClose)
            && !closes;
        self.promised = has.keep_alive.then(|| framing::promised_keep_alive(&parts.headers)).flatten();
        self.head = Some(ResponseHeader::from(parts));
        Ok(())
    }

    pub fn head(&self) -> Option<&ResponseHeader> {
        self.head.as_ref()
    }

    pub fn take_head(&mut self) -> Option<ResponseHeader> {
        self.head.take()
    }

    pub fn is_done(&self) -> bool {
        matches!(self.body, RemainingBody::Done)
    }

    /// The next piece of the body; `None` when it is complete. Given up in the middle, it loses nothing.
    pub async fn read_body(&mut self, idle: Duration) -> Result<Option<Bytes>, Class> {
        loop {
            if let Some(piece) = self.next_piece()? {
                return Ok(Some(piece));
            }
            if self.is_done() {
                return Ok(None);
            }
            let wanted =
                if matches!(self.body, RemainingBody::Length(left) if left > READ as u64) { READ_LONG } else { READ };
            let read = with_timeout(idle, pin!(self.fill(wanted))).await.map_err(|_| Class::IdleTimeout)??;
            if read == 0 {
                return match self.body {
                    RemainingBody::UntilClose => {
                        self.body = RemainingBody::Done;
                        Ok(None)
                    }
                    _ => Err(Class::Reset),
                };
            }
        }
    }

    /// What the buffer already holds of the body.
    fn next_piece(&mut self) -> Result<Option<Bytes>, Class> {
        let piece = match &mut self.body {
            RemainingBody::Done => return Ok(None),
            RemainingBody::UntilClose => self.buffer.split().freeze(),
            RemainingBody::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(self.buffer.len());
                *left -= taken as u64;
                let piece = self.buffer.split_to(taken).freeze();
                if *left == 0 {
                    self.body = RemainingBody::Done;
                }
                piece
            }
            RemainingBody::Chunked(chunks) => {
                let piece = chunks.decode(&mut self.buffer).map_err(|_| Class::Protocol)?;
                if chunks.is_done() {
                    self.body = RemainingBody::Done;
                }
                piece
            }
        };
        Ok((!piece.is_empty()).then_some(piece))
    }

    async fn fill(&mut self, wanted: usize) -> Result<usize, Class> {
        self.buffer.reserve(wanted);
        self.cork.read_buf(&mut self.buffer).await.map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData => Class::Protocol,
            _ => Class::Reset,
        })
    }

    /// The connection, if another request can trust it, and how long the server promised to keep it.
    pub fn into_idle(self) -> Option<(Box<Cork>, Option<Duration>)> {
        let is_clean = self.keeps_alive && matches!(self.body, RemainingBody::Done) && self.buffer.is_empty();
        is_clean.then_some((self.cork, self.promised))
    }
}

/// One head from the buffer, once it is all there. Names and values share the buffer's memory.
pub fn parse_head(buffer: &mut BytesMut) -> Result<Option<http::response::Parts>, Class> {
    // Not filled: that would cost more than reading most heads.
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut []);
    let rules = httparse::ParserConfig::default();
    let length = match rules.parse_response_with_uninit_headers(&mut parsed, buffer, &mut space) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Class::Protocol),
    };
    let status = parsed.code.and_then(|code| StatusCode::from_u16(code).ok()).ok_or(Class::Protocol)?;
    let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let start = buffer.as_ptr() as usize;
    let mut headers = HeaderMap::with_capacity(parsed.headers.len() + 10);
    let mut values = Vec::with_capacity(parsed.headers.len());
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| Class::Protocol)?;
        let offset = header.value.as_ptr() as usize - start;
        values.push((name, offset, header.value.len()));
    }
    let bytes = buffer.split_to(length).freeze();
    for (name, offset, length) in values {
        // An empty value may point anywhere.
        let value = if length == 0 { Bytes::new() } else { bytes.slice(offset..offset + length) };
        headers.append(name, HeaderValue::from_maybe_shared(value).map_err(|_| Class::Protocol)?);
    }
    let (mut parts, ()) = http::Response::new(()).into_parts();
    (parts.status, parts.version, parts.headers) = (status, version, headers);
    Ok(Some(parts))
}

fn in_time(written: Result<io::Result<()>, Elapsed>) -> Result<(), Class> {
    written.map_err(|_| Class::WriteTimeout)?.map_err(|_| Class::Reset)
}

/// Which of the headers that matter here an answer has, found in one walk: looking for each hashes its name.
#[derive(Default)]
struct PresentHeaders {
    coding: bool,
    length: bool,
    connection: bool,
    keep_alive: bool,
}

impl PresentHeaders {
    fn from_headers(headers: &HeaderMap) -> Self {
        let mut has = Self::default();
        for name in headers.keys() {
            match name.as_str() {
                "transfer-encoding" => has.coding = true,
                "content-length" => has.length = true,
                "connection" => has.connection = true,
                "keep-alive" => has.keep_alive = true,
                _ => {}
            }
        }
        has
    }
}

/// Where the body ends (RFC 9112 §6.3).
fn body_of(status: StatusCode, has: &PresentHeaders, headers: &HeaderMap) -> Result<RemainingBody, Class> {
    if status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
        return Ok(RemainingBody::Done);
    }
    if has.coding {
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        let is_chunked = |coding: &HeaderValue| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
        // We send no `TE`, so no other coding may be used.
        let is_only_chunked = codings.next().is_some_and(is_chunked) && codings.next().is_none();
        return if is_only_chunked { Ok(RemainingBody::Chunked(Chunked::default())) } else { Err(Class::Protocol) };
    }
    let mut length = None;
    let lines = headers.get_all(CONTENT_LENGTH).iter();
    for value in lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')) {
        let value = decimal(value.trim_ascii()).ok_or(Class::Protocol)?;
        if length.is_some_and(|earlier| earlier != value) {
            return Err(Class::Protocol);
        }
        length = Some(value);
    }
    Ok(match length {
        None => RemainingBody::UntilClose,
        Some(0) => RemainingBody::Done,
        Some(length) => RemainingBody::Length(length),
    })
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

fn says_close(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CONNECTION).iter();
    let mut tokens = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"close"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_where_exactly_one_rule_says_or_it_is_refused() {
        for (status, pairs, expected) in [
            (200, vec![("content-length", "5")], Ok("length 5")),
            (200, vec![("content-length", "0")], Ok("done")),
            (200, vec![("content-length", "5, 5")], Ok("length 5")),
            (200, vec![("content-length", "5"), ("content-length", "5")], Ok("length 5")),
            (200, vec![("content-length", "5"), ("content-length", "6")], Err(())),
            (200, vec![("content-length", "+5")], Err(())),
            (200, vec![("content-length", "0x5")], Err(())),
            (200, vec![("content-length", "")], Err(())),
            (200, vec![("content-length", "99999999999999999999")], Err(())),
            (200, vec![("transfer-encoding", "chunked")], Ok("chunked")),
            (200, vec![("transfer-encoding", "Chunked "), ("content-length", "5")], Ok("chunked")),
            (200, vec![("transfer-encoding", "gzip, chunked")], Err(())),
            (200, vec![("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], Err(())),
            (200, vec![("transfer-encoding", "identity")], Err(())),
            (200, vec![], Ok("until close")),
            (204, vec![("content-length", "5")], Ok("done")),
            (304, vec![("content-length", "5")], Ok("done")),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in &pairs {
                headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let found =
                body_of(StatusCode::from_u16(status).unwrap(), &PresentHeaders::from_headers(&headers), &headers)
                    .map_err(|_| ())
                    .map(|body| match body {
                        RemainingBody::Length(length) => format!("length {length}"),
                        RemainingBody::Chunked(_) => "chunked".into(),
                        RemainingBody::UntilClose => "until close".into(),
                        RemainingBody::Done => "done".into(),
                    });
            assert_eq!(found.as_deref(), expected.as_ref().copied().map_err(|_| &()), "{status} {pairs:?}");
        }
    }
}
