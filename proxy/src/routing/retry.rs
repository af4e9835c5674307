//! Whether the same target is tried again, and after which wait.

use super::retry_budget::Budget;
use super::{AttemptResult, Speaker};
use shared::config::{Jitter, Retry};
use std::time::{Duration, Instant};

/// Statuses that are worth another try unless the config lists its own.
const DEFAULT_STATUSES: &[u16] = &[429, 500, 502, 503, 504, 529];
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// What a provider may ask for, at once and altogether. Whoever wants more is better left alone.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The tries of one target so far.
#[derive(Debug, Default)]
pub struct Retries {
    made: u8,
    /// Waited because the provider asked for it.
    obeyed: Duration,
    has_obeyed: bool,
    gave_up: bool,
}

impl Retries {
    /// The wait before the next try; None when this was the last.
    pub fn next(
        &mut self,
        rules: &Retry,
        budget: &Budget,
        outcome: &AttemptResult,
        now: Instant,
        chance: &mut dyn FnMut() -> f64,
    ) -> Option<Duration> {
        if rules.attempts == 0 || !is_worth_it(rules, outcome) {
            return None;
        }
        let wait = self.wait(rules, outcome, chance);
        let is_possible = self.made < rules.attempts && wait.is_some_and(|wait| wait < outcome.left);
        if !is_possible || !budget.take(now) {
            self.gave_up = true;
            return None;
        }
        self.made += 1;
        wait
    }

    /// For the header: how many it took, or -1 when it was given up.
    pub fn count(&self) -> i8 {
        if self.gave_up { -1 } else { i8::try_from(self.made).unwrap_or(i8::MAX) }
    }

    fn wait(&mut self, rules: &Retry, outcome: &AttemptResult, chance: &mut dyn FnMut() -> f64) -> Option<Duration> {
        if let Some(asked) = outcome.retry_after.filter(|_| rules.use_retry_after_header && outcome.status == 429) {
            let fits = asked < MAX_WAIT && self.obeyed + asked <= MAX_WAIT;
            self.obeyed += asked;
            self.has_obeyed = true;
            return fits.then_some(asked);
        }
        if self.has_obeyed {
            return Some(Duration::ZERO);
        }
        let wait = FIRST_WAIT * 2u32.saturating_pow(u32::from(self.made));
        Some(match rules.jitter {
            Jitter::None => wait,
            Jitter::Full => wait.mul_f64(chance()),
        })
    }
}

fn is_worth_it(rules: &Retry, outcome: &AttemptResult) -> bool {
    let listed = rules.on_status_codes.as_deref().unwrap_or(DEFAULT_STATUSES);
    match outcome.speaker {
        Speaker::Provider => listed.contains(&outcome.status),
        Speaker::Network => true,
        Speaker::Gateway | Speaker::Fault => false,
    }
}

#[cfg(test)]
mod tests;
