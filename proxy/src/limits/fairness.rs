//! Fairness between workspaces: providers may say how many of their calls are under way at once (`concurrency`), and then
//! calls wait for their turn. Who is next is decided by `fair_queue`; this file waits, and makes sure that a place comes back
//! however a call ends.
//!
//! There is one queue for each integration, because that is what workspaces share: an account and what its provider takes
//! of it. It is this process's own: several proxies together send as many times more.

pub mod fair_queue;
mod meters;

pub use fair_queue::QueuedCaller;
pub use meters::{FairnessMeters, Shed};

use crate::net::downstream::Contention;
use fair_queue::{Entered, FairQueue};
use parking_lot::{Mutex, RwLock};
use shared::model::id::{IntegrationId, WorkspaceId};
use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// Every queue that is in use.
pub struct Fairness {
    queues: RwLock<HashMap<IntegrationId, Arc<Queue>>>,
    meters: Arc<FairnessMeters>,
}

struct Queue {
    /// Held for as long as a decision takes; never while anybody waits.
    line: Mutex<FairQueue<oneshot::Sender<QueueVerdict>>>,
    /// Tells those who hold a place that somebody waits for one.
    joined: Notify,
    /// Calls that are about to give their places back to those who wait. Changed under the lock of `line`.
    yielding: AtomicUsize,
    meters: Arc<FairnessMeters>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QueueVerdict {
    Passes,
    Displaced,
}

/// A place among those under way, until it is dropped.
pub struct Permit {
    queue: Arc<Queue>,
    workspace: WorkspaceId,
    /// Whether it counts in `Queue::yielding`.
    yields: Arc<AtomicBool>,
}

/// The place of a call that has just come.
enum QueuePlace {
    UnderWay(Permit),
    InLine(QueueWait),
    None,
}

/// A place in the queue, until it is dropped.
struct QueueWait {
    queue: Arc<Queue>,
    workspace: WorkspaceId,
    number: u64,
    verdict: oneshot::Receiver<QueueVerdict>,
    is_over: bool,
}

impl Fairness {
    pub fn new(meters: Arc<FairnessMeters>) -> Self {
        Self { queues: RwLock::default(), meters }
    }

    /// Waits for a place beside the other calls of an integration, at most so long.
    pub async fn pass(
        &self,
        integration: IntegrationId,
        asker: QueuedCaller,
        longest: Duration,
    ) -> Result<Permit, Shed> {
        let queue = self.queue(integration);
        let entered = match longest.is_zero() {
            true => queue.pass(asker).ok_or(Shed::Late),
            false => match queue.enter(asker) {
                QueuePlace::UnderWay(permit) => Ok(permit),
                QueuePlace::InLine(waiting) => waiting.over(longest).await,
                QueuePlace::None => Err(Shed::Full),
            },
        };
        entered.inspect_err(|shed| self.meters.shed(*shed))
    }

    /// A place, if one is free and nobody waits for it.
    pub fn pass_now(&self, integration: IntegrationId, asker: QueuedCaller) -> Option<Permit> {
        self.queue(integration).pass(asker)
    }

    fn queue(&self, integration: IntegrationId) -> Arc<Queue> {
        if let Some(queue) = self.queues.read().get(&integration) {
            return queue.clone();
        }
        let mut queues = self.queues.write();
        // Nobody holds a place in those, so nothing is forgotten with them.
        queues.retain(|_, queue| Arc::strong_count(queue) > 1);
        let queue = || {
            Arc::new(Queue {
                line: Mutex::default(),
                joined: Notify::new(),
                yielding: AtomicUsize::new(0),
                meters: self.meters.clone(),
            })
        };
        queues.entry(integration).or_insert_with(queue).clone()
    }
}

impl Queue {
    fn pass(self: &Arc<Self>, asker: QueuedCaller) -> Option<Permit> {
        let passes = self.line.lock().pass(asker);
        passes.then(|| self.permit(asker.workspace))
    }

    fn enter(self: &Arc<Self>, asker: QueuedCaller) -> QueuePlace {
        let mut verdict = None;
        let mut line = self.line.lock();
        let (entered, called) = line.enter(asker, || {
            let (sender, receiver) = oneshot::channel();
            verdict = Some(receiver);
            sender
        });
        call(called.passing, QueueVerdict::Passes);
        call(called.displaced, QueueVerdict::Displaced);
        drop(line);
        match (entered, verdict) {
            (Entered::Waits(number), Some(verdict)) => {
                self.meters.waiting.inc();
                self.joined.notify_waiters();
                let (queue, workspace) = (self.clone(), asker.workspace);
                QueuePlace::InLine(QueueWait { queue, workspace, number, verdict, is_over: false })
            }
            (Entered::Passes, _) => QueuePlace::UnderWay(self.permit(asker.workspace)),
            (Entered::Full | Entered::Waits(_), _) => QueuePlace::None,
        }
    }

    /// Of a place that the queue has given away already.
    fn permit(self: &Arc<Self>, workspace: WorkspaceId) -> Permit {
        self.meters.in_use.inc();
        Permit { queue: self.clone(), workspace, yields: Arc::default() }
    }
}

impl Permit {
    /// Resolves when somebody waits for a place that nobody else is about to give back.
    pub fn contention(&self) -> Contention {
        let (queue, yields) = (self.queue.clone(), self.yields.clone());
        Arc::new(move || Box::pin(contended(queue.clone(), yields.clone())))
    }
}

async fn contended(queue: Arc<Queue>, yields: Arc<AtomicBool>) {
    loop {
        let mut joined = pin!(queue.joined.notified());
        // Before the look, or whoever joins meanwhile would be missed.
        joined.as_mut().enable();
        {
            let line = queue.line.lock();
            if yields.load(Relaxed) {
                return;
            }
            if line.waiting() > queue.yielding.load(Relaxed) {
                yields.store(true, Relaxed);
                queue.yielding.fetch_add(1, Relaxed);
                return;
            }
        }
        joined.await;
    }
}

/// A call that is woken is still there to notice: it leaves the queue first.
fn call(waiters: impl IntoIterator<Item = oneshot::Sender<QueueVerdict>>, verdict: QueueVerdict) {
    for waiter in waiters {
        let _ = waiter.send(verdict);
    }
}

impl QueueWait {
    async fn over(mut self, longest: Duration) -> Result<Permit, Shed> {
        let verdict = match tokio::time::timeout(longest, &mut self.verdict).await {
            Ok(verdict) => verdict.ok(),
            // It may have been called at this very moment.
            Err(_) => self.give_up(),
        };
        self.is_over = true;
        match verdict {
            Some(QueueVerdict::Passes) => Ok(self.queue.permit(self.workspace)),
            Some(QueueVerdict::Displaced) => Err(Shed::Displaced),
            None => Err(Shed::Late),
        }
    }

    /// Leaves the queue, unless it was woken already.
    fn give_up(&mut self) -> Option<QueueVerdict> {
        let mut line = self.queue.line.lock();
        match line.give_up(self.workspace, self.number) {
            Some(passing) => {
                call(passing, QueueVerdict::Passes);
                None
            }
            None => self.verdict.try_recv().ok(),
        }
    }
}

impl Drop for QueueWait {
    fn drop(&mut self) {
        self.queue.meters.waiting.dec();
        if !self.is_over && self.give_up() == Some(QueueVerdict::Passes) {
            drop(self.queue.permit(self.workspace));
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.queue.meters.in_use.dec();
        let mut line = self.queue.line.lock();
        if self.yields.load(Relaxed) {
            self.queue.yielding.fetch_sub(1, Relaxed);
        }
        call(line.leave(self.workspace), QueueVerdict::Passes);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.workspace)
    }
}

#[cfg(test)]
mod tests;
