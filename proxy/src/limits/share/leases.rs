//! The leases of one counter that this replica holds: the one that requests take from, and those that wait for everything
//! taken from them to be in the store.
//!
//! Calls may use more than their lease had, where nobody could say before what they would use. Until the store is told,
//! that counts against whatever it grants in ignorance; from then on it has charged it, and here it is forgotten.

use super::super::counter::{Micros, SECOND};
use super::{MAX_AMOUNT, Swept};
use uuid::Uuid;

/// A budget's lease is exchanged for another after this long, so that whatever the store and this replica count
/// differently (prices that were estimated) is put right.
const OLD: Micros = 60 * SECOND;
/// One that was overdrawn is exchanged after this long: the store charged what it lacked to the counter, and what was
/// granted since stands for more than is left of it here.
const OLD_OVERDRAWN: Micros = 2 * SECOND;
/// The record of a call and its settlement are not quite the same moment.
pub const MARGIN: Micros = SECOND;

#[derive(Debug, Clone, Default)]
pub struct Leases {
    current: Option<Lease>,
    /// Nothing is taken from these any more; they go back when everything taken from them is in the store.
    retired: Vec<Lease>,
}

#[derive(Debug, Clone)]
struct Lease {
    id: Uuid,
    /// The period it is of.
    starts_at: Micros,
    /// Below zero when calls used more than was there.
    balance: i64,
    was_overdrawn: bool,
    /// Promised to running requests.
    held: u64,
    since: Micros,
    settled_at: Micros,
}

impl Leases {
    /// Whether there is one to take from.
    pub fn has_current(&self) -> bool {
        self.current.is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.current.is_none() && self.retired.is_empty()
    }

    /// What is there in this period, less what leases before were overdrawn by and the store was not told yet.
    pub fn own(&self, starts_at: Micros) -> i64 {
        let of_this = self.retired.iter().filter(|lease| lease.starts_at == starts_at);
        let owed = of_this.fold(0_i64, |owed, lease| owed.saturating_add(lease.balance.min(0)));
        self.current.as_ref().map_or(0, |lease| lease.balance).saturating_add(owed)
    }

    pub fn take(&mut self, amount: u64) -> Option<Uuid> {
        let (lease, amount) = (self.current.as_mut()?, amount.min(MAX_AMOUNT));
        lease.add(-amount.cast_signed());
        lease.held = lease.held.saturating_add(amount);
        Some(lease.id)
    }

    pub fn settle(&mut self, now: Micros, id: Uuid, promised: u64, spent: u64) {
        let (promised, spent) = (promised.min(MAX_AMOUNT), spent.min(MAX_AMOUNT));
        if let Some(lease) = self.current.iter_mut().chain(&mut self.retired).find(|lease| lease.id == id) {
            lease.add(promised.cast_signed() - spent.cast_signed());
            lease.held = lease.held.saturating_sub(promised);
            lease.settled_at = lease.settled_at.max(now);
        }
    }

    /// Nothing can have been settled later than now: a clock that has been set back since said so.
    pub fn settled_by(&mut self, now: Micros) {
        for lease in self.current.iter_mut().chain(&mut self.retired) {
            lease.settled_at = lease.settled_at.min(now);
            lease.since = lease.since.min(now);
        }
    }

    /// The one that the store can add to.
    pub fn lasting(&self, now: Micros, is_rate: bool) -> Option<Uuid> {
        self.current.as_ref().filter(|lease| !lease.is_old(now, is_rate)).map(|lease| lease.id)
    }

    /// Whether the present one is to be exchanged, whatever is left of it.
    pub fn is_old(&self, now: Micros, is_rate: bool) -> bool {
        self.current.as_ref().is_some_and(|lease| lease.is_old(now, is_rate))
    }

    /// The store granted so much, by that lease. One that was retired meanwhile stays so. A budget's lease that is too old
    /// is not used on because the store grants nothing in its place: it may have nothing because of that very lease.
    pub fn grant(&mut self, now: Micros, id: Uuid, starts_at: Micros, granted: i64, is_rate: bool) {
        match &mut self.current {
            Some(lease) if lease.id == id => lease.add(granted),
            Some(lease) if granted == 0 && !is_rate && lease.is_old(now, false) => self.retire(),
            _ if granted == 0 || self.retired.iter().any(|lease| lease.id == id) => {}
            current => self.retired.extend(current.replace(Lease::new(id, starts_at, granted, now))),
        }
    }

    /// Where there is no store: one lease has the whole cap, or, once it is there, more of it.
    pub fn alone(&mut self, now: Micros, starts_at: Micros, whole: i64, more: Option<i64>) {
        self.retired.clear();
        match (&mut self.current, more) {
            (Some(lease), Some(more)) => lease.balance += more,
            (current, _) => *current = Some(Lease::new(Uuid::nil(), starts_at, whole, now)),
        }
    }

    /// A lease that may exist and is not used goes back.
    pub fn disown(&mut self, now: Micros, id: Uuid, starts_at: Micros) {
        if !self.current.iter().chain(&self.retired).any(|lease| lease.id == id) {
            self.retired.push(Lease::new(id, starts_at, 0, now));
        }
    }

    pub fn retire(&mut self) {
        self.retired.extend(self.current.take());
    }

    /// The store forgets leases with their window.
    pub fn clear(&mut self) {
        self.current = None;
        self.retired.clear();
    }

    /// Gives up the present lease when it is idle, or was overdrawn and the store knows it all. Answers what of it goes back
    /// before that.
    pub fn rest(&mut self, is_idle: bool, starts_at: Micros, shipped: Micros) -> Option<(Uuid, u64)> {
        let spare = self.own(starts_at);
        let lease = self.current.as_mut().filter(|lease| is_idle || lease.was_overdrawn && lease.is_over(shipped))?;
        let shrink = (spare > 0).then_some((lease.id, spare.max(0).cast_unsigned()));
        lease.add(-spare.max(0));
        if lease.held == 0 {
            self.retire();
        }
        shrink
    }

    /// Notes the leases of which everything is in the store; not one that it is being asked about.
    pub fn release(&mut self, shipped: Micros, asked: Option<Uuid>, swept: &mut Swept) {
        for lease in self.retired.iter_mut().filter(|lease| lease.is_over(shipped) && asked != Some(lease.id)) {
            swept.release.push(lease.id);
            // The store has charged what it lacks. What was kept back for it goes back: whether it was granted before that,
            // and is too much, or after, and can be had again, only the store knows.
            let current = self.current.as_mut().filter(|current| current.starts_at == lease.starts_at);
            let carried = current.as_ref().map_or(0, |current| current.balance.min(lease.balance.saturating_neg()));
            if let Some(current) = current.filter(|_| carried > 0) {
                current.add(-carried);
                lease.add(carried);
                swept.shrink.get_or_insert((current.id, 0)).1 += carried.cast_unsigned();
            }
        }
    }

    /// The store has these back.
    pub fn released(&mut self, ids: &[Uuid]) {
        self.retired.retain(|lease| !ids.contains(&lease.id));
    }
}

impl Lease {
    fn new(id: Uuid, starts_at: Micros, balance: i64, now: Micros) -> Self {
        Self { id, starts_at, balance, was_overdrawn: false, held: 0, since: now, settled_at: now }
    }

    fn add(&mut self, amount: i64) {
        self.balance = self.balance.saturating_add(amount);
        self.was_overdrawn |= self.balance < 0;
    }

    fn is_old(&self, now: Micros, is_rate: bool) -> bool {
        match self.was_overdrawn {
            true => now - self.since >= OLD_OVERDRAWN,
            false => !is_rate && now - self.since >= OLD,
        }
    }

    /// Whether everything that was taken from it is in the store.
    fn is_over(&self, shipped: Micros) -> bool {
        self.held == 0 && self.settled_at + MARGIN < shipped
    }
}
