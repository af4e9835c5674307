//! What this replica holds of one counter: a lease from the store, what of it is promised to running requests, and what
//! the store last said. Plain state and operations on it: no clock, no I/O, no waiting, so that a simulation can put any
//! number of replicas through anything.
//!
//! What may be promised is `balance`. A request takes from it when it is admitted and puts back what it did not use. The
//! store is asked for more before it runs out; what lies idle is given back.
//!
//! Calls may use more than their lease had, where nobody could say before what they would use. Until the store is told,
//! that counts against whatever it grants in ignorance; from then on it has charged it, and here it is forgotten.

use super::counter::{Kind, Limit, Moment, SECOND};
use super::grant::Wish;
use uuid::Uuid;

/// A budget's lease is exchanged for another after this long, so that whatever the store and this replica count
/// differently (prices that were estimated) is put right.
const OLD: Moment = 60 * SECOND;
/// Not used for this long, the rest of a lease goes back to the store.
const IDLE_RATE: Moment = SECOND / 3;
const IDLE_BUDGET: Moment = 2 * SECOND;
/// One that was overdrawn is exchanged after this long: the store charged what it lacked to the counter, and what was
/// granted since stands for more than is left of it here.
const OLD_OVERDRAWN: Moment = 2 * SECOND;
/// Not used for this long, the share itself is forgotten.
const FORGOTTEN: Moment = 10 * SECOND;
/// The record of a call and its settlement are not quite the same moment.
const MARGIN: Moment = SECOND;
/// Pieces double when one lasts less than this and halve when one lasts longer than that.
const SHORT: Moment = SECOND / 2;
const LONG: Moment = 4 * SECOND;
/// No amount is larger: sums of a few cannot overflow.
pub const MOST: u64 = 1 << 60;

#[derive(Debug, Clone)]
pub struct Share {
    /// The window or period all this speaks of.
    starts_at: Moment,
    /// Of a rate's window.
    ends_at: Option<Moment>,
    /// As the limit last said.
    cap: u64,
    lease: Option<Lease>,
    /// Nothing is taken from these any more; they go back when everything taken from them is in the store.
    retired: Vec<Lease>,
    asking: Asking,
    /// What requests that wait lack: the largest, and all.
    need: u64,
    demand: u64,
    /// What to ask for next time.
    chunk: u64,
    /// What nobody held when the store last answered.
    elsewhere: u64,
    dry: Option<Dry>,
    /// The store did not answer; it is not asked before this.
    away_until: Moment,
    failures: u8,
    used_at: Moment,
    renewed_at: Moment,
}

#[derive(Debug, Clone)]
struct Lease {
    id: Uuid,
    /// The period it is of.
    starts_at: Moment,
    /// Below zero when calls used more than was there.
    balance: i64,
    was_overdrawn: bool,
    /// Promised to running requests.
    held: u64,
    since: Moment,
    settled_at: Moment,
}

/// The store had no more.
#[derive(Debug, Clone, Copy)]
struct Dry {
    until: Moment,
    cap: u64,
    /// What it still had, too little for whoever waited.
    left: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    Not,
    Queued,
    Sent { lease: Uuid },
}

/// Whether a request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Refuse,
    /// The store must be asked first.
    Wait,
    /// The store does not answer.
    Away,
}

/// A question to the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The lease to add to, or to make.
    pub lease: Uuid,
    pub starts_at: Moment,
    pub ends_at: Option<Moment>,
    pub wish: Wish,
}

/// The store's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
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
    pub fn new(now: Moment, limit: &Limit) -> Self {
        Self {
            starts_at: limit.kind.starts_at(now),
            ends_at: limit.kind.ends_at(now),
            cap: limit.cap,
            lease: None,
            retired: Vec::new(),
            asking: Asking::Not,
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
    pub fn turn(&mut self, now: Moment, limit: &Limit) {
        let starts_at = limit.kind.starts_at(now);
        // Somebody who still holds an older copy of the limit does not turn time back.
        if starts_at > self.starts_at {
            match self.lease.take() {
                Some(lease) if self.ends_at.is_none() => self.retired.push(lease),
                _ => {}
            }
            if self.ends_at.is_some() {
                // The store forgets leases with their window.
                self.retired.clear();
            }
            (self.starts_at, self.ends_at) = (starts_at, limit.kind.ends_at(now));
            (self.dry, self.elsewhere) = (None, limit.cap);
        }
        if limit.cap < self.cap {
            self.retire();
        }
        self.cap = limit.cap;
    }

    /// The same where there is no store: all of the cap is this replica's.
    pub fn turn_alone(&mut self, now: Moment, limit: &Limit) {
        let (cap, starts_at) = (self.cap, self.starts_at);
        self.cap = 0;
        self.turn(now, limit);
        self.retired.clear();
        let more = limit.cap.min(MOST).cast_signed() - cap.min(MOST).cast_signed();
        match &mut self.lease {
            Some(lease) if starts_at == self.starts_at => lease.balance += more,
            lease => {
                let all = limit.cap.min(MOST).cast_signed();
                *lease = Some(Lease::new(Uuid::nil(), self.starts_at, all, now));
            }
        }
        self.elsewhere = 0;
        self.dry = Some(Dry { until: Moment::MAX, cap: u64::MAX, left: 0 });
    }

    /// `trusted_until`: how long leases of rates hold unless the store hears of this replica again.
    pub fn verdict(&self, now: Moment, limit: &Limit, amount: u64, trusted_until: Moment) -> Verdict {
        if limit.cap == 0 || limit.kind.is_exact() && amount > limit.cap {
            return Verdict::Refuse;
        }
        let balance = self.balance(now, trusted_until);
        let is_there = match limit.kind.is_exact() {
            true => balance >= amount.min(MOST).cast_signed(),
            false => balance > 0,
        };
        match self.dry {
            _ if is_there => Verdict::Pass,
            Some(dry) if now < dry.until && limit.cap <= dry.cap && lacking(limit.kind, amount, balance) > dry.left => {
                Verdict::Refuse
            }
            _ if now < self.away_until => Verdict::Away,
            _ => Verdict::Wait,
        }
    }

    /// Promises so much to a request that may pass. Answers the lease it is from.
    pub fn take(&mut self, now: Moment, amount: u64) -> Option<Uuid> {
        self.used_at = now;
        let lease = self.lease.as_mut()?;
        lease.add(-amount.min(MOST).cast_signed());
        lease.held = lease.held.saturating_add(amount.min(MOST));
        Some(lease.id)
    }

    /// A request waits for this. True when the store is to be asked on its account.
    pub fn wait(&mut self, now: Moment, kind: Kind, amount: u64, trusted_until: Moment) -> bool {
        let balance = self.balance(now, trusted_until);
        self.need = self.need.max(lacking(kind, amount, balance));
        self.demand = self.demand.saturating_add(amount.min(MOST)).min(MOST);
        self.queue()
    }

    /// True when the lease runs low and the store is to be asked, though nobody waits yet.
    pub fn runs_low(&mut self, now: Moment) -> bool {
        let is_low = self.lease.is_some() && self.own() < (self.chunk / 2).cast_signed();
        let is_dry = self.dry.is_some_and(|dry| now < dry.until && self.cap <= dry.cap);
        is_low && !is_dry && now >= self.away_until && self.queue()
    }

    fn queue(&mut self) -> bool {
        let is_new = self.asking == Asking::Not;
        if is_new {
            self.asking = Asking::Queued;
        }
        is_new
    }

    /// What to ask the store; `fresh` is the id of a lease if there is to be a new one.
    pub fn ask(&mut self, now: Moment, fresh: Uuid, trusted_until: Moment) -> Question {
        let is_good = |lease: &&Lease| match self.ends_at {
            _ if lease.was_overdrawn && now - lease.since >= OLD_OVERDRAWN => false,
            Some(_) => now < trusted_until,
            None => now - lease.since < OLD,
        };
        let lease = self.lease.as_ref().filter(is_good).map_or(fresh, |lease| lease.id);
        let wish = Wish { want: self.demand.max(self.chunk), need: self.need, cap: self.cap };
        (self.need, self.demand) = (0, 0);
        self.asking = Asking::Sent { lease };
        Question { lease, starts_at: self.starts_at, ends_at: self.ends_at, wish }
    }

    /// The store has answered. True when it is to be asked again, for those who came meanwhile.
    pub fn answered(&mut self, now: Moment, question: &Question, answer: Answer) -> bool {
        self.asking = Asking::Not;
        (self.away_until, self.failures) = (0, 0);
        if question.starts_at != self.starts_at {
            if self.ends_at.is_none() {
                self.disown(question.lease, now);
            }
            return self.need > 0 && self.queue();
        }
        let granted = answer.granted.min(MOST).cast_signed();
        match &mut self.lease {
            Some(lease) if lease.id == question.lease => lease.add(granted),
            _ if granted == 0 || self.retired.iter().any(|lease| lease.id == question.lease) => {}
            lease => {
                let fresh = Lease::new(question.lease, self.starts_at, granted, now);
                self.retired.extend(lease.replace(fresh));
            }
        }
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
    fn dry_until(&self, now: Moment, others: bool) -> Moment {
        match (self.ends_at, others) {
            (Some(end), false) => end,
            (Some(end), true) => end.min(now + SECOND / 5),
            (None, true) => now + SECOND / 2,
            (None, false) => now + 2 * SECOND,
        }
    }

    /// The store did not answer. It may have granted the lease all the same.
    pub fn unanswered(&mut self, now: Moment, question: &Question) {
        self.asking = Asking::Not;
        (self.need, self.demand) = (0, 0);
        self.away_until = now + SECOND / 5 * (1 << self.failures.min(3));
        self.failures = self.failures.saturating_add(1);
        if question.ends_at.is_none_or(|end| now < end) {
            self.disown(question.lease, now);
        }
    }

    /// A lease that may exist and is not used goes back.
    fn disown(&mut self, id: Uuid, now: Moment) {
        if !self.lease.iter().chain(&self.retired).any(|lease| lease.id == id) {
            self.retired.push(Lease::new(id, self.starts_at, 0, now));
        }
    }

    /// A request is over and used so much of what it had been promised.
    pub fn settle(&mut self, now: Moment, lease: Uuid, promised: u64, spent: u64) {
        let (promised, spent) = (promised.min(MOST), spent.min(MOST));
        if let Some(lease) = self.lease.iter_mut().chain(&mut self.retired).find(|open| open.id == lease) {
            lease.add(promised.cast_signed() - spent.cast_signed());
            lease.held = lease.held.saturating_sub(promised);
            lease.settled_at = lease.settled_at.max(now);
        }
    }

    /// Looks for what can be given back. Everything that was settled before `shipped` is in the store.
    pub fn sweep(&mut self, now: Moment, shipped: Moment, trusted_until: Moment) -> Swept {
        let mut swept = Swept::default();
        let is_rate = self.ends_at.is_some();
        if self.ends_at.is_some_and(|end| now >= end) {
            self.lease = None;
            self.retired.clear();
        }
        let idle = if is_rate { IDLE_RATE } else { IDLE_BUDGET };
        let spare = self.own();
        if let Some(lease) = &mut self.lease
            && self.asking == Asking::Not
            && (now - self.used_at > idle || lease.was_overdrawn && lease.is_over(shipped))
        {
            if spare > 0 {
                swept.shrink = Some((lease.id, spare.cast_unsigned()));
                lease.add(-spare);
                // There will be something again.
                self.dry = None;
            }
            if lease.held == 0 {
                self.retire();
            }
        }
        if now >= trusted_until {
            self.lapse(now);
        }
        let asking = self.asking;
        let is_asked = |lease: &Lease| matches!(asking, Asking::Sent { lease: sent } if sent == lease.id);
        for lease in self.retired.iter_mut().filter(|lease| lease.is_over(shipped) && !is_asked(lease)) {
            swept.release.push(lease.id);
            // The store has charged what it lacks. What was kept back for it goes back: whether it was granted before that,
            // and is too much, or after, and can be had again, only the store knows.
            let current = self.lease.as_mut().filter(|current| current.starts_at == lease.starts_at);
            let kept = current.as_ref().map_or(0, |current| current.balance.min(lease.balance.saturating_neg()));
            if let Some(current) = current.filter(|_| kept > 0) {
                current.add(-kept);
                lease.add(kept);
                swept.shrink.get_or_insert((current.id, 0)).1 += kept.cast_unsigned();
            }
        }
        swept.is_empty = self.lease.is_none()
            && self.retired.is_empty()
            && self.asking == Asking::Not
            && now - self.used_at > FORGOTTEN
            && self.dry.is_none_or(|dry| now >= dry.until);
        swept
    }

    /// The store did not hear of this replica for too long: others may have what it held of a rate.
    pub fn lapse(&mut self, now: Moment) {
        if self.ends_at.is_some() {
            self.retire();
            if let Asking::Sent { lease } = self.asking {
                self.disown(lease, now);
            }
        }
    }

    /// The store has these back.
    pub fn released(&mut self, leases: &[Uuid]) {
        self.dry = self.dry.filter(|_| leases.is_empty());
        self.retired.retain(|lease| !leases.contains(&lease.id));
    }

    /// What could still be had, as far as this replica knows.
    pub fn remaining(&self) -> u64 {
        let own = self.own().max(0).cast_unsigned();
        own.saturating_add(self.elsewhere).min(self.cap)
    }

    pub fn starts_at(&self) -> Moment {
        self.starts_at
    }

    pub fn ends_at(&self) -> Option<Moment> {
        self.ends_at
    }

    /// Whether it can be forgotten to make room: it holds nothing, and what it knows can be asked again. One that was made
    /// just now is another limit of the request that wants room.
    pub fn is_idle(&self, now: Moment) -> bool {
        let is_over = self.is_over_alone(now);
        let is_new = self.used_at >= now;
        is_over || !is_new && self.lease.is_none() && self.retired.is_empty() && self.asking == Asking::Not
    }

    /// Where there is no store, a share is forgotten when its window is over.
    pub fn is_over_alone(&self, now: Moment) -> bool {
        self.ends_at.is_some_and(|end| now >= end)
    }

    fn balance(&self, now: Moment, trusted_until: Moment) -> i64 {
        if self.ends_at.is_none() || now < trusted_until { self.own() } else { 0 }
    }

    /// What is there, less what leases before it were overdrawn by and the store was not told yet.
    fn own(&self) -> i64 {
        let of_this = self.retired.iter().filter(|lease| lease.starts_at == self.starts_at);
        let owed = of_this.fold(0_i64, |owed, lease| owed.saturating_add(lease.balance.min(0)));
        self.lease.as_ref().map_or(0, |lease| lease.balance).saturating_add(owed)
    }

    fn retire(&mut self) {
        if let Some(lease) = self.lease.take() {
            self.retired.push(lease);
        }
    }
}

/// What a request needs beyond what is there.
fn lacking(kind: Kind, amount: u64, balance: i64) -> u64 {
    let needed = if kind.is_exact() { amount.min(MOST).cast_signed() } else { 1 };
    needed.saturating_sub(balance).max(0).cast_unsigned()
}

impl Lease {
    fn new(id: Uuid, starts_at: Moment, balance: i64, now: Moment) -> Self {
        Self { id, starts_at, balance, was_overdrawn: false, held: 0, since: now, settled_at: now }
    }

    fn add(&mut self, amount: i64) {
        self.balance = self.balance.saturating_add(amount);
        self.was_overdrawn |= self.balance < 0;
    }

    /// Whether everything that was taken from it is in the store.
    fn is_over(&self, shipped: Moment) -> bool {
        self.held == 0 && self.settled_at + MARGIN < shipped
    }
}

#[cfg(test)]
mod tests;
