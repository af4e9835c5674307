//! Everything comes to rest, and the sums must be right: nothing was used beyond the cap, nothing is counted twice or
//! not at all, and nothing of the limit is lost.

use super::super::counter::{LimitKind, SECOND};
use super::super::share::LimitVerdict;
use super::store::Lease;
use super::{REPLICAS, World};
use std::collections::BTreeMap;

impl World {
    /// Calls end, everything is shipped, the dead are buried, and what lies idle goes back.
    pub(super) fn rest(&mut self) {
        (self.store.is_away, self.is_calm) = (false, true);
        while !self.dead.is_empty() {
            self.recover();
        }
        for round in 0..40 {
            self.now += SECOND;
            for who in 0..REPLICAS {
                self.beat(who);
                self.deliver(who);
                if round < 5 {
                    self.ask(who);
                    self.deliver(who);
                }
                while !self.replicas[who].running.is_empty() {
                    self.finish(who);
                }
                self.ship(who);
                self.sweep(who);
            }
        }
    }

    pub(super) fn check(&mut self, seed: u64) {
        self.rest();
        for (starts_at, spent) in &self.spent {
            let more = match self.limit.kind {
                LimitKind::Budget { strict: true, .. } => 0,
                LimitKind::Budget { strict: false, .. } => self.pieces.values().sum(),
                LimitKind::Rate(_) => self.store.forgiven.values().sum(),
            };
            let most = self.highest_cap + more;
            assert!(*spent <= most, "seed {seed}: {spent} used of {most} since {starts_at}");
        }
        assert!(self.replicas.iter().all(|replica| replica.journal.is_empty()));
        let counted: BTreeMap<_, _> = self.store.values.iter().filter(|(_, value)| **value > 0).collect();
        let spent: BTreeMap<_, _> = self.spent.iter().filter(|(_, spent)| **spent > 0).collect();
        assert_eq!(counted, spent, "seed {seed}: what was counted is not what was used");
        let is_open = |lease: &Lease| !lease.is_rate || lease.starts_at == self.limit.kind.starts_at(self.now);
        let open: Vec<u64> =
            self.store.leases.values().filter(|lease| is_open(lease)).map(|lease| lease.boot).collect();
        assert!(open.is_empty(), "seed {seed}: {open:?} still hold leases, and nobody uses them");
        self.check_that_the_rest_can_be_used(seed);
        self.check_that_a_raised_budget_is_open_to_its_new_cap(seed);
    }

    /// Whatever happened, nothing of the limit is lost for good.
    fn check_that_the_rest_can_be_used(&mut self, seed: u64) {
        let who = self.dice.below(REPLICAS as u64) as usize;
        let mut verdict = LimitVerdict::Wait;
        for _ in 0..10 {
            let value = self.store.values.get(&self.limit.kind.starts_at(self.now)).copied().unwrap_or(0);
            let left = self.limit.cap.saturating_sub(value);
            if left == 0 {
                return;
            }
            self.beat(who);
            verdict = self.request_of(who, left);
            if verdict == LimitVerdict::Pass {
                return;
            }
            self.ask(who);
            self.deliver(who);
            self.now += SECOND / 10;
        }
        panic!("seed {seed}: something is left, and whoever wants it is told {verdict:?}");
    }
}
