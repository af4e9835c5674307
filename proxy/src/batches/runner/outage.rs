//! How long Postgres was away, as this runner saw it. While nobody can extend leases they end, though their holders live and
//! have answers to store. So after a long absence a runner begins nothing for a moment: holders extend first, and nothing that
//! was paid for is asked again.

use super::EXTEND_EVERY;
use crate::batches::leases::LEASE;
use std::time::{Duration, Instant};

/// From here on leases may have ended meanwhile: what is left of the youngest that was not extended any more, and some.
const LONG: Duration = LEASE.saturating_sub(EXTEND_EVERY).saturating_sub(Duration::from_secs(40));
/// What holders have to come back in. They try each second (`extend_leases`), and a try takes ten seconds at most.
const MOMENT: Duration = Duration::from_secs(20);

#[derive(Debug, Default)]
pub struct Outage {
    away_since: Option<Instant>,
    settled_at: Option<Instant>,
}

impl Outage {
    /// Whether leases that look ended may be those of holders who could not extend them.
    pub fn is_settling(&self, now: Instant) -> bool {
        self.is_long(now) || self.settled_at.is_some_and(|at| now < at)
    }

    /// Postgres answered, or did not.
    pub fn saw(&mut self, answered: bool, now: Instant) {
        if !answered {
            self.away_since.get_or_insert(now);
            return;
        }
        if self.is_long(now) {
            self.settled_at = Some(now + MOMENT);
        }
        self.away_since = None;
    }

    fn is_long(&self, now: Instant) -> bool {
        self.away_since.is_some_and(|since| now.duration_since(since) >= LONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_long_absence_holders_have_a_moment_before_anything_is_taken_over() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let away = LONG.as_secs();
        for (absence, settling_until) in [(1, None), (away - 1, None), (away, Some(20)), (away * 9, Some(20))] {
            let mut outage = Outage::default();
            outage.saw(true, at(0));
            assert!(!outage.is_settling(at(9)), "as long as it is there");
            outage.saw(false, at(10));
            outage.saw(false, at(10 + absence));
            let back = 10 + absence;
            // The first look after it is as careful as those that follow.
            assert_eq!(outage.is_settling(at(back)), settling_until.is_some(), "{absence}");
            outage.saw(true, at(back));
            let until = settling_until.unwrap_or(0);
            for later in [0, 1, 19, 20, 21] {
                assert_eq!(outage.is_settling(at(back + later)), later < until, "{absence} {later}");
            }
        }
    }

    #[test]
    fn no_lease_ends_within_an_absence_that_is_not_long() {
        assert!(LONG + EXTEND_EVERY < LEASE);
    }
}
