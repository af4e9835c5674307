//! A model of the store: counters, leases and who was heard of, as `postgres` keeps them and `journal` adds to them.

use super::super::counter::Micros;
use super::super::grant::{StoreStanding, grant};
use super::super::share::{LeaseAnswer, LeaseQuestion};
use super::{REPLICAS, TTL};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

#[derive(Clone)]
pub struct Lease {
    pub boot: u64,
    pub starts_at: Micros,
    pub is_rate: bool,
    pub amount: u64,
}

/// As the tables are.
#[derive(Default)]
pub struct Store {
    pub is_away: bool,
    pub values: BTreeMap<Micros, u64>,
    pub leases: BTreeMap<Uuid, Lease>,
    pub seen: BTreeMap<u64, Micros>,
    pub stored: BTreeSet<u64>,
    /// What had been taken from leases that were not counted because nobody had heard of their holder.
    pub forgiven: BTreeMap<Uuid, u64>,
}

/// One line of a journal.
#[derive(Clone, Copy)]
pub struct Record {
    pub id: u64,
    pub starts_at: Micros,
    pub lease: Uuid,
    pub spent: u64,
}

impl Store {
    pub fn grant(
        &mut self,
        now: Micros,
        boot: u64,
        question: &LeaseQuestion,
        taken: &BTreeMap<Uuid, u64>,
    ) -> Option<LeaseAnswer> {
        if self.is_away {
            return None;
        }
        let (mut promised, mut others) = (0, false);
        for (id, lease) in self.leases.iter().filter(|(_, lease)| lease.starts_at == question.starts_at) {
            let is_known = self.seen.get(&lease.boot).is_some_and(|seen| *seen > now - TTL);
            if lease.is_rate && !is_known {
                let forgiven = self.forgiven.entry(*id).or_default();
                *forgiven = taken.get(id).copied().unwrap_or(0).max(*forgiven);
                continue;
            }
            promised += lease.amount;
            others |= *id != question.lease && lease.amount > 0;
        }
        let value = self.values.get(&question.starts_at).copied().unwrap_or(0);
        let (granted, left) = grant(StoreStanding { value, promised }, question.wish, REPLICAS as u64);
        if granted > 0 {
            let fresh = Lease { boot, starts_at: question.starts_at, is_rate: question.ends_at.is_some(), amount: 0 };
            self.leases.entry(question.lease).or_insert(fresh).amount += granted;
        }
        Some(LeaseAnswer { granted, left, others })
    }

    pub fn settle(&mut self, record: &Record) {
        if self.stored.insert(record.id) {
            *self.values.entry(record.starts_at).or_default() += record.spent;
            if let Some(lease) = self.leases.get_mut(&record.lease) {
                lease.amount = lease.amount.saturating_sub(record.spent);
            }
        }
    }
}
