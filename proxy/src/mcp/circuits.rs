//! Servers that fail again and again are left alone for a while, so that clients hear of it at once. Each replica counts
//! for itself, and for each workspace: calls that one workspace makes fail take a server from nobody else.

use crate::routing::breaker::Breaker;
use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use parking_lot::Mutex;
use shared::config::CircuitBreaker as Rules;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Failures in a row.
const FAILURES: u64 = 5;
const COOLDOWN_MS: u64 = 15_000;
/// Servers that are remembered in all. Beyond it those of the heaviest tenant (`tenant_share`) are forgotten.
pub(crate) const MAX_CIRCUITS: usize = 16_384;

#[derive(Debug)]
pub struct McpCircuits {
    known: Mutex<HashMap<CircuitKey, KnownCircuit>>,
    share: Arc<TenantShare>,
}

#[derive(Debug)]
struct KnownCircuit {
    breaker: Arc<Breaker>,
    _held: Holding,
}

impl Default for McpCircuits {
    fn default() -> Self {
        Self { known: Mutex::default(), share: TenantShare::new(MAX_CIRCUITS, ShareRule::EVICTING) }
    }
}

/// Who calls what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CircuitKey {
    pub tenant: Tenant,
    pub integration: Uuid,
}

impl McpCircuits {
    /// Whether this integration is to be left alone.
    pub fn is_open(&self, key: CircuitKey, now: Instant) -> bool {
        self.known.lock().get(&key).is_some_and(|known| known.breaker.is_open(now))
    }

    /// It answered with this status, or with none, which is 503.
    pub fn record(&self, key: CircuitKey, status: u16, now: Instant) {
        let mut all = self.known.lock();
        if status < 500 {
            // Whatever failed before, it answers.
            all.remove(&key);
            return;
        }
        if all.len() >= MAX_CIRCUITS
            && !all.contains_key(&key)
            && let Some(heaviest) = self.share.heaviest()
        {
            all.retain(|known, _| known.tenant != heaviest);
        }
        let known = all.entry(key).or_insert_with(|| KnownCircuit {
            breaker: Arc::new(Breaker::new(rules())),
            _held: self.share.hold_anyway(key.tenant, 1),
        });
        let breaker = known.breaker.clone();
        drop(all);
        breaker.record(status, now);
    }
}

fn rules() -> Rules {
    Rules {
        failure_threshold: Some(FAILURES),
        failure_threshold_percentage: None,
        minimum_requests: None,
        cooldown_interval_ms: COOLDOWN_MS,
        failure_status_codes: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_server_is_left_alone_after_five_failures_and_not_for_ever() {
        let (circuits, now) = (McpCircuits::default(), Instant::now());
        let key = |workspace: u128, integration: u128| CircuitKey {
            tenant: Tenant::test(1, workspace),
            integration: Uuid::from_u128(integration),
        };
        let id = key(1, 1);
        for _ in 0..4 {
            circuits.record(id, 503, now);
        }
        assert!(!circuits.is_open(id, now));
        circuits.record(id, 200, now);
        for _ in 0..5 {
            assert!(!circuits.is_open(id, now));
            circuits.record(id, 503, now);
        }
        assert!(circuits.is_open(id, now));
        assert!(!circuits.is_open(key(1, 2), now), "another server");
        assert!(!circuits.is_open(key(2, 1), now), "the same server, of another workspace");
        circuits.record(key(2, 1), 200, now);
        assert!(circuits.is_open(id, now), "that others are answered says nothing of these calls");
        assert!(!circuits.is_open(id, now + Duration::from_secs(16)));
    }
}
