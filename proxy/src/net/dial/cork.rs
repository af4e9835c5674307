//! Head and body in one write: the head of a request is held until the first bytes of its body come, or the flush that
//! says there are none. Two writes would be two packets and two system calls.
//!
//! While the body cannot be written because the server does not read it, the cork listens: a server that refuses an
//! upload says so and stops reading, and would otherwise be waited for until a timeout.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use futures::FutureExt;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, TimingDigest, UniqueID,
    UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::transport::Transport;

/// One TLS record: what leaves as one piece when the transport cannot gather.
const RECORD: usize = 16 * 1024;
/// An answer longer than this waits in the socket until the upload is over.
const EARLY: usize = 16 * 1024;

pub struct Cork {
    transport: Transport,
    held: Vec<u8>,
    sent: usize,
    state: CorkState,
    heard: bool,
    /// A body is on its way over HTTP/1; under HTTP/2 reading is not ours.
    listens: bool,
    /// What came in while the body was still going out.
    early: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CorkState {
    /// Writes go straight through.
    Open,
    /// The held head leaves with the first bytes of the body.
    Holding,
}

impl Cork {
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            held: Vec::new(),
            sent: 0,
            state: CorkState::Open,
            heard: false,
            listens: false,
            early: Vec::new(),
        }
    }

    /// A new request begins, with the head that is written here.
    pub fn start(&mut self, has_body: bool, write_head: impl FnOnce(&mut Vec<u8>)) {
        self.held.clear();
        self.held.shrink_to(RECORD);
        write_head(&mut self.held);
        self.sent = 0;
        self.heard = false;
        self.listens = has_body;
        self.early = Vec::new();
        self.state = CorkState::Holding;
    }

    pub fn socket(&self) -> RawFd {
        self.transport.as_raw_fd()
    }

    /// Any byte of the answer came in.
    pub fn has_heard(&self) -> bool {
        self.heard
    }

    /// An idle connection says nothing. Data or an end here means the server closed it or broke the protocol.
    /// The driver has already told us when something happened, so this is seldom a system call.
    pub fn is_alive(&mut self) -> bool {
        let mut byte = [0; 1];
        let read = std::future::poll_fn(|cx| {
            let mut buf = ReadBuf::new(&mut byte);
            Pin::new(&mut self.transport).poll_read(cx, &mut buf)
        });
        // Unconstrained: a used-up task budget would make a dead connection look alive.
        tokio::task::unconstrained(read).now_or_never().is_none() && self.early.is_empty()
    }

    /// Writes to the transport; when that would wait, listens, and gives up on the upload if the server has.
    fn poll_send(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.transport).poll_write_vectored(cx, parts) {
            Poll::Ready(Ok(0)) => Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            Poll::Ready(sent) => Poll::Ready(sent),
            Poll::Pending if self.listens => match self.listen(cx) {
                Some(refused) => Poll::Ready(Err(refused)),
                None => Poll::Pending,
            },
            Poll::Pending => Poll::Pending,
        }
    }

    fn listen(&mut self, cx: &mut Context<'_>) -> Option<io::Error> {
        while self.early.len() < EARLY {
            let mut space = [0; 1024];
            let mut buf = ReadBuf::new(&mut space);
            match Pin::new(&mut self.transport).poll_read(cx, &mut buf) {
                Poll::Pending => break,
                Poll::Ready(Err(e)) => return Some(e),
                Poll::Ready(Ok(())) if buf.filled().is_empty() => return Some(io::ErrorKind::BrokenPipe.into()),
                Poll::Ready(Ok(())) => self.early.extend_from_slice(buf.filled()),
            }
        }
        self.heard |= !self.early.is_empty();
        is_refusal(&self.early).then(|| io::ErrorKind::ConnectionAborted.into())
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.held.len() {
            let held = std::mem::take(&mut self.held);
            let polled = self.poll_send(cx, &[IoSlice::new(&held[self.sent..])]);
            self.held = held;
            self.sent += ready!(polled)?;
        }
        self.open();
        Poll::Ready(Ok(()))
    }

    /// Sends what is held followed by `body`; the answer counts bytes of `body` alone.
    fn poll_gathered(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let held = std::mem::take(&mut self.held);
            let left = held.len() - self.sent;
            let polled = self.poll_send(cx, &[IoSlice::new(&held[self.sent..]), IoSlice::new(body)]);
            self.held = held;
            let n = ready!(polled)?;
            if n > left {
                self.open();
                return Poll::Ready(Ok(n - left));
            }
            self.sent += n;
        }
    }

    fn open(&mut self) {
        self.held.clear();
        self.sent = 0;
        self.state = CorkState::Open;
    }
}

/// A final answer of 400 or more, or no HTTP at all. Anything milder may need the rest of the body.
fn is_refusal(early: &[u8]) -> bool {
    const PREFIX: &[u8] = b"HTTP/1.";
    let seen = early.len().min(PREFIX.len());
    early[..seen] != PREFIX[..seen] || early.get(9).is_some_and(|digit| *digit >= b'4')
}

impl AsyncWrite for Cork {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.state {
            CorkState::Open if buf.is_empty() => Poll::Ready(Ok(0)),
            CorkState::Open => this.poll_send(cx, &[IoSlice::new(buf)]),
            CorkState::Holding if buf.is_empty() => Poll::Ready(Ok(0)),
            CorkState::Holding if this.transport.gathers_writes() => this.poll_gathered(cx, buf),
            // TLS: fill one record with head and body; what does not fit follows straight through.
            CorkState::Holding if this.sent == 0 && this.held.len() < RECORD => {
                let taken = buf.len().min(RECORD - this.held.len());
                this.held.extend_from_slice(&buf[..taken]);
                Poll::Ready(Ok(taken))
            }
            CorkState::Holding => {
                ready!(this.poll_drain(cx))?;
                this.poll_send(cx, &[IoSlice::new(buf)])
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.state == CorkState::Holding {
            ready!(this.poll_drain(cx))?;
        }
        Pin::new(&mut this.transport).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().transport).poll_shutdown(cx)
    }
}

impl AsyncRead for Cork {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.early.is_empty() {
            let taken = this.early.len().min(buf.remaining());
            buf.put_slice(&this.early[..taken]);
            this.early.drain(..taken);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let polled = Pin::new(&mut this.transport).poll_read(cx, buf);
        this.heard |= buf.filled().len() > before;
        polled
    }
}

impl fmt::Debug for Cork {
    /// Never the held bytes: they carry credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cork").field("fd", &self.transport.as_raw_fd()).finish_non_exhaustive()
    }
}

// What Pingora asks of a stream. Its digests describe a connection for logging; ours are the engine's.

#[async_trait]
impl Shutdown for Cork {
    async fn shutdown(&mut self) {
        let _ = AsyncWriteExt::shutdown(&mut self.transport).await;
    }
}

impl UniqueID for Cork {
    fn id(&self) -> UniqueIDType {
        self.transport.as_raw_fd()
    }
}

impl Ssl for Cork {}
impl Peek for Cork {}

impl GetTimingDigest for Cork {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for Cork {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for Cork {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}

#[cfg(test)]
mod tests;
