//! What answers that wait in memory may hold together. Each takes what it needs as it grows, as long as its tenant's share of
//! the budget lasts. Where it does not, a few answers at a time go on without it, each up to its own bound, and the others
//! wait: so some answer always ends, and what is held is the budget and those few answers more. No organisation has all of
//! either, however slowly its provider answers.

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use parking_lot::Mutex;
use std::sync::Arc;

/// Answers that go on without the budget at once; of one organisation half of them.
pub const TURNS: usize = 4;

pub struct AnswerBudget {
    /// In bytes.
    free: Arc<TenantShare>,
    turns: Arc<TenantShare>,
}

/// What one answer holds, until it is dropped.
pub struct AnswerShare {
    tenant: Tenant,
    turns: Arc<TenantShare>,
    held: Mutex<HeldBytes>,
}

struct HeldBytes {
    bytes: Holding,
    turn: Option<Holding>,
}

impl AnswerBudget {
    pub fn new(bytes: usize) -> Self {
        Self { free: TenantShare::new(bytes, ShareRule::REFUSING), turns: TenantShare::new(TURNS, ShareRule::WAITING) }
    }

    pub fn share(&self, tenant: Tenant) -> Arc<AnswerShare> {
        let bytes = Holding::none(self.free.clone(), tenant);
        let held = Mutex::new(HeldBytes { bytes, turn: None });
        Arc::new(AnswerShare { tenant, turns: self.turns.clone(), held })
    }
}

impl AnswerShare {
    /// Waits until so many bytes more may be held.
    pub async fn grow(&self, bytes: usize) {
        if !self.take(bytes) {
            let turn = self.turns.acquire(self.tenant, 1).await;
            self.held.lock().turn = Some(turn);
        }
    }

    /// False when the tenant's share of the budget does not last.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let mut held = self.held.lock();
        held.turn.is_some() || held.bytes.try_grow(bytes).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn answers_grow_within_the_budget_and_beyond_it_a_few_at_a_time() {
        let budget = AnswerBudget::new(100);
        let (hostile, other) = (Tenant::test(1, 1), Tenant::test(2, 2));
        let many: Vec<_> = (0..TURNS).map(|_| budget.share(hostile)).collect();
        let has_grown = |share: &AnswerShare, bytes| share.grow(bytes).now_or_never().is_some();
        assert!(has_grown(&many[0], 40), "within its organisation's share");
        assert!(has_grown(&many[0], 40) && has_grown(&many[0], 1 << 40), "it goes on without it, to its own bound");
        assert!(has_grown(&many[1], 1 << 40), "and another one");
        assert!(!has_grown(&many[2], 1 << 40) && !has_grown(&many[3], 1 << 40), "no organisation has all turns");
        let others = [budget.share(other), budget.share(other)];
        assert!(has_grown(&others[0], 20), "what is free is for all");
        assert!(others.iter().all(|share| has_grown(share, 1 << 40)), "and so are the turns");
        drop(many);
        assert!(has_grown(&budget.share(hostile), 40), "what was held came back");
    }
}
