//! A client's connection. It ends when no request comes, when the head of one does not arrive, when an answer is not
//! read, and between two requests when the process leaves; and it can join writes: Pingora sends the head of an answer
//! without a length at once, and the last chunk before the end of the body, which is two packets where the gateway has
//! both parts in hand, and two wake-ups of the client. Code that knows that more follows at once says so, and the next
//! flush is left to what follows. A whole answer can also be put in, which leaves with the next flush.

use crate::gateway::fresh_connections::{FIRST_REQUEST, FreshConnection};
use crate::gateway::idle_timeout::IdleTimeout;
use crate::gateway::write_stall::WriteStall;
use async_trait::async_trait;
use parking_lot::Mutex;
use pingora_core::protocols::raw_connect::ProxyDigest;
use pingora_core::protocols::tls::{SslDigest, TlsRef};
use pingora_core::protocols::{
    ALPN, GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream, TimingDigest,
    UniqueID, UniqueIDType,
};
use pingora_core::server::ShutdownWatch;
use proxy::net::downstream::Contention;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// What an HTTP/2 connection begins with.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a connection waits for its client.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionTimeouts {
    /// For a request.
    pub idle: Duration,
    /// For the rest of a head that has begun.
    pub head: Duration,
    /// For an answer to be read.
    pub write: Duration,
}

/// Whether the process leaves. It is asked only while a connection waits for a request.
struct LeaveNotice {
    announced: Pin<Box<dyn Future<Output = ()> + Send + Sync>>,
    is_leaving: bool,
}

impl LeaveNotice {
    fn new(mut shutdown: ShutdownWatch) -> Self {
        let announced = async move { _ = shutdown.wait_for(|is_leaving| *is_leaving).await };
        Self { announced: Box::pin(announced), is_leaving: false }
    }

    /// True once: when it is first seen that the process leaves. Wakes the task otherwise when it does.
    fn poll_begins(&mut self, cx: &mut Context<'_>) -> bool {
        let begins = !self.is_leaving && self.announced.as_mut().poll(cx).is_ready();
        self.is_leaving |= begins;
        begins
    }
}

impl fmt::Debug for LeaveNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LeaveNotice").field(&self.is_leaving).finish()
    }
}

#[derive(Debug)]
pub struct ClientConnection {
    inner: Stream,
    /// Set for the one flush that is to be left out.
    is_more: AtomicBool,
    /// A whole answer that was put in, and how much of it is written. Empty when all is.
    answer: Mutex<Vec<u8>>,
    written: usize,
    /// One was put in for the present request.
    is_answered: AtomicBool,
    idle: IdleTimeout,
    fresh: FreshConnection,
    leave_notice: LeaveNotice,
    write_stall: WriteStall,
    /// Was read to learn what it is, and is to be read again.
    peeked: Vec<u8>,
    /// How much of HTTP/2's preface has not come. After it Pingora watches over the connection: it knows its streams.
    preface: usize,
}

impl ClientConnection {
    pub fn new(inner: Stream, patience: ConnectionTimeouts, shutdown: ShutdownWatch) -> Self {
        let preface = if inner.selected_alpn_proto() == Some(ALPN::H2) { PREFACE.len() } else { 0 };
        Self {
            inner,
            is_more: AtomicBool::new(false),
            answer: Mutex::default(),
            written: 0,
            is_answered: AtomicBool::new(false),
            idle: IdleTimeout::new(patience.idle, patience.head),
            fresh: FreshConnection::new(preface > 0),
            leave_notice: LeaveNotice::new(shutdown),
            write_stall: WriteStall::new(patience.write),
            peeked: Vec::new(),
            preface,
        }
    }

    /// Whether the next flush is left out, because more is written at once.
    pub fn set_more(stream: Option<&Stream>, is_more: bool) {
        if let Some(joining) = Self::from_stream(stream) {
            joining.is_more.store(is_more, Relaxed);
        }
    }

    /// Whether whole answers can be put in.
    pub fn can_put(stream: Option<&Stream>) -> bool {
        Self::from_stream(stream).is_some()
    }

    /// A whole answer, which leaves with the next flush, before anything that is written after it.
    pub fn put(stream: Option<&Stream>, answer: Vec<u8>) {
        if let Some(joining) = Self::from_stream(stream) {
            *joining.answer.lock() = answer;
            joining.is_answered.store(true, Relaxed);
        }
    }

    /// Whether the present request has had one.
    pub fn is_answered(stream: Option<&Stream>) -> bool {
        Self::from_stream(stream).is_some_and(|joining| joining.is_answered.load(Relaxed))
    }

    /// A client that does not read is given up sooner under this contention, until the next request.
    pub fn yield_under(stream: Option<&Stream>, contention: Contention) {
        if let Some(connection) = Self::from_stream(stream) {
            connection.write_stall.set_contention(Some(contention));
        }
    }

    /// A request has come.
    pub fn begins(stream: Option<&Stream>) {
        if let Some(connection) = Self::from_stream(stream) {
            connection.idle.end();
            connection.fresh.begin_request();
            connection.is_answered.store(false, Relaxed);
        }
    }

    /// It is answered, and the next may come. What was not read of its body is read away first.
    pub fn ends(stream: Option<&Stream>, now: Instant, is_body_read: bool) {
        if let Some(connection) = Self::from_stream(stream) {
            connection.write_stall.set_contention(None);
            connection.idle.begin(now);
            if !is_body_read {
                connection.idle.hear();
            }
        }
    }

    fn from_stream(stream: Option<&Stream>) -> Option<&Self> {
        stream?.as_any().downcast_ref()
    }

    /// Writes what was put in.
    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { inner, answer, written, write_stall, .. } = self;
        let answer = answer.get_mut();
        while let Some(rest) = answer.get(*written..).filter(|rest| !rest.is_empty()) {
            let taken = Pin::new(&mut *inner).poll_write(cx, rest);
            match ready!(write_stall.watch(cx, taken, |bytes| *bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                bytes => *written += bytes,
            }
        }
        (*answer, *written) = (Vec::new(), 0);
        Poll::Ready(Ok(()))
    }

    /// Some of what was peeked at is read again.
    fn read_again(&mut self, buf: &mut ReadBuf<'_>) {
        let length = self.peeked.len().min(buf.remaining());
        buf.put_slice(&self.peeked[..length]);
        self.peeked.drain(..length);
        self.count_preface(length);
    }

    fn count_preface(&mut self, read: usize) {
        if self.preface > 0 {
            self.preface = self.preface.saturating_sub(read);
            if self.preface == 0 {
                self.idle.end();
                self.fresh.begin_request();
            }
        }
    }

    /// Ready when no request is waited for any longer: after its limit, and between two requests when the process leaves.
    /// A connection whose first request has not come, or on which part of one has, gets a last limit then.
    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.idle.is_waiting() {
            return Poll::Pending;
        }
        if self.leave_notice.poll_begins(cx) {
            self.idle.shorten(FIRST_REQUEST);
        }
        let may_ask = self.fresh.is_fresh() || self.preface > 0 || self.idle.has_heard();
        if self.leave_notice.is_leaving && !may_ask {
            return Poll::Ready(());
        }
        self.idle.poll_over(cx)
    }
}

impl AsyncRead for ClientConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.peeked.is_empty() {
            self.read_again(buf);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        match Pin::new(&mut self.inner).poll_read(cx, buf) {
            // As if the client had closed it.
            Poll::Pending => self.poll_over(cx).map(Ok),
            read => {
                self.idle.hear();
                self.count_preface(buf.filled().len() - before);
                read
            }
        }
    }
}

impl AsyncWrite for ClientConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_answer(cx))?;
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.write_stall.watch(cx, written, |bytes| *bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_answer(cx))?;
        if self.is_more.swap(false, Relaxed) {
            return Poll::Ready(Ok(()));
        }
        let flushed = Pin::new(&mut self.inner).poll_flush(cx);
        self.write_stall.watch(cx, flushed, |()| 0)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_answer(cx))?;
        let shut = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.write_stall.watch(cx, shut, |()| 0)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_answer(cx))?;
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.write_stall.watch(cx, written, |bytes| *bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

#[async_trait]
impl Shutdown for ClientConnection {
    async fn shutdown(&mut self) {
        Shutdown::shutdown(&mut *self.inner).await;
    }
}

#[async_trait]
impl Peek for ClientConnection {
    /// Pingora asks whether HTTP/2 is spoken, which is known from the first byte that differs. The stream's own answer
    /// would wait for all of them without a limit.
    async fn try_peek(&mut self, buf: &mut [u8]) -> io::Result<bool> {
        let mut length = 0;
        while length < buf.len() && PREFACE.starts_with(&buf[..length]) {
            match self.read(&mut buf[length..]).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => length += read,
            }
        }
        self.preface = if buf == PREFACE { PREFACE.len() } else { 0 };
        self.peeked = buf[..length].to_vec();
        Ok(true)
    }
}

impl UniqueID for ClientConnection {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for ClientConnection {
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

impl GetTimingDigest for ClientConnection {
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

impl GetProxyDigest for ClientConnection {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.inner.get_proxy_digest()
    }

    fn set_proxy_digest(&mut self, digest: ProxyDigest) {
        self.inner.set_proxy_digest(digest);
    }
}

impl GetSocketDigest for ClientConnection {
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
    use tokio::sync::watch;
    use tokio::time::timeout;

    const ENDLESS: ConnectionTimeouts =
        ConnectionTimeouts { idle: Duration::MAX, head: Duration::MAX, write: Duration::MAX };

    fn staying() -> ShutdownWatch {
        watch::channel(false).1
    }

    /// Counts what is flushed, and takes a few bytes at once.
    #[derive(Debug, Default)]
    struct Counted {
        flushed: Arc<AtomicUsize>,
        written: Arc<Mutex<Vec<u8>>>,
        most: Option<usize>,
    }

    impl AsyncRead for Counted {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }
    }

    impl AsyncWrite for Counted {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let taken = bytes.len().min(self.most.unwrap_or(usize::MAX));
            self.written.lock().extend_from_slice(&bytes[..taken]);
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.flushed.fetch_add(1, Relaxed);
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
        let inner = Box::new(Counted { flushed: flushed.clone(), ..Counted::default() });
        let mut stream: Stream = Box::new(ClientConnection::new(inner, ENDLESS, staying()));
        ClientConnection::set_more(Some(&stream), true);
        for expected in [0, 1, 2] {
            stream.write_all(b"part").await.unwrap();
            stream.flush().await.unwrap();
            assert_eq!(flushed.load(Relaxed), expected);
        }
        ClientConnection::set_more(Some(&stream), true);
        ClientConnection::set_more(Some(&stream), false);
        stream.flush().await.unwrap();
        assert_eq!(flushed.load(Relaxed), 3, "it was called off");
    }

    /// However little is taken at once.
    #[tokio::test]
    async fn a_whole_answer_leaves_with_a_flush_and_before_what_is_written_after_it() {
        const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nbody";
        for most in (1..=ANSWER.len()).map(Some).chain([None]) {
            let (flushed, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
            let inner = Box::new(Counted { flushed: flushed.clone(), written: written.clone(), most });
            let mut stream: Stream = Box::new(ClientConnection::new(inner, ENDLESS, staying()));
            for times in 1..=2 {
                assert!(!ClientConnection::is_answered(Some(&stream)));
                ClientConnection::put(Some(&stream), ANSWER.to_vec());
                assert!(ClientConnection::is_answered(Some(&stream)) && written.lock().is_empty());
                stream.flush().await.unwrap();
                assert_eq!((std::mem::take(&mut *written.lock()), flushed.load(Relaxed)), (ANSWER.to_vec(), times));
                ClientConnection::begins(Some(&stream));
            }
            stream.flush().await.unwrap();
            assert!(written.lock().is_empty(), "it leaves once");
            ClientConnection::put(Some(&stream), ANSWER.to_vec());
            stream.write_all(b"more").await.unwrap();
            assert_eq!(*written.lock(), [ANSWER, b"more"].concat());
        }
    }

    /// Whether its client has been given up, which Pingora sees as an end of what it sends.
    async fn is_over(connection: &mut ClientConnection, within: Duration) -> bool {
        timeout(within, connection.read(&mut [0; 1])).await.is_ok()
    }

    fn connected(shutdown: &watch::Sender<bool>) -> ClientConnection {
        ClientConnection::new(Box::new(Counted::default()), ENDLESS, shutdown.subscribe())
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_ends_when_the_process_leaves_and_others_get_a_last_limit() {
        const SHORT: Duration = Duration::from_secs(1);
        let now = || tokio::time::Instant::now().into_std();
        let shutdown = watch::Sender::new(false);
        let [mut fresh, mut idle, mut begun, mut busy, mut http2] = [(); 5].map(|()| connected(&shutdown));
        http2.preface = PREFACE.len();
        for used in [&mut idle, &mut begun, &mut busy, &mut http2] {
            used.idle.end();
            used.fresh.begin_request();
        }
        idle.idle.begin(now());
        begun.idle.begin(now());
        http2.idle.begin(now());
        begun.idle.hear();
        for connection in [&mut fresh, &mut idle, &mut begun, &mut busy, &mut http2] {
            assert!(!is_over(connection, 10 * FIRST_REQUEST).await, "{connection:?}: the process stays");
        }
        let waits = tokio::spawn(async move { is_over(&mut idle, SHORT).await });
        tokio::task::yield_now().await;
        shutdown.send_replace(true);
        assert!(waits.await.unwrap(), "it is woken");
        for connection in [&mut fresh, &mut begun, &mut http2] {
            assert!(!is_over(connection, FIRST_REQUEST - SHORT).await, "{connection:?}");
            assert!(is_over(connection, 2 * SHORT).await, "{connection:?}");
        }
        assert!(!is_over(&mut busy, 10 * FIRST_REQUEST).await, "a request is under way");
        busy.idle.begin(now());
        assert!(is_over(&mut busy, SHORT).await, "it has had its answer");
    }
}
