//! How many retries a target may cost. Retries are a share of its traffic, so that a provider in trouble is never
//! sent a multiple of it; a few are always free, so that little traffic may retry too.

use parking_lot::Mutex;
use std::time::Instant;

/// Free to begin with, and what idle time gives back.
const FREE: f64 = 10.0;
const FREE_PER_SECOND: f64 = 1.0;
/// What a busy target can save up.
const MAX_SAVED: f64 = 100.0;

#[derive(Debug)]
pub struct Budget {
    share: f64,
    saved: Mutex<Saved>,
}

#[derive(Debug)]
struct Saved {
    retries: f64,
    refilled: Option<Instant>,
}

impl Budget {
    /// So many retries per hundred first tries.
    pub fn new(percent: f64) -> Self {
        Self { share: percent / 100.0, saved: Mutex::new(Saved { retries: FREE, refilled: None }) }
    }

    /// A first try earns its share.
    pub fn earn(&self) {
        let mut saved = self.saved.lock();
        saved.retries = (saved.retries + self.share).min(MAX_SAVED);
    }

    /// Whether one more retry may be made, which takes it.
    pub fn take(&self, now: Instant) -> bool {
        let mut saved = self.saved.lock();
        let idle = saved.refilled.map_or(0.0, |then| now.saturating_duration_since(then).as_secs_f64());
        saved.refilled = Some(now);
        if saved.retries < FREE {
            saved.retries = (saved.retries + idle * FREE_PER_SECOND).min(FREE);
        }
        let may = saved.retries >= 1.0;
        if may {
            saved.retries -= 1.0;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn retries_stay_a_share_of_the_traffic_beyond_a_few_free_ones() {
        let budget = Budget::new(20.0);
        let now = Instant::now();
        let mut retries = 0;
        for _ in 0..1000 {
            budget.earn();
            retries += usize::from(budget.take(now));
        }
        assert!((209..=210).contains(&retries), "{retries}");
    }

    #[test]
    fn what_is_used_up_comes_back_with_time_but_not_without_end() {
        let budget = Budget::new(0.0);
        let start = Instant::now();
        assert_eq!((0..20).filter(|_| budget.take(start)).count(), 10);
        assert!(!budget.take(start + Duration::from_millis(500)));
        assert!(budget.take(start + Duration::from_secs(2)));
        assert_eq!((0..20).filter(|_| budget.take(start + Duration::from_secs(3600))).count(), 10);
    }

    #[test]
    fn a_busy_target_cannot_save_up_for_a_storm() {
        let budget = Budget::new(100.0);
        (0..100_000).for_each(|_| budget.earn());
        let now = Instant::now();
        assert_eq!((0..1000).filter(|_| budget.take(now)).count(), 100);
    }
}
