//! What the mock served so far: one number per endpoint and outcome, and what is going on now.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde::Serialize;

use super::route::Endpoint;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answered to the end with a status below 400.
    Ok,
    /// Answered to the end with an error.
    Error,
    /// Broken off because a fault said so.
    Cut,
    /// The client left before the end.
    Cancelled,
}

impl Outcome {
    pub const ALL: [Self; 4] = [Self::Ok, Self::Error, Self::Cut, Self::Cancelled];

    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Cut => "cut",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A reading of the counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Endpoint → outcome → number; only what occurred.
    pub served: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    pub in_flight: u64,
    /// Requests whose client left before the end of the answer, on all endpoints.
    pub cancelled: u64,
    /// When the last of them was noticed, in microseconds since the epoch.
    pub last_cancelled_us: u64,
    pub connections_open: u64,
    pub connections_accepted: u64,
}

impl Counts {
    pub fn served(&self, endpoint: &str, outcome: &str) -> u64 {
        self.served.get(endpoint).and_then(|outcomes| outcomes.get(outcome)).copied().unwrap_or(0)
    }

    /// Requests ended in any way.
    pub fn total(&self) -> u64 {
        self.served.values().flat_map(BTreeMap::values).sum()
    }
}

#[derive(Default)]
pub struct Counters {
    served: [[AtomicU64; Outcome::ALL.len()]; Endpoint::ALL.len()],
    in_flight: AtomicU64,
    last_cancelled_us: AtomicU64,
    connections_open: AtomicU64,
    connections_accepted: AtomicU64,
}

impl Counters {
    pub fn began(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    pub fn ended(&self, endpoint: Endpoint, outcome: Outcome) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.served[endpoint as usize][outcome as usize].fetch_add(1, Relaxed);
        if outcome == Outcome::Cancelled {
            self.last_cancelled_us.store(super::state::now_ns() / 1000, Relaxed);
        }
    }

    pub fn connected(&self) -> u64 {
        self.connections_open.fetch_add(1, Relaxed);
        self.connections_accepted.fetch_add(1, Relaxed) + 1
    }

    pub fn disconnected(&self) {
        self.connections_open.fetch_sub(1, Relaxed);
    }

    /// Gauges stay: what is open now is open whatever is forgotten.
    pub fn reset(&self) {
        self.served.iter().flatten().for_each(|counter| counter.store(0, Relaxed));
        self.last_cancelled_us.store(0, Relaxed);
        self.connections_accepted.store(0, Relaxed);
    }

    pub fn read(&self) -> Counts {
        let mut served = BTreeMap::<_, BTreeMap<_, _>>::new();
        let mut cancelled = 0;
        for endpoint in Endpoint::ALL {
            for outcome in Outcome::ALL {
                let count = self.served[endpoint as usize][outcome as usize].load(Relaxed);
                if count > 0 {
                    served.entry(endpoint.name()).or_default().insert(outcome.name(), count);
                }
                if outcome == Outcome::Cancelled {
                    cancelled += count;
                }
            }
        }
        Counts {
            served,
            in_flight: self.in_flight.load(Relaxed),
            cancelled,
            last_cancelled_us: self.last_cancelled_us.load(Relaxed),
            connections_open: self.connections_open.load(Relaxed),
            connections_accepted: self.connections_accepted.load(Relaxed),
        }
    }
}
