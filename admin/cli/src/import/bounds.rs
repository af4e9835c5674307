//! What the control plane bounds, so that nothing is written that it refuses: retries, timeouts, budgets, rates and weights.

use super::result::Import;
use super::source::Located;
use serde_json::{Value, json};

/// Targets of a config's root where no conditions choose.
pub const MAX_TARGETS: usize = 100;
const MAX_ATTEMPTS: u64 = 5;
const MAX_MS: f64 = 86_400_000.0;
const MAX_AMOUNT: f64 = 1e15;
const MAX_WEIGHT: f64 = 1e9;

/// `retry` of a config or a target.
pub fn retry(retries: Located<u64>, place: &str, import: &mut Import) -> Value {
    match retries.value {
        0..=MAX_ATTEMPTS => import.mapped(retries.location, format!("retry.attempts of the {place}")),
        _ => import.unmapped(retries.location, format!("at most {MAX_ATTEMPTS} retries: so many are written")),
    }
    json!({ "attempts": retries.value.min(MAX_ATTEMPTS) })
}

/// `request_timeout` of a config or a target.
pub fn timeout(milliseconds: Located<f64>, place: &str, import: &mut Import) -> Value {
    match milliseconds.value {
        value if value <= MAX_MS => import.mapped(milliseconds.location, format!("request_timeout of the {place}")),
        _ => import.unmapped(milliseconds.location, "at most a day: so much is written"),
    }
    Value::from(milliseconds.value.clamp(1.0, MAX_MS).round() as u64)
}

/// Seconds as milliseconds.
pub fn from_seconds(seconds: Located<f64>) -> Located<f64> {
    Located { location: seconds.location, value: seconds.value * 1000.0 }
}

/// Whether a budget may be as large, in dollars.
pub fn is_credit_limit(dollars: f64) -> bool {
    (1.0..=MAX_AMOUNT).contains(&dollars)
}

/// Whether so many calls of a provider may be in flight.
pub fn is_concurrency(count: u64) -> bool {
    (1..=1_000_000).contains(&count)
}

/// Whether a rate limit may be as large.
pub fn is_rate(value: u64) -> bool {
    (1..=MAX_AMOUNT as u64).contains(&value)
}

/// Weights of targets. A target without one is never chosen where another has one; where none has, all are chosen alike.
pub fn weights(given: &[Option<f64>]) -> Vec<f64> {
    let largest = given.iter().flatten().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return vec![1.0; given.len()];
    }
    let scale = if largest > MAX_WEIGHT { MAX_WEIGHT / largest } else { 1.0 };
    given.iter().map(|weight| weight.unwrap_or(0.0).max(0.0) * scale).collect()
}

/// How often a budget is reset: a field of a budget and its value. `month` is the format's word for months.
pub fn reset(period: &str, month: &str) -> Option<(String, Value)> {
    let unit_at = period.find(|letter: char| !letter.is_ascii_digit())?;
    let (count, unit) = period.split_at(unit_at);
    let count: u64 = count.parse().ok()?;
    if unit == month && count == 1 {
        return Some(("periodic_reset".to_owned(), "monthly".into()));
    }
    let days = match unit {
        unit if unit == month => count.checked_mul(30)?,
        "h" if count.is_multiple_of(24) => count / 24,
        "d" => count,
        "w" => count.checked_mul(7)?,
        _ => return None,
    };
    match days {
        7 => Some(("periodic_reset".to_owned(), "weekly".into())),
        1..=365 => Some(("periodic_reset_days".to_owned(), days.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_days_weeks_and_months() {
        let field = |period| reset(period, "mo").map(|(name, value)| format!("{name} {value}"));
        for (period, expected) in [
            ("30d", "periodic_reset_days 30"),
            ("24h", "periodic_reset_days 1"),
            ("48h", "periodic_reset_days 2"),
            ("7d", "periodic_reset \"weekly\""),
            ("1w", "periodic_reset \"weekly\""),
            ("2w", "periodic_reset_days 14"),
            ("1mo", "periodic_reset \"monthly\""),
            ("2mo", "periodic_reset_days 60"),
        ] {
            assert_eq!(field(period).as_deref(), Some(expected), "{period}");
        }
        let none = ["", "d", "30s", "0d", "366d", "1h", "1M", "99999999999999999999d", "9999999999999999999mo", "é"];
        for period in none {
            assert_eq!(field(period), None, "{period}");
        }
        assert!(reset("1M", "M").is_some());
    }

    #[test]
    fn a_target_without_a_weight_is_chosen_only_where_none_has_one() {
        assert_eq!(weights(&[Some(3.0), None]), [3.0, 0.0]);
        assert_eq!(weights(&[None, Some(0.0)]), [1.0, 1.0]);
        assert_eq!(weights(&[Some(4e9), Some(2e9)]), [1e9, 5e8]);
    }
}
