//! The circuit breaker of one target: after enough failures it is left alone for a while. Its state lives with the
//! target, so a changed config starts afresh.

use parking_lot::Mutex;
use shared::config::CircuitBreaker as Rules;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Breaker {
    rules: Rules,
    state: Mutex<BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    failures: u64,
    successes: u64,
    last_failure: Option<Instant>,
    opened: Option<Instant>,
}

/// What a breaker has counted since it last closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    pub failures: u64,
    pub successes: u64,
    /// None while it is closed.
    pub closes_in: Option<Duration>,
}

impl Breaker {
    pub fn new(rules: Rules) -> Self {
        Self { rules, state: Mutex::default() }
    }

    pub fn is_open(&self, now: Instant) -> bool {
        self.settled(now).opened.is_some()
    }

    /// How it stands; None while nothing has happened that it counts.
    pub fn status(&self, now: Instant) -> Option<Status> {
        let state = self.settled(now);
        let closes_in =
            state.opened.map(|opened| self.cooldown().saturating_sub(now.saturating_duration_since(opened)));
        let has_counted = state.failures > 0 || state.successes > 0;
        has_counted.then_some(Status { failures: state.failures, successes: state.successes, closes_in })
    }

    pub fn record(&self, status: u16, now: Instant) {
        let mut state = self.settled(now);
        if !self.is_failure(status) {
            state.successes += 1;
            return;
        }
        state.failures += 1;
        state.last_failure = Some(now);
        if state.opened.is_none() && self.is_enough(&state) {
            state.opened = Some(now);
        }
    }

    /// The state after what time alone has changed: an open circuit closes, and old failures are forgotten.
    fn settled(&self, now: Instant) -> parking_lot::MutexGuard<'_, BreakerState> {
        let mut state = self.state.lock();
        let is_over =
            |since: Option<Instant>| since.is_some_and(|since| now.saturating_duration_since(since) >= self.cooldown());
        let forgets = match state.opened {
            Some(_) => is_over(state.opened),
            None => is_over(state.last_failure),
        };
        if forgets {
            *state = BreakerState::default();
        }
        state
    }

    fn cooldown(&self) -> Duration {
        Duration::from_millis(self.rules.cooldown_interval_ms)
    }

    fn is_failure(&self, status: u16) -> bool {
        match &self.rules.failure_status_codes {
            Some(codes) => codes.contains(&status),
            None => status >= 500,
        }
    }

    fn is_enough(&self, state: &BreakerState) -> bool {
        let total = state.failures + state.successes;
        let by_count = self.rules.failure_threshold.is_some_and(|most| state.failures >= most);
        let by_share = self.rules.failure_threshold_percentage.is_some_and(|most| {
            total >= self.rules.minimum_requests.unwrap_or(1) && state.failures as f64 * 100.0 >= most * total as f64
        });
        by_count || by_share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            failure_threshold: Some(3),
            failure_threshold_percentage: None,
            minimum_requests: None,
            cooldown_interval_ms: 30_000,
            failure_status_codes: None,
        }
    }

    #[test]
    fn it_opens_at_the_threshold_and_closes_after_its_cooldown_with_a_clean_slate() {
        let breaker = Breaker::new(rules());
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        for (second, status, is_open) in [
            (0, 500, false),
            (1, 404, false),
            (2, 503, false),
            (3, 200, false),
            (4, 529, true),
            (5, 200, true),
            (33, 200, true),
            (34, 500, false),
            (35, 500, false),
            (36, 500, true),
        ] {
            breaker.record(status, after(second));
            assert_eq!(breaker.is_open(after(second)), is_open, "{second}");
        }
        assert!(!breaker.is_open(after(66)));
    }

    #[test]
    fn failures_long_ago_do_not_count() {
        let breaker = Breaker::new(rules());
        let start = Instant::now();
        breaker.record(500, start);
        breaker.record(500, start + Duration::from_secs(1));
        breaker.record(500, start + Duration::from_secs(31));
        assert!(!breaker.is_open(start + Duration::from_secs(31)));
    }

    #[test]
    fn a_share_of_failures_counts_only_among_enough_requests() {
        let share = Rules {
            failure_threshold: None,
            failure_threshold_percentage: Some(50.0),
            minimum_requests: Some(4),
            failure_status_codes: Some(vec![429]),
            ..rules()
        };
        let breaker = Breaker::new(share);
        let now = Instant::now();
        for (status, is_open) in [(429, false), (429, false), (500, false), (200, false), (429, true)] {
            breaker.record(status, now);
            assert_eq!(breaker.is_open(now), is_open, "{status}");
        }
    }
}
