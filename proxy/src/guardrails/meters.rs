//! How often each check ran, what it said, and how long it took. Labels are ids of the table and three words.

use prometheus::{Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, Opts, Registry};
use shared::guardrails::Verdict;
use std::sync::OnceLock;
use std::time::Duration;

pub struct GuardMeters {
    checks: IntCounterVec,
    seconds: HistogramVec,
    denied: IntCounterVec,
    is_counting: bool,
}

/// The meters of one check that was made ready, once it needed them: looking them up by their labels takes longer than many a
/// check.
#[derive(Default)]
pub struct CheckMeters {
    said: [OnceLock<IntCounter>; 3],
    seconds: OnceLock<Histogram>,
}

/// What a check said, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    Error,
    Pass,
    Fail,
}

impl CheckOutcome {
    pub fn from_verdict(passes: bool) -> Self {
        if passes { Self::Pass } else { Self::Fail }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Pass => "pass",
            Self::Fail => "fail",
        }
    }
}

impl From<&Verdict> for CheckOutcome {
    fn from(verdict: &Verdict) -> Self {
        if verdict.error.is_some() { Self::Error } else { Self::from_verdict(verdict.verdict) }
    }
}

impl GuardMeters {
    pub fn new(registry: &Registry) -> anyhow::Result<Self> {
        let meters = Self { is_counting: true, ..Self::unregistered() };
        registry.register(Box::new(meters.checks.clone()))?;
        registry.register(Box::new(meters.seconds.clone()))?;
        registry.register(Box::new(meters.denied.clone()))?;
        Ok(meters)
    }

    /// Counts for nobody.
    pub fn unregistered() -> Self {
        let checks = Opts::new("gateway_guardrail_checks_total", "Checks of guardrails, by check and what they said.");
        let seconds =
            HistogramOpts::new("gateway_guardrail_check_seconds", "How long checks of guardrails took, by check.")
                .buckets(vec![0.000_05, 0.000_25, 0.001, 0.005, 0.025, 0.1, 0.5, 2.0, 10.0]);
        let denied =
            Opts::new("gateway_guardrail_denials_total", "Requests and answers that guardrails denied, by side.");
        let known = "the names of these metrics are valid";
        Self {
            checks: IntCounterVec::new(checks, &["check", "verdict"]).expect(known),
            seconds: HistogramVec::new(seconds, &["check"]).expect(known),
            denied: IntCounterVec::new(denied, &["side"]).expect(known),
            is_counting: false,
        }
    }

    pub fn checked(&self, id: &str, known: &CheckMeters, said: CheckOutcome, took: Duration) {
        if !self.is_counting {
            // What a check knows of its meters must be those that count.
            return;
        }
        known.said[said as usize].get_or_init(|| self.checks.with_label_values(&[id, said.label()])).inc();
        known.seconds.get_or_init(|| self.seconds.with_label_values(&[id])).observe(took.as_secs_f64());
    }

    pub fn denies(&self, side: &str) {
        self.denied.with_label_values(&[side]).inc();
    }
}
