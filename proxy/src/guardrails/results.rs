//! What hooks said, as `hook_results` tells it. No parameter and no credential of a check stands in it. It is written once, as
//! text: the client's answer and the log get the same bytes.

use super::hook::{CompiledHook, HookKind};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use shared::guardrails::Verdict;
use shared::model::guardrail::Feedback;
use std::borrow::Cow;
use std::time::Duration;

#[derive(Debug)]
pub struct HookResult {
    pub id: String,
    pub verdict: bool,
    pub is_async: bool,
    pub deny: bool,
    /// It denied something that the audit trail is to know of.
    pub is_audited: bool,
    /// Written as JSON.
    pub json: String,
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

#[derive(Serialize)]
struct ToldHook<'h> {
    verdict: bool,
    id: &'h str,
    transformed: bool,
    checks: Vec<ToldCheck<'h>>,
    feedback: Value,
    execution_time: u64,
    #[serde(rename = "async")]
    is_async: bool,
    #[serde(rename = "type")]
    kind: &'static str,
    created_at: &'h str,
    deny: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<bool>,
}

#[derive(Serialize)]
struct ToldCheck<'h> {
    verdict: bool,
    data: &'h Value,
    transformed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToldError<'h>>,
    id: &'static str,
    execution_time: u64,
    created_at: Cow<'h, str>,
    log: (),
    fail_on_error: bool,
}

#[derive(Serialize)]
struct ToldError<'h> {
    name: &'static str,
    message: &'h str,
}

impl HookResult {
    pub fn new(hook: &CompiledHook, checks: &[CheckResult], took: Duration, at: DateTime<Utc>) -> Self {
        Self::told(hook, checks, took, at, false)
    }

    /// It did not run.
    pub fn skipped(hook: &CompiledHook, at: DateTime<Utc>) -> Self {
        Self::told(hook, &[], Duration::ZERO, at, true)
    }

    fn told(hook: &CompiledHook, checks: &[CheckResult], took: Duration, at: DateTime<Utc>, is_skipped: bool) -> Self {
        let verdict = checks.iter().all(|check| check.verdict.passes(check.fails_on_error));
        let is_forbidden = checks.iter().any(|check| check.verdict.forbids());
        let deny = (hook.actions.denies && !verdict || is_forbidden) && !hook.actions.is_async;
        let created_at = written(at);
        let told = ToldHook {
            verdict,
            id: &hook.id,
            transformed: checks.iter().any(|check| check.is_transformed),
            checks: checks.iter().map(|check| check.told(at, &created_at)).collect(),
            feedback: if is_skipped { Value::Null } else { feedback(hook, checks) },
            execution_time: millis(took),
            is_async: hook.actions.is_async,
            kind: match hook.kind {
                HookKind::Guardrail => "guardrail",
                HookKind::Mutator => "mutator",
            },
            created_at: &created_at,
            deny,
            skipped: is_skipped.then_some(true),
        };
        // Texts, numbers and values that were read from JSON: none of them can fail to be written.
        let json = serde_json::to_string(&told).unwrap_or_else(|_| "null".into());
        let is_audited = deny && hook.actions.is_audited;
        Self { id: hook.id.clone(), verdict, is_async: hook.actions.is_async, deny, is_audited, json }
    }

    /// As the log tells it, and from there the audit trail.
    pub fn logged(&self) -> Cow<'_, str> {
        match self.json.strip_suffix('}').filter(|_| self.is_audited) {
            Some(open) => Cow::Owned(format!("{open},\"audit\":true}}")),
            None => Cow::Borrowed(&self.json),
        }
    }
}

impl CheckResult {
    /// Most begin in the same millisecond as their hook, whose time is written already.
    fn told<'h>(&'h self, hook_at: DateTime<Utc>, written_hook_at: &'h str) -> ToldCheck<'h> {
        let is_same = self.at.timestamp_millis() == hook_at.timestamp_millis();
        ToldCheck {
            verdict: self.verdict.verdict,
            data: &self.verdict.data,
            transformed: self.is_transformed,
            error: self.verdict.error.as_ref().map(|error| ToldError { name: error.name, message: &error.message }),
            id: self.id,
            execution_time: millis(self.took),
            created_at: if is_same { Cow::Borrowed(written_hook_at) } else { Cow::Owned(written(self.at)) },
            log: (),
            fail_on_error: self.fails_on_error,
        }
    }
}

/// A list of what hooks said.
pub fn list<'h>(hooks: impl Iterator<Item = Cow<'h, str>>) -> String {
    let mut list = String::from("[");
    for hook in hooks {
        if list.len() > 1 {
            list.push(',');
        }
        list.push_str(&hook);
    }
    list.push(']');
    list
}

/// What the hooks of both sides said.
pub fn both_sides(before: &str, after: &str) -> String {
    ["{\"before_request_hooks\":", before, ",\"after_request_hooks\":", after, "}"].concat()
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
