//! How often each check ran, what it said, and how long it took. Labels are ids of the table and three words. Every check of every
//! request is counted, so each thread has numbers of its own.

use crate::runtime::numbers::{Draft, Numbers, StripedCounter, Times};
use prometheus::{IntCounterVec, Opts, Registry};
use shared::guardrails::{Verdict, ids};
use std::time::Duration;

/// In place of the id of a check that is in no table.
pub const UNKNOWN: &str = "unknown";
/// Up to which microseconds the time of a check is told apart.
const MICROS: &[u64] = &[50, 250, 1_000, 5_000, 25_000, 100_000, 500_000, 2_000_000, 10_000_000];

pub struct GuardMeters {
    /// None counts for nobody.
    checks: Option<CheckMeters>,
    denied: IntCounterVec,
}

struct CheckMeters {
    numbers: Numbers,
    /// Of each check, by what it said.
    verdicts: Vec<StripedCounter>,
    seconds: Vec<Times>,
}

/// Which number a check has in the table; one beyond it is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckNumber(usize);

/// What a check said, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    Error,
    Pass,
    Fail,
}

impl CheckNumber {
    pub fn from_id(id: &str) -> Self {
        Self(ids().position(|known| known == id).unwrap_or(usize::MAX))
    }
}

impl CheckOutcome {
    const ALL: [(Self, &str); 3] = [(Self::Error, "error"), (Self::Pass, "pass"), (Self::Fail, "fail")];

    pub fn from_verdict(passes: bool) -> Self {
        if passes { Self::Pass } else { Self::Fail }
    }
}

impl From<&Verdict> for CheckOutcome {
    fn from(verdict: &Verdict) -> Self {
        if verdict.error.is_some() { Self::Error } else { Self::from_verdict(verdict.verdict) }
    }
}

impl GuardMeters {
    pub fn new(registry: &Registry) -> anyhow::Result<Self> {
        let names = || ids().chain([UNKNOWN]);
        let mut draft = Draft::default();
        let verdicts = draft.counters(
            ("gateway_guardrail_checks_total", "Checks of guardrails, by check and what they said."),
            names().flat_map(|id| CheckOutcome::ALL.map(|(_, verdict)| vec![("check", id), ("verdict", verdict)])),
        )?;
        draft.show_when_counted(1);
        let seconds = draft.times(
            ("gateway_guardrail_check_seconds", "How long checks of guardrails took, by check."),
            MICROS,
            names().map(|id| vec![("check", id)]),
        )?;
        draft.show_when_counted(1);
        let numbers = draft.begin();
        registry.register(Box::new(numbers.clone()))?;
        let meters = Self { checks: Some(CheckMeters { numbers, verdicts, seconds }), ..Self::unregistered() };
        registry.register(Box::new(meters.denied.clone()))?;
        Ok(meters)
    }

    /// Counts for nobody.
    pub fn unregistered() -> Self {
        let denied =
            Opts::new("gateway_guardrail_denials_total", "Requests and answers that guardrails denied, by side.");
        let denied = IntCounterVec::new(denied, &["side"]).expect("the name of this metric is valid");
        Self { checks: None, denied }
    }

    pub fn checked(&self, check: CheckNumber, outcome: CheckOutcome, took: Duration) {
        let Some(CheckMeters { numbers, verdicts: counters, seconds }) = &self.checks else { return };
        // The last place is that of the unknown.
        let known = check.0.min(seconds.len() - 1);
        numbers.inc(counters[known * CheckOutcome::ALL.len() + outcome as usize]);
        numbers.observe(seconds[known], took);
    }

    pub fn denies(&self, side: &str) {
        self.denied.with_label_values(&[side]).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus::TextEncoder;

    #[test]
    fn a_check_is_counted_by_its_id_and_what_it_said_and_others_are_not_shown() {
        let registry = Registry::new();
        let meters = GuardMeters::new(&registry).unwrap();
        for (id, verdicts, took) in [
            ("default.contains", CheckOutcome::Pass, 10),
            ("default.contains", CheckOutcome::Pass, 60),
            ("default.contains", CheckOutcome::Fail, 10),
            ("default.regexMatch", CheckOutcome::Error, 20_000_000),
            ("no.such", CheckOutcome::Error, 10),
        ] {
            meters.checked(CheckNumber::from_id(id), verdicts, Duration::from_micros(took));
        }
        let text = TextEncoder::new().encode_to_string(&registry.gather()).unwrap();
        for line in [
            r#"gateway_guardrail_checks_total{check="default.contains",verdict="pass"} 2"#,
            r#"gateway_guardrail_checks_total{check="default.contains",verdict="fail"} 1"#,
            r#"gateway_guardrail_checks_total{check="default.regexMatch",verdict="error"} 1"#,
            r#"gateway_guardrail_checks_total{check="unknown",verdict="error"} 1"#,
            r#"gateway_guardrail_check_seconds_bucket{check="default.contains",le="0.00005"} 2"#,
            r#"gateway_guardrail_check_seconds_bucket{check="default.contains",le="0.00025"} 3"#,
            r#"gateway_guardrail_check_seconds_bucket{check="default.regexMatch",le="10"} 0"#,
            r#"gateway_guardrail_check_seconds_count{check="default.regexMatch"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert_eq!(text.matches("gateway_guardrail_checks_total{").count(), 4, "{text}");
        GuardMeters::unregistered().checked(CheckNumber::from_id("no.such"), CheckOutcome::Pass, Duration::ZERO);
    }
}
