//! Calls as OpenTelemetry traces, for operators who name a collector: a span for each request, and below it one for each
//! target that was tried. They are made from the journal's records after these are stored, so that a request pays
//! nothing for its trace and a killed process loses none.
//!
//! They are sent by a task of their own, so that a collector that is away or hangs does not hold the journal up: what
//! finds no room in its queue is dropped and counted, and so is what was not taken after a few tries.

pub mod collector;
pub mod span;

use super::meters::JournalMeters;
use super::record::Record;
use super::ship::Priced;
use crate::net::dial::Dialer;
use bytes::Bytes;
use collector::{Collector, QueueRoom};
use http::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use shared::outbound::path_of;
use shared::settings;
use std::sync::Arc;
use tokio::sync::mpsc::{self, Sender};

/// Spans of one request to the collector.
const BATCH: usize = 500;
/// Requests to it that may wait.
const MAX_WAITING: usize = 64;

pub struct Traces {
    service: String,
    meters: Arc<JournalMeters>,
    /// Of records that are not stored yet.
    noted: Vec<Value>,
    collector: Arc<Collector>,
    /// To the task that sends them.
    queue: Sender<TraceBatch>,
}

/// One request to the collector.
pub struct TraceBatch {
    body: Bytes,
    spans: usize,
}

impl Traces {
    /// None when no collector is named.
    pub fn open(
        settings: &settings::Traces,
        dialer: Arc<Dialer>,
        meters: Arc<JournalMeters>,
    ) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &settings.otel_exporter_otlp_endpoint else { return Ok(None) };
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let named = |rule| anyhow::anyhow!("OTEL_EXPORTER_OTLP_ENDPOINT: {rule}");
        let (queue, batches) = mpsc::channel(MAX_WAITING);
        let collector = Collector {
            batches: tokio::sync::Mutex::new(batches),
            origin: dialer.known_host(endpoint).map_err(named)?,
            path: path_of(&url).map_err(named)?,
            headers: headers(settings.otel_exporter_otlp_headers.as_deref().unwrap_or_default())?,
            dialer,
            meters: meters.clone(),
            room: QueueRoom::default(),
        };
        Ok(Some(Self {
            service: settings.otel_service_name.clone(),
            meters,
            noted: Vec::new(),
            collector: Arc::new(collector),
            queue,
        }))
    }

    /// The task that sends what is queued.
    pub fn collector(&self) -> Arc<Collector> {
        self.collector.clone()
    }

    /// Keeps the spans of a record until the next `send`.
    pub fn note(&mut self, record: &Record<'_>, priced: &Priced<'_>) {
        self.noted.extend(span::spans(record, priced));
    }

    /// Queues what was noted for the collector. Never waits and never fails: what has no room is dropped.
    pub fn send(&mut self) {
        let noted = std::mem::take(&mut self.noted);
        for spans in noted.chunks(BATCH) {
            let body = Bytes::from(envelope(&self.service, spans).to_string());
            let (bytes, spans) = (body.len(), spans.len());
            let is_queued = self.collector.room.take(bytes)
                && self
                    .queue
                    .try_send(TraceBatch { body, spans })
                    .inspect_err(|_| self.collector.room.give_back(bytes))
                    .is_ok();
            match is_queued {
                true => self.meters.spans_waiting.add(i64::try_from(spans).unwrap_or(i64::MAX)),
                false => {
                    self.meters.spans_dropped.inc_by(spans as u64);
                    tracing::warn!(spans, "the collector is behind; traces are dropped");
                }
            }
        }
    }

    /// Nothing was stored of these, and they will come again.
    pub fn forget(&mut self) {
        self.noted.clear();
    }
}

/// `name=value,name=value`, as OpenTelemetry spells headers in a setting. Errors repeat no value.
fn headers(text: &str) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let read = |entry: &str| {
        let (name, value) = entry.split_once('=')?;
        let mut value = HeaderValue::try_from(value.trim()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name.trim()).ok()?, value))
    };
    entries
        .map(|entry| read(entry).ok_or_else(|| anyhow::anyhow!("OTEL_EXPORTER_OTLP_HEADERS: not `name=value`")))
        .collect()
}

fn envelope(service: &str, spans: &[Value]) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    json!({ "resourceSpans": [{
        "resource": { "attributes": [span::text("service.name", service), span::text("service.version", version)] },
        "scopeSpans": [{ "scope": { "name": "portcullis", "version": version }, "spans": spans }],
    }] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_opentelemetry_spells_them_and_never_repeated() {
        let read = headers("authorization=Bearer a=b, x-team = search ,").unwrap();
        let read: Vec<_> = read.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        assert_eq!(read, [("authorization", &b"Bearer a=b"[..]), ("x-team", b"search")]);
        let error = headers("secret-without-name").unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
