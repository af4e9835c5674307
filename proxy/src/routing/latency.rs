//! How long a target takes to answer, remembered coarsely: enough to tell when an attempt is slower than most. Counting
//! takes no lock. Old answers weigh less and less, so that a provider's bad hour is forgotten.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Each bucket ends a fifth later than the one before it; the last ends after about ten minutes.
const BUCKETS: usize = 75;
const GROWTH: f64 = 1.2;
const FIRST_MS: f64 = 1.0;
/// Fewer tell nothing about the slowest few.
const ENOUGH: u32 = 100;
/// When this many are remembered, all count half.
const MANY: u32 = 4096;

#[derive(Debug)]
pub struct Latencies {
    counts: [AtomicU32; BUCKETS],
    total: AtomicU32,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: [const { AtomicU32::new(0) }; BUCKETS], total: AtomicU32::new(0) }
    }
}

impl Latencies {
    pub fn record(&self, took: Duration) {
        self.counts[bucket(took)].fetch_add(1, Ordering::Relaxed);
        if self.total.fetch_add(1, Ordering::Relaxed) + 1 >= MANY {
            self.halve();
        }
    }

    /// By when this share of answers had come; None while too few are known.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        let counts: Vec<u32> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let total: u32 = counts.iter().sum();
        if total < ENOUGH {
            return None;
        }
        let wanted = f64::from(total) * percent / 100.0;
        let mut seen = 0.0;
        let index = counts.iter().position(|count| {
            seen += f64::from(*count);
            seen >= wanted
        });
        Some(end_of(index.unwrap_or(BUCKETS - 1)))
    }

    /// Counts that come in meanwhile may be lost: this is an estimate.
    fn halve(&self) {
        let halved = self.counts.iter().map(|count| {
            let half = count.load(Ordering::Relaxed) / 2;
            count.store(half, Ordering::Relaxed);
            half
        });
        self.total.store(halved.sum(), Ordering::Relaxed);
    }
}

fn bucket(took: Duration) -> usize {
    let millis = took.as_secs_f64() * 1000.0;
    let steps = (millis / FIRST_MS).max(1.0).log(GROWTH).ceil();
    (steps as usize).min(BUCKETS - 1)
}

fn end_of(bucket: usize) -> Duration {
    Duration::from_secs_f64(FIRST_MS / 1000.0 * GROWTH.powi(bucket as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_known_to_a_fifth_once_there_are_enough_answers() {
        let latencies = Latencies::default();
        for millis in 1..=99 {
            latencies.record(Duration::from_millis(millis * 10));
        }
        assert_eq!(latencies.percentile(95.0), None);
        latencies.record(Duration::from_millis(1000));
        for (percent, millis) in [(50.0, 500.0), (95.0, 950.0), (99.9, 1000.0)] {
            let found = latencies.percentile(percent).unwrap().as_secs_f64() * 1000.0;
            assert!((millis..=millis * 1.2).contains(&found), "{percent}: {found}");
        }
    }

    #[test]
    fn what_was_slow_long_ago_is_forgotten() {
        let latencies = Latencies::default();
        (0..1000).for_each(|_| latencies.record(Duration::from_secs(60)));
        (0..20_000).for_each(|_| latencies.record(Duration::from_millis(20)));
        assert!(latencies.percentile(95.0).unwrap() < Duration::from_millis(30));
    }

    #[test]
    fn no_duration_is_out_of_bounds() {
        for took in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            Latencies::default().record(took);
        }
        assert!(end_of(BUCKETS - 1) > Duration::from_secs(600));
    }
}
