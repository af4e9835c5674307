//! What a request was promised. It is settled with what was used, or released when it is dropped: no path out of a
//! request can keep what it did not use.

use super::Limits;
use super::counter::{Counter, LimitAsk, Micros, Unit, Window};
use super::shards::Slot;
use crate::request::limit_headers::LimitStanding;
use std::sync::Arc;
use uuid::Uuid;

/// Everything a request was promised, of all its limits.
pub struct Reservation {
    pub(super) limits: Arc<Limits>,
    pub(super) held: Vec<HeldAmount>,
    /// For each, where its share is.
    pub(super) slots: Vec<Option<Arc<Slot>>>,
}

#[derive(Debug, Clone)]
pub(super) struct HeldAmount {
    pub counter: Counter,
    pub starts_at: Micros,
    pub ends_at: Option<Micros>,
    pub place: TakenFrom,
    pub amount: u64,
    pub cap: u64,
    pub remaining: u64,
    pub is_dry_run: bool,
    /// Of a budget that must never be overspent.
    pub is_strict: bool,
    pub is_over: bool,
}

/// Where the amount was taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TakenFrom {
    Lease(Uuid),
    /// A window in Redis.
    Redis,
    /// The limit is only reported, or the store was away and the setting lets calls pass.
    Nowhere,
}

/// What a call used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    pub requests: u64,
    pub tokens: u64,
    /// Not less than what the journal will say.
    pub nano_cents: u64,
}

/// A counter that a record is charged to, as the journal notes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due<'r> {
    pub counter: &'r Counter,
    pub starts_at: Micros,
    pub lease: Option<Uuid>,
}

/// Nothing was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitRefusal {
    /// Which of the asks.
    pub index: usize,
    pub remaining: u64,
    /// When its window ends.
    pub resets_at: Option<Micros>,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    Rate,
    Budget,
    /// The store does not answer, and the setting is to refuse.
    StoreAway,
    /// A strict budget, and nobody knows what the call may cost at most.
    Unbounded,
}

impl Limits {
    /// What has happened already is charged to these limits whether they would have let it pass or not.
    pub fn charge_unasked(self: &Arc<Self>, now: Micros, asks: &[LimitAsk<'_>]) -> Reservation {
        let held = asks.iter().map(|LimitAsk { limit, .. }| HeldAmount {
            counter: limit.counter.clone(),
            starts_at: limit.kind.starts_at(now),
            ends_at: limit.kind.ends_at(now),
            place: TakenFrom::Nowhere,
            amount: 0,
            cap: limit.cap,
            remaining: 0,
            is_dry_run: limit.dry_run,
            is_strict: false,
            is_over: true,
        });
        Reservation { held: held.collect(), slots: asks.iter().map(|_| None).collect(), limits: self.clone() }
    }
}

impl HeldAmount {
    fn due(&self) -> Due<'_> {
        let lease = match self.place {
            TakenFrom::Lease(lease) => Some(lease).filter(|lease| !lease.is_nil()),
            TakenFrom::Redis | TakenFrom::Nowhere => None,
        };
        Due { counter: &self.counter, starts_at: self.starts_at, lease }
    }
}

impl Reservation {
    /// The call is over and its record written: what it did not use can be promised to others.
    pub fn settle(mut self, spent: Spent) {
        self.close(spent);
    }

    /// The counters that the call's record is charged to. A record of a call that others follow (another target takes its
    /// place) is charged to those of tokens and cost alone.
    pub fn charges(&self) -> impl Iterator<Item = Due<'_>> {
        let stored = self.held.iter().filter(|held| held.counter.window() != Some(Window::Second));
        stored.map(HeldAmount::due)
    }

    /// What was taken from strict budgets, which must know it before the call leaves.
    pub fn promises(&self) -> impl Iterator<Item = (Due<'_>, u64)> {
        let strict = self.held.iter().filter(|held| held.is_strict && !held.is_dry_run && held.amount > 0);
        strict.map(|held| (held.due(), held.amount))
    }

    /// What was taken from strict budgets, apart from the rest. Whoever counts calls is not among them.
    pub fn take_strict(&mut self) -> Option<Self> {
        let is_strict = |held: &HeldAmount| held.is_strict && !held.is_dry_run && held.counter.unit() != Unit::Requests;
        if !self.held.iter().any(is_strict) {
            return None;
        }
        let all = self.held.drain(..).zip(self.slots.drain(..));
        let (strict, others): (Vec<_>, Vec<_>) = all.partition(|(held, _)| is_strict(held));
        (self.held, self.slots) = others.into_iter().unzip();
        let (held, slots) = strict.into_iter().unzip();
        Some(Self { limits: self.limits.clone(), held, slots })
    }

    /// Whether any of it is of this unit.
    pub fn is_of(&self, unit: Unit) -> bool {
        self.held.iter().any(|held| held.counter.unit() == unit)
    }

    /// One for each ask, in their order.
    pub fn standings(&self) -> impl Iterator<Item = LimitStanding> {
        self.held.iter().map(|held| LimitStanding {
            unit: held.counter.unit(),
            cap: held.cap,
            remaining: held.remaining,
            resets_at: held.ends_at,
            is_dry_run: held.is_dry_run,
            is_over: held.is_over,
        })
    }

    fn close(&mut self, spent: Spent) {
        if self.held.is_empty() {
            return;
        }
        let now = self.limits.now();
        for (held, slot) in self.held.drain(..).zip(self.slots.drain(..)) {
            let spent = match held.counter.unit() {
                Unit::Requests => spent.requests,
                Unit::Tokens => spent.tokens,
                Unit::Cost => spent.nano_cents,
            };
            self.limits.settle(now, &held, slot.as_deref(), spent);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.close(Spent::default());
    }
}
