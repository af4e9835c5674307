//! The client of a request, as the engine sees it: Pingora's session, with answers framed, and writes joined and bounded
//! by the deadline of the request. A client that does not read at all is given up by its connection (`ClientConnection`).

use crate::gateway::client_connection::ClientConnection;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, Version, header};
use pingora_core::protocols::http::date::get_cached_date;
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::Session;
use proxy::net::downstream::{ClientGone, Contention, Downstream, MAX_UNREAD_CONTENDED};
use proxy::net::head_lines::HeadLines;
use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

/// A longer body is not put together with its head: to copy it costs more than to write it apart.
const MAX_WHOLE: usize = 32 << 10;

/// For the last words of a request whose deadline has passed.
const MAX_CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Pingora's session as the engine's client. Writes go past the module chain, which is empty.
pub struct Client<'s> {
    session: &'s mut Session,
    /// The answer that was begun says no length, and ends with a chunk of its own.
    is_chunked: bool,
    /// When the request must be over.
    deadline: Option<Instant>,
    /// Of HTTP/2 alone: a connection of HTTP/1.1 watches over its one client itself.
    contention: Option<Contention>,
}

impl<'s> Client<'s> {
    pub fn new(session: &'s mut Session) -> Self {
        Self { session, is_chunked: false, deadline: None, contention: None }
    }

    /// An answer without a length needs chunks in HTTP/1.1, the end of the connection in HTTP/1.0, and nothing in
    /// HTTP/2.
    fn frame(&mut self, head: &mut ResponseHeader) {
        let has_body = !matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if !has_body || head.headers.contains_key(header::CONTENT_LENGTH) {
            return;
        }
        match self.session.req_header().version {
            Version::HTTP_11 => {
                self.is_chunked = true;
                let _ = head.insert_header(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            Version::HTTP_2 => {}
            _ => self.session.set_keepalive(None),
        }
    }
}

/// A write that has to wait is given up at the deadline. One that need not costs no timer.
async fn by<T, E>(
    deadline: Option<Instant>,
    mut write: impl Future<Output = Result<T, E>> + Unpin,
) -> Result<T, ClientGone> {
    let written = match (futures::poll!(&mut write), deadline) {
        (Poll::Ready(written), _) => written,
        (Poll::Pending, None) => write.await,
        (Poll::Pending, Some(deadline)) => {
            let limit = deadline.max(Instant::now() + MAX_CLOSE_WAIT);
            tokio::time::timeout_at(limit.into(), write).await.map_err(|_| ClientGone)?
        }
    };
    written.map_err(|_| ClientGone)
}

/// The same; it is also given up when it has waited for long and somebody waits for what the request holds.
async fn by_or_contended<T, E>(
    deadline: Option<Instant>,
    contention: Option<&Contention>,
    write: impl Future<Output = Result<T, E>> + Unpin,
) -> Result<T, ClientGone> {
    let Some(contention) = contention else { return by(deadline, write).await };
    let contended = async {
        tokio::time::sleep(MAX_UNREAD_CONTENDED).await;
        contention().await;
    };
    tokio::select! {
        biased;
        written = by(deadline, write) => written,
        () = contended => Err(ClientGone),
    }
}

impl Downstream for Client<'_> {
    fn head(&self) -> &RequestHeader {
        self.session.req_header()
    }

    fn end_by(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    fn yield_under(&mut self, contention: Contention) {
        match self.session.downstream_session.is_http2() {
            true => self.contention = Some(contention),
            false => ClientConnection::yield_under(self.session.downstream_session.stream(), contention),
        }
    }

    async fn read_body(&mut self) -> Result<Option<Bytes>, ClientGone> {
        self.session.downstream_session.read_request_body().await.map_err(|_| ClientGone)
    }

    fn is_body_read(&mut self) -> bool {
        self.session.downstream_session.is_body_done()
    }

    async fn write_continue(&mut self) -> Result<(), ClientGone> {
        // From here on it sends, and what it sends must be read away.
        self.session.downstream_session.set_close_on_response_before_downstream_finish(false);
        self.session.downstream_session.write_continue_response().await.map_err(|_| ClientGone)
    }

    async fn write_head(&mut self, mut head: ResponseHeader) -> Result<(), ClientGone> {
        self.frame(&mut head);
        by(self.deadline, pin!(self.session.downstream_session.write_response_header(Box::new(head)))).await
    }

    async fn write_beginning(&mut self, mut head: ResponseHeader, first: Bytes, end: bool) -> Result<(), ClientGone> {
        self.frame(&mut head);
        let session = &mut self.session.downstream_session;
        // A head with a length waits for its body anyway.
        let is_sent_at_once = !head.headers.contains_key(header::CONTENT_LENGTH);
        ClientConnection::set_more(session.stream(), is_sent_at_once && !first.is_empty());
        let written = by(self.deadline, pin!(session.write_response_header(Box::new(head)))).await;
        ClientConnection::set_more(session.stream(), false);
        written?;
        self.write_body(first, end).await
    }

    /// Past Pingora, which would make a map of the head and write it and the body apart. It still sends what it finds put
    /// in, and sees to what becomes of the connection.
    async fn write_whole(&mut self, lines: HeadLines, body: Bytes) -> Result<(), ClientGone> {
        let session = &mut self.session.downstream_session;
        let asked = session.req_header();
        let is_plain = asked.version == Version::HTTP_11
            && !asked.headers.contains_key(header::EXPECT)
            && !asked.headers.contains_key(header::UPGRADE);
        if !is_plain || body.len() > MAX_WHOLE || !ClientConnection::can_put(session.stream()) {
            return self.write_beginning(lines.head(body.len()), body, true).await;
        }
        let answer = lines.into_answer(&get_cached_date(), session.get_keepalive().is_some(), &body);
        ClientConnection::put(session.stream(), answer);
        by(self.deadline, pin!(session.finish_body())).await
    }

    async fn write_body(&mut self, bytes: Bytes, end: bool) -> Result<(), ClientGone> {
        let session = &mut self.session.downstream_session;
        if end && !bytes.is_empty() && self.is_chunked {
            ClientConnection::set_more(session.stream(), true);
        }
        by_or_contended(self.deadline, self.contention.as_ref(), pin!(session.write_response_body(bytes, end))).await
    }

    async fn gone(&mut self) {
        // Bytes of a next request are kept for it and do not end the wait.
        while let Ok(Some(_)) = self.session.downstream_session.read_body_or_idle(true).await {}
    }
}
