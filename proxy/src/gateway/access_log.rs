//! A line of JSON on standard output for each request, where the operator wants it. A thread of its own writes: whoever
//! reads the lines slowly loses some, and holds up no request. Nothing is written that a client could hide a secret in:
//! no query, no header but ids, no body.

use super::tasks::ACCESS_LOG;
use anyhow::Context as _;
use http::HeaderValue;
use pingora_http::RequestHeader;
use prometheus::IntCounter;
use proxy::context::Visit;
use proxy::context::metrics::Metrics;
use proxy::request::refusal::RefusalCode;
use proxy::request::text_bounds::{self, cut};
use serde::Serialize;
use shared::supervisor::Supervisor;
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use uuid::Uuid;

/// Lines that wait for their reader.
const WAITING: usize = 8192;

#[derive(Clone)]
pub struct AccessLog {
    lines: SyncSender<String>,
    dropped: IntCounter,
}

#[derive(Serialize)]
struct AccessLine<'v> {
    timestamp: String,
    request_id: &'v str,
    trace_id: &'v str,
    client_ip: Option<IpAddr>,
    method: &'v str,
    path: &'v str,
    status: u16,
    error_code: Option<&'static str>,
    lane: &'static str,
    workspace_id: Option<Uuid>,
    provider: Option<&'v str>,
    attempts: u8,
    duration_ms: u64,
    upstream_ms: u64,
    first_byte_ms: Option<u64>,
}

impl AccessLog {
    pub fn to_stdout(metrics: &Metrics, supervisor: &Arc<Supervisor>) -> anyhow::Result<Self> {
        Self::start(std::io::stdout(), metrics.access_log_dropped.clone(), supervisor)
            .context("ACCESS_LOG: a thread for it")
    }

    /// Writes to `output` until the process ends.
    fn start(
        mut output: impl Write + Send + 'static,
        dropped: IntCounter,
        supervisor: &Arc<Supervisor>,
    ) -> std::io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        supervisor.spawn_thread(ACCESS_LOG, move |_| write_all(&waiting, &mut output))?;
        Ok(Self { lines, dropped })
    }

    /// The request is over.
    pub fn note(&self, head: &RequestHeader, client_ip: Option<IpAddr>, visit: &mut Visit) {
        visit.request.trace_id();
        let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let request = &visit.request;
        let line = AccessLine {
            timestamp: request.began_at.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            request_id: request.id(),
            trace_id: request.trace_id.as_ref().and_then(text).unwrap_or_default(),
            client_ip,
            method: cut(head.method.as_str(), text_bounds::METHOD),
            path: cut(head.uri.path(), text_bounds::URL),
            status: visit.answer.status,
            error_code: visit.answer.error_code.map(RefusalCode::as_str),
            lane: visit.observer.lane().text(),
            workspace_id: request.workspace_id,
            provider: visit.routing.provider.as_ref().and_then(text),
            attempts: visit.routing.attempts,
            duration_ms: millis(request.started.elapsed()),
            upstream_ms: millis(visit.routing.upstream),
            first_byte_ms: visit.answer.head_after.map(millis),
        };
        let Ok(mut line) = serde_json::to_string(&line) else { return };
        line.push('\n');
        if self.lines.try_send(line).is_err() {
            self.dropped.inc();
        }
    }
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok()
}

fn write_all(waiting: &Receiver<String>, output: impl Write) {
    let mut output = BufWriter::new(output);
    while let Ok(line) = waiting.recv() {
        let _ = output.write_all(line.as_bytes());
        for line in waiting.try_iter().take(WAITING) {
            let _ = output.write_all(line.as_bytes());
        }
        // Whoever reads has gone, or the disk is full: there is nobody to tell.
        let _ = output.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proxy::context::metrics::Lane;

    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            loop {
                std::thread::park();
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_does_not_read_loses_lines_and_holds_up_nobody() {
        let dropped = IntCounter::new("d", "d").unwrap();
        let log = AccessLog::start(Stuck, dropped.clone(), &Supervisor::new()).unwrap();
        let head = RequestHeader::build("GET", b"/v1/models?key=secret", None).unwrap();
        let mut visit = Visit::begin();
        assert_eq!(visit.observer.lane(), Lane::Own);
        // As many as wait, as many as the writer may hold, and a few more.
        for _ in 0..4 * WAITING {
            log.note(&head, None, &mut visit);
        }
        assert!(dropped.get() > 0);
    }
}
