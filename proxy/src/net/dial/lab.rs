//! What the dialer's tests share: servers on loopback that do exactly what a test says, and a dialer that trusts them.

mod authority;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use pingora_http::RequestHeader;
use shared::settings;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::resolve::{Lookup, NameResolver};
use super::{Dialer, Origin, Upstream, UpstreamError};
pub use authority::{Authority, Leaf, accept};

pub fn settings() -> settings::Upstream {
    settings::Upstream {
        outbound: settings::Outbound {
            trusted_custom_hosts: vec!["127.0.0.1".into(), "localhost".into(), "lab.example".into()],
            plain_custom_hosts: true,
            own_hostnames: vec!["gateway.example".into()],
            upstream_ca_file: None,
            dns_server: None,
        },
        upstream_connect_timeout_ms: 10_000,
        upstream_first_byte_timeout_ms: 20_000,
        upstream_stream_idle_timeout_ms: 20_000,
        upstream_pool_max_idle: 4,
        upstream_pool_idle_ms: 60_000,
        upstream_max_h2_streams: 100,
        dns_ttl_ms: 30_000,
    }
}

pub fn dialer() -> Dialer {
    dialer_with(|_| ())
}

pub fn dialer_with(change: impl FnOnce(&mut settings::Upstream)) -> Dialer {
    let mut settings = settings();
    change(&mut settings);
    Dialer::new(&settings).unwrap()
}

/// A dialer whose DNS is `lookup`.
pub fn dialer_with_names(lookup: Lookup) -> Dialer {
    let settings = settings();
    Dialer::with_resolver(&settings, NameResolver::with_lookup(Duration::ZERO, lookup)).unwrap()
}

/// Counts the connections it accepts and serves each by the test's own function, which gets its number from 1.
pub struct Server {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    pub async fn start<F, S>(serve: F) -> Self
    where
        F: Fn(TcpStream, usize) -> S + Send + Sync + 'static,
        S: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                tokio::spawn(serve(stream, number));
            }
        });
        Self { address, accepted }
    }

    /// Answers each request with its connection's number as body.
    pub async fn counting() -> Self {
        Self::start(|stream, number| async move {
            let mut end = End::new(stream);
            while end.request().await.is_some() {
                end.answer(&number.to_string()).await;
            }
        })
        .await
    }

    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    pub fn origin(&self, dialer: &Dialer) -> Arc<Origin> {
        dialer.custom_host(&format!("http://{}", self.address)).unwrap()
    }

    pub fn tls_origin(&self, dialer: &Dialer, host: &str) -> Arc<Origin> {
        dialer.custom_host(&format!("https://{host}:{}", self.address.port())).unwrap()
    }
}

/// The server's end of an HTTP/1 connection.
pub struct End<S> {
    pub stream: S,
    read: Vec<u8>,
}

pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> End<S> {
    pub fn new(stream: S) -> Self {
        Self { stream, read: Vec::new() }
    }

    /// The next head; `None` when the client is gone.
    pub async fn head(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                let rest = self.read.split_off(end + 4);
                let head = std::mem::replace(&mut self.read, rest);
                return Some(String::from_utf8(head).unwrap());
            }
            self.more().await?;
        }
    }

    pub async fn request(&mut self) -> Option<Request> {
        let head = self.head().await?;
        let length = header(&head, "content-length").map_or(0, |value| value.parse().unwrap());
        while self.read.len() < length {
            self.more().await?;
        }
        let rest = self.read.split_off(length);
        Some(Request { head, body: std::mem::replace(&mut self.read, rest) })
    }

    pub async fn answer(&mut self, body: &str) {
        self.say(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())).await;
    }

    pub async fn say(&mut self, text: &str) {
        let _ = self.stream.write_all(text.as_bytes()).await;
        let _ = self.stream.flush().await;
    }

    /// Bytes read but not yet asked for.
    pub fn buffered(&self) -> usize {
        self.read.len()
    }

    /// Until the client closes.
    pub async fn gone(&mut self) {
        while self.more().await.is_some() {
            self.read.clear();
        }
    }

    async fn more(&mut self) -> Option<()> {
        match self.stream.read_buf(&mut self.read).await {
            Ok(n) if n > 0 => Some(()),
            _ => None,
        }
    }
}

pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.into_iter().find_map(|(found, value)| found.eq_ignore_ascii_case(name).then_some(value))
}

pub fn post() -> RequestHeader {
    RequestHeader::build("POST", b"/v1/chat/completions?a=1", None).unwrap()
}

pub fn get() -> RequestHeader {
    RequestHeader::build("GET", b"/v1/models", None).unwrap()
}

/// Reads the answer's body to its end.
pub async fn body(upstream: &mut Upstream) -> Result<Vec<u8>, UpstreamError> {
    let mut body = Vec::new();
    while let Some(piece) = upstream.read_body().await? {
        assert!(!piece.is_empty());
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// One whole exchange on `upstream`; the connection is released.
pub async fn exchange(mut upstream: Upstream, sent: &[u8]) -> Result<Vec<u8>, UpstreamError> {
    upstream.send(post(), Bytes::copy_from_slice(sent)).await?;
    upstream.read_head().await?;
    let received = body(&mut upstream).await?;
    assert!(upstream.is_done());
    upstream.release();
    Ok(received)
}

/// Connects, exchanges, releases.
pub async fn call(dialer: &Dialer, origin: &Arc<Origin>) -> Vec<u8> {
    exchange(dialer.connect(origin, false).await.unwrap(), b"hello").await.unwrap()
}

/// Bytes that differ from place to place, so that a lost or doubled piece shows.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|n| (n ^ (n >> 8) ^ (n >> 16)) as u8).collect()
}

/// A test that hangs says so instead of blocking the suite.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), what).await.expect("this should not take half a minute")
}
