//! Which guardrails a request meets at a target: those of its config, then the defaults of its organisation and of its
//! workspace. Saved ones are found in the snapshot and made ready once for each version.

use crate::guardrails::{CompiledHook, GuardInputs, GuardMeters, GuardPlan, HookRef, HookSide, request_type, run_side};
use crate::identity::identify::Principal;
use crate::refusal::Refusal;
use crate::routing::plan::Leaf;
use crate::snapshot::Snapshot;
use http::{HeaderMap, Method};
use serde_json::{Map, Value, json};
use shared::guardrails::{Hook, Shape};
use shared::providers::Family;
use std::sync::Arc;

pub struct Guards {
    pub snapshot: Arc<Snapshot>,
    pub meters: Arc<GuardMeters>,
    /// `GUARDRAILS_ENABLED`. Switched off, none runs.
    pub is_enabled: bool,
}

/// The hooks of a request at a target.
#[derive(Debug, Default)]
pub struct GuardSet {
    pub input: Vec<Arc<CompiledHook>>,
    pub output: Vec<Arc<CompiledHook>>,
}

impl Guards {
    /// `None` where there are none, which is all that a request without guardrails pays.
    pub fn for_leaf(&self, leaf: &Leaf, caller: &Principal) -> Result<Option<GuardSet>, Refusal> {
        let Some(plan) = leaf.guards.as_ref().filter(|_| self.is_enabled) else { return Ok(None) };
        let set = GuardSet {
            input: self.ready(plan, HookSide::Input, caller)?,
            output: self.ready(plan, HookSide::Output, caller)?,
        };
        Ok((!set.input.is_empty() || !set.output.is_empty()).then_some(set))
    }

    /// Whether requests of this kind may be made at all, for routes whose bodies nobody looks into.
    pub fn judge_kind(
        &self,
        leaf: &Leaf,
        caller: &Principal,
        (family, method): (Option<Family>, &Method),
        metadata: &Map<String, Value>,
    ) -> Result<(), Refusal> {
        let Some(set) = self.for_leaf(leaf, caller)? else { return Ok(()) };
        let hooks: Vec<_> = set.input.into_iter().filter(|hook| hook.judges_kinds()).collect();
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: Shape::Other,
            request_type: request_type(family, method, false),
            request: &Value::Null,
            metadata,
            headers: &HeaderMap::new(),
            text: None,
        };
        let side = run_side(&hooks, inputs, &Value::Null, &self.meters);
        let Some(place) = side.denied_by else { return Ok(()) };
        self.meters.denies("input");
        let results = json!({ "before_request_hooks": side.told(), "after_request_hooks": [] });
        Err(Refusal::denied_by_guardrail(hooks[place].actions.message.clone(), results))
    }

    fn ready(&self, plan: &GuardPlan, side: HookSide, caller: &Principal) -> Result<Vec<Arc<CompiledHook>>, Refusal> {
        let mut ready = Vec::with_capacity(plan.side(side).len());
        for hook in plan.side(side) {
            match hook {
                HookRef::Ready(hook) => ready.push(hook.clone()),
                HookRef::Saved { .. } => ready.extend(self.saved(hook, caller)?),
            }
        }
        Ok(ready)
    }

    /// One that is saved. Until they can be found, nothing passes that relies on one.
    fn saved(&self, _: &HookRef, _: &Principal) -> Result<Option<Arc<CompiledHook>>, Refusal> {
        Err(Refusal::not_implemented("a saved guardrail"))
    }
}
