//! Which hooks a target of a config has: made ready when the config is compiled, but for those that it names, which are found
//! when a request comes, since they change without it.

use super::hook::{CompiledHook, HookKind};
use arc_swap::ArcSwapOption;
use serde_json::{Map, Value};
use shared::config::HookSet;
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

#[derive(Debug, Default)]
pub struct GuardPlan {
    pub input: Vec<HookRef>,
    pub output: Vec<HookRef>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookSide {
    Input,
    Output,
}

#[derive(Debug, Clone)]
pub enum HookRef {
    Ready(Arc<CompiledHook>),
    /// A saved guardrail, by id or slug.
    Saved {
        name: String,
        version: Option<String>,
        kind: HookKind,
        /// What the config says besides.
        with: Map<String, Value>,
        /// What was made of both.
        made: Arc<MadeHook>,
    },
}

/// A hook made of one version of a saved guardrail and what a config says besides. It is kept as long as the plan is, and so
/// bounded and shared out between workspaces as plans are.
#[derive(Default)]
pub struct MadeHook(ArcSwapOption<(Uuid, Arc<CompiledHook>)>);

impl MadeHook {
    /// That of this version, or what `make` makes of it.
    pub fn find_or(&self, version: Uuid, make: impl FnOnce() -> CompiledHook) -> Arc<CompiledHook> {
        if let Some((_, hook)) = self.0.load().as_deref().filter(|(of, _)| *of == version) {
            return hook.clone();
        }
        let hook = Arc::new(make());
        self.0.store(Some(Arc::new((version, hook.clone()))));
        hook
    }
}

impl fmt::Debug for MadeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MadeHook({:?})", self.0.load())
    }
}

impl GuardPlan {
    /// `None` without any, which is what requests without guardrails pay.
    pub fn new(input: &HookSet, output: &HookSet) -> Option<Box<Self>> {
        if input.is_empty() && output.is_empty() {
            return None;
        }
        let plan = Self { input: refs(input, HookSide::Input), output: refs(output, HookSide::Output) };
        (!plan.input.is_empty() || !plan.output.is_empty()).then(|| Box::new(plan))
    }

    pub fn side(&self, side: HookSide) -> &[HookRef] {
        match side {
            HookSide::Input => &self.input,
            HookSide::Output => &self.output,
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.input.iter().chain(&self.output).filter_map(|hook| match hook {
            HookRef::Saved { name, .. } => Some(name.as_str()),
            HookRef::Ready(_) => None,
        })
    }
}

/// In the order in which they are reported: hooks, guardrails, mutators.
fn refs(set: &HookSet, side: HookSide) -> Vec<HookRef> {
    let prefix = match side {
        HookSide::Input => "input",
        HookSide::Output => "output",
    };
    let written = |list: &Option<Vec<Value>>| list.clone().unwrap_or_default();
    let mut found = Vec::new();
    for hook in written(&set.hooks) {
        let Some(fields) = hook.as_object() else { continue };
        found.push(match (fields.contains_key("checks"), fields.get("id").and_then(Value::as_str)) {
            // Without checks it can only mean one that is saved.
            (false, Some(name)) => saved(name, fields, HookKind::Guardrail),
            _ => HookRef::Ready(Arc::new(CompiledHook::from_hook(fields))),
        });
    }
    for (list, kind, word) in
        [(&set.guardrails, HookKind::Guardrail, "guardrail"), (&set.mutators, HookKind::Mutator, "mutator")]
    {
        for (index, one) in written(list).iter().enumerate() {
            let has_checks = |fields: &Map<String, Value>| {
                fields.keys().any(|key| !shared::config::HOOK_FIELDS.contains(&key.as_str()))
            };
            match one {
                Value::String(name) => found.push(saved(name, &Map::new(), kind)),
                Value::Object(fields) if !has_checks(fields) => {
                    let name = fields.get("id").and_then(Value::as_str).unwrap_or_default();
                    found.push(saved(name, fields, kind));
                }
                Value::Object(fields) => {
                    let usual = format!("{prefix}_{word}_{index}");
                    found.push(HookRef::Ready(Arc::new(CompiledHook::from_shorthand(fields, &usual, kind))));
                }
                _ => {}
            }
        }
    }
    found
}

fn saved(name: &str, fields: &Map<String, Value>, kind: HookKind) -> HookRef {
    let mut with = fields.clone();
    with.shift_remove("id");
    let version = with.shift_remove("guardrail_version_id").and_then(|version| version.as_str().map(str::to_owned));
    HookRef::Saved { name: name.to_owned(), version, kind, with, made: Arc::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hooks_come_in_their_order_and_names_are_found_later() {
        let list = |value: Value| value.as_array().cloned();
        let set = HookSet {
            hooks: list(
                json!([{ "id": "raw", "checks": [{ "id": "default.notNull", "parameters": {} }] }, { "id": "pg-0" }]),
            ),
            guardrails: list(json!(["pg-1", { "notNull": {} }, { "id": "pg-2", "deny": true }])),
            mutators: list(json!([{ "addPrefix": { "prefix": "p" } }])),
        };
        let plan = GuardPlan::new(&set, &HookSet::default()).unwrap();
        let told: Vec<String> = plan
            .input
            .iter()
            .map(|hook| match hook {
                HookRef::Ready(hook) => format!("{} {:?}", hook.id, hook.kind),
                HookRef::Saved { name, with, .. } => format!("saved {name} {}", with.len()),
            })
            .collect();
        assert_eq!(
            told,
            [
                "raw Guardrail",
                "saved pg-0 0",
                "saved pg-1 0",
                "input_guardrail_1 Guardrail",
                "saved pg-2 1",
                "input_mutator_0 Mutator"
            ]
        );
        assert!(plan.output.is_empty());
        assert!(GuardPlan::new(&HookSet::default(), &HookSet::default()).is_none());
    }

    #[test]
    fn a_hook_is_made_once_for_each_version() {
        let made = MadeHook::default();
        let hook = json!({ "id": "h" });
        let make = || CompiledHook::from_hook(hook.as_object().unwrap());
        let first = made.find_or(Uuid::from_u128(1), make);
        assert!(Arc::ptr_eq(&first, &made.find_or(Uuid::from_u128(1), || panic!("it is known"))));
        let second = made.find_or(Uuid::from_u128(2), make);
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(Arc::ptr_eq(&second, &made.find_or(Uuid::from_u128(2), || panic!("it is known"))));
    }
}
