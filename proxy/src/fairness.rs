//! Fairness between workspaces: providers may say how many of their calls are under way at once (`concurrency`), and then
//! calls wait for their turn. Who is next is decided by `line`; this file waits, and makes sure that a place comes back
//! however a call ends.
//!
//! There is one line for each integration, because that is what workspaces share: an account and what its provider takes
//! of it. It is this process's own: several proxies together send as many times more.

pub mod line;
mod meters;

pub use line::Asker;
pub use meters::{Meters, Shed};

use line::{Entered, Line};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Every line that somebody uses.
pub struct Fairness {
    queues: RwLock<HashMap<Uuid, Arc<Queue>>>,
    meters: Arc<Meters>,
}

struct Queue {
    /// Held for as long as a decision takes; never while anybody waits.
    line: Mutex<Line<oneshot::Sender<Verdict>>>,
    meters: Arc<Meters>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passes,
    Displaced,
}

/// A place among those under way, until it is dropped.
pub struct Permit {
    queue: Arc<Queue>,
    workspace: Uuid,
}

/// Where somebody stands who came.
enum Place {
    UnderWay(Permit),
    InLine(Waiting),
    None,
}

/// A place in the line, until it is dropped.
struct Waiting {
    queue: Arc<Queue>,
    workspace: Uuid,
    number: u64,
    verdict: oneshot::Receiver<Verdict>,
    is_over: bool,
}

impl Fairness {
    pub fn new(meters: Arc<Meters>) -> Self {
        Self { queues: RwLock::default(), meters }
    }

    /// Waits for a place beside the other calls of an integration, at most so long.
    pub async fn pass(&self, integration: Uuid, asker: Asker, longest: Duration) -> Result<Permit, Shed> {
        let queue = self.queue(integration);
        let entered = match longest.is_zero() {
            true => queue.pass(asker).ok_or(Shed::Late),
            false => match queue.enter(asker) {
                Place::UnderWay(permit) => Ok(permit),
                Place::InLine(waiting) => waiting.over(longest).await,
                Place::None => Err(Shed::Full),
            },
        };
        entered.inspect_err(|shed| self.meters.shed(*shed))
    }

    /// A place, if one is free and nobody waits for it.
    pub fn pass_now(&self, integration: Uuid, asker: Asker) -> Option<Permit> {
        self.queue(integration).pass(asker)
    }

    fn queue(&self, integration: Uuid) -> Arc<Queue> {
        if let Some(queue) = self.queues.read().get(&integration) {
            return queue.clone();
        }
        let mut queues = self.queues.write();
        // Nobody holds a place in those, so nothing is forgotten with them.
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        let queue = || Arc::new(Queue { line: Mutex::default(), meters: self.meters.clone() });
        queues.entry(integration).or_insert_with(queue).clone()
    }
}

impl Queue {
    fn pass(self: &Arc<Self>, asker: Asker) -> Option<Permit> {
        let passes = self.line.lock().pass(asker);
        passes.then(|| self.permit(asker.workspace))
    }

    fn enter(self: &Arc<Self>, asker: Asker) -> Place {
        let mut verdict = None;
        let mut line = self.line.lock();
        let (entered, called) = line.enter(asker, || {
            let (sender, receiver) = oneshot::channel();
            verdict = Some(receiver);
            sender
        });
        call(called.passing, Verdict::Passes);
        call(called.displaced, Verdict::Displaced);
        drop(line);
        match (entered, verdict) {
            (Entered::Waits(number), Some(verdict)) => {
                self.meters.waiting.inc();
                let (queue, workspace) = (self.clone(), asker.workspace);
                Place::InLine(Waiting { queue, workspace, number, verdict, is_over: false })
            }
            (Entered::Passes, _) => Place::UnderWay(self.permit(asker.workspace)),
            (Entered::Full | Entered::Waits(_), _) => Place::None,
        }
    }

    /// Of a place that the line has given away already.
    fn permit(self: &Arc<Self>, workspace: Uuid) -> Permit {
        self.meters.in_use.inc();
        Permit { queue: self.clone(), workspace }
    }
}

/// Those who are called are there to hear it: they leave the line first.
fn call(waiters: impl IntoIterator<Item = oneshot::Sender<Verdict>>, verdict: Verdict) {
    for waiter in waiters {
        let _ = waiter.send(verdict);
    }
}

impl Waiting {
    async fn over(mut self, longest: Duration) -> Result<Permit, Shed> {
        let verdict = match tokio::time::timeout(longest, &mut self.verdict).await {
            Ok(verdict) => verdict.ok(),
            // It may have been called at this very moment.
            Err(_) => self.give_up(),
        };
        self.is_over = true;
        match verdict {
            Some(Verdict::Passes) => Ok(self.queue.permit(self.workspace)),
            Some(Verdict::Displaced) => Err(Shed::Displaced),
            None => Err(Shed::Late),
        }
    }

    /// Leaves the line, unless it was called already.
    fn give_up(&mut self) -> Option<Verdict> {
        let mut line = self.queue.line.lock();
        match line.give_up(self.workspace, self.number) {
            Some(passing) => {
                call(passing, Verdict::Passes);
                None
            }
            None => self.verdict.try_recv().ok(),
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.queue.meters.waiting.dec();
        if !self.is_over && self.give_up() == Some(Verdict::Passes) {
            drop(self.queue.permit(self.workspace));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.meters.in_use.dec();
        let mut line = self.queue.line.lock();
        call(line.leave(self.workspace), Verdict::Passes);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.workspace)
    }
}

#[cfg(test)]
mod tests;
