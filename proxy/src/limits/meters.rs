//! Metrics of limits.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

pub struct LimitMeters {
    pub refused: IntCounter,
    pub away: IntCounter,
    pub unleased: IntCounter,
    pub waited: IntCounter,
    pub grants: IntCounter,
    pub failures: IntCounter,
    pub counters: IntGauge,
    dry_rates: IntCounter,
    dry_budgets: IntCounter,
    unpriced_allowed: IntCounter,
    unpriced_refused: IntCounter,
}

impl LimitMeters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let counter = |name: &str, help: &str| -> prometheus::Result<IntCounter> {
            let counter = IntCounter::new(name, help)?;
            registry.register(Box::new(counter.clone()))?;
            Ok(counter)
        };
        let counters = IntGauge::new("gateway_limits_counters", "Counters of limits that are held in memory.")?;
        registry.register(Box::new(counters.clone()))?;
        let dry_runs = Opts::new(
            "gateway_limits_dry_run_hits_total",
            "Times a policy that is a dry run would have refused, by kind.",
        );
        let dry_runs = IntCounterVec::new(dry_runs, &["kind"])?;
        registry.register(Box::new(dry_runs.clone()))?;
        let unpriced = Opts::new(
            "gateway_limits_unpriced_total",
            "Calls under a budget of money whose price is not known, by what became of them.",
        );
        let unpriced = IntCounterVec::new(unpriced, &["verdict"])?;
        registry.register(Box::new(unpriced.clone()))?;
        Ok(Self {
            unpriced_allowed: unpriced.with_label_values(&["allowed"]),
            unpriced_refused: unpriced.with_label_values(&["refused"]),
            dry_rates: dry_runs.with_label_values(&["rate"]),
            dry_budgets: dry_runs.with_label_values(&["budget"]),
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

    /// A dry run let a request pass that has nothing left of it.
    pub fn would_have_refused(&self, is_rate: bool) {
        match is_rate {
            true => self.dry_rates.inc(),
            false => self.dry_budgets.inc(),
        }
    }

    /// A call that nobody knows the price of came under a budget of money.
    pub fn unpriced(&self, is_refused: bool) {
        match is_refused {
            true => self.unpriced_refused.inc(),
            false => self.unpriced_allowed.inc(),
        }
    }

    #[cfg(test)]
    pub fn would_have_refused_so_far(&self, is_rate: bool) -> u64 {
        if is_rate { self.dry_rates.get() } else { self.dry_budgets.get() }
    }
}
