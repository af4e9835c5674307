//! The table of checks as the interface shows and asks it. What a check is stands in `shared::guardrails`, which the proxy
//! reads too.

use super::trial_subject::{TrialSide, TrialSubject};
use crate::http::FieldFault;
use axum::http::HeaderMap;
use chrono::Utc;
use serde_json::{Map, Value, json};
use shared::guardrails::{
    self, Check, CheckSpec, FaultKind, Hook, ParameterKind, ParameterSpec, Shape, Subject, Verdict,
};
use std::collections::BTreeSet;

/// What is wrong with a list of checks, each by its path in the body.
pub fn faults(checks: &Value) -> Vec<FieldFault> {
    let faults = guardrails::validate(checks).err().unwrap_or_default();
    faults.into_iter().map(|fault| field_fault(checks, fault)).collect()
}

/// With the nearest id as a field of its own, where an id is unknown.
fn field_fault(checks: &Value, fault: guardrails::Fault) -> FieldFault {
    let index = fault.path.strip_prefix('[').and_then(|rest| rest.strip_suffix("].id"));
    let id = index.and_then(|index| checks.get(index.parse::<usize>().ok()?)?["id"].as_str());
    let is_unknown = fault.kind == FaultKind::UnknownName;
    let path = format!("checks{}", fault.path);
    match id.filter(|_| is_unknown) {
        Some(id) => FieldFault::unknown(path, id, "a check; GET /guardrails/checks lists them", guardrails::ids()),
        None => FieldFault::new(path, fault.message),
    }
}

/// Whose credentials a check needs.
pub fn plugin(id: &str) -> Option<&'static str> {
    guardrails::check(id)?.plugin
}

/// Every vendor whose credentials can be stored.
pub fn plugins() -> Vec<&'static str> {
    guardrails::all().filter_map(|spec| spec.plugin).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Every check, as answers show it.
pub fn listed() -> Vec<Value> {
    guardrails::all().map(shown).collect()
}

/// They change what they look at and judge nothing.
const TRANSFORMERS: &[&str] =
    &["default.addPrefix", "default.regexReplace", "default.inlineImageUrls", "exa.online", "tavily.search"];

fn shown(spec: &CheckSpec) -> Value {
    let hooks = [(spec.hooks.input, Hook::BeforeRequest), (spec.hooks.output, Hook::AfterRequest)];
    let hooks: Vec<&str> = hooks.iter().filter(|(runs, _)| *runs).map(|(_, hook)| hook.event()).collect();
    let fields: Map<String, Value> = spec.parameters.iter().map(|one| (one.name.to_owned(), schema(one))).collect();
    let required: Vec<&str> = spec.parameters.iter().filter(|one| one.is_required).map(|one| one.name).collect();
    json!({
        "id": spec.id,
        "name": spec.name,
        "type": if TRANSFORMERS.contains(&spec.id) { "transformer" } else { "guardrail" },
        "supported_hooks": hooks,
        "parameters": { "type": "object", "properties": fields, "required": required },
        "plugin": spec.plugin,
        "is_run": true,
    })
}

/// JSON Schema of one parameter.
fn schema(parameter: &ParameterSpec) -> Value {
    let mut schema = match parameter.kind {
        ParameterKind::Text => json!({ "type": "string" }),
        ParameterKind::Url => json!({ "type": "string", "format": "uri" }),
        ParameterKind::Flag => json!({ "type": "boolean" }),
        ParameterKind::Number { least, most, is_whole } => {
            json!({ "type": if is_whole { "integer" } else { "number" }, "minimum": least, "maximum": most })
        }
        ParameterKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        ParameterKind::Choice(words) => json!({ "type": "string", "enum": words }),
        ParameterKind::Choices(words) => json!({ "type": "array", "items": { "type": "string", "enum": words } }),
        ParameterKind::Object => json!({ "type": "object" }),
        ParameterKind::ObjectOrText => json!({ "type": ["object", "string"] }),
    };
    if let Ok(default) = serde_json::from_str::<Value>(parameter.default) {
        schema["default"] = default;
    }
    schema
}

pub fn is_enabled(check: &Value) -> bool {
    check["is_enabled"] != json!(false)
}

/// A check of a trial, made ready, and when it would run.
pub fn prepare(check: &Value, subject: &TrialSubject) -> Result<(Box<dyn Check>, Hook), Value> {
    let id = check["id"].as_str().unwrap_or_default();
    let Some(spec) = guardrails::check(id) else { return Err(error("UnknownCheck", "there is no such check")) };
    let hook = match subject.side {
        TrialSide::Input => Hook::BeforeRequest,
        TrialSide::Either if spec.hooks.input => Hook::BeforeRequest,
        TrialSide::Output | TrialSide::Either => Hook::AfterRequest,
    };
    match hook {
        Hook::BeforeRequest if !spec.hooks.input => return Err(error("WrongSide", "this check looks at answers only")),
        Hook::AfterRequest if !spec.hooks.output => {
            return Err(error("WrongSide", "this check looks at requests only"));
        }
        _ => {}
    }
    match guardrails::compile(id, check.get("parameters").unwrap_or(&Value::Null)) {
        Ok(compiled) => Ok((compiled, hook)),
        Err(fault) => Err(error("BadParameters", &fault.to_string())),
    }
}

/// What one check says. Those that ask somebody else are not asked here, and say so.
pub fn run(check: &Value, subject: &TrialSubject) -> Value {
    match prepare(check, subject) {
        Ok((compiled, hook)) => describe_verdict(compiled.run(&judged(subject, &*compiled, hook, &HeaderMap::new()))),
        Err(error) => error,
    }
}

/// What a check of a trial looks at.
pub fn judged<'s>(subject: &'s TrialSubject, check: &dyn Check, hook: Hook, headers: &'s HeaderMap) -> Subject<'s> {
    let (shape, request_type) = shape(subject, hook);
    Subject {
        hook,
        shape,
        request_type,
        request: &subject.request,
        response: (hook == Hook::AfterRequest).then_some(&subject.response),
        metadata: &subject.metadata,
        headers,
        now: Utc::now().timestamp(),
        text: None,
        is_growing: false,
        scope: check.scope(),
    }
}

pub fn describe_verdict(verdict: Verdict) -> Value {
    let mut shown = verdict.to_json();
    if let Some(json) = verdict.transformed {
        shown["transformed_data"] = json;
    }
    shown
}

pub fn error(name: &str, message: &str) -> Value {
    let error = json!({ "name": name, "message": message });
    json!({ "verdict": false, "data": null, "transformed": false, "error": error })
}

/// By the fields that only one format has; a chat unless they say otherwise.
fn shape(subject: &TrialSubject, hook: Hook) -> (Shape, &'static str) {
    let request = |name: &str| subject.request.get(name).is_some();
    let response = |name: &str| hook == Hook::AfterRequest && subject.response.get(name).is_some();
    let says_text = || subject.response.pointer("/choices/0/text").is_some();
    let blocks = || subject.request.pointer("/messages/0/content/0");
    if response("candidates") || request("contents") {
        (Shape::Gemini, "chatComplete")
    } else if subject.response.pointer("/output/message").is_some()
        || blocks().is_some_and(|block| block.is_object() && block.get("type").is_none())
    {
        (Shape::Converse, "chatComplete")
    } else if response("output") {
        (Shape::Responses, "createModelResponse")
    } else if response("content") {
        (Shape::Messages, "messages")
    } else if request("prompt") || (response("choices") && says_text()) {
        (Shape::Completions, "complete")
    } else if request("input") && request("dimensions") {
        (Shape::Embeddings, "embed")
    } else if request("input") {
        (Shape::Responses, "createModelResponse")
    } else {
        (Shape::Chat, "chatComplete")
    }
}
