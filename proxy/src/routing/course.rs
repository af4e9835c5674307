//! The way of one request through its plan: down to a first target, and on from there as targets fail.

use super::balance;
use super::clock::Clock;
use super::query::{RequestFacts, holds};
use super::retry::Retries;
use crate::request::refusal::Refusal;
use crate::routing::plan::{Branch, Leaf, Node, Plan};
use shared::config::Retry;
use std::time::Duration;

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct AttemptResult {
    /// The provider's, or the one we would answer with.
    pub status: u16,
    pub speaker: Speaker,
    pub retry_after: Option<Duration>,
    /// What is left of the time for the whole request.
    pub left: Duration,
}

/// Who an outcome comes from, which decides what may follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The provider answered, or let its time pass: the status decides.
    Provider,
    /// The provider was not reached, or what it sent is no answer: worth another try whatever the status.
    Network,
    /// We refused this target before it was asked, and would again; another target may do.
    Gateway,
    /// Our own fault: another target would meet it too.
    Fault,
}

impl Default for AttemptResult {
    fn default() -> Self {
        Self { status: 200, speaker: Speaker::Provider, retry_after: None, left: Duration::MAX }
    }
}

/// What is to be done after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum AfterAttempt {
    /// Pass the last answer on, whatever it is.
    Deliver,
    /// The same target again after this wait.
    Again(Duration),
    /// Another target at once.
    Elsewhere,
}

/// What decisions depend on besides the plan.
pub struct RoutingInputs<'m> {
    pub facts: RequestFacts<'m>,
    /// Whose keys these are: sticky choices of different workspaces have nothing to do with each other.
    pub scope: &'m [u8],
    pub clock: &'m dyn Clock,
    /// A number in 0..1, a new one at each call.
    pub chance: &'m mut dyn FnMut() -> f64,
}

pub struct Course<'p> {
    plan: &'p Plan,
    way: Way,
    /// For targets whose config says nothing about retries.
    retry: Option<&'p Retry>,
}

/// Where a request stands in its plan. Without the plan, so that it can be kept beside it between attempts.
#[derive(Debug, Default)]
pub struct Way {
    at: usize,
    /// The fallbacks above, outermost first.
    fallbacks: Vec<Fallback>,
    retries: Retries,
    /// Retries of the target that was left for this one.
    retries_before: i8,
}

#[derive(Debug)]
struct Fallback {
    /// The node in the plan.
    node: usize,
    /// The targets still to be tried, the next one last.
    left: Vec<usize>,
}

impl Way {
    /// The target it stands on, as an index into the plan.
    pub fn at(&self) -> usize {
        self.at
    }
}

impl<'p> Course<'p> {
    pub fn begin(plan: &'p Plan, moment: &mut RoutingInputs<'_>) -> Result<Self, Refusal> {
        Self::begin_retrying(plan, None, moment)
    }

    /// With what the request wishes where the plan says nothing.
    pub fn begin_retrying(
        plan: &'p Plan,
        retry: Option<&'p Retry>,
        moment: &mut RoutingInputs<'_>,
    ) -> Result<Self, Refusal> {
        let mut course = Self { plan, way: Way::default(), retry };
        course.descend(0, moment)?;
        Ok(course)
    }

    /// Goes on where a course through the same plan was left.
    pub fn resume(plan: &'p Plan, way: Way) -> Self {
        Self { plan, way, retry: None }
    }

    pub fn pause(self) -> Way {
        self.way
    }

    pub fn node(&self) -> &'p Node {
        self.plan.node(self.way.at)
    }

    pub fn leaf(&self) -> &'p Leaf {
        self.plan.leaf(self.way.at)
    }

    /// Retries of the present target: for the header.
    pub fn retry_count(&self) -> i8 {
        self.way.retries.count()
    }

    /// Retries of the target that was left for the present one: for its log.
    pub fn retries_before(&self) -> i8 {
        self.way.retries_before
    }

    pub fn after(&mut self, outcome: &AttemptResult, moment: &mut RoutingInputs<'_>) -> Result<AfterAttempt, Refusal> {
        let leaf = self.leaf();
        let rules = leaf.retry.as_ref().or(self.retry);
        let wait = rules
            .and_then(|rules| self.way.retries.next(rules, &leaf.budget, outcome, moment.clock.now(), moment.chance));
        match wait {
            Some(wait) => Ok(AfterAttempt::Again(wait)),
            None => self.leave(outcome, moment),
        }
    }

    /// What follows when the present target is not tried again. However often it was tried, that is one outcome.
    pub fn leave(&mut self, outcome: &AttemptResult, moment: &mut RoutingInputs<'_>) -> Result<AfterAttempt, Refusal> {
        if let (Some(breaker), Speaker::Provider | Speaker::Network) = (&self.leaf().breaker, outcome.speaker) {
            breaker.record(outcome.status, moment.clock.now());
        }
        if outcome.speaker == Speaker::Fault || outcome.left.is_zero() {
            return Ok(AfterAttempt::Deliver);
        }
        while let Some(fallback) = self.way.fallbacks.last_mut() {
            let statuses = match &self.plan.node(fallback.node).branch {
                Branch::Fallback { statuses, .. } => statuses.as_deref(),
                _ => None,
            };
            let goes_on = match statuses {
                Some(statuses) => statuses.contains(&outcome.status),
                None => !(200..300).contains(&outcome.status),
            };
            if let Some(next) = goes_on.then(|| fallback.left.pop()).flatten() {
                self.descend(next, moment)?;
                return Ok(AfterAttempt::Elsewhere);
            }
            self.way.fallbacks.pop();
        }
        Ok(AfterAttempt::Deliver)
    }

    fn descend(&mut self, from: usize, moment: &mut RoutingInputs<'_>) -> Result<(), Refusal> {
        let mut at = from;
        loop {
            let node = self.plan.node(at);
            at = match &node.branch {
                Branch::Leaf(leaf) => {
                    self.way.at = at;
                    self.way.retries_before = std::mem::take(&mut self.way.retries).count();
                    if leaf.retry.is_some() || self.retry.is_some() || leaf.hedge.is_some() {
                        leaf.budget.earn();
                    }
                    return Ok(());
                }
                Branch::Single(targets) => {
                    let healthy = match self.plan.has_breakers().then(|| moment.clock.now()) {
                        Some(now) => targets.iter().find(|target| !self.plan.is_open(**target, now)),
                        None => None,
                    };
                    *healthy.or(targets.first()).ok_or_else(|| router_error("it has no target"))?
                }
                Branch::Fallback { targets, .. } => {
                    let mut left = self.healthy(targets.clone(), moment.clock);
                    left.reverse();
                    let first = left.pop().ok_or_else(|| router_error("a fallback has no target"))?;
                    self.way.fallbacks.push(Fallback { node: at, left });
                    first
                }
                Branch::Balance { targets, sticky } => {
                    // What has no weight is drained: not even open circuits elsewhere send traffic there.
                    let weighty = targets.iter().copied().filter(|target| self.plan.node(*target).weight > 0.0);
                    let targets = self.healthy(weighty.collect(), moment.clock);
                    let weights: Vec<f64> = targets.iter().map(|target| self.plan.node(*target).weight).collect();
                    let key = sticky.as_ref().and_then(|sticky| {
                        balance::sticky_key(
                            sticky,
                            moment.scope,
                            &node.path,
                            &moment.facts,
                            moment.clock.unix_seconds(),
                        )
                    });
                    let names = targets.iter().map(|target| &*self.plan.node(*target).path);
                    let chosen = match key {
                        Some(key) => balance::by_key(&weights, names, &key),
                        None => balance::by_chance(&weights, (moment.chance)()),
                    };
                    targets[chosen.ok_or_else(|| router_error("no target has any weight"))?]
                }
                Branch::Conditional { conditions, default } => {
                    let met = conditions.iter().find(|(query, _)| holds(query, &moment.facts));
                    met.map(|(_, target)| *target)
                        .or(*default)
                        .ok_or_else(|| router_error("no condition holds and there is no default"))?
                }
            };
        }
    }

    /// The targets whose circuit is closed; all of them when none is.
    fn healthy(&self, targets: Vec<usize>, clock: &dyn Clock) -> Vec<usize> {
        if !self.plan.has_breakers() {
            return targets;
        }
        let now = clock.now();
        let closed: Vec<usize> = targets.iter().copied().filter(|target| !self.plan.is_open(*target, now)).collect();
        if closed.is_empty() { targets } else { closed }
    }
}

fn router_error(why: &'static str) -> Refusal {
    Refusal::router_error(why)
}

#[cfg(test)]
mod tests;
