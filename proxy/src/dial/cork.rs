//! Head and body in one write. Pingora's session writes the head, flushes it, then writes the body: two packets and two
//! system calls per request. The cork keeps the head back, swallows that flush, and sends it together with the body.
//!
//! It may only be set when a body follows, or the head would never leave.

use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::AsRawFd;
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

pub struct Cork {
    transport: Transport,
    held: Vec<u8>,
    sent: usize,
    state: State,
    heard: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Writes go straight through.
    Open,
    /// The head is being written: it is held, and the flush after it is swallowed.
    Head,
    /// The held head leaves with the first bytes of the body.
    Body,
}

impl Cork {
    pub fn new(transport: Transport) -> Self {
        Self { transport, held: Vec::new(), sent: 0, state: State::Open, heard: false }
    }

    /// A new request begins.
    pub fn start(&mut self, has_body: bool) {
        self.held.clear();
        self.held.shrink_to(RECORD);
        self.sent = 0;
        self.heard = false;
        self.state = if has_body { State::Head } else { State::Open };
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
        tokio::task::unconstrained(read).now_or_never().is_none()
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.held.len() {
            let n = ready!(Pin::new(&mut self.transport).poll_write(cx, &self.held[self.sent..]))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += n;
        }
        self.open();
        Poll::Ready(Ok(()))
    }

    /// Sends what is held followed by `body`; the answer counts bytes of `body` alone.
    fn poll_gathered(&mut self, cx: &mut Context<'_>, body: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let held = &self.held[self.sent..];
            let parts = [IoSlice::new(held), IoSlice::new(body)];
            let n = ready!(Pin::new(&mut self.transport).poll_write_vectored(cx, &parts))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            if n > held.len() {
                let of_body = n - held.len();
                self.open();
                return Poll::Ready(Ok(of_body));
            }
            self.sent += n;
        }
    }

    fn open(&mut self) {
        self.held.clear();
        self.sent = 0;
        self.state = State::Open;
    }
}

impl AsyncWrite for Cork {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.state {
            State::Open => Pin::new(&mut this.transport).poll_write(cx, buf),
            State::Head => {
                this.held.extend_from_slice(buf);
                Poll::Ready(Ok(buf.len()))
            }
            State::Body if buf.is_empty() => Poll::Ready(Ok(0)),
            State::Body if this.transport.gathers_writes() => this.poll_gathered(cx, buf),
            // TLS: fill one record with head and body; what does not fit follows straight through.
            State::Body if this.sent == 0 && this.held.len() < RECORD => {
                let taken = buf.len().min(RECORD - this.held.len());
                this.held.extend_from_slice(&buf[..taken]);
                Poll::Ready(Ok(taken))
            }
            State::Body => {
                ready!(this.poll_drain(cx))?;
                Pin::new(&mut this.transport).poll_write(cx, buf)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match this.state {
            State::Head => {
                this.state = State::Body;
                return Poll::Ready(Ok(()));
            }
            State::Body => ready!(this.poll_drain(cx))?,
            State::Open => {}
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
