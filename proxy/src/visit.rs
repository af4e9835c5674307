//! What is known of one request from its first byte to its last, in either lane: its ids, its lane, how long it took.

use crate::headers::PREFIX;
use crate::metrics::{Lane, Metrics};
use crate::refusal::Dialect;
use crate::request_id;
use http::{HeaderName, HeaderValue};
use pingora_http::ResponseHeader;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

pub struct Visit {
    pub started: Instant,
    pub request_id: HeaderValue,
    pub trace_id: Option<HeaderValue>,
    /// The alias prefix of the request's headers; ours are repeated under it.
    pub alias: Option<String>,
    pub dialect: Dialect,
    /// Known once a target is chosen.
    pub provider: Option<HeaderValue>,
    /// Time spent waiting for the upstream before its head came.
    pub upstream: Duration,
    pub status: u16,
    presence: Option<Presence>,
}

/// Counts as in flight until dropped, however the request ends.
struct Presence {
    lane: Lane,
    metrics: Arc<Metrics>,
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.metrics.leave(self.lane);
    }
}

impl Visit {
    pub fn begin() -> Self {
        let mut text = uuid::Uuid::encode_buffer();
        let id = request_id::new(SystemTime::now());
        Self {
            started: Instant::now(),
            request_id: ascii(id.hyphenated().encode_lower(&mut text)),
            trace_id: None,
            alias: None,
            dialect: Dialect::default(),
            provider: None,
            upstream: Duration::ZERO,
            status: 0,
            presence: None,
        }
    }

    pub fn enter(&mut self, lane: Lane, metrics: &Arc<Metrics>) {
        self.presence = None;
        metrics.enter(lane);
        self.presence = Some(Presence { lane, metrics: metrics.clone() });
    }

    pub fn lane(&self) -> Lane {
        self.presence.as_ref().map_or(Lane::Own, |presence| presence.lane)
    }

    pub fn id(&self) -> &str {
        self.request_id.to_str().unwrap_or_default()
    }

    /// The headers every answer of ours carries, whoever wrote its body.
    pub fn stamp(&mut self, head: &mut ResponseHeader) {
        let own = self.started.elapsed().saturating_sub(self.upstream);
        let trace = self.trace_id.get_or_insert_with(new_trace).clone();
        let alias = self.alias.as_deref();
        put(head, alias, "x-gateway-request-id", self.request_id.clone());
        put(head, alias, "x-gateway-trace-id", trace);
        if let Some(provider) = &self.provider {
            put(head, alias, "x-gateway-provider", provider.clone());
            put(head, alias, "x-gateway-retry-attempt-count", HeaderValue::from_static("0"));
            put(head, alias, "x-gateway-last-used-option-index", HeaderValue::from_static("config"));
            put(head, alias, "x-gateway-cache-status", HeaderValue::from_static("DISABLED"));
        }
        let timing = timing(own, self.upstream);
        let _ = head.insert_header(HeaderName::from_static("server-timing"), timing);
    }

    /// Counts the finished request.
    pub fn settle(&mut self, metrics: &Metrics) {
        metrics.answered(self.lane(), self.status, self.started.elapsed());
        self.presence = None;
    }
}

fn put(head: &mut ResponseHeader, alias: Option<&str>, name: &'static str, value: HeaderValue) {
    if let Some(alias) = alias
        && let Ok(aliased) = HeaderName::try_from(format!("{alias}{}", &name[PREFIX.len()..]))
    {
        let _ = head.insert_header(aliased, value.clone());
    }
    let _ = head.insert_header(HeaderName::from_static(name), value);
}

fn new_trace() -> HeaderValue {
    let mut text = uuid::Uuid::encode_buffer();
    ascii(request_id::random().hyphenated().encode_lower(&mut text))
}

fn timing(own: Duration, upstream: Duration) -> HeaderValue {
    let text = format!("gateway;dur={:.3}, upstream;dur={:.3}", millis(own), millis(upstream));
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static(""))
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}
