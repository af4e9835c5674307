//! The client's side of a request, as the engine sees it. Pingora's session implements it in the binary; tests
//! implement it without sockets.

#[cfg(test)]
pub(crate) mod lab;

use super::head_lines::HeadLines;
use bytes::Bytes;
use futures::future::BoxFuture;
use pingora_http::{RequestHeader, ResponseHeader};
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Resolves when somebody waits for what a request holds, as its place at a provider. A client that does not read its answer
/// meanwhile is given up.
pub type Contention = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// How long a client may leave an answer unread while somebody waits for what its request holds.
pub const MAX_UNREAD_CONTENDED: Duration = Duration::from_secs(2);

/// The client left, or its connection broke: nobody is there to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the client left")]
pub struct ClientGone;

pub trait Downstream: Send {
    fn head(&self) -> &RequestHeader;

    /// Writes that have to wait are given up at the deadline, as if the client had left.
    fn end_by(&mut self, _deadline: Option<Instant>) {}

    /// Writes that have waited for `MAX_UNREAD_CONTENDED` are given up under this contention, as if the client had left.
    fn yield_under(&mut self, _contention: Contention) {}

    /// The next piece of the request body; `None` at its end.
    fn read_body(&mut self) -> impl Future<Output = Result<Option<Bytes>, ClientGone>> + Send;

    /// Whether nothing of the body is left to be read, as far as that is known before the end was read.
    fn is_body_read(&mut self) -> bool {
        false
    }

    /// Tells a client that waits for permission (`Expect: 100-continue`) to send its body.
    fn write_continue(&mut self) -> impl Future<Output = Result<(), ClientGone>> + Send;

    fn write_head(&mut self, head: ResponseHeader) -> impl Future<Output = Result<(), ClientGone>> + Send;

    /// The head and what is known of the body already, in one packet where that can be.
    fn write_beginning(
        &mut self,
        head: ResponseHeader,
        first: Bytes,
        end: bool,
    ) -> impl Future<Output = Result<(), ClientGone>> + Send {
        async move {
            self.write_head(head).await?;
            self.write_body(first, end).await
        }
    }

    /// A whole plain answer, in one packet where that can be.
    fn write_whole(&mut self, lines: HeadLines, body: Bytes) -> impl Future<Output = Result<(), ClientGone>> + Send {
        async move { self.write_beginning(lines.head(body.len()), body, true).await }
    }

    fn write_body(&mut self, bytes: Bytes, end: bool) -> impl Future<Output = Result<(), ClientGone>> + Send;

    /// Resolves when the client leaves. Must not be polled once the last byte of the answer is written: a keep-alive
    /// client's next request would be eaten.
    fn gone(&mut self) -> impl Future<Output = ()> + Send;
}
