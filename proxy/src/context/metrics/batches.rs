//! Metrics of running batches.

use prometheus::{Gauge, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};
use shared::batches::BatchStatus;

/// What became of a row that was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowOutcome {
    Answered,
    Failed,
    /// It is asked again after a failure.
    Retried,
    /// It waits for a rate, a budget or a key, and its batch with it.
    HeldUp,
    /// Another proxy had its result first.
    Doubled,
}

const OUTCOMES: [(RowOutcome, &str); 5] = [
    (RowOutcome::Answered, "answered"),
    (RowOutcome::Failed, "failed"),
    (RowOutcome::Retried, "retried"),
    (RowOutcome::HeldUp, "held_up"),
    (RowOutcome::Doubled, "doubled"),
];

pub struct BatchMeters {
    batches: IntGaugeVec,
    rows: [IntCounter; 5],
    pub in_flight: IntGauge,
    pub lag: Gauge,
    pub taken_over: IntCounter,
    pub notices_taken: IntCounter,
    pub notices_failed: IntCounter,
}

impl BatchMeters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let batches = Opts::new("gateway_batches", "Batches that are not over, by status; every proxy tells of all.");
        let batches = IntGaugeVec::new(batches, &["status"])?;
        let rows = Opts::new("gateway_batch_rows_total", "Rows of batches that this proxy ran, by outcome.");
        let rows = IntCounterVec::new(rows, &["outcome"])?;
        let in_flight =
            IntGauge::new("gateway_batch_rows_in_flight", "Rows of batches that this proxy has under way.")?;
        let lag = Gauge::new("gateway_batch_lag_seconds", "How late the next step of the most delayed batch is.")?;
        let taken_over = IntCounter::new(
            "gateway_batch_takeovers_total",
            "Rows that were leased by a proxy which was not heard of again, and are asked once more.",
        )?;
        let notices = Opts::new("gateway_batch_notices_total", "Notices of ended batches that were sent, by outcome.");
        let notices = IntCounterVec::new(notices, &["outcome"])?;
        registry.register(Box::new(batches.clone()))?;
        registry.register(Box::new(rows.clone()))?;
        registry.register(Box::new(in_flight.clone()))?;
        registry.register(Box::new(lag.clone()))?;
        registry.register(Box::new(taken_over.clone()))?;
        registry.register(Box::new(notices.clone()))?;
        let rows = OUTCOMES.map(|(_, outcome)| rows.with_label_values(&[outcome]));
        let [notices_taken, notices_failed] = ["taken", "failed"].map(|outcome| notices.with_label_values(&[outcome]));
        let meters = Self { batches, rows, in_flight, lag, taken_over, notices_taken, notices_failed };
        meters.survey(&[], 0.0);
        Ok(meters)
    }

    pub fn row(&self, outcome: RowOutcome) {
        if let Some(index) = OUTCOMES.iter().position(|(known, _)| *known == outcome) {
            self.rows[index].inc();
        }
    }

    /// All batches there are, and how many seconds the latest step is late.
    pub fn survey(&self, counts: &[(BatchStatus, i64)], late: f64) {
        for status in BatchStatus::ALL.into_iter().filter(|status| !status.is_final()) {
            let count = counts.iter().find(|(counted, _)| *counted == status).map_or(0, |(_, count)| *count);
            self.batches.with_label_values(&[status.as_str()]).set(count);
        }
        self.lag.set(late.max(0.0));
    }
}
