//! A hook made ready: its checks compiled, its actions read.

use super::meters::{CheckNumber, UNKNOWN};
use super::text_hook::TextHook;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use shared::config::{HOOK_FIELDS, shorthand_check};
use shared::guardrails::{Check, MAX_CHECKS, Scope, Subject, Verdict, check, compile, fails_on_error};
use shared::model::guardrail::GuardrailActions;
use shared::telemetry::{Brief, LogLimit};
use std::fmt;
use std::sync::Arc;

pub struct CompiledHook {
    /// As results name it.
    pub id: String,
    pub kind: HookKind,
    pub actions: GuardrailActions,
    /// Shared by all hooks that name a saved guardrail and say other things besides.
    pub checks: Arc<[CompiledCheck]>,
    /// Another for each that may judge otherwise.
    pub fingerprint: [u8; 16],
    /// Whether it has a check that looks further into a body than at its text.
    pub reads_body: bool,
    /// How it is run on a text, where it looks at nothing else.
    pub on_text: Option<TextHook>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    Guardrail,
    /// Only transforms, one check after the other.
    Mutator,
}

pub struct CompiledCheck {
    pub id: &'static str,
    pub check: Box<dyn Check>,
    /// An error counts as a failure.
    pub fails_on_error: bool,
    pub number: CheckNumber,
}

/// Checks that look at nothing of a body.
const HEAD_CHECKS: &[&str] =
    &["default.allowedRequestTypes", "default.jwt", "default.requiredMetadataKeyPairs", "default.requiredMetadataKeys"];

/// In place of a check that cannot be made, so that it is seen and counted instead of silently missing.
struct Broken(String);

impl Check for Broken {
    fn run(&self, _: &Subject<'_>) -> Verdict {
        Verdict::error("InvalidCheck", self.0.clone())
    }
}

impl CompiledHook {
    /// A hook that is written out: `{id, type, checks, deny, …}`.
    pub fn from_hook(fields: &Map<String, Value>) -> Self {
        let checks = fields.get("checks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        Self::new(name(fields).unwrap_or("hook"), kind(fields), GuardrailActions::read(fields), checks)
    }

    /// In short: whatever is no field of a hook is a check.
    pub fn from_shorthand(fields: &Map<String, Value>, usual_name: &str, usual_kind: HookKind) -> Self {
        let is_check = |(name, _): &(&String, &Value)| !HOOK_FIELDS.contains(&name.as_str());
        let checks: Vec<Value> =
            fields.iter().filter(is_check).map(|(name, parameters)| shorthand_check(name, parameters)).collect();
        let kind = if fields.contains_key("type") { kind(fields) } else { usual_kind };
        Self::new(name(fields).unwrap_or(usual_name), kind, GuardrailActions::read(fields), &checks)
    }

    /// What a saved guardrail says: `{checks, actions}`.
    pub fn from_saved(id: &str, content: &Value, usual_kind: HookKind) -> Self {
        let (kind, actions) = named_actions(content, &Map::new(), usual_kind);
        Self::new(id, kind, actions, written_checks(content))
    }

    /// The same as organisations and workspaces name it for all their requests: nobody narrows what it looks at.
    pub fn from_default(id: &str, content: &Value) -> Self {
        let (kind, actions) = named_actions(content, &Map::new(), HookKind::Guardrail);
        Self::new(id, kind, GuardrailActions { scope: None, ..actions }, written_checks(content))
    }

    /// The same guardrail as a hook names it that says more. Its checks are those that are ready.
    pub fn named_with(&self, content: &Value, with: &Map<String, Value>, usual_kind: HookKind) -> Self {
        let (kind, actions) = named_actions(content, with, usual_kind);
        Self::with_checks(&self.id, kind, actions, written_checks(content), self.checks.clone())
    }

    fn new(id: &str, kind: HookKind, actions: GuardrailActions, checks: &[Value]) -> Self {
        let is_enabled = |check: &&Value| check.get("is_enabled").and_then(Value::as_bool) != Some(false);
        let compiled = checks.iter().filter(is_enabled).take(MAX_CHECKS).map(CompiledCheck::new).collect();
        Self::with_checks(id, kind, actions, checks, compiled)
    }

    fn with_checks(
        id: &str,
        kind: HookKind,
        actions: GuardrailActions,
        written: &[Value],
        checks: Arc<[CompiledCheck]>,
    ) -> Self {
        let mut fingerprint = [0; 16];
        let all = format!("{id}\n{kind:?}\n{actions:?}\n{}", serde_json::to_string(written).unwrap_or_default());
        fingerprint.copy_from_slice(&Sha256::digest(all)[..16]);
        let on_text = TextHook::new(id, kind, &actions, &checks);
        let reads_body = checks.iter().any(|check| check.check.reads_body());
        Self { id: id.to_owned(), kind, actions, checks, fingerprint, reads_body, on_text }
    }

    /// Whether what it cannot read must not pass: it may deny it, or should have replaced something in it.
    pub fn must_read(&self) -> bool {
        let is_changing = |check: &CompiledCheck| check.check.replace("", true).is_some();
        let is_strict = self.actions.denies || self.kind == HookKind::Mutator;
        !self.actions.is_async && (is_strict || self.checks.iter().any(is_changing))
    }

    /// Which texts one of its checks judges.
    pub fn scope(&self, check: &CompiledCheck) -> Scope {
        self.actions.scope.unwrap_or_else(|| check.check.scope())
    }

    /// Whether one of its checks judges every text.
    pub fn searches(&self) -> bool {
        self.checks.iter().any(|check| self.scope(check) == Scope::All)
    }

    /// Whether it looks into a body, and a body that it cannot read must not pass.
    pub fn must_read_bodies(&self) -> bool {
        self.must_read() && self.reads_bodies()
    }

    /// Whether somebody waits for it, and it has a check that looks further than at the head of a request.
    pub fn reads_bodies(&self) -> bool {
        !self.actions.is_async && self.checks.iter().any(|check| !HEAD_CHECKS.contains(&check.id))
    }

    /// Whether it does more than report on streams.
    pub fn stops_streams(&self) -> bool {
        self.actions.holds || !self.actions.denies
    }

    /// Whether it has a check that looks at nothing but the kind of request, and so runs on every route.
    pub fn judges_kinds(&self) -> bool {
        self.checks.iter().any(CompiledCheck::judges_kind)
    }
}

impl CompiledCheck {
    fn new(written: &Value) -> Self {
        let none = Value::Object(Map::new());
        let id = written.get("id").and_then(Value::as_str).unwrap_or_default();
        let parameters = written.get("parameters").filter(|value| value.is_object()).unwrap_or(&none);
        let setting = parameters.get("failOnError").and_then(Value::as_bool);
        let fails_on_error = setting.unwrap_or_else(|| fails_on_error(id));
        let known = check(id).map_or(UNKNOWN, |spec| spec.id);
        let check = compile(id, parameters).unwrap_or_else(|fault| {
            static BROKEN: LogLimit = LogLimit::new();
            if let Some(skipped) = BROKEN.pass() {
                let fault = Brief(&fault);
                tracing::warn!(check = known, %fault, skipped, "a check of a guardrail cannot be run");
            }
            Box::new(Broken(fault.to_string()))
        });
        Self { id: known, check, fails_on_error, number: CheckNumber::from_id(known) }
    }

    pub fn judges_kind(&self) -> bool {
        self.id == "default.allowedRequestTypes"
    }
}

fn written_checks(content: &Value) -> &[Value] {
    content.get("checks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What becomes of a saved guardrail that is named with more said about it.
fn named_actions(
    content: &Value,
    named_with: &Map<String, Value>,
    usual_kind: HookKind,
) -> (HookKind, GuardrailActions) {
    let mut fields = content.get("actions").and_then(Value::as_object).cloned().unwrap_or_default();
    let saved = GuardrailActions::read(&fields);
    let saved_kind = if fields.contains_key("type") { kind(&fields) } else { usual_kind };
    // What a config adds can make it stricter, and never more lenient, as a mutator would be: it denies nothing.
    let is_guardrail = named_with.contains_key("type") && kind(named_with) == HookKind::Guardrail;
    let kind = if is_guardrail { HookKind::Guardrail } else { saved_kind };
    fields.extend(named_with.iter().map(|(name, value)| (name.clone(), value.clone())));
    (kind, GuardrailActions::read(&fields).strictest(saved))
}

fn name(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("id").and_then(Value::as_str)
}

fn kind(fields: &Map<String, Value>) -> HookKind {
    match fields.get("type").and_then(Value::as_str) {
        Some("mutator") => HookKind::Mutator,
        _ => HookKind::Guardrail,
    }
}

/// Not the parameters: they may hold what nobody should read.
impl fmt::Debug for CompiledHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checks: Vec<&str> = self.checks.iter().map(|check| check.id).collect();
        write!(f, "CompiledHook({} {:?} {:?} {checks:?})", self.id, self.kind, self.actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_shorthand_and_a_hook_that_is_written_out_say_the_same() {
        let short = json!({ "default.contains": { "words": ["x"], "operator": "none" }, "deny": true, "id": "h" });
        let whole = json!({ "id": "h", "deny": true, "checks":
            [{ "id": "contains", "parameters": { "words": ["x"], "operator": "none" } },
             { "id": "contains", "parameters": { "words": ["y"] }, "is_enabled": false }] });
        let short = CompiledHook::from_shorthand(short.as_object().unwrap(), "usual", HookKind::Guardrail);
        let whole = CompiledHook::from_hook(whole.as_object().unwrap());
        assert_eq!(format!("{short:?}"), format!("{whole:?}"));
        assert_eq!(whole.checks.len(), 1);
    }

    #[test]
    fn a_config_makes_a_saved_guardrail_stricter_and_never_more_lenient() {
        let content = json!({ "checks": [{ "id": "default.notNull" }], "actions": { "deny": true } });
        let made = |content: &Value, with: &Value, kind: HookKind| {
            CompiledHook::from_saved("pg-1", content, kind).named_with(content, with.as_object().unwrap(), kind)
        };
        let softened = made(&content, &json!({ "deny": false, "async": true, "stream": "hold" }), HookKind::Guardrail);
        assert!(softened.actions.denies && !softened.actions.is_async && softened.actions.holds);
        let content =
            json!({ "checks": [{ "id": "default.notNull" }], "actions": { "on_fail": "deny", "stream": "hold" } });
        let saved = CompiledHook::from_saved("pg-1", &content, HookKind::Guardrail);
        for with in [
            json!({ "type": "mutator" }),
            json!({ "stream": "report" }),
            json!({ "on_fail": {} }),
            json!({ "on_fail": "none", "onFail": "log" }),
            json!({ "soft_deny_200": true }),
            json!({ "deny": null, "async": true }),
        ] {
            let named = made(&content, &with, HookKind::Guardrail);
            assert_eq!(format!("{named:?}"), format!("{saved:?}"), "{with}");
            assert_eq!(named.fingerprint, saved.fingerprint, "{with}");
        }
        let lenient = json!({ "checks": [], "actions": { "async": true } });
        let with = json!({ "async": false, "deny": true, "soft_deny_200": true, "message": "No." });
        let stricter = made(&lenient, &with, HookKind::Mutator);
        assert_eq!(stricter.actions, GuardrailActions::read(with.as_object().unwrap()));
    }

    #[test]
    fn what_cannot_be_read_stops_hooks_that_deny_or_replace() {
        let redact = json!([{ "id": "pii", "parameters": { "redact": true } }]);
        let judge = json!([{ "id": "notNull", "parameters": {} }]);
        for (hook, expected) in [
            (json!({ "checks": judge }), false),
            (json!({ "checks": judge, "deny": true }), true),
            (json!({ "checks": judge, "deny": true, "async": true }), false),
            (json!({ "checks": judge, "type": "mutator" }), true),
            (json!({ "checks": redact }), true),
        ] {
            assert_eq!(CompiledHook::from_hook(hook.as_object().unwrap()).must_read(), expected, "{hook}");
        }
    }

    #[test]
    fn a_check_that_cannot_be_made_is_an_error_and_not_missing() {
        let hook = json!({ "id": "h", "checks": [{ "id": "default.regexMatch", "parameters": { "rule": "(" } }, { "id": "x.y" }] });
        let hook = CompiledHook::from_hook(hook.as_object().unwrap());
        assert_eq!(hook.checks.iter().map(|check| check.id).collect::<Vec<_>>(), ["default.regexMatch", "unknown"]);
    }
}
