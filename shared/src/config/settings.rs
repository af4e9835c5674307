//! The small objects inside a node: cache, retry, circuit breaker, hedging.

use super::fault::{Code, Path, Reading};
use super::object::{self, ConfigObject};
use super::tree::{Cache, CacheMode, CircuitBreaker, Hedge, Jitter, Retry};
use serde_json::Value;

const MAX_ATTEMPTS: u64 = 5;
const BUDGET_PERCENT: f64 = 20.0;
const MIN_COOLDOWN_MS: u64 = 30_000;
const MODES: &[(&str, CacheMode)] = &[("simple", CacheMode::Simple), ("semantic", CacheMode::Semantic)];

/// An object, or just the mode.
pub fn cache(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<Cache> {
    if value.is_string() {
        let mode = object::choice(reading, path, value, MODES)?;
        return Some(Cache { mode, max_age_seconds: None, coalesces: false, similarity: None });
    }
    let mut fields = ConfigObject::parse(reading, path, value)?;
    if !fields.has("mode") {
        reading.fault(&path.key("mode"), Code::Missing, "is required");
    }
    let mode = fields.choice(reading, "mode", MODES);
    let max_age_seconds = fields.integer(reading, "max_age", 1..=u64::MAX);
    let coalesces = fields.flag(reading, "coalesce").unwrap_or(false);
    let similarity = fields.number(reading, "similarity", 0.0..=1.0);
    fields.finish(reading);
    Some(Cache { mode: mode?, max_age_seconds, coalesces, similarity })
}

pub fn retry(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<Retry> {
    let mut fields = ConfigObject::parse(reading, path, value)?;
    if !fields.has("attempts") {
        reading.fault(&path.key("attempts"), Code::Missing, "is required");
    }
    let attempts = fields.integer(reading, "attempts", 0..=MAX_ATTEMPTS).unwrap_or(0);
    let on_status_codes = fields.statuses(reading, "on_status_codes");
    // The documentation and the code of other gateways disagree about the plural.
    let header = fields.flag(reading, "use_retry_after_header");
    let headers = fields.flag(reading, "use_retry_after_headers");
    let jitter = fields.choice(reading, "jitter", &[("none", Jitter::None), ("full", Jitter::Full)]);
    let budget = fields.number(reading, "budget_percent", 0.0..=100.0);
    fields.finish(reading);
    Some(Retry {
        attempts: u8::try_from(attempts).unwrap_or(0),
        on_status_codes,
        use_retry_after_header: header.or(headers).unwrap_or(false),
        jitter: jitter.unwrap_or_default(),
        budget_percent: budget.unwrap_or(BUDGET_PERCENT),
    })
}

/// Its keys are kept verbatim, so there is no camel case here.
pub fn circuit_breaker(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<CircuitBreaker> {
    let mut fields = ConfigObject::verbatim(reading, path, value)?;
    if !fields.has("failure_threshold") && !fields.has("failure_threshold_percentage") {
        reading.fault(&path.key("failure_threshold"), Code::Missing, "is required, or failure_threshold_percentage");
    }
    if !fields.has("cooldown_interval") {
        reading.fault(&path.key("cooldown_interval"), Code::Missing, "is required");
    }
    let breaker = CircuitBreaker {
        failure_threshold: fields.integer(reading, "failure_threshold", 1..=u64::MAX),
        failure_threshold_percentage: fields.number(reading, "failure_threshold_percentage", 0.0..=100.0),
        minimum_requests: fields.integer(reading, "minimum_requests", 1..=u64::MAX),
        cooldown_interval_ms: fields
            .integer(reading, "cooldown_interval", MIN_COOLDOWN_MS..=u64::MAX)
            .unwrap_or(MIN_COOLDOWN_MS),
        failure_status_codes: fields.statuses(reading, "failure_status_codes"),
    };
    fields.finish(reading);
    Some(breaker)
}

/// A fixed delay or a percentile of what was seen, not both.
pub fn hedge(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<Hedge> {
    let mut fields = ConfigObject::parse(reading, path, value)?;
    match (fields.has("after_ms"), fields.has("percentile")) {
        (true, true) => reading.fault(path, Code::Exclusive, "must have after_ms or percentile, not both"),
        (false, false) => reading.fault(path, Code::Missing, "must have after_ms or percentile"),
        _ => {}
    }
    let after = fields.integer(reading, "after_ms", 1..=600_000).map(Hedge::AfterMs);
    let percentile = fields.number(reading, "percentile", 50.0..=99.9).map(Hedge::Percentile);
    fields.finish(reading);
    after.or(percentile)
}
