//! Metrics of background tasks, set from outside them when they are read: a task that has died sets nothing.

use super::advance;
use prometheus::{GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry};
use shared::supervisor::TaskReport;

pub struct TaskMeters {
    up: IntGaugeVec,
    restarts: IntCounterVec,
    lag: GaugeVec,
}

impl TaskMeters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let up = Opts::new("gateway_task_up", "1 while a background task does its work.");
        let restarts = Opts::new(
            "gateway_task_restarts_total",
            "Panics of a background task, each of which restarts it; each is a bug.",
        );
        let lag = Opts::new("gateway_task_lag_seconds", "How long a background task has done nothing.");
        let meters = Self {
            up: IntGaugeVec::new(up, &["task"])?,
            restarts: IntCounterVec::new(restarts, &["task"])?,
            lag: GaugeVec::new(lag, &["task"])?,
        };
        registry.register(Box::new(meters.up.clone()))?;
        registry.register(Box::new(meters.restarts.clone()))?;
        registry.register(Box::new(meters.lag.clone()))?;
        Ok(meters)
    }

    pub fn measure(&self, reports: &[TaskReport]) {
        for report in reports {
            let label = &[report.task.name];
            self.up.with_label_values(label).set(report.status.is_up().into());
            self.lag.with_label_values(label).set(report.lag.as_secs_f64());
            advance(&self.restarts.with_label_values(label), report.restarts);
        }
    }
}
