//! Calls as OpenTelemetry traces, for operators who name a collector: a span for each request, and below it one for each
//! target that was tried. They are made from the journal's records after these are stored, so that a request pays
//! nothing for its trace and a killed process loses none.
//!
//! A collector that is away does not hold the journal up: after a few tries its spans are dropped and counted.

mod span;

use super::meters::Meters;
use super::record::Record;
use super::ship::Priced;
use crate::dial::{Dialer, errand};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, header};
use pingora_http::RequestHeader;
use serde_json::{Value, json};
use shared::conf;
use shared::outbound::{Origin, path_of};
use std::sync::Arc;
use std::time::Duration;

/// Spans of one request to the collector.
const BATCH: usize = 500;
const TRIES: u32 = 3;
const LIMIT: Duration = Duration::from_secs(5);
/// An answer is looked at only for its status.
const LONGEST_ANSWER: usize = 64 << 10;

pub struct Traces {
    dialer: Arc<Dialer>,
    origin: Arc<Origin>,
    path: PathAndQuery,
    headers: Vec<(HeaderName, HeaderValue)>,
    service: String,
    meters: Arc<Meters>,
    waiting: Vec<Value>,
}

impl Traces {
    /// None when no collector is named.
    pub fn open(settings: &conf::Traces, dialer: Arc<Dialer>, meters: Arc<Meters>) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &settings.otel_exporter_otlp_endpoint else { return Ok(None) };
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let named = |rule| anyhow::anyhow!("OTEL_EXPORTER_OTLP_ENDPOINT: {rule}");
        Ok(Some(Self {
            origin: dialer.known_host(endpoint).map_err(named)?,
            path: path_of(&url).map_err(named)?,
            headers: headers(settings.otel_exporter_otlp_headers.as_deref().unwrap_or_default())?,
            service: settings.otel_service_name.clone(),
            dialer,
            meters,
            waiting: Vec::new(),
        }))
    }

    /// Keeps the spans of a record until the next `send`.
    pub fn note(&mut self, record: &Record<'_>, priced: &Priced<'_>) {
        self.waiting.extend(span::of(record, priced));
    }

    /// Sends what was noted. Never fails: what the collector does not take is dropped.
    pub async fn send(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        for spans in waiting.chunks(BATCH) {
            let body = Bytes::from(envelope(&self.service, spans).to_string());
            match self.deliver(&body).await {
                Ok(()) => self.meters.spans.inc_by(spans.len() as u64),
                Err(error) => {
                    self.meters.spans_dropped.inc_by(spans.len() as u64);
                    tracing::warn!(error, spans = spans.len(), "the collector took no traces; they are dropped");
                }
            }
        }
    }

    /// Nothing was stored of these, and they will come again.
    pub fn forget(&mut self) {
        self.waiting.clear();
    }

    async fn deliver(&self, body: &Bytes) -> Result<(), String> {
        let mut failed = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(200) * 2_u32.pow(attempt)).await;
            }
            let posted = tokio::time::timeout(LIMIT, self.post(body.clone())).await;
            match posted.unwrap_or_else(|_| Err("no answer in time".into())) {
                Ok(200..=299) => return Ok(()),
                // Anything else of its kind would be said of the same bytes again.
                Ok(status) if !matches!(status, 429 | 502 | 503 | 504) => return Err(format!("it answered {status}")),
                Ok(status) => failed = format!("it answered {status}"),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn post(&self, body: Bytes) -> Result<u16, String> {
        let mut head = RequestHeader::build("POST", self.path.as_str().as_bytes(), Some(4 + self.headers.len()))
            .map_err(|_| "its path is not valid")?;
        let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &self.headers {
            let _ = head.insert_header(name.clone(), value.clone());
        }
        let upstream = self.dialer.connect(&self.origin, true).await;
        let mut upstream = upstream.map_err(|error| errand::spoken(error.class()))?;
        // The limit of the whole comes first.
        upstream.set_timeouts(LIMIT * 2, LIMIT * 2);
        let status = errand::send(&mut upstream, head, body).await?;
        errand::whole(&mut upstream, LONGEST_ANSWER).await?;
        Ok(status)
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
