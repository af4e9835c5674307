//! Servers that fail again and again are left alone for a while, so that clients hear of it at once. Each replica counts
//! for itself, and for each workspace: calls that one workspace makes fail take a server from nobody else.

use crate::routing::breaker::Breaker;
use parking_lot::Mutex;
use shared::config::CircuitBreaker as Rules;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use uuid::Uuid;

/// Failures in a row.
const FAILURES: u64 = 5;
const COOLDOWN_MS: u64 = 15_000;
/// Servers that are remembered for one workspace, and in all. Beyond it those of that workspace are forgotten, or of all.
const MOST_OF_WORKSPACE: usize = 64;
const MOST: usize = 16_384;

#[derive(Debug, Default)]
pub struct McpCircuits(Mutex<HashMap<CircuitKey, Arc<Breaker>>>);

/// Who calls what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CircuitKey {
    pub workspace: Uuid,
    pub integration: Uuid,
}

impl McpCircuits {
    /// Whether this integration is to be left alone.
    pub fn is_open(&self, key: CircuitKey, now: Instant) -> bool {
        self.0.lock().get(&key).is_some_and(|breaker| breaker.is_open(now))
    }

    /// It answered with this status, or with none, which is 503.
    pub fn record(&self, key: CircuitKey, status: u16, now: Instant) {
        let mut all = self.0.lock();
        if status < 500 {
            // Whatever failed before, it answers.
            all.remove(&key);
            return;
        }
        if all.len() >= MOST && !all.contains_key(&key) {
            let of_workspace = all.keys().filter(|known| known.workspace == key.workspace).count();
            match of_workspace > MOST_OF_WORKSPACE {
                true => all.retain(|known, _| known.workspace != key.workspace),
                false => all.clear(),
            }
        }
        let breaker = all.entry(key).or_insert_with(|| Arc::new(Breaker::new(rules()))).clone();
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
            workspace: Uuid::from_u128(workspace),
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
