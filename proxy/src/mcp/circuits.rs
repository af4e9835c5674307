//! Servers that fail again and again are left alone for a while, so that clients hear of it at once. Each replica counts
//! for itself.

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
/// Servers that are remembered; beyond it all are forgotten.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub struct McpCircuits(Mutex<HashMap<Uuid, Arc<Breaker>>>);

impl McpCircuits {
    /// Whether this integration is to be left alone.
    pub fn is_open(&self, integration: Uuid, now: Instant) -> bool {
        self.0.lock().get(&integration).is_some_and(|breaker| breaker.is_open(now))
    }

    /// It answered with this status, or with none, which is 503.
    pub fn record(&self, integration: Uuid, status: u16, now: Instant) {
        let mut all = self.0.lock();
        if status < 500 {
            // Whatever failed before, it answers.
            all.remove(&integration);
            return;
        }
        if all.len() >= MOST {
            all.clear();
        }
        let breaker = all.entry(integration).or_insert_with(|| Arc::new(Breaker::new(rules()))).clone();
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
        let (circuits, id, now) = (McpCircuits::default(), Uuid::from_u128(1), Instant::now());
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
        assert!(!circuits.is_open(Uuid::from_u128(2), now));
        assert!(!circuits.is_open(id, now + Duration::from_secs(16)));
    }
}
