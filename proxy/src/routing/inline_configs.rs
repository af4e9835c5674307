//! Configs that came with requests, compiled before. Clients send the same few over and over, and their breakers and
//! budgets must outlive a request.

use crate::refusal::Refusal;
use crate::routing::plan::{Plan, compile};
use crate::routing::warnings::ConfigWarnings;
use arc_swap::ArcSwap;
use serde_json::Value;
use shared::config::{Strictness, parse_config_warning};
use shared::settings::config_limits::ConfigLimits;
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// Of one workspace; whoever sends more starts anew with its own, and pushes out nobody else's breakers.
const MOST_OF_ONE: usize = 64;
/// Of all together; beyond it the workspace that has most of them loses one for each that comes.
const MOST: usize = 1024;

/// By workspace and text. Tenants do not share breakers. Copied whenever one is added, so a text is shared.
type PlansByWorkspace = HashMap<Uuid, HashMap<Arc<str>, Arc<Plan>>>;

pub struct InlineConfigs {
    known: ArcSwap<PlansByWorkspace>,
    limits: ConfigLimits,
}

impl InlineConfigs {
    pub fn new(limits: ConfigLimits) -> Self {
        Self { known: ArcSwap::default(), limits: limits.inline() }
    }

    pub fn plan(&self, workspace: Uuid, text: &str) -> Result<Arc<Plan>, Refusal> {
        if let Some(known) = self.known(workspace, text) {
            return Ok(known);
        }
        let value: Value = serde_json::from_str(text).map_err(|error| Refusal::invalid_config(error.to_string()))?;
        let config = parse_config_warning(&value, Strictness::Inline, &self.limits);
        let (config, warnings) = config.map_err(|faults| Refusal::faulty_config(&faults))?;
        let plan = compile(&config).with_warnings(ConfigWarnings::new(warnings));
        Ok(self.keep(workspace, text, Arc::new(plan)))
    }

    /// Each plan that is remembered, and whose it is.
    pub fn each(&self, mut see: impl FnMut(Uuid, &Plan)) {
        for (workspace, plans) in self.known.load().iter() {
            plans.values().for_each(|plan| see(*workspace, plan));
        }
    }

    fn known(&self, workspace: Uuid, text: &str) -> Option<Arc<Plan>> {
        self.known.load().get(&workspace).and_then(|plans| plans.get(text)).cloned()
    }

    /// Of requests that compiled the same config at once the first one's plan is kept for all of them: a second would
    /// be a second budget.
    fn keep(&self, workspace: Uuid, text: &str, plan: Arc<Plan>) -> Arc<Plan> {
        let key: Arc<str> = text.into();
        self.known.rcu(|known| {
            if known.get(&workspace).is_some_and(|plans| plans.contains_key(text)) {
                return known.clone();
            }
            let mut more = (**known).clone();
            let own = more.entry(workspace).or_default();
            if own.len() >= MOST_OF_ONE {
                own.clear();
            }
            own.insert(key.clone(), plan.clone());
            if more.values().map(HashMap::len).sum::<usize>() > MOST {
                forget_one(&mut more, &key);
            }
            Arc::new(more)
        });
        self.known(workspace, text).unwrap_or(plan)
    }
}

/// Not the one that has just come.
fn forget_one(plans: &mut PlansByWorkspace, new: &Arc<str>) {
    let Some(largest) = plans.values_mut().max_by_key(|plans| plans.len()) else { return };
    if let Some(key) = largest.keys().find(|key| !Arc::ptr_eq(key, new)).cloned() {
        largest.remove(&key);
    }
}

#[cfg(test)]
mod tests;
