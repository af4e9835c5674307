//! How long Postgres was away, as this runner saw it. While nobody can extend leases they end, though their holders live and
//! have answers to store. So after a long absence a runner takes over nothing for a moment: holders extend first, and nothing
//! that was paid for is asked again. What nobody held is begun meanwhile.

use super::EXTEND_EVERY;
use crate::batches::leases::LEASE;
use std::time::{Duration, Instant};

/// From here on leases may have ended meanwhile: what is left of the youngest that was not extended any more, and some.
const LONG: Duration = LEASE.saturating_sub(EXTEND_EVERY).saturating_sub(Duration::from_secs(40));
/// What holders have to come back in. They try each second (`extend_leases`), and a try that hangs takes 20 at most.
const MOMENT: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub struct Outage {
    has_answered: bool,
    is_unknown: bool,
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
            // It was away when this process began, and nobody here knows since when.
            self.is_unknown |= !self.has_answered;
            return;
        }
        if self.is_long(now) {
            self.settled_at = Some(now + MOMENT);
        }
        self.has_answered = true;
        self.is_unknown = false;
        self.away_since = None;
    }

    fn is_long(&self, now: Instant) -> bool {
        self.is_unknown || self.away_since.is_some_and(|since| now.duration_since(since) >= LONG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_long_absence_holders_have_a_moment_before_anything_is_taken_over() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (away, moment) = (LONG.as_secs(), MOMENT.as_secs());
        for (absence, is_long) in [(1, false), (away - 1, false), (away, true), (away * 9, true)] {
            let mut outage = Outage::default();
            outage.saw(true, at(0));
            let gone = moment + 10;
            assert!(!outage.is_settling(at(gone)), "as long as it is there");
            outage.saw(false, at(gone));
            outage.saw(false, at(gone + absence));
            let back = gone + absence;
            // The first look after it is as careful as those that follow.
            assert_eq!(outage.is_settling(at(back)), is_long, "{absence}");
            outage.saw(true, at(back));
            for later in [0, 1, moment - 1, moment, moment + 1] {
                assert_eq!(outage.is_settling(at(back + later)), is_long && later < moment, "{absence} {later}");
            }
        }
    }

    #[test]
    fn an_absence_that_a_process_begins_in_is_taken_for_a_long_one() {
        let start = Instant::now();
        let mut outage = Outage::default();
        outage.saw(false, start);
        assert!(outage.is_settling(start));
        let back = start + Duration::from_secs(1);
        outage.saw(true, back);
        assert!(outage.is_settling(back));
        outage.saw(true, back + Duration::from_secs(1));
        assert!(!outage.is_settling(back + MOMENT));
    }

    #[test]
    fn no_lease_ends_within_an_absence_that_is_not_long() {
        assert!(LONG + EXTEND_EVERY < LEASE);
    }
}
