//! The metrics port: `/metrics` for Prometheus, `/healthz` (the process lives), `/readyz` (it may be sent traffic).
//! Readiness asks whether there is data to answer from, never whether Postgres is there right now.

use crate::leave::Leave;
use async_trait::async_trait;
use http::{Response, StatusCode, header};
use pingora_core::apps::http_app::ServeHttp;
use pingora_core::protocols::http::ServerSession;
use proxy::engine::Engine;
use std::sync::Arc;

pub struct Health {
    pub engine: Arc<Engine>,
    pub leave: Arc<Leave>,
}

#[async_trait]
impl ServeHttp for Health {
    async fn response(&self, session: &mut ServerSession) -> Response<Vec<u8>> {
        match session.req_header().uri.path() {
            "/metrics" => text(StatusCode::OK, self.metrics()),
            "/healthz" => text(StatusCode::OK, "ok\n".into()),
            "/readyz" => self.ready(),
            _ => text(StatusCode::NOT_FOUND, "not found\n".into()),
        }
    }
}

impl Health {
    fn ready(&self) -> Response<Vec<u8>> {
        if self.leave.is_leaving() {
            return text(StatusCode::SERVICE_UNAVAILABLE, "leaving\n".into());
        }
        match self.engine.snapshot.is_loaded() {
            true => text(StatusCode::OK, "ready\n".into()),
            false => text(StatusCode::SERVICE_UNAVAILABLE, "no keys are loaded yet\n".into()),
        }
    }

    /// Gauges that mirror other parts are read when asked for.
    fn metrics(&self) -> String {
        let metrics = &self.engine.metrics;
        let snapshot = &self.engine.snapshot;
        metrics.snapshot_loaded.set(i64::from(snapshot.is_loaded()));
        metrics.snapshot_age.set(snapshot.age().map_or(-1.0, |age| age.as_secs_f64()));
        metrics.snapshot_cursor.set(snapshot.cursor() as i64);
        metrics.body_bytes.set(self.engine.body_memory.used() as i64);
        metrics.pool_idle.set(self.engine.dialer.idle_connections() as i64);
        metrics.render()
    }
}

fn text(status: StatusCode, body: String) -> Response<Vec<u8>> {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/plain; version=0.0.4")
        .header(header::CONTENT_LENGTH, body.len());
    response.body(body.into_bytes()).unwrap_or_default()
}
