//! Every metric the proxy exports. Labels are closed sets, resolved once: counting takes no lock, and no label ever
//! carries a key or user id. What requests add to here is kept per thread, and the seldom rest by the library. Models
//! are labels of what calls used alone, which is counted apart from requests (`journal::spend_meters`).

pub mod batches;
mod providers;
mod tasks;

use crate::cache::RemoteMeters;
use crate::catalog::providers::ProviderNumber;
use crate::guardrails::GuardMeters;
use crate::journal::{CacheStatus, JournalMeters};
use crate::limits::{self, fairness};
use crate::net::dial::Class;
use crate::request::refusal::RefusalCode;
use crate::runtime::numbers::{Draft, Numbers, StripedCounter, Times};
use batches::BatchMeters;
use prometheus::{IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use providers::ProviderMeters;
use std::sync::Arc;
use std::time::Duration;
use tasks::TaskMeters;

const LANES: &[&str] = &["engine", "relay", "control_plane", "own"];
const REQUEST_LANES: &[&str] =
    &["engine", "relay", "control_plane", "mcp", "files", "batches", "explain", "page", "refused"];
const STATUS_CLASSES: &[&str] = &["2xx", "3xx", "4xx", "5xx", "499"];
/// How an upstream attempt ended, in the order of `attempt`, which numbers the failures of `net::dial::Class` after them.
const ENDINGS: &[&str] = &["answered", "stream_error", "client_left", "overtaken"];
const WINNERS: &[&str] = &["first", "second"];
/// Up to which microseconds the time of a request is told apart.
const MICROS: &[u64] = &[
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
];
const OVERHEAD_MICROS: &[u64] = &[50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000];

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Engine,
    Relay,
    ControlPlane,
    Own,
}

impl Lane {
    pub fn text(self) -> &'static str {
        LANES[self as usize]
    }
}

/// Where a request goes once its head was read, told apart more finely than by `Lane`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestLane {
    Engine,
    Relay,
    ControlPlane,
    Mcp,
    Files,
    Batches,
    Explain,
    /// Answered with a page of the gateway's own.
    Page,
    /// Its head alone was enough to refuse it.
    Refused,
}

/// How an upstream attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Answered,
    /// An error inside an answer whose status said success.
    StreamError,
    ClientLeft,
    /// Another attempt beside it was faster.
    Overtaken,
    Failed(Class),
}

pub struct Metrics {
    registry: Registry,
    numbers: Numbers,
    /// Of each lane, by class of status.
    requests: Vec<StripedCounter>,
    /// In the order of `RequestLane`.
    begun: Vec<StripedCounter>,
    duration: Vec<Times>,
    first_byte: Vec<Times>,
    overhead: Times,
    in_flight: Vec<StripedCounter>,
    /// The endings, then the failures.
    attempts: Vec<StripedCounter>,
    providers: ProviderMeters,
    /// By what the cache did, in the order of `CacheStatus::ALL`.
    looked_up: Vec<StripedCounter>,
    pool_reused: StripedCounter,
    refused: Vec<IntCounter>,
    hedges: Vec<IntCounter>,
    pub pool_idle: IntGauge,
    pub pool_opened: IntCounter,
    pub pool_stale: IntCounter,
    pub snapshot_age: prometheus::Gauge,
    pub snapshot_cursor: IntGauge,
    pub snapshot_rows: IntGaugeVec,
    pub snapshot_loaded: IntGauge,
    pub snapshot_failures: IntCounter,
    pub snapshot_reloads: IntCounter,
    pub snapshot_connected: IntGauge,
    pub snapshot_read: IntCounter,
    pub snapshot_skipped: IntCounter,
    /// Circuit breakers by provider and state; set when asked for.
    pub circuits: IntGaugeVec,
    pub access_log_dropped: IntCounter,
    pub body_bytes: IntGauge,
    pub panics: IntCounter,
    pub cache_bytes: IntGauge,
    pub cache_entries: IntGauge,
    pub cache_evicted: IntCounter,
    pub unrecorded_tokens: IntCounter,
    pub draining: IntGauge,
    pub journal: Arc<JournalMeters>,
    pub limits: Arc<limits::LimitMeters>,
    pub fairness: Arc<fairness::FairnessMeters>,
    pub guardrails: Arc<GuardMeters>,
    pub cache_store: Arc<RemoteMeters>,
    pub batches: Arc<BatchMeters>,
    pub tasks: TaskMeters,
}

impl Metrics {
    /// `providers` are the names of the table, in the order of their numbers.
    pub fn new(providers: &[&str]) -> anyhow::Result<Self> {
        let registry = Registry::new();
        register_build(&registry)?;
        registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let by_lane = || LANES.iter().map(|lane| vec![("lane", *lane)]);
        let mut draft = Draft::default();
        let requests = draft.counters(
            ("gateway_requests_total", "Requests answered, by lane and class of status."),
            LANES.iter().flat_map(|lane| STATUS_CLASSES.iter().map(|class| vec![("lane", *lane), ("status", *class)])),
        )?;
        let begun = draft.counters(
            (
                "gateway_requests_by_lane_total",
                "Requests that passed the request filter, by where their head leads; each counts once.",
            ),
            REQUEST_LANES.iter().map(|lane| vec![("lane", *lane)]),
        )?;
        let duration = draft.times(
            ("gateway_request_duration_seconds", "From a request's head to the last byte of its answer, by lane."),
            MICROS,
            by_lane(),
        )?;
        let first_byte = draft.times(
            ("gateway_time_to_first_byte_seconds", "From a request's head to the head of its answer, by lane."),
            MICROS,
            by_lane(),
        )?;
        let overhead = draft
            .time(("gateway_overhead_seconds", "The gateway's own time before the answer's head."), OVERHEAD_MICROS)?;
        let in_flight = draft.gauges(("gateway_in_flight_requests", "Requests being answered, by lane."), by_lane())?;
        let ends = ENDINGS.iter().copied().chain(Class::ALL.map(Class::label));
        let attempts = draft.counters(
            ("gateway_upstream_attempts_total", "Upstream attempts, by how they ended."),
            ends.map(|end| vec![("outcome", end)]),
        )?;
        let pool_reused =
            draft.counter(("gateway_upstream_pool_reused_total", "Requests sent on a held connection."))?;
        let looked_up = draft.counters(
            ("gateway_cache_lookups_total", "Calls that may be answered from the cache, by what it did."),
            CacheStatus::ALL.iter().map(|status| vec![("status", status.name())]),
        )?;
        let providers = ProviderMeters::draft(&mut draft, providers)?;
        let numbers = draft.begin();
        registry.register(Box::new(numbers.clone()))?;
        let refused = IntCounterVec::new(
            Opts::new("gateway_refused_total", "Requests the gateway answered itself, by reason."),
            &["reason"],
        )?;
        let rows = IntGaugeVec::new(Opts::new("gateway_snapshot_rows", "Rows held in memory, by table."), &["table"])?;
        registry.register(Box::new(refused.clone()))?;
        let hedges = IntCounterVec::new(
            Opts::new(
                "gateway_hedges_total",
                "Second attempts beside a slow first one, by whose answer was passed on.",
            ),
            &["winner"],
        )?;
        registry.register(Box::new(hedges.clone()))?;
        registry.register(Box::new(rows.clone()))?;
        let circuits = IntGaugeVec::new(
            Opts::new(
                "gateway_provider_circuits",
                "Circuit breakers that have counted anything, by provider and state.",
            ),
            &["provider", "state"],
        )?;
        registry.register(Box::new(circuits.clone()))?;
        Ok(Self {
            numbers,
            requests,
            begun,
            duration,
            first_byte,
            overhead,
            in_flight,
            attempts,
            providers,
            looked_up,
            pool_reused,
            circuits,
            access_log_dropped: counter(
                &registry,
                "gateway_access_log_dropped_total",
                "Lines of the access log that were left out because its reader was too slow.",
            )?,
            hedges: WINNERS.iter().map(|winner| hedges.with_label_values(&[winner])).collect(),
            refused: RefusalCode::ALL.iter().map(|code| refused.with_label_values(&[code.as_str()])).collect(),
            pool_idle: gauge(&registry, "gateway_upstream_pool_idle", "Idle upstream connections held.")?,
            pool_opened: counter(&registry, "gateway_upstream_connections_total", "Upstream connections opened.")?,
            pool_stale: counter(
                &registry,
                "gateway_upstream_pool_stale_total",
                "Held connections that had died when used; the request went out again on a new one.",
            )?,
            snapshot_age: {
                let age = prometheus::Gauge::new(
                    "gateway_snapshot_age_seconds",
                    "Since Postgres last confirmed the data in memory; -1 before the first time.",
                )?;
                registry.register(Box::new(age.clone()))?;
                age
            },
            snapshot_cursor: gauge(
                &registry,
                "gateway_snapshot_cursor",
                "Transaction id up to which changes are in memory.",
            )?,
            snapshot_rows: rows,
            snapshot_loaded: gauge(&registry, "gateway_snapshot_loaded", "1 when there is data to answer from.")?,
            snapshot_failures: counter(
                &registry,
                "gateway_snapshot_failures_total",
                "Failed attempts to follow Postgres.",
            )?,
            snapshot_reloads: counter(&registry, "gateway_snapshot_reloads_total", "Full loads.")?,
            snapshot_connected: gauge(
                &registry,
                "gateway_snapshot_connected",
                "1 while changes are followed on a live connection to Postgres.",
            )?,
            snapshot_read: counter(
                &registry,
                "gateway_snapshot_read_rows_total",
                "Changed rows read from Postgres, full loads aside.",
            )?,
            snapshot_skipped: counter(
                &registry,
                "gateway_snapshot_skipped_rows_total",
                "Rows left out because they could not be understood.",
            )?,
            body_bytes: gauge(&registry, "gateway_request_body_bytes", "Request bodies held in memory.")?,
            cache_bytes: gauge(&registry, "gateway_cache_bytes", "Memory that kept answers take.")?,
            cache_entries: gauge(&registry, "gateway_cache_entries", "Answers kept in memory.")?,
            cache_evicted: counter(
                &registry,
                "gateway_cache_evicted_total",
                "Kept answers that had to go before they expired.",
            )?,
            panics: counter(&registry, "gateway_panics_total", "Panics caught while answering; each is a bug.")?,
            unrecorded_tokens: counter(
                &registry,
                "gateway_jwt_failures_unrecorded_total",
                "Rejected tokens that no audit trail knows, because they are of no organisation.",
            )?,
            journal: Arc::new(JournalMeters::new(&registry)?),
            limits: Arc::new(limits::LimitMeters::new(&registry)?),
            fairness: Arc::new(fairness::FairnessMeters::new(&registry)?),
            guardrails: Arc::new(GuardMeters::new(&registry)?),
            cache_store: Arc::new(RemoteMeters::new(&registry)?),
            batches: Arc::new(BatchMeters::new(&registry)?),
            tasks: TaskMeters::new(&registry)?,
            draining: gauge(&registry, "gateway_draining", "1 while the process finishes its last requests.")?,
            registry,
        })
    }

    pub fn enter(&self, lane: Lane) {
        self.numbers.inc(self.in_flight[lane as usize]);
    }

    pub fn leave(&self, lane: Lane) {
        self.numbers.dec(self.in_flight[lane as usize]);
    }

    pub fn in_flight(&self) -> i64 {
        self.in_flight.iter().map(|lane| self.numbers.sum(*lane)).sum()
    }

    /// The head of a request was read.
    pub fn begun(&self, lane: RequestLane) {
        self.numbers.inc(self.begun[lane as usize]);
    }

    pub fn answered(&self, lane: Lane, status: u16, took: Duration) {
        self.numbers.inc(self.requests[lane as usize * STATUS_CLASSES.len() + status_class(status)]);
        self.numbers.observe(self.duration[lane as usize], took);
    }

    pub fn first_byte(&self, lane: Lane, after: Duration) {
        self.numbers.observe(self.first_byte[lane as usize], after);
    }

    pub fn overhead(&self, own: Duration) {
        self.numbers.observe(self.overhead, own);
    }

    /// A call was looked for in the cache.
    pub fn looked_up(&self, status: CacheStatus) {
        self.numbers.inc(self.looked_up[status as usize]);
    }

    pub fn pool_reused(&self) {
        self.numbers.inc(self.pool_reused);
    }

    /// An attempt is over; `status` is the provider's, if it answered.
    pub fn attempt(&self, provider: ProviderNumber, status: u16, outcome: Outcome) {
        self.providers.attempt(&self.numbers, provider, status, outcome);
        let index = match outcome {
            Outcome::Answered => 0,
            Outcome::StreamError => 1,
            Outcome::ClientLeft => 2,
            Outcome::Overtaken => 3,
            Outcome::Failed(class) => ENDINGS.len() + class as usize,
        };
        self.numbers.inc(self.attempts[index]);
    }

    /// A second attempt was made beside a first one.
    pub fn hedged(&self, provider: ProviderNumber, second_won: bool) {
        self.providers.hedged(&self.numbers, provider);
        self.hedges[usize::from(second_won)].inc();
    }

    /// The same target is tried again.
    pub fn retried(&self, provider: ProviderNumber) {
        self.providers.retried(&self.numbers, provider);
    }

    /// A target of the provider was left for the next one.
    pub fn left(&self, provider: ProviderNumber) {
        self.providers.left(&self.numbers, provider);
    }

    /// The head of a provider's answer came.
    pub fn provider_answers(&self, provider: ProviderNumber, after: Duration) {
        self.providers.first_byte(&self.numbers, provider, after);
    }

    pub fn refused(&self, code: RefusalCode) {
        self.refused[code as usize].inc();
    }

    pub fn render(&self) -> String {
        TextEncoder::new().encode_to_string(&self.registry.gather()).unwrap_or_default()
    }
}

fn status_class(status: u16) -> usize {
    match status {
        499 => 4,
        500.. => 3,
        400.. => 2,
        300.. => 1,
        _ => 0,
    }
}

/// Brings a counter to a number that is counted elsewhere and never falls.
pub fn advance(counter: &IntCounter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

fn register_build(registry: &Registry) -> prometheus::Result<()> {
    let build = Opts::new("gateway_build_info", "Which version runs; always 1.").const_label("version", VERSION);
    let build = IntGauge::with_opts(build)?;
    build.set(1);
    registry.register(Box::new(build))
}

fn gauge(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntGauge> {
    let gauge = IntGauge::new(name, help)?;
    registry.register(Box::new(gauge.clone()))?;
    Ok(gauge)
}

fn counter(registry: &Registry, name: &str, help: &str) -> prometheus::Result<IntCounter> {
    let counter = IntCounter::new(name, help)?;
    registry.register(Box::new(counter.clone()))?;
    Ok(counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lane_and_class_counts_under_its_own_labels() {
        let metrics = Metrics::new(&[]).unwrap();
        for (lane, status, line) in [
            (Lane::Engine, 200, r#"gateway_requests_total{lane="engine",status="2xx"} 1"#),
            (Lane::Relay, 404, r#"gateway_requests_total{lane="relay",status="4xx"} 1"#),
            (Lane::Engine, 499, r#"gateway_requests_total{lane="engine",status="499"} 1"#),
            (Lane::ControlPlane, 503, r#"gateway_requests_total{lane="control_plane",status="5xx"} 1"#),
        ] {
            metrics.answered(lane, status, Duration::from_millis(3));
            assert!(metrics.render().contains(line), "{line}");
        }
    }

    #[test]
    fn every_way_an_attempt_can_end_has_its_own_count() {
        let metrics = Metrics::new(&[]).unwrap();
        let failed = Class::ALL.map(Outcome::Failed);
        for outcome in
            [Outcome::Answered, Outcome::StreamError, Outcome::ClientLeft, Outcome::Overtaken].iter().chain(&failed)
        {
            metrics.attempt(ProviderNumber::NONE, 200, *outcome);
        }
        let counted = metrics
            .render()
            .lines()
            .filter(|line| line.starts_with("gateway_upstream_attempts_total{") && line.ends_with(" 1"))
            .count();
        assert_eq!(counted, Class::ALL.len() + 4);
    }
}
