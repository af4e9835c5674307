//! The status of a limit, for callers that only ask (`/explain`): nothing is reserved, the store is not asked, nothing
//! waits.

use super::share::{LimitVerdict, Share};
use super::{Limit, LimitAsk, LimitKind, LimitRefusal, Limits, Micros, Why};
use std::sync::atomic::Ordering::Relaxed;

/// A limit as far as this process knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitStatus {
    /// None while this process holds no recent lease, so that only the store knows.
    pub remaining: Option<u64>,
    /// When its window ends.
    pub resets_at: Option<Micros>,
    /// Why it would refuse; none also when only the store knows.
    pub refusal: Option<Why>,
}

impl Limits {
    pub fn status(&self, now: Micros, ask: &LimitAsk<'_>) -> LimitStatus {
        let limit = ask.limit;
        let is_in_redis =
            self.is_shared && self.settings.redis_url.is_some() && matches!(limit.kind, LimitKind::Rate(_));
        let known = match is_in_redis {
            true => None,
            false => self.shares.with(&limit.counter, |entry| entry.share.clone()),
        };
        // A limit of zero needs no store.
        let is_known = known.is_some() || !self.is_shared || limit.cap == 0;
        let mut share = known.unwrap_or_else(|| Share::new(now, limit));
        match self.is_shared {
            true => share.turn(now, limit),
            false => share.turn_alone(now, limit),
        }
        let refusal = match is_unbounded(ask) {
            true => Some(Why::Unbounded),
            false => match share.verdict(now, limit, ask.amount(), self.trusted_until.load(Relaxed)) {
                LimitVerdict::Refuse if matches!(limit.kind, LimitKind::Rate(_)) => Some(Why::Rate),
                LimitVerdict::Refuse => Some(Why::Budget),
                LimitVerdict::Pass | LimitVerdict::Wait | LimitVerdict::Away => None,
            },
        };
        LimitStatus { remaining: is_known.then(|| share.remaining()), resets_at: limit.kind.ends_at(now), refusal }
    }
}

impl LimitStatus {
    /// The refusal that a request would get.
    pub fn refusal(&self) -> Option<LimitRefusal> {
        let why = self.refusal?;
        Some(LimitRefusal { index: 0, remaining: self.remaining.unwrap_or(0), resets_at: self.resets_at, why })
    }
}

/// A strict budget, and the amount that is asked of it has no bound.
pub(super) fn is_unbounded(ask: &LimitAsk<'_>) -> bool {
    matches!(ask.limit, Limit { kind: LimitKind::Budget { strict: true, .. }, .. }) && ask.amount == u64::MAX
}
