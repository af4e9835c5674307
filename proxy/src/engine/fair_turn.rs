//! A call's turn at a provider that limits its concurrency, on the engine lane; `relay::turn` takes one for the relay lane.
//! Providers that do not cost one look at their row: no lock, no allocation.

use super::ProviderCalls;
use crate::catalog::target::{Credential, Target};
use crate::limits::Unit;
use crate::limits::admission::LimitOwner;
use crate::limits::fairness::{Permit, QueuedCaller, Shed};
use crate::request::limit_headers::LimitHit;
use crate::request::refusal::Refusal;
use shared::model::{Concurrency, Provider, Workspace};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// When a call that was not sent may come again: nobody knows when others end.
const COME_AGAIN_S: u32 = 1;

/// What a target asks of those who want to call it.
#[derive(Clone, Copy)]
pub(crate) struct Turn<'t> {
    provider: &'t Arc<Provider>,
    concurrency: Concurrency,
    asker: QueuedCaller,
}

impl<'t> Turn<'t> {
    /// None where as many calls as come may be under way.
    pub fn for_target(target: &'t Target, workspace: &Workspace, is_batch: bool) -> Option<Self> {
        let Credential::Stored(stored) = &target.credential else { return None };
        let concurrency = stored.provider.concurrency?;
        let most = concurrency.max_in_flight;
        let asker = match is_batch {
            true => QueuedCaller::batch(most),
            false => QueuedCaller { workspace: workspace.id, weight: workspace.priority, most },
        };
        Some(Self { provider: &stored.provider, concurrency, asker })
    }

    fn refusal(&self, shed: Shed) -> Refusal {
        let Concurrency { max_in_flight, max_wait_ms } = self.concurrency;
        let whose = LimitOwner::Provider(self.provider.clone());
        let why = match shed {
            Shed::Late => format!("and no turn came within {max_wait_ms} ms"),
            Shed::Full => "and no more can wait".to_owned(),
            Shed::Displaced => "and others were to wait instead".to_owned(),
        };
        let message = format!("{whose} takes {max_in_flight} calls at once, {why}; try again in {COME_AGAIN_S} s");
        let wait_ms = Some(u64::from(COME_AGAIN_S) * 1000);
        let hit = LimitHit { scope: whose.scope(), rate: None, wait_ms, unit: Unit::Requests };
        Refusal::rate_limited(message, COME_AGAIN_S, hit)
    }
}

impl ProviderCalls {
    /// Waits for the turn; a refusal is that target's answer.
    pub(crate) async fn take_turn(&self, turn: Turn<'_>, deadline: Option<Instant>) -> Result<Permit, Refusal> {
        let longest = Duration::from_millis(u64::from(turn.concurrency.max_wait_ms));
        let left = deadline.map_or(longest, |deadline| deadline.saturating_duration_since(Instant::now()));
        let passed = self.fairness.pass(turn.provider.integration_id, turn.asker, longest.min(left)).await;
        passed.map_err(|shed| turn.refusal(shed))
    }

    /// For a second call beside one that is under way: it must not keep others waiting.
    pub(super) fn take_turn_now(&self, turn: Turn<'_>) -> Option<Permit> {
        self.fairness.pass_now(turn.provider.integration_id, turn.asker)
    }
}
