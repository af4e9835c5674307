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
mod tests;
