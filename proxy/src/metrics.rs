//! Every metric the proxy exports. Labels are closed sets, resolved once: counting takes no lock, and no label ever
//! carries a model, key or user id.

use crate::dial::Class;
use crate::fairness;
use crate::journal::Meters;
use crate::limits;
use crate::refusal::CODES;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use std::sync::Arc;
use std::time::Duration;

const LANES: &[&str] = &["engine", "relay", "control_plane", "own"];
const STATUS_CLASSES: &[&str] = &["2xx", "3xx", "4xx", "5xx", "499"];
/// How an upstream attempt ended, when it did not end in one of the failures of `dial::Class`.
const ENDINGS: &[&str] = &["answered", "stream_error", "client_left", "overtaken"];
const WINNERS: &[&str] = &["first", "second"];
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0];
const OVERHEAD_SECONDS: &[f64] = &[0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    Engine,
    Relay,
    ControlPlane,
    Own,
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
    requests: Vec<Vec<IntCounter>>,
    duration: Vec<Histogram>,
    first_byte: Vec<Histogram>,
    overhead: Histogram,
    in_flight: Vec<IntGauge>,
    failures: Vec<IntCounter>,
    endings: Vec<IntCounter>,
    refused: Vec<IntCounter>,
    hedges: Vec<IntCounter>,
    pub pool_idle: IntGauge,
    pub pool_reused: IntCounter,
    pub pool_opened: IntCounter,
    pub pool_stale: IntCounter,
    pub snapshot_age: prometheus::Gauge,
    pub snapshot_cursor: IntGauge,
    pub snapshot_rows: IntGaugeVec,
    pub snapshot_loaded: IntGauge,
    pub snapshot_failures: IntGauge,
    pub snapshot_reloads: IntGauge,
    pub snapshot_connected: IntGauge,
    pub snapshot_read: IntGauge,
    pub snapshot_skipped: IntGauge,
    pub body_bytes: IntGauge,
    pub panics: IntCounter,
    pub unrecorded_tokens: IntCounter,
    pub draining: IntGauge,
    pub journal: Arc<Meters>,
    pub limits: Arc<limits::Meters>,
    pub fairness: Arc<fairness::Meters>,
}

impl Metrics {
    pub fn new() -> anyhow::Result<Self> {
        let registry = Registry::new();
        registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        let requests = IntCounterVec::new(
            Opts::new("gateway_requests_total", "Requests answered, by lane and class of status."),
            &["lane", "status"],
        )?;
        let duration = histogram(
            &registry,
            "gateway_request_duration_seconds",
            "From a request's head to the last byte of its answer, by lane.",
        )?;
        let first_byte = histogram(
            &registry,
            "gateway_time_to_first_byte_seconds",
            "From a request's head to the head of its answer, by lane.",
        )?;
        let in_flight =
            IntGaugeVec::new(Opts::new("gateway_in_flight_requests", "Requests being answered, by lane."), &["lane"])?;
        let attempts = IntCounterVec::new(
            Opts::new("gateway_upstream_attempts_total", "Upstream attempts, by how they ended."),
            &["outcome"],
        )?;
        let refused = IntCounterVec::new(
            Opts::new("gateway_refused_total", "Requests the gateway answered itself, by reason."),
            &["reason"],
        )?;
        let overhead =
            HistogramOpts::new("gateway_overhead_seconds", "The gateway's own time before the answer's head.");
        let overhead = Histogram::with_opts(overhead.buckets(OVERHEAD_SECONDS.to_vec()))?;
        let rows = IntGaugeVec::new(Opts::new("gateway_snapshot_rows", "Rows held in memory, by table."), &["table"])?;
        registry.register(Box::new(requests.clone()))?;
        registry.register(Box::new(in_flight.clone()))?;
        registry.register(Box::new(attempts.clone()))?;
        registry.register(Box::new(refused.clone()))?;
        let hedges = IntCounterVec::new(
            Opts::new(
                "gateway_hedges_total",
                "Second attempts beside a slow first one, by whose answer was passed on.",
            ),
            &["winner"],
        )?;
        registry.register(Box::new(hedges.clone()))?;
        registry.register(Box::new(overhead.clone()))?;
        registry.register(Box::new(rows.clone()))?;
        let by_lane = |vec: &HistogramVec| LANES.iter().map(|lane| vec.with_label_values(&[lane])).collect();
        Ok(Self {
            requests: LANES
                .iter()
                .map(|lane| STATUS_CLASSES.iter().map(|class| requests.with_label_values(&[lane, class])).collect())
                .collect(),
            duration: by_lane(&duration),
            first_byte: by_lane(&first_byte),
            overhead,
            in_flight: LANES.iter().map(|lane| in_flight.with_label_values(&[lane])).collect(),
            failures: Class::ALL.iter().map(|class| attempts.with_label_values(&[class.label()])).collect(),
            endings: ENDINGS.iter().map(|ending| attempts.with_label_values(&[ending])).collect(),
            hedges: WINNERS.iter().map(|winner| hedges.with_label_values(&[winner])).collect(),
            refused: CODES.iter().map(|code| refused.with_label_values(&[code])).collect(),
            pool_idle: gauge(&registry, "gateway_upstream_pool_idle", "Idle upstream connections held.")?,
            pool_reused: counter(
                &registry,
                "gateway_upstream_pool_reused_total",
                "Requests sent on a held connection.",
            )?,
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
            snapshot_failures: gauge(
                &registry,
                "gateway_snapshot_failures",
                "Failed attempts to follow Postgres since start.",
            )?,
            snapshot_reloads: gauge(&registry, "gateway_snapshot_reloads", "Full loads since start.")?,
            snapshot_connected: gauge(
                &registry,
                "gateway_snapshot_connected",
                "1 while changes are followed on a live connection to Postgres.",
            )?,
            snapshot_read: gauge(
                &registry,
                "gateway_snapshot_read_rows",
                "Changed rows read from Postgres since start, full loads aside.",
            )?,
            snapshot_skipped: gauge(
                &registry,
                "gateway_snapshot_skipped_rows",
                "Rows left out since start because they could not be understood.",
            )?,
            body_bytes: gauge(&registry, "gateway_request_body_bytes", "Request bodies held in memory.")?,
            panics: counter(&registry, "gateway_panics_total", "Panics caught while answering; each is a bug.")?,
            unrecorded_tokens: counter(
                &registry,
                "gateway_jwt_failures_unrecorded_total",
                "Rejected tokens left out of the audit trail: too many, of no organisation, or Postgres was away.",
            )?,
            journal: Arc::new(Meters::new(&registry)?),
            limits: Arc::new(limits::Meters::new(&registry)?),
            fairness: Arc::new(fairness::Meters::new(&registry)?),
            draining: gauge(&registry, "gateway_draining", "1 while the process finishes its last requests.")?,
            registry,
        })
    }

    pub fn enter(&self, lane: Lane) {
        self.in_flight[lane as usize].inc();
    }

    pub fn leave(&self, lane: Lane) {
        self.in_flight[lane as usize].dec();
    }

    pub fn in_flight(&self) -> i64 {
        self.in_flight.iter().map(IntGauge::get).sum()
    }

    pub fn answered(&self, lane: Lane, status: u16, took: Duration) {
        self.requests[lane as usize][status_class(status)].inc();
        self.duration[lane as usize].observe(took.as_secs_f64());
    }

    pub fn first_byte(&self, lane: Lane, after: Duration) {
        self.first_byte[lane as usize].observe(after.as_secs_f64());
    }

    pub fn overhead(&self, own: Duration) {
        self.overhead.observe(own.as_secs_f64());
    }

    pub fn attempt(&self, outcome: Outcome) {
        match outcome {
            Outcome::Answered => self.endings[0].inc(),
            Outcome::StreamError => self.endings[1].inc(),
            Outcome::ClientLeft => self.endings[2].inc(),
            Outcome::Overtaken => self.endings[3].inc(),
            Outcome::Failed(class) => {
                if let Some(index) = Class::ALL.iter().position(|known| *known == class) {
                    self.failures[index].inc();
                }
            }
        }
    }

    /// A second attempt was made beside a first one.
    pub fn hedged(&self, second_won: bool) {
        self.hedges[usize::from(second_won)].inc();
    }

    pub fn refused(&self, code: &str) {
        if let Some(index) = CODES.iter().position(|known| *known == code) {
            self.refused[index].inc();
        }
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

fn histogram(registry: &Registry, name: &str, help: &str) -> prometheus::Result<HistogramVec> {
    let vec = HistogramVec::new(HistogramOpts::new(name, help).buckets(SECONDS.to_vec()), &["lane"])?;
    registry.register(Box::new(vec.clone()))?;
    Ok(vec)
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
        let metrics = Metrics::new().unwrap();
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
        let metrics = Metrics::new().unwrap();
        let failed = Class::ALL.map(Outcome::Failed);
        for outcome in
            [Outcome::Answered, Outcome::StreamError, Outcome::ClientLeft, Outcome::Overtaken].iter().chain(&failed)
        {
            metrics.attempt(*outcome);
        }
        let counted = metrics
            .render()
            .lines()
            .filter(|line| line.starts_with("gateway_upstream_attempts_total{") && line.ends_with(" 1"))
            .count();
        assert_eq!(counted, Class::ALL.len() + 4);
    }
}
