//! What is known of one request from its first byte to its last, in either lane: its ids, its lane, how long it took.

mod server_timing;

use crate::headers::PREFIX;
use crate::metrics::{Lane, Metrics};
use crate::realtime::{Done, Websocket};
use crate::refusal::{Dialect, Refusal};
use crate::request_id;
use crate::snapshot::SavedConfig;
use crate::stages::admit::Admission;
use crate::stages::answer::Pulse;
use crate::stages::settle::{Facts, Log};
use crate::target::Target;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;
use server_timing::timing;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// Read once at compile time: a name costs as much to read as to insert.
static REQUEST_ID: HeaderName = HeaderName::from_static("x-gateway-request-id");
static TRACE_ID: HeaderName = HeaderName::from_static("x-gateway-trace-id");
static PROVIDER: HeaderName = HeaderName::from_static("x-gateway-provider");
static RETRY_COUNT: HeaderName = HeaderName::from_static("x-gateway-retry-attempt-count");
static OPTION: HeaderName = HeaderName::from_static("x-gateway-last-used-option-index");
static CACHE_STATUS: HeaderName = HeaderName::from_static("x-gateway-cache-status");
static SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");
/// What names of headers about rate limits begin with.
const LIMITS: &str = "x-ratelimit-";

pub struct Visit {
    pub started: Instant,
    /// The same by the calendar.
    pub began_at: DateTime<Utc>,
    uuid: Uuid,
    /// The same in letters.
    id: [u8; Hyphenated::LENGTH],
    /// The one that the caller gave, or that was made for it once it was needed.
    pub trace_id: Option<HeaderValue>,
    /// The alias prefix of the request's headers; ours are repeated under it.
    pub alias: Option<String>,
    pub dialect: Dialect,
    /// A page of another origin asks: its browser shows it the answer only if the answer says so.
    pub is_from_browser: bool,
    /// Known once a target is chosen.
    pub provider: Option<HeaderValue>,
    /// Which part of its config that target is.
    pub option: HeaderValue,
    /// Retries it took; -1 when they were given up.
    pub retries: i8,
    /// Time spent waiting for the upstream before its head came.
    pub upstream: Duration,
    pub status: u16,
    /// When the whole request must be over.
    pub deadline: Option<Instant>,
    pub pulse: Pulse,
    /// Since the start, when the head of the answer was there.
    pub head_after: Option<Duration>,
    /// Since the start, when the body was understood.
    pub parsed_after: Option<Duration>,
    /// Why the gateway answered itself, or ended the answer.
    pub error_code: Option<&'static str>,
    /// What the journal will say; none once it has been said, or when nobody knows who asks.
    pub log: Option<Box<Log>>,
    /// The saved config that the request follows.
    pub config: Option<Arc<SavedConfig>>,
    /// What its limits promised it; none once that is settled, or when no limit speaks of it.
    pub admission: Option<Box<Admission>>,
    /// The websocket that the connection has become.
    pub websocket: Option<Box<Websocket>>,
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
        let now = SystemTime::now();
        let uuid = request_id::new(now);
        let mut id = [0; Hyphenated::LENGTH];
        uuid.hyphenated().encode_lower(&mut id);
        Self {
            started: Instant::now(),
            began_at: now.into(),
            uuid,
            id,
            trace_id: None,
            alias: None,
            dialect: Dialect::default(),
            is_from_browser: false,
            provider: None,
            option: HeaderValue::from_static("config"),
            retries: 0,
            upstream: Duration::ZERO,
            status: 0,
            deadline: None,
            pulse: Pulse::default(),
            head_after: None,
            parsed_after: None,
            error_code: None,
            log: None,
            config: None,
            admission: None,
            websocket: None,
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
        std::str::from_utf8(&self.id).unwrap_or_default()
    }

    /// Made anew each time: to share one costs more than to write it.
    pub fn request_id(&self) -> HeaderValue {
        HeaderValue::from_bytes(&self.id).unwrap_or(HeaderValue::from_static(""))
    }

    /// The headers every answer of ours carries, whoever wrote its body.
    pub fn stamp(&mut self, head: &mut ResponseHeader) {
        self.stamps(|name, value| drop(head.insert_header(name, value)));
    }

    /// The same for a provider's own head on the relay lane, which keeps what it says of its limits and times: ours stand
    /// beside them under our prefix, and under the common names only where it says nothing.
    pub fn stamp_relayed(&mut self, head: &mut ResponseHeader) {
        let has_limits = head.headers.keys().any(|name| name.as_str().starts_with(LIMITS));
        let has_timing = head.headers.contains_key(&SERVER_TIMING);
        let alias = self.alias.clone();
        self.stamps(|name, value| {
            let is_limit = name.as_str().starts_with(LIMITS);
            let is_timing = name == SERVER_TIMING;
            if is_limit || is_timing {
                let suffix = name.as_str().strip_prefix("x-").unwrap_or(name.as_str());
                for prefix in [Some(PREFIX), alias.as_deref()].into_iter().flatten() {
                    let _ = head.insert_header([prefix, suffix].concat(), value.clone());
                }
            }
            if !(is_limit && has_limits || is_timing && has_timing) {
                let _ = head.insert_header(name, value);
            }
        });
    }

    /// The same for a head that is still plain parts.
    pub fn stamp_map(&mut self, head: &mut HeaderMap) {
        self.stamps(|name, value| drop(head.insert(name, value)));
    }

    fn stamps(&mut self, mut put: impl FnMut(HeaderName, HeaderValue)) {
        let own = self.head_after.unwrap_or_else(|| self.started.elapsed()).saturating_sub(self.upstream);
        let request_id = self.request_id();
        let trace = self.trace_id.get_or_insert_with(new_trace).clone();
        let alias = self.alias.as_deref();
        let mut ours = |name: &HeaderName, value: HeaderValue| {
            if let Some(alias) = alias
                && let Ok(aliased) = HeaderName::try_from([alias, &name.as_str()[PREFIX.len()..]].concat())
            {
                put(aliased, value.clone());
            }
            put(name.clone(), value);
        };
        ours(&REQUEST_ID, request_id);
        ours(&TRACE_ID, trace);
        if let Some(provider) = &self.provider {
            ours(&PROVIDER, provider.clone());
            ours(&RETRY_COUNT, count(self.retries));
            ours(&OPTION, self.option.clone());
            ours(&CACHE_STATUS, HeaderValue::from_static("DISABLED"));
        }
        if let Some(admission) = &self.admission {
            admission.shown.stamp(&mut put);
        }
        put(SERVER_TIMING.clone(), timing(own, self.upstream));
        if self.is_from_browser {
            put(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
            put(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
        }
    }

    /// A target is turned to. One that was being tried on the relay lane could not be reached then.
    pub fn turn_to(&mut self, target: &Target, model: Option<&str>) {
        if self.log.is_none()
            && let Some(admission) = &mut self.admission
        {
            admission.leave_attempt_unless(&self.option);
        }
        if self.log.as_ref().is_some_and(|log| log.is_elsewhere(&self.option)) {
            self.set_aside(503, Some("upstream_unreachable"), None);
        }
        if let Some(log) = &mut self.log {
            log.turn_to(target, model, &self.option, self.upstream);
        }
    }

    /// Whether the limits of the present target let it pass already.
    pub fn is_attempt_admitted(&self) -> bool {
        self.admission.as_ref().is_some_and(|admission| admission.has_attempt())
    }

    /// The present target was not asked after all: what its limits promised is others' again.
    pub fn give_attempt_back(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.give_attempt_back();
        }
    }

    /// Notes the present target, which another one replaces.
    pub fn set_aside(&mut self, status: u16, error_code: Option<&'static str>, answered: Option<(&HeaderMap, &Bytes)>) {
        if let Some(mut log) = self.log.take() {
            let mut admission = self.admission.take();
            log.set_aside(&self.facts(status, error_code), answered, admission.as_deref_mut());
            self.log = Some(log);
            self.admission = admission;
        }
    }

    /// The call is about to leave. What strict budgets promised it is noted before; it must not leave if that fails.
    pub fn leaves(&mut self) -> Result<(), Refusal> {
        let (Some(log), Some(admission)) = (&mut self.log, &self.admission) else { return Ok(()) };
        match log.promise(self.uuid, admission) {
            true => Ok(()),
            false => Err(Refusal::journal_full()),
        }
    }

    /// The client gets this head.
    pub fn answers(&mut self, head: &HeaderMap) {
        if let Some(log) = &mut self.log {
            log.answers(self.status, head);
        }
    }

    /// The gateway itself ends the answer with this, or answers so: the request is noted first.
    pub fn ends_with(&mut self, bytes: &[u8]) {
        if let Some(log) = &mut self.log {
            log.tells(bytes);
            self.note();
        }
    }

    /// A piece of a plain answer is about to leave; the request is noted before the last one does.
    pub fn plain(&mut self, piece: &Bytes, is_last: bool) {
        let Some(log) = &mut self.log else { return };
        log.plain(piece, is_last);
        if is_last {
            self.note();
        }
    }

    /// A plain answer is about to leave that steps have changed.
    pub fn changed(&mut self, read: &Bytes, passed: &Bytes) {
        let Some(log) = &mut self.log else { return };
        log.changed(read, passed);
        self.note();
    }

    /// A plain answer is about to leave as an event.
    pub fn late(&mut self, body: &[u8], event: &[u8]) {
        let Some(log) = &mut self.log else { return };
        log.counts(body, true);
        log.tells(event);
        self.note();
    }

    /// Whole events of a stream came, of which the client gets what is passed; the request is noted before what ends it
    /// leaves.
    pub fn events(&mut self, whole: &[u8], passed: &[u8], is_last: bool) {
        let after = self.started.elapsed();
        let Some(log) = &mut self.log else { return };
        log.streams(after);
        log.events(whole, passed);
        if is_last || log.is_told() {
            self.note();
        }
    }

    /// Whole events came of which the client gets nothing but the error that comes next.
    pub fn withholds(&mut self, whole: &[u8]) {
        if let Some(log) = &mut self.log {
            log.events(whole, &[]);
        }
    }

    /// Bytes of a relayed answer are about to leave.
    pub fn relays(&mut self, piece: &Bytes, is_last: bool) {
        let after = self.started.elapsed();
        let Some(log) = &mut self.log else { return };
        log.relayed(piece, is_last, after);
        if is_last || log.is_told() {
            self.note();
        }
    }

    /// Notes the request in the journal, once.
    pub fn note(&mut self) {
        let Some(mut log) = self.log.take() else { return };
        let (mut status, mut error_code) = (self.status, self.error_code);
        let admission = self.admission.take();
        let mut record_id = self.uuid;
        if let Some(websocket) = &self.websocket {
            if !websocket.has_rest() {
                return;
            }
            if websocket.has_finished_any() {
                record_id = request_id::new(SystemTime::now());
            }
            log.sums_up(websocket);
            if status == 101 {
                (status, error_code) = websocket.outcome();
            }
        }
        let facts = Facts { record_id, ..self.facts(status, error_code) };
        log.settle(&facts, admission);
    }

    /// A response of a session is over: it is noted by itself, the first one under the id of the session.
    pub fn note_response(&mut self, done: Done, admission: Option<Box<Admission>>) {
        let Some(websocket) = &mut self.websocket else { return };
        let (number, took) = websocket.finish(&done);
        let Some(mut log) = self.log.take() else {
            return admission.into_iter().for_each(|admission| admission.settle_unseen());
        };
        let record_id = if number == 0 { self.uuid } else { request_id::new(SystemTime::now() - took) };
        let (status, error_code) = if done.is_failed { (502, Some("upstream_error")) } else { (200, None) };
        let facts = Facts { record_id, ..self.facts(status, error_code) };
        log.settle_response(&facts, took, done.usage, admission);
        self.log = Some(log);
    }

    fn facts(&mut self, status: u16, error_code: Option<&'static str>) -> Facts<'_> {
        let trace_id = self.trace_id.get_or_insert_with(new_trace);
        Facts {
            request_id: self.uuid,
            record_id: self.uuid,
            started: self.started,
            trace_id: trace_id.to_str().unwrap_or_default(),
            status,
            error_code,
            retries: self.retries,
            upstream: self.upstream,
            head_after: self.head_after,
            parsed_after: self.parsed_after,
        }
    }

    /// Counts the finished request, and notes it if its answer never came to an end. Tells when that was.
    pub fn settle(&mut self, metrics: &Metrics) -> Instant {
        self.note();
        if let Some(admission) = self.admission.take() {
            admission.settle_unseen();
        }
        let now = Instant::now();
        metrics.answered(self.lane(), self.status, now.saturating_duration_since(self.started));
        self.presence = None;
        now
    }
}

fn count(retries: i8) -> HeaderValue {
    match retries {
        0 => HeaderValue::from_static("0"),
        other => HeaderValue::from(i16::from(other)),
    }
}

fn new_trace() -> HeaderValue {
    let mut text = Uuid::encode_buffer();
    let text = request_id::random().hyphenated().encode_lower(&mut text);
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_own_limits_and_times_stay_beside_ours() {
        let stamped = |sent: &[(&'static str, &'static str)]| {
            let mut head = ResponseHeader::build(200, None).unwrap();
            for (name, value) in sent {
                head.insert_header(*name, *value).unwrap();
            }
            let mut visit = Visit::begin();
            visit.alias = Some("x-acme-".into());
            visit.stamp_relayed(&mut head);
            head.headers.clone()
        };
        let own = stamped(&[("server-timing", "db;dur=1"), ("x-ratelimit-limit-requests", "7")]);
        assert_eq!(own["server-timing"], "db;dur=1");
        assert_eq!(own["x-ratelimit-limit-requests"], "7");
        assert!(own["x-gateway-server-timing"].to_str().unwrap().starts_with("gateway;dur="));
        assert_eq!(own["x-acme-server-timing"], own["x-gateway-server-timing"]);
        let plain = stamped(&[]);
        assert_eq!(plain["server-timing"], plain["x-gateway-server-timing"]);
    }
}
