//! Fair shares of what all tenants hold together and is bounded: bytes, places, entries. One rule for all of them:
//!
//! - An organisation holds no more than it leaves for all others, however many workspaces it has: one that is alone may hold
//!   half, and whoever comes next still finds room. A workspace leaves some of that to its organisation's other workspaces.
//! - Where callers wait instead of being refused, an organisation holds half at most; the one that holds least is served
//!   first, and of it the workspace that holds least.
//! - Where entries are evicted, the organisation that holds most loses one, of its heaviest workspace.
//!
//! Counters are atomic: a holding takes a lock when it begins and ends, not when it grows. `tenant_share/tests.rs` tests the
//! rule over everything that is shared out.

mod queue;
#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use queue::WaitQueue;
use shared::model::Workspace;
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::sync::{Arc, Weak};
use uuid::Uuid;

/// A workspace leaves this part of its organisation's share to the organisation's other workspaces.
const SIBLINGS_PART: usize = 16;

/// A workspace, and the organisation by which it is shared with first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant {
    pub organisation: Uuid,
    pub workspace: Uuid,
}

impl Tenant {
    /// Work of the gateway itself. No share bounds it, only the whole.
    pub const GATEWAY: Self = Self { organisation: Uuid::nil(), workspace: Uuid::nil() };

    #[cfg(test)]
    pub fn test(organisation: u128, workspace: u128) -> Self {
        Self { organisation: Uuid::from_u128(organisation), workspace: Uuid::from_u128(workspace) }
    }
}

impl From<&Workspace> for Tenant {
    fn from(workspace: &Workspace) -> Self {
        Self { organisation: workspace.organisation_id.uuid(), workspace: workspace.id.uuid() }
    }
}

/// Why nothing more can be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    #[error("the gateway holds as much memory as it may")]
    ForAnybody,
    #[error("the organisation holds as much memory as the gateway has left for others")]
    ForThisOrganisation,
    #[error("the workspace holds as much memory as its organisation has left for its other workspaces")]
    ForThisWorkspace,
}

/// Of whom an entry is evicted first, by what each tenant holds: of the heaviest workspace of the heaviest organisation.
pub fn heaviest_of(held: impl Iterator<Item = (Tenant, usize)>) -> Option<Tenant> {
    let mut organisations: HashMap<Uuid, (usize, (usize, Tenant))> = HashMap::new();
    for (tenant, amount) in held {
        let (total, heaviest) = organisations.entry(tenant.organisation).or_insert((0, (amount, tenant)));
        *total = total.saturating_add(amount);
        *heaviest = (*heaviest).max((amount, tenant));
    }
    organisations.into_values().max_by_key(|(total, _)| *total).map(|(_, (_, tenant))| tenant)
}

#[derive(Debug)]
pub struct TenantShare {
    limit: usize,
    rule: ShareRule,
    used: AtomicUsize,
    organisations: Mutex<HashMap<Uuid, OrganisationSeats>>,
    queue: WaitQueue,
    this: Weak<Self>,
}

/// What differs between the uses.
#[derive(Debug, Clone, Copy)]
pub struct ShareRule {
    /// What an organisation may hold whatever others hold, while it fits into the whole: one place, of places.
    pub least: usize,
    /// The most of one workspace, however much is left.
    pub workspace: usize,
    /// Whether a workspace is refused what its organisation must keep for the others. Not where callers wait for their turn.
    pub leaves_siblings: bool,
    /// Whether callers wait (`TenantShare::acquire`).
    pub may_wait: bool,
}

impl ShareRule {
    /// For callers that are refused when they find no room.
    pub const REFUSING: Self = Self { least: 0, workspace: usize::MAX, leaves_siblings: true, may_wait: false };
    /// For callers that wait.
    pub const WAITING: Self = Self { least: 1, workspace: usize::MAX, leaves_siblings: false, may_wait: true };
    /// For callers that are refused, each of whom has a number of its own (`least`) and more only of what is left.
    pub const EACH: Self = Self { least: 1, workspace: usize::MAX, leaves_siblings: false, may_wait: false };
    /// For entries that are evicted when all is full.
    pub const EVICTING: Self =
        Self { least: usize::MAX, workspace: usize::MAX, leaves_siblings: false, may_wait: false };
}

#[derive(Debug, Default)]
struct OrganisationSeats {
    held: Arc<AtomicUsize>,
    workspaces: HashMap<Uuid, Arc<AtomicUsize>>,
}

/// The counters of one tenant.
#[derive(Debug, Clone)]
struct Seat {
    organisation: Arc<AtomicUsize>,
    workspace: Arc<AtomicUsize>,
}

impl TenantShare {
    pub fn new(limit: usize, rule: ShareRule) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            limit,
            rule,
            used: AtomicUsize::new(0),
            organisations: Mutex::default(),
            queue: WaitQueue::default(),
            this: this.clone(),
        })
    }

    pub fn limit(&self) -> usize {
        self.limit
    }

    /// What all hold together.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }

    /// What a tenant's organisation and the tenant itself hold.
    pub fn held(&self, tenant: Tenant) -> (usize, usize) {
        let organisations = self.organisations.lock();
        let Some(seats) = organisations.get(&tenant.organisation) else { return (0, 0) };
        let own = seats.workspaces.get(&tenant.workspace).map_or(0, |held| held.load(Relaxed));
        (seats.held.load(Relaxed), own)
    }

    /// Of whom an entry is evicted first.
    pub fn heaviest(&self) -> Option<Tenant> {
        heaviest_of(self.holders().into_iter())
    }

    /// What each tenant holds of those who hold something.
    pub fn holders(&self) -> Vec<(Tenant, usize)> {
        let organisations = self.organisations.lock();
        let holders = organisations.iter().flat_map(|(organisation, seats)| {
            let tenant = |workspace: &Uuid| Tenant { organisation: *organisation, workspace: *workspace };
            seats.workspaces.iter().map(move |(workspace, held)| (tenant(workspace), held.load(Relaxed)))
        });
        holders.collect()
    }

    /// A holding of so much, or why there is none.
    pub fn hold(self: &Arc<Self>, tenant: Tenant, amount: usize) -> Result<Holding, NoRoom> {
        let mut holding = Holding::none(self.clone(), tenant);
        holding.try_grow(amount).map(|()| holding)
    }

    /// A holding that counts whatever others hold: its entry is there, and another is evicted for it.
    pub fn hold_anyway(self: &Arc<Self>, tenant: Tenant, amount: usize) -> Holding {
        let mut holding = Holding::none(self.clone(), tenant);
        let _ = holding.grow(amount);
        holding
    }

    /// Waits for its turn. What is more than an organisation may hold takes all that it may.
    pub async fn acquire(self: &Arc<Self>, tenant: Tenant, amount: usize) -> Holding {
        let largest = (self.limit / 2).max(self.rule.least).min(self.rule.workspace);
        self.queue.acquire(self, tenant, amount.min(largest)).await
    }

    /// Whether so much may be held, of which the last was just counted.
    fn judge(&self, tenant: Tenant, used: usize, organisation: usize, workspace: usize) -> Result<(), NoRoom> {
        let Some(left) = self.limit.checked_sub(used) else { return Err(NoRoom::ForAnybody) };
        if tenant == Tenant::GATEWAY {
            return Ok(());
        }
        // Who waits gets what others give back, so nothing need be left for them.
        let allowed = if self.rule.may_wait { self.limit / 2 } else { left };
        if organisation > allowed.max(self.rule.least) {
            return Err(NoRoom::ForThisOrganisation);
        }
        // What the organisation may hold besides, if nobody else takes more.
        let more = left.saturating_sub(organisation) / 2;
        let leaves_enough =
            !self.rule.leaves_siblings || workspace <= more.saturating_mul(SIBLINGS_PART - 1).max(self.rule.least);
        match leaves_enough && workspace <= self.rule.workspace {
            true => Ok(()),
            false => Err(NoRoom::ForThisWorkspace),
        }
    }

    fn seat(&self, tenant: Tenant) -> Seat {
        let mut organisations = self.organisations.lock();
        let seats = organisations.entry(tenant.organisation).or_default();
        let workspace = seats.workspaces.entry(tenant.workspace).or_default().clone();
        Seat { organisation: seats.held.clone(), workspace }
    }

    /// Nothing is remembered of a tenant that holds nothing any more.
    fn forget_idle(&self, tenant: Tenant) {
        let mut organisations = self.organisations.lock();
        let Some(seats) = organisations.get_mut(&tenant.organisation) else { return };
        if seats.workspaces.get(&tenant.workspace).is_some_and(|held| Arc::strong_count(held) == 1) {
            seats.workspaces.remove(&tenant.workspace);
        }
        if seats.workspaces.is_empty() {
            organisations.remove(&tenant.organisation);
        }
    }

    /// Something was given back.
    fn serve_waiting(&self) {
        if !self.rule.may_wait {
            return;
        }
        // Pairs with the one in `WaitQueue::acquire`: whoever waits has seen what was given back, or is seen here.
        fence(SeqCst);
        if self.queue.has_waiters()
            && let Some(this) = self.this.upgrade()
        {
            self.queue.serve(&this);
        }
    }
}

/// What one caller holds, given back when dropped.
#[derive(Debug)]
pub struct Holding<S: Deref<Target = TenantShare> = Arc<TenantShare>> {
    share: S,
    tenant: Tenant,
    amount: usize,
    /// None while nothing is counted for the tenant.
    seat: Option<Seat>,
}

impl<S: Deref<Target = TenantShare>> Holding<S> {
    pub fn none(share: S, tenant: Tenant) -> Self {
        Self { share, tenant, amount: 0, seat: None }
    }

    pub fn amount(&self) -> usize {
        self.amount
    }

    pub fn tenant(&self) -> Tenant {
        self.tenant
    }

    /// Counts in the whole alone, until `grow` counts all of it for the tenant.
    pub fn grow_small(&mut self, amount: usize) -> Result<(), NoRoom> {
        let used = self.share.used.fetch_add(amount, Relaxed).saturating_add(amount);
        self.amount += amount;
        if used > self.share.limit { Err(NoRoom::ForAnybody) } else { Ok(()) }
    }

    /// What was refused counts until it is given back: it is there already.
    pub fn grow(&mut self, amount: usize) -> Result<(), NoRoom> {
        let used = self.share.used.fetch_add(amount, Relaxed).saturating_add(amount);
        self.amount += amount;
        if self.amount == 0 {
            return Ok(());
        }
        let (seat, more) = match &self.seat {
            Some(seat) => (seat, amount),
            None => (&*self.seat.insert(self.share.seat(self.tenant)), self.amount),
        };
        let organisation = seat.organisation.fetch_add(more, Relaxed).saturating_add(more);
        let workspace = seat.workspace.fetch_add(more, Relaxed).saturating_add(more);
        self.share.judge(self.tenant, used, organisation, workspace)
    }

    /// What was refused does not count.
    pub fn try_grow(&mut self, amount: usize) -> Result<(), NoRoom> {
        let grown = self.grow(amount);
        if grown.is_err() {
            self.uncount(amount);
        }
        grown
    }

    pub fn shrink(&mut self, amount: usize) {
        let amount = amount.min(self.amount);
        if amount > 0 {
            self.uncount(amount);
            self.share.serve_waiting();
        }
    }

    pub fn give_back(&mut self) {
        self.shrink(self.amount);
    }

    fn uncount(&mut self, amount: usize) {
        self.amount -= amount;
        self.share.used.fetch_sub(amount, Relaxed);
        let Some(seat) = &self.seat else { return };
        seat.organisation.fetch_sub(amount, Relaxed);
        seat.workspace.fetch_sub(amount, Relaxed);
        if self.amount == 0 {
            self.seat = None;
            self.share.forget_idle(self.tenant);
        }
    }
}

impl<S: Deref<Target = TenantShare>> Drop for Holding<S> {
    fn drop(&mut self) {
        self.give_back();
    }
}
