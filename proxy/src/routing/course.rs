//! The way of one request through its plan: down to a first target, and on from there as targets fail.

use super::balance;
use super::query::{Facts, holds};
use super::retry::Retries;
use crate::plan::{Branch, Leaf, Node, Plan};
use crate::refusal::Refusal;
use std::time::{Duration, Instant};

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The provider's, or the one we would answer with.
    pub status: u16,
    /// The provider was not reached, or what it sent is no answer.
    pub is_network: bool,
    /// Our own fault: another target would meet it too.
    pub is_fatal: bool,
    pub retry_after: Option<Duration>,
    /// What is left of the time for the whole request.
    pub left: Duration,
}

impl Default for Outcome {
    fn default() -> Self {
        Self { status: 200, is_network: false, is_fatal: false, retry_after: None, left: Duration::MAX }
    }
}

/// What is to be done after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Pass the last answer on, whatever it is.
    Deliver,
    /// The same target again after this wait.
    Again(Duration),
    /// Another target at once.
    Elsewhere,
}

/// What decisions depend on besides the plan.
pub struct Moment<'m> {
    pub facts: Facts<'m>,
    /// Whose keys these are: sticky choices of different workspaces have nothing to do with each other.
    pub scope: &'m [u8],
    pub now: Instant,
    pub unix_seconds: u64,
    /// A number in 0..1, a new one at each call.
    pub chance: &'m mut dyn FnMut() -> f64,
}

pub struct Course<'p> {
    plan: &'p Plan,
    at: usize,
    /// The fallbacks above, outermost first.
    fallbacks: Vec<Fallback<'p>>,
    retries: Retries,
}

struct Fallback<'p> {
    statuses: Option<&'p [u16]>,
    /// The targets still to be tried, the next one last.
    left: Vec<usize>,
}

impl<'p> Course<'p> {
    pub fn begin(plan: &'p Plan, moment: &mut Moment<'_>) -> Result<Self, Refusal> {
        let mut course = Self { plan, at: 0, fallbacks: Vec::new(), retries: Retries::default() };
        course.descend(0, moment)?;
        Ok(course)
    }

    pub fn node(&self) -> &'p Node {
        self.plan.node(self.at)
    }

    pub fn leaf(&self) -> &'p Leaf {
        self.plan.leaf(self.at)
    }

    /// Retries of the present target: for the header.
    pub fn retry_count(&self) -> i8 {
        self.retries.count()
    }

    pub fn after(&mut self, outcome: &Outcome, moment: &mut Moment<'_>) -> Result<Next, Refusal> {
        let leaf = self.leaf();
        if let Some(breaker) = &leaf.breaker {
            breaker.record(outcome.status, moment.now);
        }
        let wait = leaf
            .retry
            .as_ref()
            .and_then(|rules| self.retries.next(rules, &leaf.budget, outcome, moment.now, moment.chance));
        if let Some(wait) = wait {
            return Ok(Next::Again(wait));
        }
        if outcome.is_fatal || outcome.left.is_zero() {
            return Ok(Next::Deliver);
        }
        while let Some(fallback) = self.fallbacks.last_mut() {
            let goes_on = match fallback.statuses {
                Some(statuses) => statuses.contains(&outcome.status),
                None => !(200..300).contains(&outcome.status),
            };
            if let Some(next) = goes_on.then(|| fallback.left.pop()).flatten() {
                self.descend(next, moment)?;
                return Ok(Next::Elsewhere);
            }
            self.fallbacks.pop();
        }
        Ok(Next::Deliver)
    }

    fn descend(&mut self, from: usize, moment: &mut Moment<'_>) -> Result<(), Refusal> {
        let mut at = from;
        loop {
            let node = self.plan.node(at);
            at = match &node.branch {
                Branch::Leaf(leaf) => {
                    self.at = at;
                    self.retries = Retries::default();
                    leaf.budget.earn();
                    return Ok(());
                }
                Branch::Single(child) => *child,
                Branch::Fallback { statuses, targets } => {
                    let mut left = self.healthy(targets, moment.now);
                    left.reverse();
                    let first = left.pop().ok_or_else(|| router_error("a fallback has no target"))?;
                    self.fallbacks.push(Fallback { statuses: statuses.as_deref(), left });
                    first
                }
                Branch::Balance { targets, sticky } => {
                    let targets = self.healthy(targets, moment.now);
                    let weights: Vec<f64> = targets.iter().map(|target| self.plan.node(*target).weight).collect();
                    let key = sticky.as_ref().and_then(|sticky| {
                        balance::sticky_key(sticky, moment.scope, &node.path, &moment.facts, moment.unix_seconds)
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
    fn healthy(&self, targets: &[usize], now: Instant) -> Vec<usize> {
        let closed: Vec<usize> = targets.iter().copied().filter(|target| !self.plan.is_open(*target, now)).collect();
        if closed.is_empty() { targets.to_vec() } else { closed }
    }
}

fn router_error(why: &'static str) -> Refusal {
    Refusal::router_error(why)
}

#[cfg(test)]
mod tests;
