//! What limits say of themselves.

use prometheus::{IntCounter, IntGauge, Registry};

pub struct Meters {
    pub refused: IntCounter,
    pub away: IntCounter,
    pub unleased: IntCounter,
    pub waited: IntCounter,
    pub grants: IntCounter,
    pub failures: IntCounter,
    pub counters: IntGauge,
}

impl Meters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounter> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let counters = IntGauge::new("gateway_limits_counters", "Counters of limits that are held in memory.")?;
        registry.register(Box::new(counters.clone()))?;
        Ok(Self {
            refused: counter("gateway_limits_refused_total", "Times a rate limit or a budget had nothing left.")?,
            away: counter(
                "gateway_limits_store_away_refused_total",
                "Calls refused because the store of limits did not answer.",
            )?,
            unleased: counter(
                "gateway_limits_unleased_total",
                "Calls that passed a limit uncounted because the store of limits did not answer.",
            )?,
            waited: counter("gateway_limits_waits_total", "Times a call waited for the store of limits.")?,
            grants: counter("gateway_limits_grants_total", "Parts of limits that this process was granted.")?,
            failures: counter("gateway_limits_store_failures_total", "Times the store of limits did not answer.")?,
            counters,
        })
    }
}
