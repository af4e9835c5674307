//! Places for calls to services: each call has a connection and somebody who waits for it, so there are so many of them in all,
//! shared out between tenants (`tenant_share`). A service that hangs takes places of those who ask it and of nobody else.

use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use shared::guardrails::remote::RemoteFailure;
use std::sync::Arc;
use std::time::Instant;

/// Calls that are under way at once, of all tenants and of one workspace.
pub(crate) const MAX_CALLS: usize = 1024;
const MAX_OF_WORKSPACE: usize = 256;

#[derive(Debug, Clone)]
pub struct CallPlaces(Arc<TenantShare>);

impl Default for CallPlaces {
    fn default() -> Self {
        Self::new(MAX_CALLS)
    }
}

impl CallPlaces {
    pub(crate) fn new(all: usize) -> Self {
        Self(TenantShare::new(all, ShareRule { workspace: MAX_OF_WORKSPACE, ..ShareRule::WAITING }))
    }

    /// For the calls of one who asks.
    pub fn of(&self, tenant: Tenant) -> TenantPlaces {
        TenantPlaces { all: self.0.clone(), tenant }
    }
}

#[derive(Debug, Clone)]
pub struct TenantPlaces {
    pub(crate) all: Arc<TenantShare>,
    tenant: Tenant,
}

impl TenantPlaces {
    /// Waits for its turn, as long as its check has time.
    pub async fn turn(&self, deadline: Instant) -> Result<Holding, RemoteFailure> {
        let waiting = tokio::time::timeout_at(deadline.into(), self.all.acquire(self.tenant, 1));
        waiting.await.map_err(|_| RemoteFailure::Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn an_organisation_has_half_of_all_places_and_a_workspace_some_of_these() {
        let places = CallPlaces::default();
        let take = async |workspace: u128, many: usize| {
            let mut held = Vec::new();
            for _ in 0..many {
                // Virtual time, which passes only where nothing else can.
                let soon = tokio::time::Instant::now().into_std() + Duration::from_millis(1);
                held.extend(places.of(Tenant::test(workspace / 10, workspace)).turn(soon).await);
            }
            held
        };
        let first = take(10, MAX_OF_WORKSPACE + 3).await;
        assert_eq!(first.len(), MAX_OF_WORKSPACE);
        let siblings = [take(11, MAX_OF_WORKSPACE).await, take(12, 3).await];
        assert_eq!(siblings.map(|held| held.len()), [MAX_CALLS / 2 - MAX_OF_WORKSPACE, 0]);
        let soon = tokio::time::Instant::now().into_std() + Duration::from_millis(1);
        let places = CallPlaces::new(2);
        let held = places.of(Tenant::test(1, 1)).turn(soon).await.unwrap();
        assert_eq!(places.of(Tenant::test(1, 2)).turn(soon).await.unwrap_err(), RemoteFailure::Busy);
        assert!(places.of(Tenant::test(2, 1)).turn(soon).await.is_ok());
        drop(held);
        assert!(places.of(Tenant::test(1, 2)).turn(soon).await.is_ok());
    }
}
