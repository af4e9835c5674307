//! How limits stand, for those who only ask: nothing is taken, nothing is asked of the store, nobody waits.

use super::share::{Share, Verdict};
use super::{Ask, Kind, Limit, Limits, Moment, Refusal, Why};
use std::sync::atomic::Ordering::Relaxed;

/// A limit as far as this process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// None while nothing was asked for lately, so that the store would have to say.
    pub remaining: Option<u64>,
    /// When its window ends.
    pub resets_at: Option<Moment>,
    /// Why it would refuse; none also when only the store could say whether.
    pub refusal: Option<Why>,
}

impl Limits {
    pub fn look(&self, now: Moment, ask: &Ask<'_>) -> Look {
        let limit = ask.limit;
        let is_in_redis = self.is_shared && self.settings.redis_url.is_some() && matches!(limit.kind, Kind::Rate(_));
        let known = match is_in_redis {
            true => None,
            false => self.shares.with(&limit.counter, |entry| entry.share.clone()),
        };
        let is_known = known.is_some() || !self.is_shared;
        let mut share = known.unwrap_or_else(|| Share::new(now, limit));
        match self.is_shared {
            true => share.turn(now, limit),
            false => share.turn_alone(now, limit),
        }
        let refusal = match is_unbounded(ask) {
            true => Some(Why::Unbounded),
            false => match share.verdict(now, limit, ask.amount(), self.trusted_until.load(Relaxed)) {
                Verdict::Refuse if matches!(limit.kind, Kind::Rate(_)) => Some(Why::Rate),
                Verdict::Refuse => Some(Why::Budget),
                Verdict::Pass | Verdict::Wait | Verdict::Away => None,
            },
        };
        let is_told = is_known || limit.cap == 0;
        Look { remaining: is_told.then(|| share.remaining()), resets_at: limit.kind.ends_at(now), refusal }
    }
}

impl Look {
    /// As it would be answered.
    pub fn refusal(&self) -> Option<Refusal> {
        let why = self.refusal?;
        Some(Refusal { index: 0, remaining: self.remaining.unwrap_or(0), resets_at: self.resets_at, why })
    }
}

/// A strict budget, and nobody can say how much is wanted of it.
pub(super) fn is_unbounded(ask: &Ask<'_>) -> bool {
    matches!(ask.limit, Limit { kind: Kind::Budget { strict: true, .. }, .. }) && ask.amount == u64::MAX
}
