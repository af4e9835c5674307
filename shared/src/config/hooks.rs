//! The form of checks before and after a request. What a check does with its parameters is the check's business.

use super::HookSet;
use super::fault::{Code, Path, Reading};
use super::object::{self, ConfigObject};
use serde_json::Value;

const TYPES: &[(&str, ())] = &[("guardrail", ()), ("mutator", ())];
/// What a shorthand says about itself; every other key of it is a check.
const RESERVED: &[&str] =
    &["id", "type", "deny", "async", "sequential", "on_fail", "on_success", "guardrail_version_id", "soft_deny_200"];

/// The three lists of one side.
pub fn parse(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>, names: [&str; 3]) -> HookSet {
    let [hooks, guardrails, mutators] = names;
    HookSet {
        hooks: list(reading, node, hooks, hook),
        guardrails: list(reading, node, guardrails, reference),
        mutators: list(reading, node, mutators, reference),
    }
}

fn list(
    reading: &mut Reading<'_>,
    node: &mut ConfigObject<'_, '_>,
    name: &str,
    check: fn(&mut Reading<'_>, &Path<'_>, &Value),
) -> Option<Vec<Value>> {
    let items = node.array(reading, name)?;
    let path = node.path.key(name);
    for (index, item) in items.iter().enumerate() {
        check(reading, &path.index(index), item);
    }
    Some(items.to_vec())
}

fn hook(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) {
    let Some(mut fields) = ConfigObject::verbatim(reading, path, value) else { return };
    if !fields.has("id") {
        reading.fault(&path.key("id"), Code::Missing, "is required");
    }
    reserved(reading, &mut fields);
    let checks = fields.array(reading, "checks").unwrap_or_default();
    let listed = path.key("checks");
    for (index, item) in checks.iter().enumerate() {
        check(reading, &listed.index(index), item);
    }
    fields.finish(reading);
}

fn check(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) {
    let Some(mut fields) = ConfigObject::verbatim(reading, path, value) else { return };
    for name in ["id", "parameters"] {
        if !fields.has(name) {
            reading.fault(&path.key(name), Code::Missing, "is required");
        }
    }
    fields.text(reading, "id");
    fields.text(reading, "name");
    fields.opaque(reading, "parameters");
    fields.flag(reading, "is_enabled");
    fields.finish(reading);
}

/// The name of a saved guardrail, or a guardrail in short.
fn reference(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) {
    if value.is_string() {
        object::text(reading, path, value);
        return;
    }
    let Some(mut fields) = ConfigObject::verbatim(reading, path, value) else {
        return;
    };
    let names_a_saved_one = fields.has("id");
    reserved(reading, &mut fields);
    let checks = fields.rest();
    if checks.is_empty() && !names_a_saved_one {
        reading.fault(path, Code::Empty, "must have a check or the id of a guardrail");
    }
    for (name, parameters) in checks {
        if !parameters.is_object() {
            reading.fault(&path.key(&name), Code::WrongType, "must be the parameters of a check, an object");
        }
    }
}

fn reserved(reading: &mut Reading<'_>, fields: &mut ConfigObject<'_, '_>) {
    for name in RESERVED {
        match *name {
            "type" => drop(fields.choice(reading, name, TYPES)),
            "id" | "guardrail_version_id" => drop(fields.text(reading, name)),
            "on_fail" | "on_success" => drop(fields.opaque(reading, name)),
            _ => drop(fields.flag(reading, name)),
        }
    }
}
