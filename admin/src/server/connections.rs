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
mod tests;
