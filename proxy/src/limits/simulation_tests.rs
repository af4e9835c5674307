//! Ten replicas, one store, one counter and a clock that obeys: every step something happens to one of them, chosen by
//! a seed. Requests come and go, answers of the store are late or lost, processes die and leave their journals behind,
//! the store goes away, windows turn, caps change. Then everything comes to rest, and the sums must be right.
//!
//! The replicas are the real `Share`; store and journals are models of what `postgres` and `journal` do.

mod dice;
mod raised;
mod rest;
mod store;

use super::counter::{Counter, Limit, LimitKind, Micros, SECOND, Scope, Unit, Window};
use super::share::{LeaseAnswer, LeaseQuestion, LimitVerdict, Share};
use dice::Dice;
use std::collections::BTreeMap;
use store::{Record, Store};
use uuid::Uuid;

const REPLICAS: usize = 10;
const TTL: Micros = 5 * SECOND;
const STEPS: usize = 600;

#[derive(Clone, Copy)]
struct Running {
    starts_at: Micros,
    lease: Uuid,
    promised: u64,
    spent: u64,
}

struct Replica {
    boot: u64,
    share: Share,
    is_queued: bool,
    /// Asked; the answer is on its way, if there is one.
    sent: Option<(LeaseQuestion, Option<LeaseAnswer>)>,
    running: Vec<Running>,
    journal: Vec<Record>,
    shipped_until: Micros,
    trusted_until: Micros,
}

struct World {
    dice: Dice,
    /// How many replicas anything happens to, and how fast.
    crowd: u64,
    pace: u64,
    /// How long calls take.
    linger: u64,
    /// Nothing goes wrong any more.
    is_calm: bool,
    now: Micros,
    limit: Limit,
    highest_cap: u64,
    largest: u64,
    store: Store,
    replicas: Vec<Replica>,
    /// Journals of processes that are gone, by boot.
    dead: Vec<(u64, Vec<Record>)>,
    boots: u64,
    records: u64,
    /// What every call used, by window, from its own lips.
    spent: BTreeMap<Micros, u64>,
    /// The largest part of the limit that a process ever took at once, by boot.
    pieces: BTreeMap<u64, u64>,
}

impl World {
    fn new(seed: u64, kind: LimitKind) -> Self {
        let mut dice = Dice(seed);
        let cap = [1, 3, 10, 100, 1000, 1_000_000][dice.below(6) as usize] + dice.below(10);
        let largest = if dice.one_in(2) { 1 } else { (cap / 3).max(1) };
        let counter = Counter::new(Uuid::nil().into(), Scope::Policy, "p/", Unit::Tokens, kind);
        let limit = Limit { counter, cap, kind, dry_run: false };
        let now = 1_700_000_000 * SECOND;
        let mut world = Self {
            crowd: 1 + dice.below(REPLICAS as u64),
            pace: [10_000, 100_000, 500_000][dice.below(3) as usize],
            linger: [1, 4, 20][dice.below(3) as usize],
            dice,
            is_calm: false,
            now,
            highest_cap: cap,
            largest,
            limit,
            store: Store::default(),
            replicas: Vec::new(),
            dead: Vec::new(),
            boots: 0,
            records: 0,
            spent: BTreeMap::new(),
            pieces: BTreeMap::new(),
        };
        for _ in 0..REPLICAS {
            let replica = world.born();
            world.replicas.push(replica);
        }
        world
    }

    fn born(&mut self) -> Replica {
        self.boots += 1;
        Replica {
            boot: self.boots,
            share: Share::new(self.now, &self.limit),
            is_queued: false,
            sent: None,
            running: Vec::new(),
            journal: Vec::new(),
            shipped_until: 0,
            trusted_until: 0,
        }
    }

    fn step(&mut self) {
        self.now += self.dice.below(self.pace).cast_signed();
        let who = self.dice.below(self.crowd) as usize;
        match self.dice.below(100) {
            0..30 => self.request(who),
            30..50 => self.finish(who),
            50..60 => self.ask(who),
            60..70 => self.deliver(who),
            70..77 => self.beat(who),
            77..84 => self.ship(who),
            84..93 => self.sweep(who),
            93 => self.store.is_away = self.dice.one_in(3),
            94 => self.crash(who),
            95 => self.recover(),
            96 => self.reset(),
            97..99 => self.now += self.dice.below(4 * SECOND.cast_unsigned()).cast_signed(),
            _ => self.change_cap(),
        }
    }

    fn request(&mut self, who: usize) {
        let amount = (1 + self.dice.below(self.largest)).min(self.limit.cap);
        self.request_of(who, amount);
    }

    fn request_of(&mut self, who: usize, amount: u64) -> LimitVerdict {
        // Replicas learn of a changed limit one after the other, so some still know a higher cap.
        let replica = &mut self.replicas[who];
        replica.share.turn(self.now, &self.limit);
        let verdict = replica.share.verdict(self.now, &self.limit, amount, replica.trusted_until);
        match verdict {
            LimitVerdict::Pass => {
                let lease = replica.share.take(self.now, amount).expect("who passes has a lease");
                let spent = if self.dice.one_in(2) { amount } else { self.dice.below(amount + 1) };
                let starts_at = replica.share.starts_at();
                replica.running.push(Running { starts_at, lease, promised: amount, spent });
                replica.is_queued |= replica.share.runs_low(self.now);
                let piece = self.pieces.entry(replica.boot).or_default();
                *piece = amount.max(*piece);
            }
            LimitVerdict::Wait => {
                replica.is_queued |= replica.share.wait(self.now, self.limit.kind, amount, replica.trusted_until);
            }
            LimitVerdict::Refuse | LimitVerdict::Away => {}
        }
        verdict
    }

    /// The record first, then the settlement.
    fn finish(&mut self, who: usize) {
        let replica = &mut self.replicas[who];
        if replica.running.is_empty() || !self.is_calm && !self.dice.one_in(self.linger) {
            return;
        }
        let at = self.dice.below(replica.running.len() as u64) as usize;
        let call = replica.running.swap_remove(at);
        self.records += 1;
        replica.journal.push(Record {
            id: self.records,
            starts_at: call.starts_at,
            lease: call.lease,
            spent: call.spent,
        });
        *self.spent.entry(call.starts_at).or_default() += call.spent;
        replica.share.settle(self.now, call.lease, call.promised, call.spent);
    }

    /// The store decides at once; its answer takes its time, or is lost.
    fn ask(&mut self, who: usize) {
        let replica = &mut self.replicas[who];
        if !replica.is_queued || replica.sent.is_some() {
            return;
        }
        replica.is_queued = false;
        let question = replica.share.ask(self.now, self.dice.id(), replica.trusted_until);
        let (boot, taken) = (replica.boot, self.taken());
        let answer = self.store.grant(self.now, boot, &question, &taken);
        let replica = &mut self.replicas[who];
        let answer = answer.filter(|_| self.is_calm || !self.dice.one_in(10));
        replica.sent = Some((question, answer));
    }

    /// What was taken from each lease and the store does not know of yet.
    fn taken(&self) -> BTreeMap<Uuid, u64> {
        let mut taken = BTreeMap::new();
        let journals = self.replicas.iter().map(|replica| &replica.journal).chain(self.dead.iter().map(|dead| &dead.1));
        for record in journals.flatten().filter(|record| !self.store.stored.contains(&record.id)) {
            *taken.entry(record.lease).or_default() += record.spent;
        }
        for call in self.replicas.iter().flat_map(|replica| &replica.running) {
            *taken.entry(call.lease).or_default() += call.promised;
        }
        taken
    }

    fn deliver(&mut self, who: usize) {
        let replica = &mut self.replicas[who];
        match replica.sent.take() {
            Some((question, Some(answer))) => {
                replica.is_queued |= replica.share.answered(self.now, &question, answer);
                let piece = self.pieces.entry(replica.boot).or_default();
                *piece = answer.granted.max(*piece);
            }
            Some((question, None)) => replica.share.unanswered(self.now, &question),
            None => {}
        }
    }

    fn beat(&mut self, who: usize) {
        let replica = &mut self.replicas[who];
        if !self.store.is_away {
            self.store.seen.insert(replica.boot, self.now);
            if self.is_calm || !self.dice.one_in(10) {
                if self.now >= replica.trusted_until {
                    replica.share.lapse(self.now);
                }
                replica.trusted_until = self.now + TTL;
            }
        }
    }

    fn ship(&mut self, who: usize) {
        if self.store.is_away {
            return;
        }
        let replica = &mut self.replicas[who];
        replica.journal.iter().for_each(|record| self.store.settle(record));
        // Stored, but nobody heard of it: the same is sent again.
        if self.is_calm || !self.dice.one_in(5) {
            replica.journal.clear();
            replica.shipped_until = self.now;
        }
    }

    fn sweep(&mut self, who: usize) {
        let replica = &mut self.replicas[who];
        if replica.sent.is_some() {
            return;
        }
        let swept = replica.share.sweep(self.now, replica.shipped_until, replica.trusted_until);
        if self.store.is_away {
            return;
        }
        if let Some((lease, amount)) = swept.shrink
            && let Some(lease) = self.store.leases.get_mut(&lease)
        {
            lease.amount = lease.amount.saturating_sub(amount);
        }
        for lease in &swept.release {
            self.store.leases.remove(lease);
        }
        if self.is_calm || !self.dice.one_in(5) {
            replica.share.released(&swept.release);
        }
    }

    /// What ran is gone; what was written stays.
    fn crash(&mut self, who: usize) {
        let reborn = self.born();
        let gone = std::mem::replace(&mut self.replicas[who], reborn);
        self.dead.push((gone.boot, gone.journal));
    }

    /// Another process adopts a journal, ships it, and then gives back the leases of the dead.
    fn recover(&mut self) {
        if self.store.is_away || self.dead.is_empty() {
            return;
        }
        let (boot, journal) = self.dead.swap_remove(self.dice.below(self.dead.len() as u64) as usize);
        journal.iter().for_each(|record| self.store.settle(record));
        self.store.leases.retain(|_, lease| lease.boot != boot);
    }

    /// A budget begins anew; calls that run still count for the old one.
    fn reset(&mut self) {
        if let LimitKind::Budget { since, .. } = &mut self.limit.kind
            && self.dice.one_in(8)
        {
            *since = self.now;
        }
    }

    fn change_cap(&mut self) {
        self.limit.cap = match self.dice.below(3) {
            0 => self.limit.cap / 2 + 1,
            1 => self.limit.cap.saturating_add(1 + self.dice.below(10)),
            _ => self.highest_cap,
        };
        self.highest_cap = self.highest_cap.max(self.limit.cap);
    }
}

pub(super) fn run(kind: LimitKind) {
    /// More by `make prove-limits-simulation`.
    const RUNS: u64 = 1000;
    let runs = std::env::var("LIMITS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    for seed in 0..runs {
        let mut world = World::new(seed, kind);
        for _ in 0..STEPS {
            world.step();
        }
        world.check(seed);
    }
}

#[test]
fn a_strict_budget_is_never_overspent_whatever_happens_to_replicas_and_store() {
    run(LimitKind::Budget { strict: true, since: 1 });
}

#[test]
fn a_budget_is_overspent_by_at_most_one_lease_per_replica() {
    run(LimitKind::Budget { strict: false, since: 1 });
}

#[test]
fn a_window_admits_no_more_than_its_cap_and_what_vanished_replicas_held() {
    run(LimitKind::Rate(Window::Minute));
}
