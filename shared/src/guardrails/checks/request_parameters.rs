//! `requestParametersCheck`: which tools and which parameters a request may have (spec 2.4b). An allow list counts when it has
//! entries; an entry in both lists is a mistake of the author's.

use crate::guardrails::check::Check;
use crate::guardrails::declared_tools::declared_tools;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::{Parameters, texts};
use crate::guardrails::subject::{Shape, Subject};
use crate::guardrails::verdict::Verdict;
use serde_json::{Map, Value, json};

/// As many are told.
const MAX_VIOLATIONS: usize = 100;

struct RequestParameters {
    tool_types: Lists<String>,
    tool_names: Lists<String>,
    keys: Lists<String>,
    values: Vec<(String, Lists<Value>)>,
}

struct Lists<T> {
    blocked: Vec<T>,
    allowed: Vec<T>,
}

impl<T: PartialEq> Lists<T> {
    /// The reasons why it may not be there.
    fn judge(&self, one: &T, blocked: &'static str, not_allowed: &'static str) -> Option<&'static str> {
        if self.blocked.contains(one) {
            return Some(blocked);
        }
        (!self.allowed.is_empty() && !self.allowed.contains(one)).then_some(not_allowed)
    }
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let none = Value::Null;
    let (tools, params) = (parameters.get("tools").unwrap_or(&none), parameters.get("params").unwrap_or(&none));
    known(tools, "tools", &["blockedTypes", "allowedTypes", "blockedFunctionNames", "allowedFunctionNames"])?;
    known(params, "params", &["blockedKeys", "allowedKeys", "values"])?;
    let mut values = Vec::new();
    let by_key = match params.get("values") {
        None | Some(Value::Null) => None,
        Some(Value::Object(fields)) => Some(fields),
        Some(_) => return Err(Fault::new(FaultKind::WrongType, "params.values", "must be an object")),
    };
    for (key, lists) in by_key.into_iter().flatten() {
        let path = format!("params.values.{key}");
        known(lists, &path, &["blockedValues", "allowedValues"])?;
        let read = |name: &str| primitives(lists.get(name), &format!("{path}.{name}"));
        let lists = Lists { blocked: read("blockedValues")?, allowed: read("allowedValues")? };
        contradiction(&lists, &path)?;
        values.push((key.clone(), lists));
    }
    let names = |of: &Value, path: &str, blocked: &str, allowed: &str| {
        let lists = Lists { blocked: listed(of, path, blocked)?, allowed: listed(of, path, allowed)? };
        contradiction(&lists, path)?;
        Ok::<_, Fault>(lists)
    };
    Ok(Box::new(RequestParameters {
        tool_types: names(tools, "tools", "blockedTypes", "allowedTypes")?,
        tool_names: names(tools, "tools", "blockedFunctionNames", "allowedFunctionNames")?,
        keys: names(params, "params", "blockedKeys", "allowedKeys")?,
        values,
    }))
}

fn known(value: &Value, path: &str, names: &[&str]) -> Result<(), Fault> {
    if value.is_null() {
        return Ok(());
    }
    let Some(fields) = value.as_object() else {
        return Err(Fault::new(FaultKind::WrongType, path, "must be an object"));
    };
    match fields.keys().find(|name| !names.contains(&name.as_str())) {
        Some(name) => {
            Err(Fault::unknown(format!("{path}.{name}"), "a list of this check", name, names.iter().copied()))
        }
        None => Ok(()),
    }
}

fn listed(of: &Value, path: &str, name: &str) -> Result<Vec<String>, Fault> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(list) if list.as_array().is_some_and(|items| items.iter().all(Value::is_string)) => Ok(texts(list)),
        Some(_) => Err(Fault::new(FaultKind::WrongType, format!("{path}.{name}"), "must be a list of texts")),
    }
}

fn primitives(list: Option<&Value>, path: &str) -> Result<Vec<Value>, Fault> {
    let is_primitive = |value: &Value| !value.is_object() && !value.is_array();
    match list {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) if items.iter().all(is_primitive) => Ok(items.clone()),
        Some(_) => Err(Fault::new(FaultKind::WrongType, path, "must be a list of texts, numbers, true or false")),
    }
}

fn contradiction<T: PartialEq>(lists: &Lists<T>, path: &str) -> Result<(), Fault> {
    match lists.allowed.iter().any(|one| lists.blocked.contains(one)) {
        true => Err(Fault::new(FaultKind::Exclusive, path, "has an entry that is both blocked and allowed")),
        false => Ok(()),
    }
}

impl Check for RequestParameters {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        let none = Map::new();
        let body = subject.request.as_object().unwrap_or(&none);
        let mut violations = Vec::new();
        for (kind, name) in declared_tools(subject.shape, subject.request) {
            self.tool(&kind, &name, &mut violations);
        }
        let is_vendors = matches!(subject.shape, Shape::Gemini | Shape::Converse);
        for (key, value) in body {
            let mut reasons = Vec::new();
            // A vendor's path says these; only their values are the client's.
            if !(is_vendors && matches!(key.as_str(), "model" | "stream")) {
                reasons.extend(self.keys.judge(key, "key_blocked", "key_not_allowed"));
            }
            let lists = self.values.iter().find(|(name, _)| name == key).map(|(_, lists)| lists);
            reasons.extend(lists.and_then(|lists| lists.judge(value, "value_blocked", "value_not_allowed")));
            if !reasons.is_empty() {
                violations.push(json!({ "item": key, "reasons": reasons }));
            }
        }
        let count = violations.len();
        violations.truncate(MAX_VIOLATIONS);
        let explanation = match count {
            0 => "Every parameter and tool is allowed.".to_owned(),
            _ => format!("{count} parameters or tools are not allowed."),
        };
        Verdict::new(count == 0, explanation, json!({ "violations": violations }))
    }
}

impl RequestParameters {
    fn tool(&self, kind: &String, name: &String, violations: &mut Vec<Value>) {
        let mut reasons = Vec::new();
        reasons.extend(self.tool_types.judge(kind, "type_blocked", "type_not_allowed"));
        reasons.extend(self.tool_names.judge(name, "name_blocked", "name_not_allowed"));
        if !reasons.is_empty() {
            violations.push(json!({ "item": name, "reasons": reasons }));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::guardrails::compile;
    use crate::guardrails::subject::testing::{run, said};
    use serde_json::json;

    #[test]
    fn a_block_wins_and_an_allow_list_with_entries_is_strict() {
        let body = json!({ "model": "m", "seed": 1, "temperature": 0.5 });
        let function = |name: &str| json!({ "type": "function", "function": { "name": name } });
        let tools = json!({ "model": "m", "tools": [function("a"), function("b"), { "type": "web_search" }] });
        for (parameters, body, reasons) in [
            (json!({}), &body, &[][..]),
            (json!({ "params": { "blockedKeys": ["seed"] } }), &body, &["key_blocked"]),
            (json!({ "params": { "blockedKeys": ["stop"] } }), &body, &[]),
            (json!({ "params": { "allowedKeys": ["model", "seed"] } }), &body, &["key_not_allowed"]),
            (json!({ "params": { "allowedKeys": [] } }), &body, &[]),
            (json!({ "params": { "values": { "seed": { "blockedValues": [1] } } } }), &body, &["value_blocked"]),
            (json!({ "params": { "values": { "seed": { "allowedValues": ["1"] } } } }), &body, &["value_not_allowed"]),
            (json!({ "params": { "values": { "model": { "allowedValues": ["m", "é"] } } } }), &body, &[]),
            (json!({ "params": { "values": { "absent": { "allowedValues": [1] } } } }), &body, &[]),
            (json!({ "tools": { "blockedTypes": ["web_search"] } }), &tools, &["type_blocked"]),
            (json!({ "tools": { "allowedTypes": ["function"] } }), &tools, &["type_not_allowed"]),
            (json!({ "tools": { "blockedFunctionNames": ["a"] } }), &tools, &["name_blocked"]),
            (json!({ "tools": { "allowedFunctionNames": ["a", "b"] } }), &tools, &["name_not_allowed"]),
            (
                json!({ "tools": { "blockedTypes": ["web_search"], "blockedFunctionNames": ["web_search"] } }),
                &tools,
                &["type_blocked", "name_blocked"],
            ),
            (json!({ "tools": { "blockedFunctionNames": ["a"] } }), &body, &[]),
        ] {
            let verdict = run("requestParametersCheck", &parameters, body);
            let data = verdict.data.value();
            let told: Vec<_> = data["violations"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|one| one["reasons"].as_array().unwrap().iter().filter_map(|reason| reason.as_str()))
                .collect();
            assert_eq!(told, reasons, "{parameters}");
            assert_eq!(said(&verdict), if reasons.is_empty() { "pass" } else { "fail" }, "{parameters}");
        }
    }

    #[test]
    fn lists_that_contradict_each_other_or_have_another_form_are_refused() {
        for parameters in [
            json!({ "params": { "blockedKeys": ["a"], "allowedKeys": ["a"] } }),
            json!({ "tools": { "blockedTypes": ["a"], "allowedTypes": ["a"] } }),
            json!({ "params": { "values": { "a": { "blockedValues": [1], "allowedValues": [1] } } } }),
            json!({ "params": { "blockedKey": ["a"] } }),
            json!({ "params": { "blockedKeys": "a" } }),
            json!({ "params": { "values": { "a": { "blockedValues": [{}] } } } }),
            json!({ "tools": [] }),
        ] {
            assert!(compile("requestParametersCheck", &parameters).is_err(), "{parameters}");
        }
    }
}
