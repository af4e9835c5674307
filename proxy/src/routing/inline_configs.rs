//! Configs that came with requests, compiled before. Clients send the same few over and over, and their breakers and
//! budgets must outlive a request.

use crate::refusal::Refusal;
use crate::routing::plan::{Plan, compile};
use arc_swap::ArcSwap;
use serde_json::Value;
use shared::config::{Strictness, parse_config};
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
        let config = parse_config(&value, Strictness::Inline, &self.limits);
        let config = config.map_err(|faults| Refusal::faulty_config(&faults))?;
        Ok(self.keep(workspace, text, Arc::new(compile(&config))))
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_config_is_compiled_once_for_each_workspace_and_a_bad_one_says_where() {
        let configs = InlineConfigs::new(ConfigLimits::default());
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let text = r#"{"retry":{"attempts":3}}"#;
        let first = configs.plan(one, text).unwrap();
        assert!(Arc::ptr_eq(&first, &configs.plan(one, text).unwrap()));
        assert!(!Arc::ptr_eq(&first, &configs.plan(other, text).unwrap()));
        let late = Arc::new(compile(
            &parse_config(&json!({ "retry": { "attempts": 1 } }), Strictness::Inline, &ConfigLimits::default())
                .unwrap(),
        ));
        assert!(
            Arc::ptr_eq(&first, &configs.keep(one, text, late)),
            "who compiles at the same time shares the first plan"
        );
        for (bad, says) in [("{", "JSON"), (r#"{"strategy":{"mode":"x"},"targets":[{}]}"#, "mode")] {
            let refusal = configs.plan(one, bad).unwrap_err();
            assert_eq!((refusal.status, refusal.code.as_str()), (400, "invalid_config"), "{bad}");
            let body = String::from_utf8(refusal.body(crate::refusal::Dialect::OpenAi, "id").to_vec()).unwrap();
            assert!(body.contains(says) || body.contains("EOF"), "{body}");
        }
        for (many, test) in [(501, json!(1)), (51, json!({ "$regex": "^a" }))] {
            let conditions: Vec<_> = (0..many).map(|_| json!({ "query": { "params.a": test }, "then": "x" })).collect();
            let strategy =
                |conditions: &[Value]| json!({ "mode": "conditional", "conditions": conditions, "default": "x" });
            let config = |conditions| {
                json!({ "strategy": strategy(conditions), "targets": [{ "name": "x", "provider": "@a" }] }).to_string()
            };
            if let Err(refusal) = configs.plan(one, &config(&conditions[1..])) {
                panic!("{test}: {}", refusal.message);
            }
            let refusal = configs.plan(one, &config(&conditions)).unwrap_err();
            assert!(refusal.message.contains("must not have more than"), "{}", refusal.message);
        }
    }

    #[test]
    fn all_together_fill_no_memory_and_each_loses_little() {
        let configs = InlineConfigs::new(ConfigLimits::default());
        let text = |number: usize| format!(r#"{{"request_timeout":{}}}"#, number + 1);
        for workspace in 0..40 {
            for number in 0..30 {
                configs.plan(Uuid::from_u128(workspace), &text(number)).unwrap();
            }
        }
        let known = configs.known.load();
        assert_eq!(known.values().map(HashMap::len).sum::<usize>(), MOST);
        assert!(known.values().all(|plans| plans.len() >= 20), "{:?}", known.values().map(HashMap::len));
    }

    #[test]
    fn who_sends_ever_new_configs_fills_no_memory_and_pushes_out_nobody_elses() {
        let configs = InlineConfigs::new(ConfigLimits::default());
        let (modest, greedy) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let text = |number: usize| format!(r#"{{"request_timeout":{}}}"#, number + 1);
        let kept: Vec<_> = (0..MOST_OF_ONE).map(|number| configs.plan(modest, &text(number)).unwrap()).collect();
        for number in 0..MOST * 2 {
            configs.plan(greedy, &text(number)).unwrap();
        }
        assert!(configs.known.load()[&greedy].len() <= MOST_OF_ONE);
        for (number, plan) in kept.iter().enumerate() {
            assert!(Arc::ptr_eq(plan, &configs.plan(modest, &text(number)).unwrap()), "{number}");
        }
    }
}
