//! The guardrails of an explained request.

use super::survey::Stop;
use crate::catalog::choose_plan::ChosenPlan;
use crate::guardrails::CompiledHook;
use crate::identity::identify::Principal;
use crate::walk::Engine;
use serde_json::{Value, json};
use std::sync::Arc;

impl Engine {
    /// Guardrails that the request would meet, at each target that has some, defaults included. They would run if it were
    /// reached.
    pub(super) fn told_guardrails(&self, stops: &[Stop], found: &ChosenPlan, caller: &Principal) -> Vec<Value> {
        let guards = &self.router.guards;
        let defaults = guards.defaults(caller);
        let guarded = stops.iter().filter_map(|stop| {
            let set = guards.for_leaf(found.plan.leaf(stop.at), caller, defaults.as_ref())?;
            Some(json!({
                "option": found.plan.node(stop.at).path,
                "is_reached": stop.is_reached,
                "is_run": stop.is_reached,
                "input": set.input.iter().map(told_hook).collect::<Vec<_>>(),
                "output": set.output.iter().map(told_hook).collect::<Vec<_>>(),
            }))
        });
        guarded.collect()
    }
}

fn told_hook(hook: &Arc<CompiledHook>) -> Value {
    json!({
        "id": hook.id,
        "checks": hook.checks.iter().map(|check| check.id).collect::<Vec<_>>(),
        "deny": hook.actions.denies,
        "async": hook.actions.is_async,
        "stream": if hook.actions.holds { "hold" } else { "report" },
    })
}
