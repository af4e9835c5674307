//! What hooks said, as `hook_results` tells it. No parameter and no credential of a check stands in it.

use super::hook::{CompiledHook, HookKind};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};
use shared::guardrails::Verdict;
use shared::model::guardrail::Feedback;
use std::time::Duration;

#[derive(Debug)]
pub struct HookResult {
    pub id: String,
    pub verdict: bool,
    pub is_async: bool,
    pub deny: bool,
    /// It denied something that the audit trail is to know of.
    pub is_audited: bool,
    pub json: Value,
}

/// One check's verdict and how long it took.
pub struct CheckResult {
    pub id: &'static str,
    pub verdict: Verdict,
    pub is_transformed: bool,
    pub fails_on_error: bool,
    pub took: Duration,
    pub at: DateTime<Utc>,
}

impl HookResult {
    pub fn new(hook: &CompiledHook, checks: &[CheckResult], took: Duration, at: DateTime<Utc>) -> Self {
        let verdict = checks.iter().all(|check| check.verdict.passes(check.fails_on_error));
        let is_forbidden = checks.iter().any(|check| check.verdict.forbids());
        let deny = (hook.actions.denies && !verdict || is_forbidden) && !hook.actions.is_async;
        let json = json!({
            "verdict": verdict,
            "id": hook.id,
            "transformed": checks.iter().any(|check| check.is_transformed),
            "checks": checks.iter().map(CheckResult::to_json).collect::<Vec<_>>(),
            "feedback": feedback(hook, checks),
            "execution_time": millis(took),
            "async": hook.actions.is_async,
            "type": match hook.kind { HookKind::Guardrail => "guardrail", HookKind::Mutator => "mutator" },
            "created_at": written(at),
            "deny": deny,
        });
        let is_audited = deny && hook.actions.is_audited;
        Self { id: hook.id.clone(), verdict, is_async: hook.actions.is_async, deny, is_audited, json }
    }

    /// As the log tells it, and from there the audit trail.
    pub fn logged(&self) -> Value {
        let mut json = self.json.clone();
        if self.is_audited {
            json["audit"] = json!(true);
        }
        json
    }

    /// It did not run.
    pub fn skipped(hook: &CompiledHook, at: DateTime<Utc>) -> Self {
        let mut result = Self::new(hook, &[], Duration::ZERO, at);
        result.json["skipped"] = json!(true);
        result.json["feedback"] = Value::Null;
        result
    }
}

impl CheckResult {
    fn to_json(&self) -> Value {
        let mut json = self.verdict.to_json();
        json["id"] = json!(self.id);
        json["transformed"] = json!(self.is_transformed);
        json["execution_time"] = json!(millis(self.took));
        json["created_at"] = json!(written(self.at));
        json["log"] = Value::Null;
        json["fail_on_error"] = json!(self.fails_on_error);
        json
    }
}

/// For the trace of the request: of success when every check passed or could not look.
fn feedback(hook: &CompiledHook, checks: &[CheckResult]) -> Value {
    let is_success = checks.iter().all(|check| check.verdict.passes(false));
    let chosen = if is_success { &hook.actions.on_success } else { &hook.actions.on_fail };
    let Some(Feedback { value, weight, metadata }) = chosen else { return Value::Null };
    let mut metadata = match metadata {
        Value::Object(fields) => fields.clone(),
        Value::Null => serde_json::Map::new(),
        other => serde_json::Map::from_iter([("note".to_owned(), other.clone())]),
    };
    let ids = |wanted: fn(&CheckResult) -> bool| {
        checks.iter().filter(|check| wanted(check)).map(|check| check.id).collect::<Vec<_>>().join(", ")
    };
    metadata.insert("successfulChecks".into(), ids(|check| check.verdict.verdict).into());
    metadata.insert("failedChecks".into(), ids(|check| !check.verdict.verdict && check.verdict.error.is_none()).into());
    metadata.insert("erroredChecks".into(), ids(|check| check.verdict.error.is_some()).into());
    json!({ "value": value, "weight": weight, "metadata": metadata })
}

fn millis(took: Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn written(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
