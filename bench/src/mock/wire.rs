//! The socket under a connection, with the few powers that HTTP libraries keep to themselves: resetting instead of
//! closing, putting bytes in front of an answer, and knowing whether everything written has left.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_openssl::SslStream;

use super::state::State;

/// The handle a request has on its connection.
pub struct Link {
    pub id: u64,
    pub state: Arc<State>,
    ahead: Mutex<Vec<u8>>,
    has_ahead: AtomicBool,
    blocked: AtomicBool,
    resets: AtomicBool,
    lingers: AtomicBool,
    closing: Notify,
}

impl Link {
    pub fn new(state: Arc<State>) -> Self {
        let id = state.counters.connected();
        state.announce();
        Self {
            id,
            state,
            ahead: Mutex::default(),
            has_ahead: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            resets: AtomicBool::new(false),
            lingers: AtomicBool::new(false),
            closing: Notify::new(),
        }
    }

    /// Whether the peer is not taking what was written.
    pub fn is_blocked(&self) -> bool {
        self.blocked.load(Relaxed)
    }

    /// The connection will end with RST.
    pub fn reset(&self) {
        self.resets.store(true, Relaxed);
    }

    /// The connection will be read empty before it closes, so that an early answer is not lost to a RST.
    pub fn linger(&self) {
        self.lingers.store(true, Relaxed);
    }

    /// Closes the connection once it is idle.
    pub fn close(&self) {
        self.closing.notify_one();
    }

    pub async fn closing(&self) {
        self.closing.notified().await;
    }

    /// Puts bytes in front of whatever is written next.
    pub fn write_ahead(&self, bytes: &[u8]) {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        self.has_ahead.store(true, Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.state.counters.disconnected();
        self.state.announce();
    }
}

pub enum Socket {
    Plain(TcpStream),
    Tls(Box<SslStream<TcpStream>>),
}

impl Socket {
    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref(),
        }
    }

    fn write(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Self::Plain(tcp) => Pin::new(tcp as _),
            Self::Tls(tls) => Pin::new(&mut **tls as _),
        }
    }
}

pub struct Wire {
    /// None only while being dropped.
    socket: Option<Socket>,
    link: Arc<Link>,
}

impl Wire {
    pub fn new(socket: Socket, link: Arc<Link>) -> Self {
        Self { socket: Some(socket), link }
    }

    fn socket(&mut self) -> io::Result<&mut Socket> {
        self.socket.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.link.has_ahead.load(Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let link = self.link.clone();
        let mut ahead = link.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        while !ahead.is_empty() {
            let written = ready!(self.socket()?.write().poll_write(cx, &ahead))?;
            ahead.drain(..written);
        }
        link.has_ahead.store(false, Relaxed);
        Poll::Ready(Ok(()))
    }

    fn noting_block<T>(&self, poll: Poll<T>) -> Poll<T> {
        self.link.blocked.store(poll.is_pending(), Relaxed);
        poll
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.socket()? {
            Socket::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Socket::Tls(tls) => Pin::new(&mut **tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_ahead(cx))?;
        let written = self.socket()?.write().poll_write(cx, buf);
        self.noting_block(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ahead(cx))?;
        let written = self.socket()?.write().poll_write_vectored(cx, bufs);
        self.noting_block(written)
    }

    fn is_write_vectored(&self) -> bool {
        matches!(self.socket, Some(Socket::Plain(_)))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.write().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.socket()?.write().poll_shutdown(cx)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let Some(socket) = self.socket.take() else { return };
        if self.link.resets.load(Relaxed) {
            // Failing means the peer was faster; the connection is gone either way.
            let _ = socket.tcp().set_zero_linger();
        } else if let (true, Socket::Plain(tcp)) = (self.link.lingers.load(Relaxed), socket)
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(Duration::from_secs(2), read_to_end(tcp)));
        }
    }
}

async fn read_to_end(mut tcp: TcpStream) {
    let mut sink = vec![0; 1 << 16];
    while tcp.read(&mut sink).await.is_ok_and(|count| count > 0) {}
}
