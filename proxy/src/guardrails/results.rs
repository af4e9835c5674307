//! What hooks said, as `hook_results` tells it. No parameter and no credential of a check stands in it. It is written once, as
//! text: the client's answer and the log get the same bytes.

use super::hook::{CompiledHook, HookKind};
use chrono::{DateTime, Datelike as _, SecondsFormat, Timelike as _, Utc};
use serde_json::{Value, json};
use shared::guardrails::{Verdict, put_number, put_text, put_value};
use shared::model::guardrail::Feedback;
use std::borrow::Cow;
use std::time::Duration;

/// Bytes of a result without its checks, and of one check beside its data.
const USUAL_HOOK: usize = 256;
const USUAL_CHECK: usize = 512;

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
    pub at: DateTime<Utc>,
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
        let mut json = String::with_capacity(USUAL_HOOK + checks.len() * USUAL_CHECK);
        json.push_str(if verdict { "{\"verdict\":true,\"id\":" } else { "{\"verdict\":false,\"id\":" });
        put_text(&mut json, &hook.id);
        json.push_str(match checks.iter().any(|check| check.is_transformed) {
            true => ",\"transformed\":true,\"checks\":[",
            false => ",\"transformed\":false,\"checks\":[",
        });
        for (place, check) in checks.iter().enumerate() {
            if place > 0 {
                json.push(',');
            }
            check.write(&mut json, at, &created_at);
        }
        json.push_str("],\"feedback\":");
        put_value(&mut json, &if is_skipped { Value::Null } else { feedback(hook, checks) });
        json.push_str(",\"execution_time\":");
        put_number(&mut json, millis(took));
        json.push_str(",\"async\":");
        put_flag(&mut json, hook.actions.is_async);
        json.push_str(match hook.kind {
            HookKind::Guardrail => ",\"type\":\"guardrail\",\"created_at\":\"",
            HookKind::Mutator => ",\"type\":\"mutator\",\"created_at\":\"",
        });
        json.push_str(&created_at);
        json.push_str("\",\"deny\":");
        put_flag(&mut json, deny);
        json.push_str(if is_skipped { ",\"skipped\":true}" } else { "}" });
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

impl CheckResult {
    /// Most begin in the same millisecond as their hook, whose time is written already.
    fn write(&self, json: &mut String, hook_at: DateTime<Utc>, written_hook_at: &str) {
        json.push_str(match self.verdict.verdict {
            true => "{\"verdict\":true,\"data\":",
            false => "{\"verdict\":false,\"data\":",
        });
        self.verdict.data.write(json);
        json.push_str(if self.is_transformed { ",\"transformed\":true" } else { ",\"transformed\":false" });
        if let Some(error) = &self.verdict.error {
            json.push_str(",\"error\":{\"name\":");
            put_text(json, error.name);
            json.push_str(",\"message\":");
            put_text(json, &error.message);
            json.push('}');
        }
        json.push_str(",\"id\":");
        put_text(json, self.id);
        json.push_str(",\"execution_time\":");
        put_number(json, millis(self.took));
        json.push_str(",\"created_at\":\"");
        match self.at.timestamp_millis() == hook_at.timestamp_millis() {
            true => json.push_str(written_hook_at),
            false => json.push_str(&written(self.at)),
        }
        json.push_str(match self.fails_on_error {
            true => "\",\"log\":null,\"fail_on_error\":true}",
            false => "\",\"log\":null,\"fail_on_error\":false}",
        });
    }
}

fn put_flag(json: &mut String, flag: bool) {
    json.push_str(if flag { "true" } else { "false" });
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

/// `2026-11-17T12:19:34.123Z`: by hand, since it is written for every hook.
fn written(at: DateTime<Utc>) -> String {
    let (date, time) = (at.date_naive(), at.time());
    let (Ok(year @ 0..=9999), millis @ 0..=999) = (u32::try_from(date.year()), time.nanosecond() / 1_000_000) else {
        return at.to_rfc3339_opts(SecondsFormat::Millis, true);
    };
    let mut text = String::with_capacity(24);
    for (number, digits, behind) in [
        (year, 4, '-'),
        (date.month(), 2, '-'),
        (date.day(), 2, 'T'),
        (time.hour(), 2, ':'),
        (time.minute(), 2, ':'),
        (time.second(), 2, '.'),
        (millis, 3, 'Z'),
    ] {
        for place in (0..digits).rev() {
            let digit = number / 10_u32.pow(place) % 10;
            text.push(char::from(b'0' + digit as u8));
        }
        text.push(behind);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_everywhere_else() {
        for second in [0, 951_827_696, 1_709_251_199, 1_795_000_000, 4_102_444_799, 253_402_300_800] {
            for nanos in [0, 999_999, 1_000_000, 34_567_890, 999_999_999] {
                let at = DateTime::from_timestamp(second, nanos).unwrap();
                assert_eq!(written(at), at.to_rfc3339_opts(SecondsFormat::Millis, true));
            }
        }
    }

    #[test]
    fn a_result_is_json_whatever_its_texts_are() {
        let hook = json!({ "id": "a \"hook\"\n", "deny": true, "type": "mutator" });
        let hook = CompiledHook::from_hook(hook.as_object().unwrap());
        let at = DateTime::from_timestamp(1_795_000_000, 1_000_000).unwrap();
        let check = |verdict: Verdict, later: i64| CheckResult {
            id: "default.contains",
            verdict,
            is_transformed: false,
            fails_on_error: true,
            took: Duration::from_millis(7),
            at: at + chrono::TimeDelta::milliseconds(later),
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
