//! The metrics port: `/metrics` for Prometheus, `/healthz` (the process lives), `/readyz` (it may be sent traffic),
//! `/circuits` (which targets this replica leaves alone).
//! Readiness asks whether there is data to answer from, never whether Postgres is there right now.
//!
//! It listens by itself: a listening service of Pingora's would close this port the moment the process begins to
//! leave, just when a balancer must hear 503 and Prometheus wants to see the drain.

use super::drain::Drain;
use crate::gateway::Readiness;
use async_trait::async_trait;
use http::{Response, StatusCode, header};
use pingora_core::apps::ServerApp as _;
use pingora_core::apps::http_app::ServeHttp;
use pingora_core::protocols::http::ServerSession;
use pingora_core::protocols::l4::stream::Stream;
use proxy::cache::Cache;
use proxy::context::metrics::advance;
use proxy::engine::Services;
use proxy::explain::circuits;
use shared::supervisor::Supervisor;
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

const BACKLOG: u32 = 128;

pub struct HealthPort {
    /// Bound already, so that a port that cannot be used is told before a predecessor is asked to leave. Nobody can
    /// connect until it listens.
    socket: Mutex<Option<TcpSocket>>,
    /// Outlives a task that panics.
    listener: OnceLock<TcpListener>,
    /// Where the proxy listens: it is ready once somebody can connect.
    proxy: SocketAddr,
    health: Arc<Health>,
}

impl HealthPort {
    pub fn new(socket: TcpSocket, proxy: SocketAddr, health: Arc<Health>) -> Self {
        Self { socket: Mutex::new(Some(socket)), listener: OnceLock::new(), proxy, health }
    }

    pub async fn run(&self) {
        if let Some(socket) = self.socket.lock().unwrap_or_else(PoisonError::into_inner).take() {
            match socket.listen(BACKLOG) {
                Ok(listener) => drop(self.listener.set(listener)),
                Err(error) => {
                    tracing::error!(%error, "METRICS_PORT cannot be used");
                    std::process::exit(1);
                }
            }
        }
        let Some(listener) = self.listener.get() else { return };
        let serving = async { tokio::join!(self.accept(listener), self.watch_listener()) };
        tokio::select! {
            _ = serving => {}
            () = self.health.leave.handed_over() => {}
        }
    }

    async fn watch_listener(&self) {
        while TcpStream::connect(self.proxy).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.health.listens.store(true, Ordering::Relaxed);
    }

    async fn accept(&self, listener: &TcpListener) {
        let (_stays, shutdown) = watch::channel(false);
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Out of file descriptors, most likely; trying again at once would only burn the processor.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (health, shutdown) = (self.health.clone(), shutdown.clone());
            tokio::spawn(async move { health.process_new(Box::new(Stream::from(stream)), &shutdown).await });
        }
    }
}

/// Shared with a successor: both processes have the port for a moment while sockets are handed over.
pub fn bind(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

pub struct Health {
    pub services: Services,
    pub cache: Arc<Cache>,
    pub leave: Arc<Drain>,
    pub listens: AtomicBool,
    pub supervisor: Arc<Supervisor>,
}

#[async_trait]
impl ServeHttp for Health {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        match session.req_header().uri.path() {
            "/metrics" => text(StatusCode::OK, self.metrics()),
            "/healthz" => text(StatusCode::OK, "ok\n".into()),
            "/readyz" => self.ready(),
            "/circuits" => self.circuits(),
            _ => text(StatusCode::NOT_FOUND, "not found\n".into()),
        }
    }
}

impl Health {
    fn ready(&self) -> Response<Vec<u8>> {
        match self.readiness() {
            Ok(ready) => text(StatusCode::OK, ready.into()),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, why.into()),
        }
    }

    /// The same for the port of the traffic.
    pub fn readiness_check(self: Arc<Self>) -> Readiness {
        Arc::new(move || self.readiness())
    }

    /// Why the process should get no traffic, if it should not. Tasks that do not do their work are named either way.
    fn readiness(&self) -> Result<Cow<'static, str>, Cow<'static, str>> {
        if self.leave.is_leaving() {
            return Err("leaving\n".into());
        }
        if !self.services.snapshot.is_loaded() {
            return Err("no keys are loaded yet\n".into());
        }
        if !self.listens.load(Ordering::Relaxed) {
            return Err("not listening yet\n".into());
        }
        let problems = self.supervisor.problems();
        let lines = problems.lines.iter().fold(String::new(), |lines, line| lines + line + "\n");
        match (problems.is_ready, lines.is_empty()) {
            (true, true) => Ok("ready\n".into()),
            (true, false) => Ok(format!("ready\n{lines}").into()),
            (false, _) => Err(lines.into()),
        }
    }

    fn circuits(&self) -> Response<Vec<u8>> {
        let page = circuits::page(&self.services.snapshot, &self.services.planner.inline, Instant::now());
        answer(StatusCode::OK, "application/json", page.to_string())
    }

    /// Gauges that mirror other parts are read when asked for.
    fn metrics(&self) -> String {
        let metrics = &self.services.metrics;
        let snapshot = &self.services.snapshot;
        metrics.snapshot_loaded.set(i64::from(snapshot.is_loaded()));
        metrics.snapshot_age.set(snapshot.age().map_or(-1.0, |age| age.as_secs_f64()));
        metrics.snapshot_cursor.set(snapshot.cursor() as i64);
        metrics.snapshot_connected.set(i64::from(snapshot.is_connected()));
        advance(&metrics.snapshot_failures, snapshot.failures());
        advance(&metrics.snapshot_reloads, snapshot.progress().reloads);
        advance(&metrics.snapshot_read, snapshot.read_rows());
        advance(&metrics.snapshot_skipped, snapshot.skipped_rows());
        for (table, rows) in snapshot.rows() {
            metrics.snapshot_rows.with_label_values(&[table]).set(rows as i64);
        }
        metrics.circuits.reset();
        for ((provider, state), circuits) in circuits::by_provider(&self.services, Instant::now()) {
            metrics.circuits.with_label_values(&[&*provider, state]).set(circuits);
        }
        if let Some(journal) = &self.services.recorder.journal {
            journal.measure();
        }
        metrics.tasks.measure(&self.supervisor.reports());
        metrics.body_bytes.set(self.services.body_limits.memory.used() as i64);
        let (bytes, entries) = self.cache.memory().size();
        metrics.cache_bytes.set(bytes as i64);
        metrics.cache_entries.set(entries as i64);
        advance(&metrics.cache_evicted, self.cache.memory().evicted());
        metrics.pool_idle.set(self.services.calls.dialer.idle_connections() as i64);
        metrics.render()
    }
}

fn text(status: StatusCode, body: String) -> Response<Vec<u8>> {
    answer(status, "text/plain; version=0.0.4", body)
}

fn answer(status: StatusCode, kind: &'static str, body: String) -> Response<Vec<u8>> {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CONTENT_LENGTH, body.len());
    response.body(body.into_bytes()).unwrap_or_default()
}
