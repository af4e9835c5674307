//! What hooks said, as `hook_results` tells it. No parameter and no credential of a check stands in it. It is written once, as
//! text: the client's answer and the log get the same bytes.

use super::hook::{CompiledHook, HookKind};
use super::moment::Moment;
use serde_json::{Value, json};
use shared::guardrails::{Verdict, put_number, put_text, put_value};
use shared::model::guardrail::Feedback;
use std::borrow::Cow;
use std::time::Duration;

/// Bytes of a result without its checks, and of one check beside its data.
pub const USUAL_HOOK: usize = 256;
pub const USUAL_CHECK: usize = 512;

/// How results begin, of hooks and of checks.
pub const PASSED: &str = "{\"verdict\":true";
pub const FAILED: &str = "{\"verdict\":false";

#[derive(Debug)]
pub struct HookResult {
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
    pub at: Moment,
}

impl HookResult {
    pub fn new(hook: &CompiledHook, checks: &[CheckResult], took: Duration, at: Moment) -> Self {
        let passes = checks.iter().all(|check| check.verdict.passes(check.fails_on_error));
        let is_forbidden = checks.iter().any(|check| check.verdict.forbids());
        let mut json = begun(hook, checks, passes);
        put_value(&mut json, &feedback(hook, checks));
        Self::ended(hook, json, passes, is_forbidden, took, at)
    }

    /// It did not run.
    pub fn skipped(hook: &CompiledHook, at: Moment) -> Self {
        let mut json = begun(hook, &[], true);
        json.push_str("null");
        let mut result = Self::ended(hook, json, true, false, Duration::ZERO, at);
        result.json.pop();
        result.json.push_str(",\"skipped\":true}");
        result
    }

    /// What was written up to the feedback, with the rest.
    pub(super) fn ended(
        hook: &CompiledHook,
        mut json: String,
        verdict: bool,
        is_forbidden: bool,
        took: Duration,
        at: Moment,
    ) -> Self {
        let deny = (hook.actions.denies && !verdict || is_forbidden) && !hook.actions.is_async;
        json.push_str(",\"execution_time\":");
        put_number(&mut json, millis(took));
        json.push_str(match (hook.actions.is_async, hook.kind) {
            (false, HookKind::Guardrail) => ",\"async\":false,\"type\":\"guardrail\",\"created_at\":\"",
            (false, HookKind::Mutator) => ",\"async\":false,\"type\":\"mutator\",\"created_at\":\"",
            (true, HookKind::Guardrail) => ",\"async\":true,\"type\":\"guardrail\",\"created_at\":\"",
            (true, HookKind::Mutator) => ",\"async\":true,\"type\":\"mutator\",\"created_at\":\"",
        });
        at.put(&mut json);
        json.push_str(if deny { "\",\"deny\":true}" } else { "\",\"deny\":false}" });
        let is_audited = deny && hook.actions.is_audited;
        Self { verdict, is_async: hook.actions.is_async, deny, is_audited, json }
    }

    /// As the log tells it, and from there the audit trail.
    pub fn logged(&self) -> Cow<'_, str> {
        match self.json.strip_suffix('}').filter(|_| self.is_audited) {
            Some(open) => Cow::Owned(format!("{open},\"audit\":true}}")),
            None => Cow::Borrowed(&self.json),
        }
    }
}

/// A result up to what its feedback is.
fn begun(hook: &CompiledHook, checks: &[CheckResult], passes: bool) -> String {
    let mut json = String::with_capacity(USUAL_HOOK + checks.len() * USUAL_CHECK);
    json.push_str(if passes { PASSED } else { FAILED });
    json.push_str(",\"id\":");
    put_text(&mut json, &hook.id);
    json.push_str(match checks.iter().any(|check| check.is_transformed) {
        true => ",\"transformed\":true,\"checks\":[",
        false => ",\"transformed\":false,\"checks\":[",
    });
    for (place, check) in checks.iter().enumerate() {
        if place > 0 {
            json.push(',');
        }
        check.write(&mut json);
    }
    json.push_str("],\"feedback\":");
    json
}

impl CheckResult {
    pub fn write(&self, json: &mut String) {
        json.push_str(if self.verdict.verdict { PASSED } else { FAILED });
        json.push_str(",\"data\":");
        self.verdict.data.write(json);
        json.push_str(if self.is_transformed { ",\"transformed\":true" } else { ",\"transformed\":false" });
        if let Some(error) = &self.verdict.error {
            json.push_str(",\"error\":{\"name\":");
            put_text(json, error.name);
            json.push_str(",\"message\":");
            put_text(json, &error.message);
            json.push('}');
        }
        put_check_id(json, self.id);
        put_check_end(json, self.took, self.at, self.fails_on_error);
    }
}

/// A check's id, up to how long it took.
pub fn put_check_id(json: &mut String, id: &str) {
    json.push_str(",\"id\":");
    put_text(json, id);
    json.push_str(",\"execution_time\":");
}

/// What is behind that.
pub fn put_check_end(json: &mut String, took: Duration, at: Moment, fails_on_error: bool) {
    put_number(json, millis(took));
    json.push_str(",\"created_at\":\"");
    at.put(json);
    json.push_str(match fails_on_error {
        true => "\",\"log\":null,\"fail_on_error\":true}",
        false => "\",\"log\":null,\"fail_on_error\":false}",
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_json_whatever_its_texts_are() {
        let hook = json!({ "id": "a \"hook\"\n", "deny": true, "type": "mutator" });
        let hook = CompiledHook::from_hook(hook.as_object().unwrap());
        let at = Moment::from_parts(1_795_000_000, 1);
        let check = |verdict: Verdict, later: u64| CheckResult {
            id: "default.contains",
            verdict,
            is_transformed: false,
            fails_on_error: true,
            took: Duration::from_millis(7),
            at: at.after(Duration::from_millis(later)),
        };
        let checks = [
            check(Verdict::new(true, "It is \"there\".", json!({ "n": [1, null] })), 0),
            check(Verdict::error("Name", "why\\not"), 5),
        ];
        let told = HookResult::new(&hook, &checks, Duration::from_millis(12), at);
        let expected = json!({
            "verdict": false, "id": "a \"hook\"\n", "transformed": false,
            "checks": [
                { "verdict": true, "data": { "n": [1, null], "explanation": "It is \"there\"." }, "transformed": false,
                  "id": "default.contains", "execution_time": 7, "created_at": "2026-11-18T11:06:40.001Z", "log": null,
                  "fail_on_error": true },
                { "verdict": false, "data": null, "transformed": false, "error": { "name": "Name", "message": "why\\not" },
                  "id": "default.contains", "execution_time": 7, "created_at": "2026-11-18T11:06:40.006Z", "log": null,
                  "fail_on_error": true },
            ],
            "feedback": null, "execution_time": 12, "async": false, "type": "mutator",
            "created_at": "2026-11-18T11:06:40.001Z", "deny": true,
        });
        assert_eq!(told.json, expected.to_string());
        let skipped = HookResult::skipped(&hook, at);
        let told: Value = serde_json::from_str(&skipped.json).unwrap();
        assert_eq!((&told["skipped"], &told["checks"], skipped.deny), (&json!(true), &json!([]), false));
    }
}
