//! Every metric of the control plane. Labels are closed sets: operations of the route table, methods, statuses, error
//! codes and jobs; never an id.

use crate::log_data::tail::TailMeasures;
use prometheus::core::Collector;
use prometheus::{
    Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use shared::supervisor::TaskReport;

pub struct Metrics {
    registry: Registry,
    pub requests: IntCounterVec,
    pub duration: HistogramVec,
    pub in_flight: IntGauge,
    pub connections: IntGauge,
    pub refused: IntCounterVec,
    pub dry_runs: IntCounter,
    pub panics: IntCounter,
    pub unrecorded_tokens: IntCounter,
    pub log_tail: TailMeasures,
    pub job_last_success: GaugeVec,
    pub job_duration: HistogramVec,
    pub job_failures: IntCounterVec,
    pub figures_built: IntCounter,
    pub figures_mended: IntCounter,
    pub figures_until: Gauge,
    db_connections: IntGaugeVec,
    task_up: IntGaugeVec,
    task_restarts: IntCounterVec,
    task_lag: GaugeVec,
}

impl Metrics {
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let requests = Opts::new("gateway_admin_requests_total", "Control-plane requests, by operation and status.");
        let buckets = vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
        let duration =
            HistogramOpts::new("gateway_admin_request_duration_seconds", "Time to answer, by method.").buckets(buckets);
        let refused = Opts::new("gateway_admin_refused_total", "Requests answered with an error, by its code.");
        // Not `job`: Prometheus gives that label to every series itself.
        let succeeded = Opts::new(
            "gateway_admin_job_last_success_timestamp_seconds",
            "When a job last succeeded, here or on another admin.",
        );
        let failed = Opts::new("gateway_admin_job_failures_total", "Runs of a job that failed here.");
        let ran = HistogramOpts::new("gateway_admin_job_duration_seconds", "Time a run of a job took here.")
            .buckets(vec![0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0]);
        let connections = Opts::new("gateway_admin_db_connections", "Connections to Postgres, by state.");
        let task_up = Opts::new("gateway_admin_task_up", "1 while a background task does its work.");
        let task_restarts = Opts::new(
            "gateway_admin_task_restarts_total",
            "Panics of a background task, each of which restarts it; each is a bug.",
        );
        let task_lag = Opts::new("gateway_admin_task_lag_seconds", "How long a background task has done nothing.");
        let tail_viewers =
            IntGauge::new("gateway_admin_log_tail_viewers", "Streams of logs as they arrive that are open here.")?;
        let tail_logs = Opts::new(
            "gateway_admin_log_tail_logs_total",
            "Logs for those who follow them as they arrive, sent or left out (skipped).",
        );
        let tail_logs = registered(&registry, IntCounterVec::new(tail_logs, &["outcome"])?)?;
        let log_tail = TailMeasures {
            viewers: registered(&registry, tail_viewers)?,
            sent: tail_logs.with_label_values(&["sent"]),
            skipped: tail_logs.with_label_values(&["skipped"]),
        };
        let metrics = Self {
            log_tail,
            requests: registered(&registry, IntCounterVec::new(requests, &["method", "operation", "status"])?)?,
            duration: registered(&registry, HistogramVec::new(duration, &["method"])?)?,
            in_flight: registered(
                &registry,
                IntGauge::new("gateway_admin_in_flight_requests", "Requests being answered.")?,
            )?,
            connections: registered(&registry, IntGauge::new("gateway_admin_connections", "Connections of clients.")?)?,
            refused: registered(&registry, IntCounterVec::new(refused, &["code"])?)?,
            dry_runs: registered(
                &registry,
                IntCounter::new(
                    "gateway_admin_dry_runs_total",
                    "Changes that were tried and not made (?dry_run=true).",
                )?,
            )?,
            panics: registered(
                &registry,
                IntCounter::new("gateway_admin_panics_total", "Requests that hit a bug and got 500.")?,
            )?,
            unrecorded_tokens: registered(
                &registry,
                IntCounter::new(
                    "gateway_admin_jwt_failures_unrecorded_total",
                    "Rejected tokens and logins that no audit trail knows: of no organisation, or more than it takes.",
                )?,
            )?,
            job_last_success: registered(&registry, GaugeVec::new(succeeded, &["name"])?)?,
            job_duration: registered(&registry, HistogramVec::new(ran, &["name"])?)?,
            job_failures: registered(&registry, IntCounterVec::new(failed, &["name"])?)?,
            figures_built: registered(
                &registry,
                IntCounter::new(
                    "gateway_admin_figures_built_total",
                    "Slots of figures that were built from logs here.",
                )?,
            )?,
            figures_mended: registered(
                &registry,
                IntCounter::new(
                    "gateway_admin_figures_mended_total",
                    "Figures that differed from their logs and were built again here; must be 0.",
                )?,
            )?,
            figures_until: registered(
                &registry,
                Gauge::new(
                    "gateway_admin_figures_until_timestamp_seconds",
                    "Until when figures are built; what is later is counted from logs. 0 before the first look.",
                )?,
            )?,
            db_connections: registered(&registry, IntGaugeVec::new(connections, &["state"])?)?,
            task_up: registered(&registry, IntGaugeVec::new(task_up, &["task"])?)?,
            task_restarts: registered(&registry, IntCounterVec::new(task_restarts, &["task"])?)?,
            task_lag: registered(&registry, GaugeVec::new(task_lag, &["task"])?)?,
            registry,
        };
        #[cfg(target_os = "linux")]
        metrics.registry.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))?;
        Ok(metrics)
    }

    /// Makes the series of a job exist before it ran.
    pub fn know_job(&self, name: &str) {
        let _ = self.job_last_success.with_label_values(&[name]);
        let _ = self.job_duration.with_label_values(&[name]);
        let _ = self.job_failures.with_label_values(&[name]);
    }

    /// Background tasks as they are seen from outside them: one that has died sets nothing.
    pub fn measure_tasks(&self, reports: &[TaskReport]) {
        for report in reports {
            let label = &[report.task.name];
            self.task_up.with_label_values(label).set(report.status.is_up().into());
            self.task_lag.with_label_values(label).set(report.lag.as_secs_f64());
            let restarts = self.task_restarts.with_label_values(label);
            restarts.inc_by(report.restarts.saturating_sub(restarts.get()));
        }
    }

    /// The text that Prometheus reads.
    pub fn text(&self, pool: bb8::State) -> Result<String, prometheus::Error> {
        let busy = pool.connections.saturating_sub(pool.idle_connections);
        self.db_connections.with_label_values(&["busy"]).set(busy.into());
        self.db_connections.with_label_values(&["idle"]).set(pool.idle_connections.into());
        TextEncoder::new().encode_to_string(&self.registry.gather())
    }
}

fn registered<C: Collector + Clone + 'static>(registry: &Registry, metric: C) -> Result<C, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}
