//! Callers that wait for their share. What is given back goes to the organisation that holds least, of it to the workspace
//! that holds least, and of that to whoever came first. An organisation that holds nothing is not passed over: others wait
//! until there is room for it.

use super::{Holding, Tenant, TenantShare};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
use tokio::sync::oneshot;
use uuid::Uuid;

#[derive(Debug, Default)]
pub(super) struct WaitQueue {
    waiting: Mutex<Waiting>,
    /// How many wait or are about to, so that nothing is locked while nobody does.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    /// By organisation and workspace; none of them is empty.
    organisations: BTreeMap<Uuid, BTreeMap<Uuid, VecDeque<Waiter>>>,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiter {
    arrival: u64,
    amount: usize,
    grant: oneshot::Sender<Holding>,
}

impl WaitQueue {
    pub fn has_waiters(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    pub async fn acquire(&self, share: &Arc<TenantShare>, tenant: Tenant, amount: usize) -> Holding {
        let counted = CountedWaiter::new(share);
        let granted = {
            let mut waiting = self.waiting.lock();
            // Those who wait come first.
            if waiting.organisations.is_empty()
                && let Ok(holding) = share.hold(tenant, amount)
            {
                return holding;
            }
            waiting.add(tenant, amount)
        };
        // It may be the next in turn although others wait.
        self.serve(share);
        match granted.await {
            Ok(holding) => holding,
            // The share is gone with its queue, so nothing bounds it any more.
            Err(_) => Holding::none(counted.share.clone(), tenant),
        }
    }

    /// Grants what there is room for.
    pub fn serve(&self, share: &Arc<TenantShare>) {
        loop {
            // Dropped when nothing is locked: that serves the next.
            let unclaimed = {
                let mut waiting = self.waiting.lock();
                let Some((waiter, holding)) = waiting.next(share) else { return };
                waiter.grant.send(holding).err()
            };
            drop(unclaimed);
        }
    }
}

/// One that waits, or is about to. A waiter that has gone lets those behind it pass.
struct CountedWaiter<'s> {
    share: &'s Arc<TenantShare>,
}

impl<'s> CountedWaiter<'s> {
    fn new(share: &'s Arc<TenantShare>) -> Self {
        share.queue.count.fetch_add(1, Relaxed);
        // What is given back from here on is offered to this one.
        fence(SeqCst);
        Self { share }
    }
}

impl Drop for CountedWaiter<'_> {
    fn drop(&mut self) {
        let queue = &self.share.queue;
        if queue.count.fetch_sub(1, Relaxed) > 1 {
            queue.serve(self.share);
        }
    }
}

impl Waiting {
    fn add(&mut self, tenant: Tenant, amount: usize) -> oneshot::Receiver<Holding> {
        let (grant, granted) = oneshot::channel();
        self.arrivals += 1;
        let waiter = Waiter { arrival: self.arrivals, amount, grant };
        let organisation = self.organisations.entry(tenant.organisation).or_default();
        organisation.entry(tenant.workspace).or_default().push_back(waiter);
        granted
    }

    /// Whose turn it is, with what it waited for.
    fn next(&mut self, share: &Arc<TenantShare>) -> Option<(Waiter, Holding)> {
        self.forget_gone();
        let mut passed_over = HashSet::new();
        loop {
            let (tenant, held) = self.first(share, &passed_over)?;
            let line = self.organisations.get_mut(&tenant.organisation)?.get_mut(&tenant.workspace)?;
            if let Ok(holding) = share.hold(tenant, line.front()?.amount) {
                let waiter = line.pop_front()?;
                self.forget_empty(tenant);
                return Some((waiter, holding));
            }
            if held == 0 {
                return None;
            }
            passed_over.insert(tenant.organisation);
        }
    }

    /// The tenant whose turn it is among organisations that were not passed over, and what its organisation holds.
    fn first(&self, share: &TenantShare, passed_over: &HashSet<Uuid>) -> Option<(Tenant, usize)> {
        let arrival = |line: &VecDeque<Waiter>| line.front().map_or(u64::MAX, |waiter| waiter.arrival);
        let waiting = self.organisations.iter().filter(|(id, _)| !passed_over.contains(id));
        let (organisation, lines) = waiting.min_by_key(|(id, lines)| {
            let (held, _) = share.held(Tenant { organisation: **id, workspace: Uuid::nil() });
            (held, lines.values().map(arrival).min())
        })?;
        let tenant_of = |workspace: &Uuid| Tenant { organisation: *organisation, workspace: *workspace };
        let (workspace, _) = lines.iter().min_by_key(|(id, line)| (share.held(tenant_of(id)).1, arrival(line)))?;
        let tenant = tenant_of(workspace);
        Some((tenant, share.held(tenant).0))
    }

    /// Those at the front who do not wait any more.
    fn forget_gone(&mut self) {
        self.organisations.retain(|_, lines| {
            lines.retain(|_, line| {
                while line.front().is_some_and(|waiter| waiter.grant.is_closed()) {
                    line.pop_front();
                }
                !line.is_empty()
            });
            !lines.is_empty()
        });
    }

    fn forget_empty(&mut self, tenant: Tenant) {
        let Some(lines) = self.organisations.get_mut(&tenant.organisation) else { return };
        if lines.get(&tenant.workspace).is_some_and(VecDeque::is_empty) {
            lines.remove(&tenant.workspace);
        }
        if lines.is_empty() {
            self.organisations.remove(&tenant.organisation);
        }
    }
}
