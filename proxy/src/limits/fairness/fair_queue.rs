//! Whose turn is it? The calls of one integration that are under way, and the queue of those that wait, one lane for
//! each workspace. Pure: no clock, no locks; a waiting call is a `W` that the caller knows how to wake.
//!
//! A free place goes first to workspaces that hold less than the whole part of their share of all places, so that long
//! streams of one do not keep another out. What is left over goes by start-time fair queueing: each workspace has a
//! virtual time that a call moves on by 1/priority, and the earliest is served. Both are weighted by priority.

use shared::model::id::WorkspaceId;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

/// How many may wait for each place there is, and how many in all.
const WAITING_PER_PLACE: usize = 10;
const MAX_WAITING: usize = 10_000;

/// What a call of priority 1 costs in virtual time. All priorities up to 100 differ in what theirs cost.
const COST: u64 = 1 << 20;

/// A call that wants a place.
#[derive(Debug, Clone, Copy)]
pub struct QueuedCaller {
    pub workspace: WorkspaceId,
    /// The workspace's priority; at least 1.
    pub weight: u8,
    /// How many calls its provider allows at once.
    pub most: u32,
}

impl QueuedCaller {
    /// For a row of a batch: all batches have one lane together, of the least priority there is, so that whoever waits for an
    /// answer goes first.
    pub fn batch(most: u32) -> Self {
        Self { workspace: WorkspaceId::from(uuid::Uuid::nil()), weight: 1, most }
    }
}

/// What became of a call that came.
#[derive(Debug, PartialEq, Eq)]
pub enum Entered {
    Passes,
    /// It waits, under a number by which it may leave the queue.
    Waits(u64),
    /// The queue is full, and nobody in it has to make room.
    Full,
}

/// Calls whose wait is over.
#[derive(Debug)]
pub struct Dequeued<W> {
    /// They count as under way from now on.
    pub passing: Vec<W>,
    /// The queue was full, and another took its place.
    pub displaced: Option<W>,
}

pub struct FairQueue<W> {
    lanes: HashMap<WorkspaceId, WorkspaceLane<W>>,
    under_way: usize,
    waiting: usize,
    /// The virtual time of the last call that was served by it.
    clock: u64,
    last_number: u64,
}

struct WorkspaceLane<W> {
    weight: u64,
    most: usize,
    under_way: usize,
    /// When its next call begins, in virtual time.
    next: u64,
    waiting: VecDeque<Waiter<W>>,
}

struct Waiter<W> {
    number: u64,
    most: usize,
    who: W,
}

impl<W> Default for FairQueue<W> {
    fn default() -> Self {
        Self { lanes: HashMap::new(), under_way: 0, waiting: 0, clock: 0, last_number: 0 }
    }
}

impl<W> FairQueue<W> {
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Passes at once, or not at all.
    pub fn pass(&mut self, asker: QueuedCaller) -> bool {
        let clock = self.clock;
        let lane = self.lane(asker);
        let is_allowed = lane.under_way < asker.most as usize;
        if !is_allowed || self.waiting > 0 || self.under_way >= self.places() {
            self.forget(asker.workspace);
            return false;
        }
        let lane = self.lane(asker);
        lane.next = lane.next.max(clock);
        let begins = lane.next;
        lane.start();
        self.clock = clock.max(begins);
        self.under_way += 1;
        true
    }

    /// Joins the queue, whoever else is in it. `who` is made only for those that do not pass at once.
    pub fn enter(&mut self, asker: QueuedCaller, who: impl FnOnce() -> W) -> (Entered, Dequeued<W>) {
        let mut called = Dequeued { passing: Vec::new(), displaced: None };
        if self.pass(asker) {
            return (Entered::Passes, called);
        }
        self.last_number += 1;
        let (number, clock) = (self.last_number, self.clock);
        let lane = self.lane(asker);
        if !lane.is_waiting() {
            lane.next = lane.next.max(clock);
        }
        lane.waiting.push_back(Waiter { number, most: asker.most as usize, who: who() });
        self.waiting += 1;
        called.passing = self.advance();
        if self.waiting <= self.room() {
            return (Entered::Waits(number), called);
        }
        let victim = self.fullest(asker.workspace);
        let youngest = self.lanes.get_mut(&victim).and_then(|lane| lane.waiting.pop_back());
        self.waiting -= usize::from(youngest.is_some());
        self.forget(victim);
        match youngest {
            Some(youngest) if youngest.number == number => (Entered::Full, called),
            youngest => {
                called.displaced = youngest.map(|waiter| waiter.who);
                (Entered::Waits(number), called)
            }
        }
    }

    /// A call of this workspace is over. Returns those whose turn it is now.
    pub fn leave(&mut self, workspace: WorkspaceId) -> Vec<W> {
        if let Some(lane) = self.lanes.get_mut(&workspace)
            && lane.under_way > 0
        {
            lane.under_way -= 1;
            self.under_way -= 1;
        }
        self.forget(workspace);
        self.advance()
    }

    /// A call gives up waiting. None when it does not wait any more; else those whose turn it is now.
    pub fn give_up(&mut self, workspace: WorkspaceId, number: u64) -> Option<Vec<W>> {
        let lane = self.lanes.get_mut(&workspace)?;
        let place = lane.waiting.iter().position(|waiter| waiter.number == number)?;
        lane.waiting.remove(place);
        self.waiting -= 1;
        self.forget(workspace);
        // Whoever stood behind it may need fewer places.
        Some(self.advance())
    }

    fn lane(&mut self, asker: QueuedCaller) -> &mut WorkspaceLane<W> {
        let lane = self.lanes.entry(asker.workspace).or_insert_with(|| WorkspaceLane {
            weight: 1,
            most: 0,
            under_way: 0,
            next: 0,
            waiting: VecDeque::new(),
        });
        // Either may have been changed since the last call.
        (lane.weight, lane.most) = (u64::from(asker.weight.max(1)), asker.most as usize);
        lane
    }

    /// All places: the most that any of those who use them now is allowed.
    fn places(&self) -> usize {
        self.lanes.values().map(|lane| lane.most).max().unwrap_or(0)
    }

    fn room(&self) -> usize {
        self.places().saturating_mul(WAITING_PER_PLACE).min(MAX_WAITING)
    }

    /// Gives free places away until there is none, or nobody who may have it.
    fn advance(&mut self) -> Vec<W> {
        let mut passing = Vec::new();
        while self.waiting > 0 && self.under_way < self.places() {
            let Some(workspace) = self.next() else { break };
            let Some(lane) = self.lanes.get_mut(&workspace) else { break };
            let Some(waiter) = lane.waiting.pop_front() else { break };
            let earliest = self.lanes.values().filter(|lane| lane.is_waiting()).map(|lane| lane.next).min();
            if let Some(lane) = self.lanes.get_mut(&workspace) {
                self.clock = self.clock.max(earliest.map_or(lane.next, |earliest| earliest.min(lane.next)));
                lane.start();
            }
            self.waiting -= 1;
            self.under_way += 1;
            passing.push(waiter.who);
        }
        passing
    }

    /// Costs the number of workspaces that are here.
    fn next(&self) -> Option<WorkspaceId> {
        let places = self.places() as u64;
        let weights: u64 = self.lanes.values().filter(|lane| lane.is_here()).map(|lane| lane.weight).sum();
        let can_go = self.lanes.iter().filter(|(_, lane)| lane.can_go());
        let first = can_go.min_by_key(|(workspace, lane)| {
            let share = places * lane.weight / weights.max(1);
            (lane.under_way as u64 >= share, lane.next, Reverse(lane.weight), **workspace)
        });
        first.map(|(workspace, _)| *workspace)
    }

    /// Which workspace has the most waiting for its priority. Among equals, the one that matters least; then the one that
    /// came last.
    fn fullest(&self, newcomer: WorkspaceId) -> WorkspaceId {
        // Multiplied, so that parts of small numbers can be compared.
        let load = |lane: &WorkspaceLane<W>| lane.waiting.len() as u64 * COST / lane.weight;
        let waiting = self.lanes.iter().filter(|(_, lane)| lane.is_waiting());
        let fullest = waiting
            .max_by_key(|(workspace, lane)| (load(lane), u64::MAX - lane.weight, **workspace == newcomer, **workspace));
        fullest.map_or(newcomer, |(workspace, _)| *workspace)
    }

    /// Drops what need not be remembered: a workspace that has nothing here and owes nothing, or everything once
    /// nobody is here at all.
    fn forget(&mut self, workspace: WorkspaceId) {
        if self.under_way == 0 && self.waiting == 0 {
            self.lanes.clear();
            return;
        }
        let clock = self.clock;
        if self.lanes.get(&workspace).is_some_and(|lane| !lane.is_here()) {
            self.lanes.retain(|_, lane| lane.is_here() || lane.next > clock);
            // It keeps its debt, but says nothing about places any more.
            if let Some(lane) = self.lanes.get_mut(&workspace) {
                lane.most = 0;
            }
        }
    }
}

impl<W> WorkspaceLane<W> {
    fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn is_here(&self) -> bool {
        self.under_way > 0 || self.is_waiting()
    }

    fn can_go(&self) -> bool {
        self.waiting.front().is_some_and(|waiter| self.under_way < waiter.most)
    }

    fn start(&mut self) {
        self.under_way += 1;
        self.next += COST / self.weight;
    }
}

#[cfg(test)]
mod tests;
