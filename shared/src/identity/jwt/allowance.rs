//! How many rows rejected tokens may take in an organisation's audit trail. Anybody can send a token that names an
//! organisation, so without a bound a stranger could fill its trail; what gets no row of its own is added up.

use std::collections::HashMap;
use std::time::{Duration, Instant};
use uuid::Uuid;

const BURST: u32 = 30;
/// One more for each of these.
const EVERY: Duration = Duration::from_secs(2);
/// Organisations remembered at once; those that are quiet have their whole burst anyway.
const MAX_ORGANISATIONS: usize = 4096;

#[derive(Default)]
pub struct Allowance(HashMap<Uuid, Bucket>);

struct Bucket {
    left: u32,
    filled: Instant,
}

impl Allowance {
    /// Whether one more may be written now.
    pub fn take(&mut self, organisation: Uuid, now: Instant) -> bool {
        if self.0.len() >= MAX_ORGANISATIONS {
            self.0.retain(|_, bucket| bucket.refreshed(now) < BURST);
        }
        let bucket = self.0.entry(organisation).or_insert(Bucket { left: BURST, filled: now });
        let left = bucket.refreshed(now);
        if left > bucket.left {
            bucket.left = left;
            bucket.filled = now;
        }
        let is_granted = bucket.left > 0;
        bucket.left = bucket.left.saturating_sub(1);
        is_granted
    }
}

impl Bucket {
    fn refreshed(&self, now: Instant) -> u32 {
        let more = now.saturating_duration_since(self.filled).as_secs() / EVERY.as_secs();
        self.left.saturating_add(u32::try_from(more).unwrap_or(u32::MAX)).min(BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_to_its_burst_and_others_are_not_touched() {
        let (mut allowance, now) = (Allowance::default(), Instant::now());
        let (flooded, other) = (Uuid::new_v4(), Uuid::new_v4());
        let granted = (0..10_000).filter(|_| allowance.take(flooded, now)).count();
        assert_eq!(granted, BURST as usize);
        assert!(allowance.take(other, now));
        assert!(!allowance.take(flooded, now + EVERY / 2));
        assert!(allowance.take(flooded, now + EVERY) && !allowance.take(flooded, now + EVERY));
        let later = now + EVERY * 10 * BURST;
        assert_eq!((0..100).filter(|_| allowance.take(flooded, later)).count(), BURST as usize);
    }

    #[test]
    fn the_memory_is_bounded_by_the_organisations_that_are_flooded_now() {
        let (mut allowance, now) = (Allowance::default(), Instant::now());
        for n in 0..3 * MAX_ORGANISATIONS as u32 {
            allowance.take(Uuid::new_v4(), now + EVERY * 2 * n);
        }
        assert!(allowance.0.len() <= MAX_ORGANISATIONS, "{}", allowance.0.len());
    }
}
