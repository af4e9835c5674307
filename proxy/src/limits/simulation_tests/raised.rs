//! A budget that is used up and then raised: whoever goes on asking gets all of it, soon. What the last calls used beyond
//! their lease is charged once, by the store, and not a second time by the replica that admitted them.

use super::super::counter::{LimitKind, SECOND};
use super::super::share::LimitVerdict;
use super::World;

/// Every tenth of a second somebody asks, and everything that is done now and then is done.
const TICK: i64 = SECOND / 10;
/// Sooner than a lease is idle: nobody must stop asking in order to be heard.
const SOON: u64 = 20;
const PATIENCE: u64 = 2000;

impl World {
    pub(super) fn check_that_a_raised_budget_is_open_to_its_new_cap(&mut self, seed: u64) {
        if !matches!(self.limit.kind, LimitKind::Budget { .. }) {
            return;
        }
        self.rest();
        let who = self.dice.below(super::REPLICAS as u64) as usize;
        // What is not there can be asked of the default mode alone.
        let beyond = if self.limit.kind.is_exact() { 0 } else { 50 };
        // So many ticks, about, until the store is told what was used.
        let lag = [1, 30][self.dice.below(2) as usize];
        for _ in 0..PATIENCE {
            self.use_up(who, beyond);
            if self.used() >= self.limit.cap {
                break;
            }
            self.tick(who, lag);
        }
        while !self.replicas[who].running.is_empty() {
            self.finish(who);
        }
        assert!(self.used() >= self.limit.cap, "seed {seed}: {} used of {}", self.used(), self.limit.cap);
        for _ in 0..self.dice.below(2 * SOON) {
            self.tick(who, lag);
            self.ask_for(who, 1);
            let verdict = self.request_of(who, 1);
            assert_ne!(verdict, LimitVerdict::Pass, "seed {seed}: {} used of {}", self.used(), self.limit.cap);
        }
        self.limit.cap = self.used() + 1 + self.dice.below(100);
        for _ in 0..SOON {
            while self.used() < self.limit.cap && self.ask_for(who, 1) {}
            self.tick(who, 1);
        }
        assert_eq!(self.used(), self.limit.cap, "seed {seed}: used after it was raised");
    }

    /// Until it is refused.
    fn use_up(&mut self, who: usize, beyond: u64) {
        while self.used() < self.limit.cap {
            let most = self.limit.cap - self.used() + beyond;
            let amount = 1 + self.dice.below(most);
            if !self.ask_for(who, amount.min(self.limit.cap)) {
                return;
            }
        }
    }

    /// False when it is refused.
    fn ask_for(&mut self, who: usize, amount: u64) -> bool {
        let verdict = self.request_of(who, amount);
        self.finish(who);
        self.ask(who);
        self.deliver(who);
        matches!(verdict, LimitVerdict::Pass | LimitVerdict::Wait)
    }

    fn tick(&mut self, who: usize, lag: u64) {
        self.now += TICK;
        self.beat(who);
        while !self.replicas[who].running.is_empty() {
            self.finish(who);
        }
        if self.dice.one_in(lag) {
            self.ship(who);
        }
        self.sweep(who);
    }

    /// Of the budget as it is now, by all calls that are over.
    fn used(&self) -> u64 {
        self.spent.get(&self.limit.kind.starts_at(self.now)).copied().unwrap_or(0)
    }
}
