//! Configs that came with requests, compiled before. Clients send the same few over and over, and their breakers and
//! budgets must outlive a request.

use crate::request::refusal::Refusal;
use crate::routing::plan::{Plan, compile};
use crate::routing::warnings::ConfigWarnings;
use crate::runtime::tenant_share::{Tenant, heaviest_of};
use arc_swap::ArcSwap;
use serde_json::Value;
use shared::config::{Strictness, parse_config_warning};
use shared::settings::config_limits::ConfigLimits;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Of one workspace; whoever sends more starts anew with its own, and pushes out nobody else's breakers.
const MAX_PER_WORKSPACE: usize = 64;
/// Of all together; beyond it the heaviest workspace of the heaviest organisation loses one for each that comes.
const MAX_CONFIGS: usize = 1024;

/// By tenant and text. Tenants do not share breakers. Copied whenever one is added, so a text is shared.
type PlansByTenant = HashMap<Tenant, HashMap<Arc<str>, Arc<Plan>>>;

pub struct InlineConfigs {
    known: ArcSwap<PlansByTenant>,
    limits: ConfigLimits,
}

impl InlineConfigs {
    pub fn new(limits: ConfigLimits) -> Self {
        Self { known: ArcSwap::default(), limits: limits.inline() }
    }

    pub fn plan(&self, tenant: Tenant, text: &str) -> Result<Arc<Plan>, Refusal> {
        if let Some(known) = self.known(tenant, text) {
            return Ok(known);
        }
        let value: Value = serde_json::from_str(text).map_err(|error| Refusal::invalid_config(error.to_string()))?;
        let config = parse_config_warning(&value, Strictness::Inline, &self.limits);
        let (config, warnings) = config.map_err(|faults| Refusal::faulty_config(&faults))?;
        let plan = compile(&config).with_warnings(ConfigWarnings::new(warnings));
        Ok(self.keep(tenant, text, Arc::new(plan)))
    }

    /// Each plan that is remembered, and whose it is.
    pub fn each(&self, mut see: impl FnMut(Uuid, &Plan)) {
        for (tenant, plans) in self.known.load().iter() {
            plans.values().for_each(|plan| see(tenant.workspace, plan));
        }
    }

    fn known(&self, tenant: Tenant, text: &str) -> Option<Arc<Plan>> {
        self.known.load().get(&tenant).and_then(|plans| plans.get(text)).cloned()
    }

    /// Of requests that compiled the same config at once the first one's plan is kept for all of them: a second would
    /// be a second budget.
    fn keep(&self, tenant: Tenant, text: &str, plan: Arc<Plan>) -> Arc<Plan> {
        let key: Arc<str> = text.into();
        self.known.rcu(|known| {
            if known.get(&tenant).is_some_and(|plans| plans.contains_key(text)) {
                return known.clone();
            }
            let mut more = (**known).clone();
            let own = more.entry(tenant).or_default();
            if own.len() >= MAX_PER_WORKSPACE {
                own.clear();
            }
            own.insert(key.clone(), plan.clone());
            if more.values().map(HashMap::len).sum::<usize>() > MAX_CONFIGS {
                forget_one(&mut more, &key);
            }
            Arc::new(more)
        });
        self.known(tenant, text).unwrap_or(plan)
    }
}

/// Not the one that has just come.
fn forget_one(plans: &mut PlansByTenant, new: &Arc<str>) {
    let heaviest = heaviest_of(plans.iter().map(|(tenant, plans)| (*tenant, plans.len())));
    let Some(largest) = heaviest.and_then(|tenant| plans.get_mut(&tenant)) else { return };
    if let Some(key) = largest.keys().find(|key| !Arc::ptr_eq(key, new)).cloned() {
        largest.remove(&key);
    }
}

#[cfg(test)]
mod tests;
