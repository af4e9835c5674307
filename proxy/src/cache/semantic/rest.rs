//! An embedder that fails again and again is left alone for a while: otherwise each request would wait for it in vain.

use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

const MAX_FAILURES: u32 = 5;
const REST_MS: i64 = 10_000;

#[derive(Default)]
pub struct Rest {
    failures: AtomicU32,
    until_ms: AtomicI64,
}

impl Rest {
    pub fn is_resting(&self, now_ms: i64) -> bool {
        now_ms < self.until_ms.load(Relaxed)
    }

    pub fn worked(&self) {
        // Read first: a write that changes nothing would still take the line from the other cores.
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
        }
    }

    /// True when a rest begins. The one request that is tried after it begins the next if it fails too.
    pub fn failed(&self, now_ms: i64) -> bool {
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        if failures < MAX_FAILURES || self.is_resting(now_ms) {
            return false;
        }
        self.failures.store(MAX_FAILURES - 1, Relaxed);
        self.until_ms.store(now_ms.saturating_add(REST_MS), Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_bring_a_rest_and_one_success_ends_the_row() {
        let rest = Rest::default();
        for _ in 0..MAX_FAILURES - 1 {
            assert!(!rest.failed(0));
        }
        rest.worked();
        for _ in 0..MAX_FAILURES - 1 {
            assert!(!rest.failed(0));
        }
        assert!(!rest.is_resting(0));
        assert!(rest.failed(0) && rest.is_resting(0) && rest.is_resting(REST_MS - 1) && !rest.is_resting(REST_MS));
        assert!(rest.failed(REST_MS), "the next failure begins another");
        rest.worked();
        assert!(!rest.failed(3 * REST_MS));
    }
}
