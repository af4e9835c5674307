//! Whether a store is asked. After a few failures in a row nobody waits for it but one now and then, who finds out
//! whether it is back.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// One late answer is a hiccup.
const FAILURES: u32 = 3;
/// A store that is away is asked this often.
const KNOCK_EVERY: Duration = Duration::from_millis(200);

pub struct StoreBreaker {
    began: Instant,
    failures: AtomicU32,
    /// In milliseconds since `began`.
    next_knock: AtomicU64,
}

impl StoreBreaker {
    pub fn new() -> Self {
        Self { began: Instant::now(), failures: AtomicU32::new(0), next_knock: AtomicU64::new(0) }
    }

    pub fn may_ask(&self) -> bool {
        self.may_ask_at(self.now())
    }

    /// Whether it was away until now.
    pub fn succeeded(&self) -> bool {
        // Hardly ever anything else, and then nothing is written that all threads read.
        self.failures.load(Relaxed) != 0 && self.failures.swap(0, Relaxed) >= FAILURES
    }

    /// Whether it counts as away from now on.
    pub fn failed(&self) -> bool {
        self.failed_at(self.now())
    }

    fn may_ask_at(&self, now: u64) -> bool {
        if self.failures.load(Relaxed) < FAILURES {
            return true;
        }
        let next = self.next_knock.load(Relaxed);
        now >= next && self.next_knock.compare_exchange(next, now + pause(), Relaxed, Relaxed).is_ok()
    }

    fn failed_at(&self, now: u64) -> bool {
        self.next_knock.fetch_max(now + pause(), Relaxed);
        self.failures.fetch_add(1, Relaxed) + 1 == FAILURES
    }

    fn now(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

fn pause() -> u64 {
    millis(KNOCK_EVERY)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_three_failures_in_a_row_one_knocks_at_a_time_until_it_answers() {
        let breaker = StoreBreaker::new();
        assert!(!breaker.failed_at(0) && !breaker.failed_at(0));
        assert!(breaker.may_ask_at(0) && !breaker.succeeded(), "two are forgotten by a success");
        assert!(!breaker.failed_at(0) && !breaker.failed_at(0) && breaker.failed_at(0));
        assert!(!breaker.may_ask_at(199));
        assert!(breaker.may_ask_at(200) && !breaker.may_ask_at(200), "one alone");
        assert!(!breaker.failed_at(210), "it was away already");
        assert!(!breaker.may_ask_at(409) && breaker.may_ask_at(410));
        assert!(breaker.succeeded() && !breaker.succeeded());
        assert!(breaker.may_ask_at(411) && breaker.may_ask_at(411));
    }
}
