//! Connections of clients: at most so many, and none for long without a whole request head, so that nobody keeps the
//! control plane from others by opening connections and saying nothing. HTTP/1.1 alone is spoken here: the detection
//! of HTTP/2 waits for its first bytes without a limit, and the proxy in front does not use it.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use prometheus::IntGauge;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::Service as _;

#[derive(Debug, Clone, Copy)]
pub struct ConnectionLimits {
    pub connections: usize,
    /// From one answer to the whole head of the next request. Longer than the proxy keeps idle connections
    /// (`UPSTREAM_POOL_IDLE_MS`), or it would now and then send a request into one that was just closed.
    pub head: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { connections: 4096, head: Duration::from_secs(75) }
    }
}

/// Answers until `stop` is done, then accepts nothing more and returns with the last answer. `open` counts.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    open: IntGauge,
    stop: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut services = router.into_make_service_with_connect_info::<SocketAddr>();
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head);
    let mut stop = std::pin::pin!(stop);
    loop {
        // A place first: who waits for one waits in the kernel's queue and costs nothing here.
        let accepted = async {
            let place = places.clone().acquire_owned().await;
            (place, accept(&listener).await)
        };
        let (place, (stream, peer)) = tokio::select! {
            accepted = accepted => accepted,
            () = &mut stop => break,
        };
        let Ok(service) = services.call(peer).await;
        let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        let connection = graceful.watch(connection);
        let present = OpenConnection::enter(&open);
        tokio::spawn(async move {
            // Clients that leave or dawdle are everyday.
            if let Err(error) = connection.await {
                tracing::debug!(%peer, %error, "a connection ended early");
            }
            drop((place, present));
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// The next connection. Having no file descriptor left passes; nothing else can be done about it.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and written at once.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            Err(error) if is_about_one_connection(&error) => {}
            Err(error) => {
                tracing::error!(%error, "cannot accept connections; trying again in a second");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        }
    }
}

fn is_about_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Counts as open until dropped, however the connection ends.
struct OpenConnection(IntGauge);

impl OpenConnection {
    fn enter(gauge: &IntGauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::ConnectInfo;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::oneshot;

    struct Running {
        address: SocketAddr,
        open: IntGauge,
        stop: oneshot::Sender<()>,
        ended: tokio::task::JoinHandle<()>,
    }

    async fn start(limits: ConnectionLimits) -> Running {
        let router = Router::new()
            .route("/", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let open = IntGauge::new("open", "open").unwrap();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(serve(listener, router, limits, open.clone(), async {
            let _ = stopped.await;
        }));
        Running { address, open, stop, ended }
    }

    async fn ask(stream: &mut TcpStream) -> String {
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut text = String::new();
        while !text.ends_with("127.0.0.1") {
            let mut piece = [0; 1024];
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "{text}");
            text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        }
        text
    }

    #[tokio::test]
    async fn a_connection_without_a_whole_head_is_closed_and_one_that_asks_is_answered() {
        let running = start(ConnectionLimits { connections: 9, head: Duration::from_millis(50) }).await;
        for begun in ["", "GET / HT", "GET / HTTP/1.1\r\nhost: x\r\n"] {
            let mut stream = TcpStream::connect(running.address).await.unwrap();
            stream.write_all(begun.as_bytes()).await.unwrap();
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
            assert!(!rest.starts_with(b"HTTP/1.1 200"), "{begun:?}");
        }
        let mut stream = TcpStream::connect(running.address).await.unwrap();
        assert!(ask(&mut stream).await.starts_with("HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn a_connection_too_many_waits_until_another_ends() {
        let running = start(ConnectionLimits { connections: 2, ..ConnectionLimits::default() }).await;
        let (mut one, mut two) =
            (TcpStream::connect(running.address).await.unwrap(), TcpStream::connect(running.address).await.unwrap());
        ask(&mut one).await;
        ask(&mut two).await;
        let mut third = TcpStream::connect(running.address).await.unwrap();
        third.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        for _ in 0..50 {
            ask(&mut two).await;
            assert_eq!(running.open.get(), 2);
        }
        drop(one);
        let mut answer = String::new();
        third.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test]
    async fn a_stop_closes_idle_connections_and_ends() {
        let running = start(ConnectionLimits::default()).await;
        let mut idle = TcpStream::connect(running.address).await.unwrap();
        ask(&mut idle).await;
        running.stop.send(()).unwrap();
        let mut rest = Vec::new();
        idle.read_to_end(&mut rest).await.unwrap();
        assert!(rest.is_empty());
        running.ended.await.unwrap();
        assert!(TcpStream::connect(running.address).await.is_err());
    }
}
