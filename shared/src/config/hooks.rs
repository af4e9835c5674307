//! Checks before and after a request: their form, and whether each exists and takes its parameters. What a check does with
//! them is its own business.

use super::HookSet;
use super::fault::{Code, Path, Reading};
use super::object::{self, ConfigObject};
use crate::guardrails::remote::MAX_CHECKS as MAX_REMOTE;
use crate::guardrails::{self, FaultKind};
use serde_json::{Value, json};

const TYPES: &[(&str, ())] = &[("guardrail", ()), ("mutator", ())];
const STREAMS: &[(&str, ())] = &[("report", ()), ("hold", ())];
const SCOPES: &[(&str, ())] = &[("last", ()), ("all", ())];
/// A list with more is refused.
const MAX_HOOKS: usize = 50;
/// Checks that are written out in a config, all its targets together: each is made ready when the config is read.
const MAX_CHECKS: usize = 200;
/// What a shorthand says about itself; every other key of it is a check.
pub const RESERVED: &[&str] = &[
    "id",
    "type",
    "deny",
    "async",
    "sequential",
    "on_fail",
    "on_success",
    "guardrail_version_id",
    "soft_deny_200",
    "stream",
    "scope",
    "message",
    "audit",
];

/// The three lists of one side.
pub fn parse(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>, names: [&str; 3]) -> HookSet {
    let [hooks, guardrails, mutators] = names;
    let set = HookSet {
        hooks: list(reading, node, hooks, hook),
        guardrails: list(reading, node, guardrails, reference),
        mutators: list(reading, node, mutators, reference),
    };
    let lists = [(hooks, &set.hooks), (guardrails, &set.guardrails), (mutators, &set.mutators)];
    let mut remote = 0;
    for (name, list) in lists {
        remote += list.iter().flatten().map(remote_checks).sum::<usize>();
        if remote > MAX_REMOTE {
            let why = format!("must not have more than {MAX_REMOTE} checks that others answer, all of a side together");
            reading.fault(&node.path.key(name), Code::TooMany, why);
            break;
        }
    }
    set
}

/// The checks of a hook, or of one in short, that somebody else answers.
fn remote_checks(hook: &Value) -> usize {
    let short = hook.as_object().into_iter().flatten();
    let short = short.filter(|(name, value)| !RESERVED.contains(&name.as_str()) && value.is_object());
    match hook.get("checks").and_then(Value::as_array) {
        Some(checks) => guardrails::remote_checks(checks),
        None => {
            let checks: Vec<Value> = short.map(|(name, parameters)| shorthand_check(name, parameters)).collect();
            guardrails::remote_checks(&checks)
        }
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
    if items.len() > MAX_HOOKS {
        reading.fault(&path, Code::TooMany, format!("must not have more than {MAX_HOOKS} entries"));
        return None;
    }
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
    let faults = reading.faults();
    for (index, item) in checks.iter().enumerate() {
        check(reading, &listed.index(index), item);
    }
    if reading.faults() == faults && !checks.is_empty() && has_room(reading, &listed, checks.len()) {
        known(reading, &listed, &Value::Array(checks.to_vec()), |fault| fault);
    }
    fields.finish(reading);
}

/// Whether the config may have so many checks more; told once when not.
fn has_room(reading: &mut Reading<'_>, path: &Path<'_>, more: usize) -> bool {
    let before = reading.checks;
    reading.checks = before.saturating_add(more);
    if reading.checks > MAX_CHECKS && before <= MAX_CHECKS {
        reading.fault(path, Code::TooMany, format!("must not have more than {MAX_CHECKS} checks in the whole config"));
    }
    reading.checks <= MAX_CHECKS
}

/// Whether the checks exist and take their parameters. `place` says where a fault of the list is in the config.
fn known(
    reading: &mut Reading<'_>,
    path: &Path<'_>,
    checks: &Value,
    place: impl Fn(guardrails::Fault) -> guardrails::Fault,
) {
    for fault in guardrails::validate(checks).err().into_iter().flatten().map(place) {
        let code = match fault.kind {
            FaultKind::WrongType => Code::WrongType,
            FaultKind::Missing => Code::Missing,
            FaultKind::Empty => Code::Empty,
            FaultKind::UnknownName => Code::UnknownKey,
            FaultKind::NotOneOf => Code::NotOneOf,
            FaultKind::OutOfRange => Code::OutOfRange,
            FaultKind::TooMany => Code::TooMany,
            FaultKind::Exclusive => Code::Exclusive,
            FaultKind::Unusable => Code::BadQuery,
        };
        // A parameter that nobody reads harms nobody; a check that is not there would let everything pass.
        let is_parameter = fault.kind == FaultKind::UnknownName && !fault.path.ends_with("id");
        let below = path.key(&fault.path);
        match is_parameter {
            true => reading.tolerate(&below, code, fault.message),
            false => reading.fault(&below, code, fault.message),
        }
    }
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
            continue;
        }
        if !has_room(reading, &path.key(&name), 1) {
            return;
        }
        let one = json!([shorthand_check(&name, parameters)]);
        known(reading, &path.key(&name), &one, |mut fault| {
            let inside = fault.path.trim_start_matches("[0].").trim_start_matches("parameters.");
            fault.path = inside.to_owned();
            fault
        });
    }
}

/// A check of a shorthand as a check of a list: the key, or the `id` among its parameters, names it.
pub fn shorthand_check(name: &str, parameters: &Value) -> Value {
    let mut parameters = parameters.clone();
    let named = parameters.as_object_mut().and_then(|fields| fields.shift_remove("id"));
    let is_enabled = parameters.as_object_mut().and_then(|fields| fields.shift_remove("is_enabled"));
    let id = named.as_ref().and_then(Value::as_str).unwrap_or(name);
    json!({ "id": id, "parameters": parameters, "is_enabled": is_enabled })
}

fn reserved(reading: &mut Reading<'_>, fields: &mut ConfigObject<'_, '_>) {
    for name in RESERVED {
        match *name {
            "type" => drop(fields.choice(reading, name, TYPES)),
            "stream" => drop(fields.choice(reading, name, STREAMS)),
            "scope" => drop(fields.choice(reading, name, SCOPES)),
            "id" | "guardrail_version_id" | "message" => drop(fields.text(reading, name)),
            "on_fail" | "on_success" => drop(fields.opaque(reading, name)),
            _ => drop(fields.flag(reading, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Code, ConfigLimits, Strictness, parse_config};
    use serde_json::{Value, json};

    fn codes(config: &Value) -> Vec<(Code, String)> {
        let faults = parse_config(config, Strictness::Inline, &ConfigLimits::default()).err().unwrap_or_default();
        faults.into_iter().map(|fault| (fault.code, fault.path)).collect()
    }

    #[test]
    fn hooks_and_checks_are_counted_before_they_are_made_ready() {
        let check = json!({ "id": "default.contains", "parameters": { "words": ["x"] } });
        let hooks = |hooks: usize, checks: usize| {
            let hook = json!({ "id": "h", "checks": vec![check.clone(); checks] });
            json!({ "provider": "@x", "before_request_hooks": vec![hook; hooks] })
        };
        assert!(codes(&hooks(4, 50)).is_empty());
        assert_eq!(codes(&hooks(51, 1)), [(Code::TooMany, "before_request_hooks".to_owned())]);
        assert_eq!(codes(&hooks(50, 5)), [(Code::TooMany, "before_request_hooks[40].checks".to_owned())]);
        let short = json!({ "a": { "id": "default.contains", "words": ["x"] }, "b": { "id": "default.contains", "words": ["x"] } });
        let mut config = hooks(4, 50);
        config["input_guardrails"] = json!(vec![short; 50]);
        assert_eq!(codes(&config), [(Code::TooMany, "input_guardrails[0].a".to_owned())]);
    }

    #[test]
    fn checks_that_others_answer_are_counted_for_each_side() {
        let webhook = json!({ "webhookURL": "https://a.test/x" });
        let raw = |count: usize| {
            let check = json!({ "id": "default.webhook", "parameters": webhook });
            json!([{ "id": "h", "checks": vec![check; count] }])
        };
        let short = |count: usize| vec![json!({ "webhook": webhook }); count];
        for (config, expected) in [
            (json!({ "before_request_hooks": raw(10), "input_guardrails": short(10) }), vec![]),
            (json!({ "before_request_hooks": raw(10), "after_request_hooks": raw(20) }), vec![]),
            (json!({ "before_request_hooks": raw(10), "input_guardrails": short(11) }), vec!["input_guardrails"]),
            (json!({ "output_guardrails": short(21) }), vec!["output_guardrails"]),
            (
                json!({ "targets": [{ "provider": "@y", "output_guardrails": short(21) }] }),
                vec!["targets[0].output_guardrails"],
            ),
        ] {
            let mut whole = json!({ "provider": "@x" });
            whole.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
            let told: Vec<String> =
                codes(&whole).into_iter().filter(|(code, _)| *code == Code::TooMany).map(|(_, path)| path).collect();
            assert_eq!(told, expected, "{config}");
        }
    }
}
