//! The guardrails of an explained request, and what those of its checks say of it that ask nobody.

use super::Explainer;
use super::survey::Stop;
use super::{ExplainedLane, Hypothesis};
use crate::catalog::choose_plan::ChosenPlan;
use crate::guardrails::{
    CompiledHook, GuardInputs, GuardMeters, has_remote, parse_unique, request_type, run_side, shape,
};
use crate::identity::identify::Principal;
use crate::request::body::Fields;
use crate::runtime::heavy::SMALL;
use serde_json::{Map, Value, json};
use shared::guardrails::Hook;
use std::collections::HashMap;
use std::sync::Arc;

/// Hooks that are tried out for one question.
const MAX_TRIED: usize = 32;

impl Explainer {
    /// Guardrails that the request would meet, at each target that has some, defaults included. They would run if it were
    /// reached.
    pub(super) fn describe_guardrails(
        &self,
        stops: &[Stop],
        found: &ChosenPlan,
        caller: &Principal,
        (hypothesis, fields): (&Hypothesis, &Fields<'_>),
        metadata: &Map<String, Value>,
    ) -> Vec<Value> {
        let guards = &self.router.guards;
        let defaults = guards.defaults(caller);
        let sets = stops.iter().filter_map(|stop| {
            let set = guards.for_leaf(found.plan.leaf(stop.at), caller, defaults.as_ref())?;
            Some((stop, set))
        });
        let sets: Vec<_> = sets.collect();
        if sets.is_empty() {
            return Vec::new();
        }
        let body = hypothesis.judged_body();
        let mut trial = body.as_ref().and_then(|body| Trial::new(hypothesis, fields, metadata, body));
        let mut described = Vec::with_capacity(sets.len());
        for (stop, set) in sets {
            // What a stored prompt makes of the request is another body.
            let is_same_body = found.plan.leaf(stop.at).prompt_id.is_none();
            let mut says = |hook: &Arc<CompiledHook>| trial.as_mut().filter(|_| is_same_body)?.says(hook);
            let input: Vec<Value> = set.input.iter().map(|hook| describe_hook(hook, says(hook))).collect();
            described.push(json!({
                "option": found.plan.node(stop.at).path,
                "is_reached": stop.is_reached,
                "is_run": stop.is_reached,
                "input": input,
                "output": set.output.iter().map(|hook| describe_hook(hook, None)).collect::<Vec<_>>(),
            }));
        }
        described
    }
}

impl Hypothesis {
    /// What hooks would look at; none of a question without a body, or with a long one.
    fn judged_body(&self) -> Option<Value> {
        let is_judged = (self.has_body || self.prompt.is_some()) && self.body.len() <= SMALL;
        if is_judged { parse_unique(&self.body).ok() } else { None }
    }
}

/// Hooks tried out on the request of a question. Nobody is asked, and nothing counted.
struct Trial<'t> {
    inputs: GuardInputs<'t>,
    body: &'t Value,
    meters: GuardMeters,
    known: HashMap<[u8; 16], Value>,
}

impl<'t> Trial<'t> {
    fn new(
        hypothesis: &'t Hypothesis,
        fields: &Fields<'_>,
        metadata: &'t Map<String, Value>,
        body: &'t Value,
    ) -> Option<Self> {
        let ExplainedLane::Engine(endpoint) = &hypothesis.route else { return None };
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: shape(endpoint.family(), endpoint.native_route()),
            request_type: request_type(Some((endpoint.family(), "")), &hypothesis.method, fields.is_true("stream")),
            request: body,
            metadata,
            headers: &hypothesis.headers,
            text: None,
        };
        Some(Self { inputs, body, meters: GuardMeters::unregistered(), known: HashMap::new() })
    }

    /// What a hook says; none where others would have to be asked.
    fn says(&mut self, hook: &Arc<CompiledHook>) -> Option<Value> {
        if let Some(known) = self.known.get(&hook.fingerprint) {
            return Some(known.clone());
        }
        let hooks = std::slice::from_ref(hook);
        if has_remote(hooks) || self.known.len() == MAX_TRIED {
            return None;
        }
        let side = run_side(hooks, self.inputs, self.body, &self.meters);
        let hook_log: Value = serde_json::from_str(&side.hooks.first()?.json).ok()?;
        let checks = hook_log["checks"].as_array()?.iter().map(|check| {
            json!({ "id": check["id"], "verdict": check["verdict"], "transformed": check["transformed"],
                    "data": check["data"], "error": check.get("error") })
        });
        let says = json!({ "verdict": hook_log["verdict"], "deny": hook_log["deny"], "transformed": hook_log["transformed"],
                           "checks": checks.collect::<Vec<_>>() });
        self.known.insert(hook.fingerprint, says.clone());
        Some(says)
    }
}

fn describe_hook(hook: &Arc<CompiledHook>, says: Option<Value>) -> Value {
    json!({
        "id": hook.id,
        "checks": hook.checks.iter().map(|check| check.id).collect::<Vec<_>>(),
        "deny": hook.actions.denies,
        "async": hook.actions.is_async,
        "stream": if hook.actions.holds { "hold" } else { "report" },
        "says": says,
    })
}
