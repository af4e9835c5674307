//! Metrics of the journal. `lost` must read 0: anything else is worth waking somebody.

use super::paid_meters::PaidMeters;
use super::spend_meters::SpendMeters;
use prometheus::{Gauge, IntCounter, IntGauge, Registry};

pub struct JournalMeters {
    pub records: IntCounter,
    pub shipped: IntCounter,
    pub lost: IntCounter,
    pub too_long: IntCounter,
    pub left: IntCounter,
    pub rejected: IntCounter,
    pub torn: IntCounter,
    pub write_failures: IntCounter,
    pub ship_failures: IntCounter,
    pub spans: IntCounter,
    pub spans_dropped: IntCounter,
    pub spans_waiting: IntGauge,
    pub backlog_bytes: IntGauge,
    pub lag_seconds: Gauge,
    pub packs_stored: IntCounter,
    pub bodies_stored: IntCounter,
    pub bodies_bytes: IntCounter,
    pub bodies_failures: IntCounter,
    pub bodies_lost: IntCounter,
    pub bodies_backlog_bytes: IntGauge,
    pub late_skipped: IntCounter,
    pub spend: SpendMeters,
    pub paid: PaidMeters,
}

impl JournalMeters {
    /// Hooks of so many calls were not run.
    pub fn note_skipped(&self, calls: u64) {
        self.late_skipped.inc_by(calls);
        tracing::warn!(calls, "guardrails with `async` were skipped: more wait than there is room or time for");
    }

    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounter> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let backlog_bytes =
            IntGauge::new("gateway_journal_backlog_bytes", "Bytes of logs on disk that are not in Postgres yet.")?;
        let lag_seconds =
            Gauge::new("gateway_journal_lag_seconds", "Age of the oldest log that is not in Postgres yet.")?;
        registry.register(Box::new(backlog_bytes.clone()))?;
        registry.register(Box::new(lag_seconds.clone()))?;
        let bodies_backlog_bytes = IntGauge::new(
            "gateway_log_bodies_backlog_bytes",
            "Files of the journal whose bodies are not in the log store yet.",
        )?;
        registry.register(Box::new(bodies_backlog_bytes.clone()))?;
        let spans_waiting =
            IntGauge::new("gateway_trace_spans_waiting", "Spans that wait for the collector of traces.")?;
        registry.register(Box::new(spans_waiting.clone()))?;
        Ok(Self {
            spend: SpendMeters::new(registry)?,
            paid: PaidMeters::new(registry)?,
            late_skipped: counter(
                "gateway_guardrail_async_skipped_total",
                "Calls whose guardrails with `async` were skipped, because more waited than there was room or time for.",
            )?,
            records: counter("gateway_journal_records_total", "Calls noted in the journal.")?,
            shipped: counter(
                "gateway_journal_shipped_total",
                "Logs stored in Postgres, those of gone processes included.",
            )?,
            lost: counter(
                "gateway_journal_lost_total",
                "Logs lost because the disk refused them or the journal was full; must be 0.",
            )?,
            too_long: counter(
                "gateway_journal_too_long_total",
                "Logs that were not written because no reader would take them; counted as lost, too.",
            )?,
            left: counter(
                "gateway_journal_left_total",
                "Files that a later version wrote and this one cannot read to their end; they wait for it.",
            )?,
            rejected: counter("gateway_journal_rejected_total", "Logs set aside because they could not be stored.")?,
            torn: counter(
                "gateway_journal_torn_total",
                "Files that ended in half a record, as a process leaves them that dies while it writes.",
            )?,
            write_failures: counter("gateway_journal_write_failures_total", "Times the disk refused the journal.")?,
            ship_failures: counter("gateway_journal_ship_failures_total", "Times logs could not be sent to Postgres.")?,
            spans: counter("gateway_trace_spans_total", "Spans that the collector of traces took.")?,
            spans_dropped: counter(
                "gateway_trace_spans_dropped_total",
                "Spans that the collector of traces did not take in a few tries, or that found no room to wait for it.",
            )?,
            spans_waiting,
            backlog_bytes,
            lag_seconds,
            packs_stored: counter("gateway_log_packs_stored_total", "Objects of bodies stored in the log store.")?,
            bodies_stored: counter("gateway_log_bodies_stored_total", "Bodies of calls stored in the log store.")?,
            bodies_bytes: counter(
                "gateway_log_bodies_bytes_total",
                "Bytes of bodies stored in the log store, compressed.",
            )?,
            bodies_failures: counter(
                "gateway_log_bodies_failures_total",
                "Times bodies could not be sent to the log store; they wait on disk.",
            )?,
            bodies_lost: counter(
                "gateway_log_bodies_lost_total",
                "Calls whose bodies were lost because the disk refused them or the journal was full; must be 0.",
            )?,
            bodies_backlog_bytes,
        })
    }
}
