//! Metrics of waiting for a turn at a provider.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Opts, Registry};

/// Why a call was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shed {
    /// Nothing became free while it waited.
    Late,
    /// As many wait as may.
    Full,
    /// It waited, and a workspace with less waiting for its priority needed the room.
    Displaced,
}

const REASONS: [(Shed, &str); 3] = [(Shed::Late, "late"), (Shed::Full, "full"), (Shed::Displaced, "displaced")];

pub struct FairnessMeters {
    pub in_use: IntGauge,
    pub waiting: IntGauge,
    shed: [IntCounter; 3],
}

impl FairnessMeters {
    pub fn new(registry: &Registry) -> prometheus::Result<Self> {
        let gauge = |name: &str, help: &str| -> prometheus::Result<IntGauge> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let shed = Opts::new(
            "gateway_fairness_shed_total",
            "Calls not sent because their provider had enough under way, by reason.",
        );
        let shed = IntCounterVec::new(shed, &["reason"])?;
        registry.register(Box::new(shed.clone()))?;
        Ok(Self {
            in_use: gauge("gateway_fairness_in_use", "Calls under way to providers that limit their concurrency.")?,
            waiting: gauge(
                "gateway_fairness_waiting",
                "Calls that wait for their turn at a provider that limits its concurrency.",
            )?,
            shed: REASONS.map(|(_, reason)| shed.with_label_values(&[reason])),
        })
    }

    pub fn shed(&self, why: Shed) {
        if let Some(index) = REASONS.iter().position(|(known, _)| *known == why) {
            self.shed[index].inc();
        }
    }
}
