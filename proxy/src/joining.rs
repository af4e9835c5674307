//! Client connections on which writes can be joined, and which end when nothing is asked on them. Pingora sends the head
//! of an answer without a length at once, and the last chunk before the end of the body: two packets where the gateway
//! has both parts in hand, and two wake-ups of the client. Whoever knows that more follows at once says so, and the next
//! flush is left to what follows.

use crate::idle::Idle;
use crate::ticks;
use async_trait::async_trait;
use pingora_core::apps::ServerApp;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{SslDigest, TlsRef};
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType,
};
use pingora_core::server::ShutdownWatch;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Once};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// An application on one thread, whose connections are `Joining`.
pub struct JoiningApp<A> {
    app: Arc<A>,
    /// The longest wait of a connection for its next request.
    idle: Duration,
    ticks: Once,
}

impl<A> JoiningApp<A> {
    pub fn new(app: A, idle: Duration) -> Self {
        Self { app: Arc::new(app), idle, ticks: Once::new() }
    }
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> ServerApp for JoiningApp<A> {
    async fn process_new(self: &Arc<Self>, stream: Stream, shutdown: &ShutdownWatch) -> Option<Stream> {
        self.ticks.call_once(ticks::start);
        let joining = Joining { inner: stream, is_more: AtomicBool::new(false), idle: Idle::new(self.idle) };
        self.app.process_new(Box::new(joining), shutdown).await
    }

    async fn cleanup(&self) {
        self.app.cleanup().await;
    }
}

#[derive(Debug)]
pub struct Joining {
    inner: Stream,
    /// Set for the one flush that is to be left out.
    is_more: AtomicBool,
    idle: Idle,
}

impl Joining {
    /// Whether the next flush is left out, because more is written at once.
    pub fn set_more(stream: Option<&Stream>, is_more: bool) {
        if let Some(joining) = Self::of(stream) {
            joining.is_more.store(is_more, Relaxed);
        }
    }

    /// A request has come.
    pub fn begins(stream: Option<&Stream>) {
        if let Some(joining) = Self::of(stream) {
            joining.idle.end();
        }
    }

    /// It is answered, and the next may come.
    pub fn ends(stream: Option<&Stream>, now: Instant) {
        if let Some(joining) = Self::of(stream) {
            joining.idle.begin(now);
        }
    }

    fn of(stream: Option<&Stream>) -> Option<&Self> {
        stream?.as_any().downcast_ref()
    }
}

impl AsyncRead for Joining {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_read(cx, buf) {
            // As if the client had closed it.
            Poll::Pending => self.idle.poll_over(cx).map(Ok),
            read => {
                self.idle.hear();
                read
            }
        }
    }
}

impl AsyncWrite for Joining {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.is_more.swap(false, Relaxed) {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut self.inner).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for Joining {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut *self.inner).await;
    }
}

#[async_trait]
impl Peek for Joining {
    async fn try_peek(&mut self, buf: &mut [u8]) -> io::Result<bool> {
        self.inner.try_peek(buf).await
    }
}

impl UniqueID for Joining {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for Joining {
    fn get_ssl(&self) -> Option<&TlsRef> {
        self.inner.get_ssl()
    }

    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.inner.get_ssl_digest()
    }

    fn selected_alpn_proto(&self) -> Option<ALPN> {
        self.inner.selected_alpn_proto()
    }
}

impl GetTimingDigest for Joining {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }

    fn get_read_pending_time(&self) -> Duration {
        self.inner.get_read_pending_time()
    }

    fn get_write_pending_time(&self) -> Duration {
        self.inner.get_write_pending_time()
    }
}

impl GetProxyDigest for Joining {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.inner.get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.inner.set_proxy_digest(digest);
    }
}

impl GetSocketDigest for Joining {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.inner.get_socket_digest()
    }

    fn set_socket_digest(&mut self, digest: SocketDigest) {
        self.inner.set_socket_digest(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use tokio::io::AsyncWriteExt as _;

    /// Counts what is flushed.
    #[derive(Debug)]
    struct Counted(Arc<AtomicUsize>);

    impl AsyncRead for Counted {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.0.fetch_add(1, Relaxed);
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[async_trait]
    impl Shutdown for Counted {
        async fn shutdown(&mut self) {}
    }

    impl UniqueID for Counted {
        fn id(&self) -> UniqueIDType {
            0
        }
    }

    impl Ssl for Counted {}
    impl Peek for Counted {}

    impl GetTimingDigest for Counted {
        fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
            Vec::new()
        }
    }

    impl GetProxyDigest for Counted {
        fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
            None
        }
    }

    impl GetSocketDigest for Counted {
        fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
            None
        }
    }

    #[tokio::test]
    async fn one_flush_is_left_to_what_follows_and_no_other() {
        let flushed = Arc::new(AtomicUsize::new(0));
        let inner = Box::new(Counted(flushed.clone()));
        let idle = Idle::new(Duration::MAX);
        let mut stream: Stream = Box::new(Joining { inner, is_more: AtomicBool::new(false), idle });
        Joining::set_more(Some(&stream), true);
        for expected in [0, 1, 2] {
            stream.write_all(b"part").await.unwrap();
            stream.flush().await.unwrap();
            assert_eq!(flushed.load(Relaxed), expected);
        }
        Joining::set_more(Some(&stream), true);
        Joining::set_more(Some(&stream), false);
        stream.flush().await.unwrap();
        assert_eq!(flushed.load(Relaxed), 3, "it was called off");
    }
}
