//! What this replica knows of one counter: its leases from the store, who waits, and what the store last said. Plain state
//! and operations on it: no clock, no I/O, no waiting, so that a simulation can put any number of replicas through anything.
//!
//! A request takes from a lease when it is admitted and puts back what it did not use. The store is asked for more before
//! it runs out; what lies idle is given back.

mod leases;

use super::counter::{Limit, LimitKind, Micros, SECOND};
use super::grant::Wish;
use leases::Leases;
use uuid::Uuid;

/// Not used for this long, the rest of a lease goes back to the store.
const IDLE_RATE: Micros = SECOND / 3;
const IDLE_BUDGET: Micros = 2 * SECOND;
/// Not used for this long, the share itself is forgotten.
const FORGOTTEN: Micros = 10 * SECOND;
/// Pieces double when one lasts less than this and halve when one lasts longer than that.
const SHORT: Micros = SECOND / 2;
const LONG: Micros = 4 * SECOND;
/// Nothing is put off for longer than this. What is, was noted by a clock that has been set back since, or is seen by who
/// looks by a time of a moment ago, as one does who waited.
const MAX_PAUSE: Micros = 2 * SECOND;
/// What is put off for so long was noted by a clock that was far ahead, and says nothing any more.
const FAR_AHEAD: Micros = 10 * SECOND;
/// A request may come so late that the next window has begun meanwhile. One that is further ahead was noted by a clock that
/// has been set back since.
const LATEST: Micros = 2 * SECOND;
/// No amount is larger: sums of a few cannot overflow.
pub const MAX_AMOUNT: u64 = 1 << 60;

#[derive(Debug, Clone)]
pub struct Share {
    /// The window or period that the rest is about.
    starts_at: Micros,
    /// Of a rate's window.
    ends_at: Option<Micros>,
    /// As the limit last said.
    cap: u64,
    leases: Leases,
    asking: LeaseRequestState,
    /// What requests that wait lack: the largest, and all.
    need: u64,
    demand: u64,
    /// What to ask for next time.
    chunk: u64,
    /// What nobody held when the store last answered.
    elsewhere: u64,
    dry: Option<Dry>,
    /// The store did not answer; it is not asked before this.
    away_until: Micros,
    failures: u8,
    used_at: Micros,
    renewed_at: Micros,
}

/// The store had no more.
#[derive(Debug, Clone, Copy)]
struct Dry {
    until: Micros,
    cap: u64,
    /// What it still had, too little for whoever waited.
    left: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseRequestState {
    Not,
    Queued,
    Sent { lease: Uuid },
}

/// Whether a request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitVerdict {
    Pass,
    Refuse,
    /// The store must be asked first.
    Wait,
    /// The store does not answer.
    Away,
}

/// A question to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseQuestion {
    /// The lease to add to, or to make.
    pub lease: Uuid,
    pub starts_at: Micros,
    pub ends_at: Option<Micros>,
    pub wish: Wish,
}

/// The store's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseAnswer {
    pub granted: u64,
    /// What nobody holds.
    pub left: u64,
    /// Other leases are open, and may come back.
    pub others: bool,
}

/// What a look at an idle share found to do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// So much of the lease goes back.
    pub shrink: Option<(Uuid, u64)>,
    /// Everything taken from these is in the store.
    pub release: Vec<Uuid>,
    /// Nothing would be lost with the share.
    pub is_empty: bool,
}

impl Share {
    pub fn new(now: Micros, limit: &Limit) -> Self {
        Self {
            starts_at: limit.kind.starts_at(now),
            ends_at: limit.kind.ends_at(now),
            cap: limit.cap,
            leases: Leases::default(),
            asking: LeaseRequestState::Not,
            need: 0,
            demand: 0,
            chunk: (limit.cap / 128).max(1),
            elsewhere: limit.cap,
            dry: None,
            away_until: 0,
            failures: 0,
            used_at: now,
            renewed_at: now,
        }
    }

    /// Goes over to the window that this moment falls in, and to the limit as it is now.
    pub fn turn(&mut self, now: Micros, limit: &Limit) {
        let starts_at = limit.kind.starts_at(now);
        // Somebody who still holds an older copy of the limit does not turn time back; a clock that was ahead does.
        let was_ahead = self.ends_at.is_some() && self.starts_at > now.saturating_add(LATEST);
        if starts_at > self.starts_at || was_ahead {
            match (self.ends_at, was_ahead) {
                (Some(_), false) => self.leases.clear(),
                // The store holds them for a window that is still to come, unless they go back.
                _ => self.leases.retire(),
            }
            (self.starts_at, self.ends_at) = (starts_at, limit.kind.ends_at(now));
            (self.dry, self.elsewhere) = (None, limit.cap);
        }
        self.forget_pauses_of_a_clock_ahead(now);
        if limit.cap < self.cap {
            self.leases.retire();
        }
        self.cap = limit.cap;
    }

    fn forget_pauses_of_a_clock_ahead(&mut self, now: Micros) {
        let (latest, far) = (now.saturating_add(MAX_PAUSE), now.saturating_add(FAR_AHEAD));
        self.away_until = if self.away_until > far { 0 } else { self.away_until.min(latest) };
        if self.ends_at.is_none() {
            let dry = self.dry.filter(|dry| dry.until <= far || dry.until == Micros::MAX);
            let shortened = |dry: Dry| Dry { until: dry.until.min(latest), ..dry };
            self.dry = dry.map(|dry| if dry.until == Micros::MAX { dry } else { shortened(dry) });
        }
    }

    /// The same where there is no store: all of the cap is this replica's.
    pub fn turn_alone(&mut self, now: Micros, limit: &Limit) {
        let (cap, starts_at) = (self.cap, self.starts_at);
        self.cap = 0;
        self.turn(now, limit);
        let (whole, before) = (limit.cap.min(MAX_AMOUNT).cast_signed(), cap.min(MAX_AMOUNT).cast_signed());
        let more = (starts_at == self.starts_at).then_some(whole - before);
        self.leases.alone(now, self.starts_at, whole, more);
        self.elsewhere = 0;
        self.dry = Some(Dry { until: Micros::MAX, cap: u64::MAX, left: 0 });
    }

    /// `trusted_until`: how long leases of rates hold unless the store hears of this replica again.
    pub fn verdict(&self, now: Micros, limit: &Limit, amount: u64, trusted_until: Micros) -> LimitVerdict {
        if limit.cap == 0 || limit.kind.is_exact() && amount > limit.cap {
            return LimitVerdict::Refuse;
        }
        let balance = self.balance(now, trusted_until);
        let is_there = match limit.kind.is_exact() {
            true => balance >= amount.min(MAX_AMOUNT).cast_signed(),
            false => balance > 0,
        };
        match self.dry {
            _ if is_there => LimitVerdict::Pass,
            Some(dry) if now < dry.until && limit.cap <= dry.cap && lacking(limit.kind, amount, balance) > dry.left => {
                LimitVerdict::Refuse
            }
            _ if now < self.away_until => LimitVerdict::Away,
            _ => LimitVerdict::Wait,
        }
    }

    /// Promises so much to a request that may pass. Answers the lease it is from.
    pub fn take(&mut self, now: Micros, amount: u64) -> Option<Uuid> {
        self.used_at = now;
        self.leases.take(amount)
    }

    /// A request waits for this. True when the store is to be asked on its account.
    pub fn wait(&mut self, now: Micros, kind: LimitKind, amount: u64, trusted_until: Micros) -> bool {
        let balance = self.balance(now, trusted_until);
        self.need = self.need.max(lacking(kind, amount, balance));
        self.demand = self.demand.saturating_add(amount.min(MAX_AMOUNT)).min(MAX_AMOUNT);
        self.queue()
    }

    /// True when the lease runs low, or a budget's is too old, and the store is to be asked, though nobody waits yet.
    pub fn runs_low(&mut self, now: Micros) -> bool {
        let is_low = self.leases.has_current() && self.own() < (self.chunk / 2).cast_signed();
        let is_low = is_low || self.ends_at.is_none() && self.leases.is_old(now, false);
        let is_dry = self.dry.is_some_and(|dry| now < dry.until && self.cap <= dry.cap);
        is_low && !is_dry && now >= self.away_until && self.queue()
    }

    fn queue(&mut self) -> bool {
        let is_new = self.asking == LeaseRequestState::Not;
        if is_new {
            self.asking = LeaseRequestState::Queued;
        }
        is_new
    }

    /// What to ask the store; `fresh` is the id of a lease if there is to be a new one.
    pub fn ask(&mut self, now: Micros, fresh: Uuid, trusted_until: Micros) -> LeaseQuestion {
        let is_held = self.ends_at.is_none() || now < trusted_until;
        let lease = self.leases.lasting(now, self.ends_at.is_some()).filter(|_| is_held).unwrap_or(fresh);
        let wish = Wish { want: self.demand.max(self.chunk), need: self.need, cap: self.cap };
        (self.need, self.demand) = (0, 0);
        self.asking = LeaseRequestState::Sent { lease };
        LeaseQuestion { lease, starts_at: self.starts_at, ends_at: self.ends_at, wish }
    }

    /// The store has answered. True when it is to be asked again, for those who came meanwhile.
    pub fn answered(&mut self, now: Micros, question: &LeaseQuestion, answer: LeaseAnswer) -> bool {
        self.asking = LeaseRequestState::Not;
        (self.away_until, self.failures) = (0, 0);
        if question.starts_at != self.starts_at {
            if self.ends_at.is_none() {
                self.leases.disown(now, question.lease, self.starts_at);
            }
            return self.need > 0 && self.queue();
        }
        let granted = answer.granted.min(MAX_AMOUNT).cast_signed();
        self.leases.grant(now, question.lease, self.starts_at, granted, self.ends_at.is_some());
        let lasted = now - self.renewed_at;
        self.renewed_at = now;
        self.chunk = match lasted {
            ..SHORT => self.chunk.saturating_mul(2),
            LONG.. => self.chunk / 2,
            _ => self.chunk,
        }
        .clamp(1, (self.cap / 8).max(1));
        self.elsewhere = answer.left;
        let Wish { want, need, cap } = question.wish;
        let is_dry = answer.granted < need || answer.left == 0 && answer.granted < want;
        self.dry = is_dry.then(|| Dry { until: self.dry_until(now, answer.others), cap, left: answer.left });
        self.need > 0 && !is_dry && self.queue()
    }

    /// Leases that others hold may come back soon; what is used up comes back with the next window.
    fn dry_until(&self, now: Micros, others: bool) -> Micros {
        match (self.ends_at, others) {
            (Some(end), false) => end,
            (Some(end), true) => end.min(now + SECOND / 5),
            (None, true) => now + SECOND / 2,
            (None, false) => now + 2 * SECOND,
        }
    }

    /// The store did not answer. It may have granted the lease all the same.
    pub fn unanswered(&mut self, now: Micros, question: &LeaseQuestion) {
        self.asking = LeaseRequestState::Not;
        (self.need, self.demand) = (0, 0);
        self.away_until = now + SECOND / 5 * (1 << self.failures.min(3));
        self.failures = self.failures.saturating_add(1);
        if question.ends_at.is_none_or(|end| now < end) {
            self.leases.disown(now, question.lease, self.starts_at);
        }
    }

    /// A request is over and used so much of what it had been promised.
    pub fn settle(&mut self, now: Micros, lease: Uuid, promised: u64, spent: u64) {
        self.leases.settle(now, lease, promised, spent);
    }

    /// Looks for what can be given back. Everything that was settled before `shipped` is in the store.
    pub fn sweep(&mut self, now: Micros, shipped: Micros, trusted_until: Micros) -> Swept {
        let mut swept = Swept::default();
        self.used_at = self.used_at.min(now);
        self.leases.settled_by(now);
        if self.ends_at.is_some_and(|end| now >= end) {
            self.leases.clear();
        }
        let idle = if self.ends_at.is_some() { IDLE_RATE } else { IDLE_BUDGET };
        if self.asking == LeaseRequestState::Not {
            swept.shrink = self.leases.rest(now - self.used_at > idle, self.starts_at, shipped);
            // There will be something again.
            self.dry = self.dry.filter(|_| swept.shrink.is_none());
        }
        if now >= trusted_until {
            self.lapse(now);
        }
        let asked = match self.asking {
            LeaseRequestState::Sent { lease } => Some(lease),
            LeaseRequestState::Not | LeaseRequestState::Queued => None,
        };
        self.leases.release(shipped, asked, &mut swept);
        swept.is_empty = self.leases.is_empty()
            && self.asking == LeaseRequestState::Not
            && now - self.used_at > FORGOTTEN
            && self.dry.is_none_or(|dry| now >= dry.until);
        swept
    }

    /// The store did not hear of this replica for too long: others may have what it held of a rate.
    pub fn lapse(&mut self, now: Micros) {
        if self.ends_at.is_some() {
            self.leases.retire();
            if let LeaseRequestState::Sent { lease } = self.asking {
                self.leases.disown(now, lease, self.starts_at);
            }
        }
    }

    /// The store has these back.
    pub fn released(&mut self, leases: &[Uuid]) {
        self.dry = self.dry.filter(|_| leases.is_empty());
        self.leases.released(leases);
    }

    /// What could still be had, as far as this replica knows.
    pub fn remaining(&self) -> u64 {
        let own = self.own().max(0).cast_unsigned();
        own.saturating_add(self.elsewhere).min(self.cap)
    }

    pub fn starts_at(&self) -> Micros {
        self.starts_at
    }

    pub fn ends_at(&self) -> Option<Micros> {
        self.ends_at
    }

    /// Whether it can be forgotten to make room: it holds nothing, and what it knows can be asked again. One that was made
    /// just now is another limit of the request that wants room.
    pub fn is_idle(&self, now: Micros) -> bool {
        let is_over = self.is_over_alone(now);
        let is_new = self.used_at >= now;
        is_over || !is_new && self.leases.is_empty() && self.asking == LeaseRequestState::Not
    }

    /// Where there is no store, a share is forgotten when its window is over.
    pub fn is_over_alone(&self, now: Micros) -> bool {
        self.ends_at.is_some_and(|end| now >= end)
    }

    fn balance(&self, now: Micros, trusted_until: Micros) -> i64 {
        if self.ends_at.is_none() || now < trusted_until { self.own() } else { 0 }
    }

    fn own(&self) -> i64 {
        self.leases.own(self.starts_at)
    }
}

/// What a request needs beyond what is there.
fn lacking(kind: LimitKind, amount: u64, balance: i64) -> u64 {
    let needed = if kind.is_exact() { amount.min(MAX_AMOUNT).cast_signed() } else { 1 };
    needed.saturating_sub(balance).max(0).cast_unsigned()
}

#[cfg(test)]
mod tests;
