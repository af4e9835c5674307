//! Which guardrails a request meets at a target: those of its config, then the defaults of its organisation and of its
//! workspace. Saved ones are asked of a directory, and made ready once for each version.

mod address_probe;
mod default_sets;
mod directory;
mod image_fetch;
mod introspection_cache;
mod model_calls;
mod remote_calls;

pub(crate) use model_calls::ModelCalls;
pub use remote_calls::RemoteCalls;

use super::Engine;
use crate::context::Visit;
use crate::guardrails::{
    CompiledHook, GuardInputs, GuardMeters, GuardPlan, HookKind, HookRef, HookSide, RemoteAsker, both_sides,
    request_type, run_side,
};
use crate::identity::identify::Principal;
use crate::journal::HookLog;
use crate::request::refusal::Refusal;
use crate::routing::plan::Leaf;
use arc_swap::ArcSwap;
use default_sets::DefaultSets;
use http::{HeaderMap, Method};
use serde_json::{Map, Value};
use shared::guardrails::{Hook, Shape};
use shared::model::{Guardrail, GuardrailVersion};
use shared::providers::Family;
use shared::telemetry::{Brief, LogLimit};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use uuid::Uuid;

/// Guardrails made ready; whoever has more makes them anew.
const MAX_READY: usize = 4096;

pub struct Guards {
    pub directory: Arc<dyn GuardrailDirectory>,
    pub meters: Arc<GuardMeters>,
    /// `GUARDRAILS_ENABLED`. Switched off, none runs.
    pub is_enabled: bool,
    /// Who asks others; without it checks that others answer are errors.
    pub asker: Option<Arc<dyn RemoteAsker>>,
    /// Who makes the requests of checks that ask models; without it such checks are errors. It holds these guards.
    engine: OnceLock<Weak<Engine>>,
    /// Saved guardrails by their versions, as they are named without more said about them.
    ready: ArcSwap<HashMap<(Uuid, Naming), Arc<CompiledHook>>>,
    by_default: DefaultSets,
}

/// As what a saved guardrail is named.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Naming {
    Guardrail,
    Mutator,
    /// Of an organisation or workspace.
    Default,
}

/// Where saved guardrails are found. What is not the caller's is not there.
pub trait GuardrailDirectory: Send + Sync {
    /// By id or slug, in the version that is pinned or the current one.
    fn find(&self, caller: &Principal, name: &str, version: Option<&str>) -> Option<SavedGuardrail>;

    /// Another number whenever others may run without being named, besides when the workspace's own row is another; `None` where
    /// none do, which is all that most requests ask.
    fn defaults_at(&self, caller: &Principal) -> Option<u64>;

    /// Those that run without being named, first the organisation's, then the workspace's; `None` where there are none.
    fn defaults(&self, caller: &Principal) -> Option<DefaultHooks>;
}

/// One version of a saved guardrail.
pub struct SavedGuardrail {
    pub slug: String,
    pub version: Uuid,
    pub content: SavedContent,
}

/// `{checks, actions}`, where it is kept.
pub enum SavedContent {
    Current(Arc<Guardrail>),
    Pinned(Arc<GuardrailVersion>),
}

impl SavedContent {
    fn value(&self) -> &Value {
        match self {
            Self::Current(guardrail) => &guardrail.content,
            Self::Pinned(version) => &version.content,
        }
    }
}

#[derive(Default)]
pub struct DefaultHooks {
    pub input: Vec<SavedGuardrail>,
    pub output: Vec<SavedGuardrail>,
}

/// The hooks of a request at a target.
#[derive(Debug, Default)]
pub struct GuardSet {
    pub input: Vec<Arc<CompiledHook>>,
    pub output: Vec<Arc<CompiledHook>>,
}

impl GuardSet {
    fn is_empty(&self) -> bool {
        self.input.is_empty() && self.output.is_empty()
    }
}

impl Guards {
    pub fn new(directory: Arc<dyn GuardrailDirectory>, meters: Arc<GuardMeters>, is_enabled: bool) -> Self {
        Self {
            directory,
            meters,
            is_enabled,
            asker: None,
            engine: OnceLock::new(),
            ready: ArcSwap::default(),
            by_default: DefaultSets::default(),
        }
    }

    #[must_use]
    pub fn with_asker(mut self, asker: Arc<dyn RemoteAsker>) -> Self {
        self.asker = Some(asker);
        self
    }

    /// Models are asked through this engine from here on.
    pub fn ask_models_through(&self, engine: &Arc<Engine>) {
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    pub(crate) fn engine(&self) -> Option<Weak<Engine>> {
        self.engine.get().cloned()
    }

    /// What runs on requests of this caller whatever their config says: asked once for each request. `None` where nothing does,
    /// which is all that a request without guardrails pays.
    pub fn defaults(&self, caller: &Principal) -> Option<Arc<GuardSet>> {
        if !self.is_enabled {
            return None;
        }
        let at = self.directory.defaults_at(caller)?;
        self.by_default.find_or(&caller.workspace, at, || self.made_defaults(caller))
    }

    fn made_defaults(&self, caller: &Principal) -> Option<Arc<GuardSet>> {
        let DefaultHooks { input, output } = self.directory.defaults(caller)?;
        let ready = |list: &[SavedGuardrail]| list.iter().map(|saved| self.ready_default(saved)).collect::<Vec<_>>();
        let set = GuardSet { input: ready(&input), output: ready(&output) };
        (!set.is_empty()).then(|| Arc::new(set))
    }

    /// The hooks of a request at a target, with those that run by default behind the config's own.
    pub fn for_leaf(&self, leaf: &Leaf, caller: &Principal, defaults: Option<&Arc<GuardSet>>) -> Option<Arc<GuardSet>> {
        if !self.is_enabled {
            return None;
        }
        let Some(plan) = &leaf.guards else { return defaults.cloned() };
        let mut set = GuardSet {
            input: self.of_config(plan, HookSide::Input, caller),
            output: self.of_config(plan, HookSide::Output, caller),
        };
        if let Some(defaults) = defaults {
            set.input.extend_from_slice(&defaults.input);
            set.output.extend_from_slice(&defaults.output);
        }
        (!set.is_empty()).then(|| Arc::new(set))
    }

    /// Whether requests of this kind may be made at all, for routes whose bodies nobody looks into.
    pub fn judge_kind(
        &self,
        leaf: &Leaf,
        caller: &Principal,
        (family, method): (Option<(Family, &str)>, &Method),
        metadata: &Map<String, Value>,
        visit: &mut Visit,
    ) -> Result<(), Refusal> {
        visit.routing.is_marked = false;
        let defaults = self.defaults(caller);
        let Some(set) = self.for_leaf(leaf, caller, defaults.as_ref()) else { return Ok(()) };
        let is_asked = |hook: &&Arc<CompiledHook>| hook.judges_kinds() && !hook.actions.is_async;
        let hooks: Vec<_> = set.input.iter().filter(is_asked).cloned().collect();
        if hooks.is_empty() {
            return Ok(());
        }
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: Shape::Unread,
            request_type: request_type(family, method, false),
            request: &Value::Null,
            metadata,
            headers: &HeaderMap::new(),
            text: None,
        };
        let side = run_side(&hooks, inputs, &Value::Null, &self.meters);
        visit.checked(Some(HookLog { results: both_sides(&side.logged(), "[]"), late: None }));
        visit.routing.is_marked = side.is_failed;
        let Some(place) = side.denied_by else { return Ok(()) };
        self.meters.denies("input");
        Err(Refusal::denied_by_guardrail(hooks[place].actions.message.clone(), &both_sides(&side.to_json(), "[]")))
    }

    fn of_config(&self, plan: &GuardPlan, side: HookSide, caller: &Principal) -> Vec<Arc<CompiledHook>> {
        let mut hooks = Vec::with_capacity(plan.side(side).len());
        for hook in plan.side(side) {
            let (name, version, kind, with, made) = match hook {
                HookRef::Ready(hook) => {
                    hooks.push(hook.clone());
                    continue;
                }
                HookRef::Saved { name, version, kind, with, made } => (name, version, *kind, with, made),
            };
            match self.directory.find(caller, name, version.as_deref()) {
                Some(saved) if with.is_empty() => hooks.push(self.ready(&saved, kind)),
                Some(saved) => {
                    hooks.push(made.find_or(saved.version, || {
                        self.ready(&saved, kind).named_with(saved.content.value(), with, kind)
                    }))
                }
                // It was deleted (decision 50): the rest of the config still holds.
                None => {
                    static UNKNOWN: LogLimit = LogLimit::new();
                    if let Some(skipped) = UNKNOWN.pass() {
                        let (workspace, guardrail) = (caller.workspace.id.uuid(), Brief(name));
                        tracing::warn!(%workspace, %guardrail, skipped, "a config names a guardrail that does not exist");
                    }
                }
            }
        }
        hooks
    }

    fn ready(&self, saved: &SavedGuardrail, kind: HookKind) -> Arc<CompiledHook> {
        let naming = if kind == HookKind::Mutator { Naming::Mutator } else { Naming::Guardrail };
        self.ready_or((saved.version, naming), || CompiledHook::from_saved(&saved.slug, saved.content.value(), kind))
    }

    fn ready_default(&self, saved: &SavedGuardrail) -> Arc<CompiledHook> {
        let make = || CompiledHook::from_default(&saved.slug, saved.content.value());
        self.ready_or((saved.version, Naming::Default), make)
    }

    fn ready_or(&self, key: (Uuid, Naming), make: impl FnOnce() -> CompiledHook) -> Arc<CompiledHook> {
        if let Some(known) = self.ready.load().get(&key) {
            return known.clone();
        }
        let hook = Arc::new(make());
        self.ready.rcu(|known| {
            let mut more = if known.len() < MAX_READY { (**known).clone() } else { HashMap::new() };
            more.insert(key, hook.clone());
            more
        });
        hook
    }
}
