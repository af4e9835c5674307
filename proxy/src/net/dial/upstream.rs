//! One request and its answer over one connection, HTTP/1 or HTTP/2. Dropping it at any point cancels the call: the
//! connection is closed or the stream reset. Only `release` gives a connection back, and only one that is clean.

mod pieces;

pub use pieces::PieceSource;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header;
use pingora_core::Error;
use pingora_core::protocols::http::v2::client::Http2Session as Http2;
use pingora_core::protocols::http::v2::write_body;
use pingora_http::ResponseHeader;

use super::Origin;
use super::cork::Cork;
use super::error::{Class, UpstreamError};
use super::framing;
use super::h1::Http1;
use super::pool::ConnectionPool;
use super::repeat::{SendProgress, is_unprocessed};
use super::request::UpstreamRequest;
use crate::runtime::memory::{HeldSize, MemoryOwner, NoRoom};
use crate::runtime::timeout::with_deadline;
use crate::wire::framing::compression::{ContentEncoding, Decoder};

/// How long a provider that broke off our upload may take to tell why.
const EARLY_ANSWER: Duration = Duration::from_secs(1);
/// Nobody waits longer for an answer, whatever is set.
const MAX_WAIT: Duration = Duration::from_secs(86_400);

pub struct Upstream {
    origin: Arc<Origin>,
    pool: Arc<ConnectionPool>,
    exchange: Exchange,
    reused: bool,
    first_byte: HeadTimeout,
    idle_timeout: Duration,
    /// When the head of the answer must be there, once the request begins to be written.
    answer_by: Option<Instant>,
    /// When it was wholly written.
    sent: Option<Instant>,
    /// The request is on its way and its head was not waited for in vain; Pingora panics when asked twice.
    awaits_head: bool,
    head_read: bool,
    done: bool,
    /// Set for an answer that is compressed.
    decoder: Option<Box<Decoder>>,
}

/// How long the head of an answer may take.
#[derive(Clone, Copy)]
enum HeadTimeout {
    /// From the moment that the request begins to be written.
    For(Duration),
    Until(Instant),
}

enum Exchange {
    Ready(Box<Cork>),
    H1(Box<Http1>),
    H2(Box<Http2>),
    Over,
}

/// What each protocol says when it fails.
enum Failed {
    H1(Class),
    H2(Box<Error>),
}

impl Upstream {
    pub(super) fn h1(origin: Arc<Origin>, pool: Arc<ConnectionPool>, cork: Box<Cork>, reused: bool) -> Self {
        Self::new(origin, pool, Exchange::Ready(cork), reused)
    }

    pub(super) fn h2(origin: Arc<Origin>, pool: Arc<ConnectionPool>, stream: Http2, reused: bool) -> Self {
        Self::new(origin, pool, Exchange::H2(Box::new(stream)), reused)
    }

    fn new(origin: Arc<Origin>, pool: Arc<ConnectionPool>, exchange: Exchange, reused: bool) -> Self {
        let forever = Duration::from_secs(600);
        Self {
            origin,
            pool,
            exchange,
            reused,
            first_byte: HeadTimeout::For(forever),
            idle_timeout: forever,
            answer_by: None,
            sent: None,
            awaits_head: false,
            head_read: false,
            done: false,
            decoder: None,
        }
    }

    /// The longest waits: from the start of the request to the whole head of its answer, and for each piece after that.
    /// An upload also ends when the provider takes nothing of it for the second of them.
    pub fn set_timeouts(&mut self, first_byte: Duration, idle: Duration) {
        self.first_byte = HeadTimeout::For(first_byte);
        self.idle_timeout = idle;
    }

    /// The same where it is known when the head of the answer must be there.
    pub fn set_deadline(&mut self, answer_by: Instant, idle: Duration) {
        self.first_byte = HeadTimeout::Until(answer_by);
        self.idle_timeout = idle;
    }

    /// The connection carried a request before.
    pub fn is_reused(&self) -> bool {
        self.reused
    }

    pub fn is_h2(&self) -> bool {
        matches!(self.exchange, Exchange::H2(_))
    }

    pub fn origin(&self) -> &Arc<Origin> {
        &self.origin
    }

    /// Sends the request. `Host` and the framing headers are set here, so that they cannot disagree with where and how
    /// it is sent. Ok also when the provider answered before it had read everything: the answer says why.
    pub async fn send(&mut self, request: impl Into<UpstreamRequest>, body: Bytes) -> Result<(), UpstreamError> {
        let request = request.into();
        let limit = match self.first_byte {
            HeadTimeout::Until(limit) => limit,
            HeadTimeout::For(duration) => Instant::now() + duration.min(MAX_WAIT),
        };
        self.answer_by = Some(limit);
        match with_deadline(limit, pin!(self.send_now(&request, body))).await {
            Ok(sent) => sent,
            Err(_) => Err(UpstreamError::new(Class::FirstByteTimeout, message(Class::FirstByteTimeout))),
        }
    }

    async fn send_now(&mut self, request: &UpstreamRequest, body: Bytes) -> Result<(), UpstreamError> {
        match std::mem::replace(&mut self.exchange, Exchange::Over) {
            Exchange::Ready(cork) => self.send_h1(cork, request, body).await,
            Exchange::H2(stream) => {
                self.exchange = Exchange::H2(stream);
                Box::pin(self.send_h2(request, body)).await
            }
            Exchange::H1(_) | Exchange::Over => Err(UpstreamError::new(Class::Protocol, "a request was already sent")),
        }
    }

    async fn send_h1(&mut self, cork: Box<Cork>, request: &UpstreamRequest, body: Bytes) -> Result<(), UpstreamError> {
        self.exchange = Exchange::H1(Box::new(Http1::new(cork)));
        self.awaits_head = true;
        let Exchange::H1(session) = &mut self.exchange else { return Err(over()) };
        match session.send(request, &self.origin, &body, self.idle_timeout).await {
            Ok(()) => {
                self.sent = Some(Instant::now());
                Ok(())
            }
            Err(class) => Box::pin(self.hear_why(self.explain_class(class))).await,
        }
    }

    async fn send_h2(&mut self, request: &UpstreamRequest, body: Bytes) -> Result<(), UpstreamError> {
        let head = Box::new(framing::h2_head(request, body.len(), &self.origin)?);
        let Exchange::H2(stream) = &mut self.exchange else { return Err(over()) };
        let is_whole = body.is_empty();
        if let Err(e) = stream.write_request_header(head, is_whole) {
            return Err(self.explain(&e));
        }
        self.awaits_head = true;
        let written = if is_whole { Ok(true) } else { self.write_h2_body(body).await };
        match written {
            Ok(is_whole) => {
                self.sent = is_whole.then(Instant::now);
                if !self.awaits_head {
                    self.head_arrived();
                }
                Ok(())
            }
            Err(e) => self.hear_why(self.explain(&e)).await,
        }
    }

    /// Writes the body while listening for an answer: a provider may refuse an upload without reading it. False when it
    /// did, and the rest was not sent.
    async fn write_h2_body(&mut self, body: Bytes) -> Result<bool, Box<Error>> {
        let Exchange::H2(stream) = &mut self.exchange else { return Ok(false) };
        let Some(mut writer) = stream.take_request_body_writer() else { return Ok(false) };
        let mut writing = pin!(write_body(&mut writer, body, true, Some(self.idle_timeout)));
        tokio::select! {
            biased;
            written = &mut writing => return written.map(|()| true),
            read = stream.read_response_header() => {
                self.awaits_head = false;
                read?;
            }
        }
        // Anything milder than a refusal may need the rest of the body.
        let refused = stream.response_header().is_some_and(|head| head.status.as_u16() >= 400);
        if refused { Ok(false) } else { writing.await.map(|()| true) }
    }

    /// Writing failed: perhaps the provider refused the upload and said so before it closed.
    async fn hear_why(&mut self, failed: UpstreamError) -> Result<(), UpstreamError> {
        match tokio::time::timeout(EARLY_ANSWER, self.read_head()).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(failed),
        }
    }

    /// Waits for the head of the answer; interim answers are skipped.
    pub async fn read_head(&mut self) -> Result<(), UpstreamError> {
        if self.head_read {
            return Ok(());
        }
        let Some(limit) = self.answer_by.filter(|_| self.awaits_head) else { return Err(over()) };
        let read = match &mut self.exchange {
            Exchange::H1(session) => {
                with_deadline(limit, pin!(session.read_head())).await.map(|read| read.map_err(Failed::H1))
            }
            Exchange::H2(stream) => {
                with_deadline(limit, pin!(stream.read_response_header())).await.map(|read| read.map_err(Failed::H2))
            }
            Exchange::Ready(_) | Exchange::Over => return Err(over()),
        };
        self.awaits_head = false;
        match read {
            Ok(Ok(())) => {
                self.head_arrived();
                Ok(())
            }
            Ok(Err(Failed::H1(class))) => Err(self.explain_class(class)),
            Ok(Err(Failed::H2(e))) => Err(self.explain(&e)),
            Err(_) => Err(UpstreamError::new(Class::FirstByteTimeout, message(Class::FirstByteTimeout))),
        }
    }

    fn head_arrived(&mut self) {
        self.head_read = true;
        if let Exchange::H2(stream) = &mut self.exchange {
            stream.read_timeout = Some(self.idle_timeout);
        }
        self.note_end();
    }

    /// The head of the answer, once `read_head` has read it and until `take_head` has taken it.
    pub fn head(&self) -> &ResponseHeader {
        let head = match &self.exchange {
            Exchange::H1(session) => session.head(),
            Exchange::H2(stream) => stream.response_header(),
            Exchange::Ready(_) | Exchange::Over => None,
        };
        head.expect(HAS_HEAD)
    }

    /// The head as the caller's own, once.
    pub fn take_head(&mut self) -> ResponseHeader {
        let head = match &mut self.exchange {
            Exchange::H1(session) => session.take_head(),
            Exchange::H2(stream) => stream.response_header().cloned(),
            Exchange::Ready(_) | Exchange::Over => None,
        };
        let mut head = head.expect(HAS_HEAD);
        if self.decoder.is_some() {
            head.remove_header(&header::CONTENT_ENCODING);
            head.remove_header(&header::CONTENT_LENGTH);
        }
        head
    }

    /// From here on `read_body` undoes the compression of the answer, if it has one; what that takes counts for
    /// `owner`, where somebody else's server is asked. The error names one that it cannot undo.
    pub fn inflate(&mut self, owner: Option<MemoryOwner<'_>>) -> Result<(), String> {
        let encoding = ContentEncoding::from_headers(&self.head().headers).map_err(|unknown| unknown.0)?;
        self.decoder =
            encoding.map(|encoding| Box::new(Decoder::new(encoding, owner.map(HeldSize::new).unwrap_or_default())));
        Ok(())
    }

    /// The answer has a compression that `read_body` does not undo.
    pub fn is_encoded(&self) -> bool {
        self.decoder.is_none() && ContentEncoding::from_headers(&self.head().headers) != Ok(None)
    }

    /// The next piece of the answer's body, never an empty one; `None` when it is complete.
    pub async fn read_body(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        while !self.done {
            let read = match &mut self.exchange {
                Exchange::H1(session) => session.read_body(self.idle_timeout).await.map_err(Failed::H1),
                Exchange::H2(stream) => stream.read_response_body().await.map_err(Failed::H2),
                Exchange::Ready(_) | Exchange::Over => return Err(over()),
            };
            match read {
                Ok(Some(piece)) => {
                    self.note_end();
                    let piece = self.inflated(piece)?;
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
                Ok(None) => {
                    self.done = true;
                    let rest = self.inflated(Bytes::new())?;
                    if !rest.is_empty() {
                        return Ok(Some(rest));
                    }
                }
                Err(Failed::H1(class)) => return Err(self.explain_class(class)),
                Err(Failed::H2(e)) => return Err(self.explain(&e)),
            }
        }
        Ok(None)
    }

    fn inflated(&mut self, piece: Bytes) -> Result<Bytes, UpstreamError> {
        let Some(decoder) = &mut self.decoder else { return Ok(piece) };
        let inflated = decoder.push(&piece, self.done);
        inflated.map_err(|error| match error.get_ref().and_then(|inner| inner.downcast_ref::<NoRoom>()) {
            Some(why) => UpstreamError::no_room(*why),
            None => UpstreamError::protocol(format!("its compression cannot be undone: {error}")),
        })
    }

    /// The whole answer was read.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Gives the connection back if the next request can trust it, and closes it otherwise.
    pub fn release(mut self) {
        if self.sent.is_none() || !self.done {
            return;
        }
        // An HTTP/2 connection never left the pool; its stream ends by being dropped.
        let Exchange::H1(session) = std::mem::replace(&mut self.exchange, Exchange::Over) else { return };
        if let Some((cork, promised)) = session.into_idle() {
            self.pool.put(self.origin.pool_key(), cork, promised, Instant::now());
        }
    }

    /// Knowing the end with the last piece saves the caller a turn. An error here is left for the next read to meet.
    fn note_end(&mut self) {
        self.done = match &mut self.exchange {
            Exchange::H1(session) => session.is_done(),
            Exchange::H2(stream) => stream.check_response_end_or_error().unwrap_or(false),
            Exchange::Ready(_) | Exchange::Over => true,
        };
    }

    fn explain(&self, error: &Error) -> UpstreamError {
        let class = match Class::from_error(error) {
            Class::FirstByteTimeout if self.head_read => Class::IdleTimeout,
            class => class,
        };
        let explained = self.explain_class(class);
        let is_unread = explained.is_unread();
        explained.unread(is_unread || (!self.head_read && is_unprocessed(error)))
    }

    fn explain_class(&self, class: Class) -> UpstreamError {
        let progress =
            SendProgress { is_reused: self.reused, is_written: self.sent.is_some(), has_heard: self.has_heard() };
        let is_unread = progress.is_unread(class, || match &self.exchange {
            Exchange::H1(session) => session.is_taken(),
            // Others share the connection: what its machine took may be this request.
            Exchange::H2(_) | Exchange::Ready(_) | Exchange::Over => true,
        });
        UpstreamError::new(class, message(class)).unread(is_unread)
    }

    fn has_heard(&self) -> bool {
        match &self.exchange {
            Exchange::H1(session) => session.has_heard(),
            Exchange::H2(_) => self.head_read,
            Exchange::Ready(_) | Exchange::Over => false,
        }
    }
}

/// Why there is a head: whoever asks for it has waited for `read_head` without an error.
const HAS_HEAD: &str = "the head was read, and not taken yet";

fn over() -> UpstreamError {
    UpstreamError::new(Class::Protocol, "no request was sent on this connection")
}

fn message(class: Class) -> &'static str {
    match class {
        Class::FirstByteTimeout => "the provider took too long to answer",
        Class::IdleTimeout => "the provider fell silent inside its answer",
        Class::WriteTimeout => "the provider took too long to read the request",
        Class::Reset => "the provider closed the connection before its answer was complete",
        _ => "the provider's answer is not valid HTTP",
    }
}

#[cfg(test)]
mod tests;
