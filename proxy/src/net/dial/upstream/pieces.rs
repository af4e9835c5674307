//! A request whose body is not held: it is sent piece by piece as its source gives it. How long it is must be known, as our
//! framing says it first.

use super::{EARLY_ANSWER, Exchange, HeadTimeout, Http1, MAX_WAIT, Upstream, over};
use crate::net::dial::error::{Class, UpstreamError};
use crate::net::dial::framing;
use crate::net::dial::request::UpstreamRequest;
use bytes::Bytes;
use pingora_core::protocols::http::v2::write_body;
use std::time::{Duration, Instant};

/// Where a body comes from.
pub trait PieceSource: Send {
    /// None at the end. A source that fails ends the call.
    fn next_piece(&mut self) -> impl Future<Output = Result<Option<Bytes>, UpstreamError>> + Send;
}

impl Upstream {
    /// As `send`, of `length` bytes in all. The head of the answer must be there so long after the last of them as it is
    /// waited for after a whole request.
    pub async fn send_pieces(
        &mut self,
        request: &UpstreamRequest,
        length: usize,
        source: &mut impl PieceSource,
    ) -> Result<(), UpstreamError> {
        self.answer_by = Some(Instant::now() + MAX_WAIT);
        let sent = match std::mem::replace(&mut self.exchange, Exchange::Over) {
            Exchange::Ready(cork) => {
                self.exchange = Exchange::H1(Box::new(Http1::new(cork)));
                self.send_h1_pieces(request, length, source).await
            }
            Exchange::H2(stream) => {
                self.exchange = Exchange::H2(stream);
                self.send_h2_pieces(request, length, source).await
            }
            Exchange::H1(_) | Exchange::Over => Err(UpstreamError::protocol("a request was already sent")),
        };
        let patience = match self.first_byte {
            HeadTimeout::For(duration) => duration.min(MAX_WAIT),
            HeadTimeout::Until(limit) => limit.saturating_duration_since(Instant::now()),
        };
        self.answer_by = Some(Instant::now() + patience.max(Duration::from_secs(1)));
        match sent {
            Ok(()) => {
                self.sent = Some(Instant::now());
                Ok(())
            }
            // Perhaps the upload was refused, and it was said why before the connection was closed.
            Err(failed) if self.awaits_head => match tokio::time::timeout(EARLY_ANSWER, self.read_head()).await {
                Ok(Ok(())) => Ok(()),
                _ => Err(failed),
            },
            Err(failed) => Err(failed),
        }
    }

    async fn send_h1_pieces(
        &mut self,
        request: &UpstreamRequest,
        length: usize,
        source: &mut impl PieceSource,
    ) -> Result<(), UpstreamError> {
        self.awaits_head = true;
        let stall = self.idle_timeout;
        let Exchange::H1(session) = &mut self.exchange else { return Err(over()) };
        session.begin(request, &self.origin, length);
        let mut left = length;
        while let Some(piece) = source.next_piece().await? {
            left = left.checked_sub(piece.len()).ok_or_else(other_length)?;
            let Exchange::H1(session) = &mut self.exchange else { return Err(over()) };
            if let Err(class) = session.send_piece(&piece, stall).await {
                return Err(self.explain_class(class));
            }
        }
        if left > 0 {
            return Err(other_length());
        }
        let Exchange::H1(session) = &mut self.exchange else { return Err(over()) };
        session.flush(stall).await.map_err(|class: Class| self.explain_class(class))
    }

    async fn send_h2_pieces(
        &mut self,
        request: &UpstreamRequest,
        length: usize,
        source: &mut impl PieceSource,
    ) -> Result<(), UpstreamError> {
        let head = Box::new(framing::h2_head(request, length, &self.origin)?);
        let stall = self.idle_timeout;
        let Exchange::H2(stream) = &mut self.exchange else { return Err(over()) };
        if let Err(error) = stream.write_request_header(head, length == 0) {
            return Err(self.explain(&error));
        }
        self.awaits_head = true;
        let Exchange::H2(stream) = &mut self.exchange else { return Err(over()) };
        let Some(mut writer) = stream.take_request_body_writer() else { return Err(over()) };
        let mut left = length;
        while let Some(piece) = source.next_piece().await? {
            left = left.checked_sub(piece.len()).ok_or_else(other_length)?;
            if let Err(error) = write_body(&mut writer, piece, left == 0, Some(stall)).await {
                return Err(self.explain(&error));
            }
        }
        if left > 0 { Err(other_length()) } else { Ok(()) }
    }
}

fn other_length() -> UpstreamError {
    UpstreamError::protocol("the body has another length than was said")
}
