//! When a key is due for a new secret, and how long the old one stays good. Weeks begin on Monday here. Pure: the
//! clock is an argument.

use crate::http::{ApiError, Time, json, time};
use chrono::{DateTime, Datelike as _, Days, NaiveDate, NaiveTime, TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

/// The shortest transition, and the usual one: half an hour.
pub const MIN_TRANSITION: i64 = 1_800_000;
/// Longer than any period.
const MAX_TRANSITION: i64 = 365 * 24 * 3600 * 1000;

#[derive(Deserialize)]
#[serde(expecting = "struct Sent", deny_unknown_fields)]
struct SentRotationPolicy {
    rotation_period: Option<RotationPeriod>,
    rotation_period_days: Option<i64>,
    next_rotation_at: Option<String>,
    key_transition_period_ms: Option<i64>,
    /// Shown, and therefore sent back.
    #[serde(rename = "status")]
    _status: Option<serde::de::IgnoredAny>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(expecting = "enum Period", rename_all = "lowercase")]
enum RotationPeriod {
    Weekly,
    Monthly,
}

/// What was sent as `rotation_policy`, as it is stored and shown.
pub fn checked(sent: Value, now: DateTime<Utc>) -> Result<Value, ApiError> {
    let sent: SentRotationPolicy = json::parse_at("rotation_policy", sent)?;
    policy(sent, now).map_err(|error| error.under("rotation_policy"))
}

/// The policy of an organisation that rotates its people's keys every so many days.
pub fn every(days: i64, now: DateTime<Utc>) -> Value {
    stored(None, Some(days), next(None, Some(days), now), MIN_TRANSITION)
}

fn policy(sent: SentRotationPolicy, now: DateTime<Utc>) -> Result<Value, ApiError> {
    let days = sent.rotation_period_days;
    if sent.rotation_period.is_some() && days.is_some() {
        return Err(ApiError::field("rotation_period_days", "cannot stand beside rotation_period"));
    }
    if days.is_some_and(|days| !(1..=365).contains(&days)) {
        return Err(ApiError::field("rotation_period_days", "must be from 1 to 365"));
    }
    let wished = sent.next_rotation_at.map(|text| time::parsed("next_rotation_at", &text)).transpose()?;
    let wished = wished.map(|time| time.date_naive().and_time(NaiveTime::MIN).and_utc());
    if wished.is_some_and(|time| time <= now) {
        return Err(ApiError::field("next_rotation_at", "must be a day in the future"));
    }
    let period_ms = length_ms(sent.rotation_period, days);
    if period_ms.is_none() && wished.is_none() {
        return Err(ApiError::invalid("needs rotation_period, rotation_period_days or next_rotation_at"));
    }
    let transition = transition(sent.key_transition_period_ms, period_ms)?;
    let next = wished.unwrap_or_else(|| next(sent.rotation_period, days, now));
    Ok(stored(sent.rotation_period, days, next, transition))
}

fn stored(period: Option<RotationPeriod>, days: Option<i64>, next: DateTime<Utc>, transition_ms: i64) -> Value {
    json!({
        "rotation_period": period.map(|period| if period == RotationPeriod::Weekly { "weekly" } else { "monthly" }),
        "rotation_period_days": days,
        "next_rotation_at": Time(next),
        "key_transition_period_ms": transition_ms,
        "status": "ACTIVE",
    })
}

/// A checked transition, in milliseconds: at least half an hour, and over before the next rotation.
pub fn transition(asked: Option<i64>, period_ms: Option<i64>) -> Result<i64, ApiError> {
    let asked = asked.unwrap_or(MIN_TRANSITION);
    let most = period_ms.map_or(MAX_TRANSITION, |period| period - 1);
    if (MIN_TRANSITION..=most).contains(&asked) {
        return Ok(asked);
    }
    let message = format!("must be from {MIN_TRANSITION} to {most}");
    Err(ApiError::field("key_transition_period_ms", message))
}

/// The period of a stored policy.
pub fn period_ms(stored: &Value) -> Option<i64> {
    length_ms(RotationPeriod::deserialize(&stored["rotation_period"]).ok(), stored["rotation_period_days"].as_i64())
}

/// A stored policy once its rotation was done: the next one is due a period later, or never.
pub fn advanced(mut stored: Value, now: DateTime<Utc>) -> Value {
    let period = RotationPeriod::deserialize(&stored["rotation_period"]).ok();
    let days = stored["rotation_period_days"].as_i64();
    let is_periodic = period.is_some() || days.is_some();
    stored["next_rotation_at"] = if is_periodic { json!(Time(next(period, days, now))) } else { Value::Null };
    stored
}

fn length_ms(period: Option<RotationPeriod>, days: Option<i64>) -> Option<i64> {
    let days = match period {
        Some(RotationPeriod::Weekly) => Some(7),
        Some(RotationPeriod::Monthly) => Some(28),
        None => days,
    };
    days.map(|days| TimeDelta::days(days).num_milliseconds())
}

fn next(period: Option<RotationPeriod>, days: Option<i64>, now: DateTime<Utc>) -> DateTime<Utc> {
    let today = now.date_naive();
    let day = match period {
        Some(RotationPeriod::Weekly) => {
            today.checked_add_days(Days::new(7 - u64::from(today.weekday().num_days_from_monday())))
        }
        Some(RotationPeriod::Monthly) => {
            let (year, month) =
                if today.month() == 12 { (today.year() + 1, 1) } else { (today.year(), today.month() + 1) };
            NaiveDate::from_ymd_opt(year, month, 1)
        }
        None => today.checked_add_days(Days::new(days.unwrap_or(1).unsigned_abs())),
    };
    day.unwrap_or(today).and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        // A Thursday.
        "2026-01-15T10:30:00Z".parse().unwrap()
    }

    #[test]
    fn a_policy_has_one_schedule_and_a_transition_within_it() {
        for (sent, next) in [
            (json!({ "rotation_period": "weekly" }), "2026-01-19T00:00:00.000Z"),
            (json!({ "rotation_period": "monthly", "status": "ACTIVE" }), "2026-02-01T00:00:00.000Z"),
            (json!({ "rotation_period_days": 10 }), "2026-01-25T00:00:00.000Z"),
            (json!({ "next_rotation_at": "2026-03-01T17:00:00Z" }), "2026-03-01T00:00:00.000Z"),
            (json!({ "rotation_period": "weekly", "next_rotation_at": "2026-03-01" }), "2026-03-01T00:00:00.000Z"),
        ] {
            let policy = checked(sent.clone(), now()).unwrap();
            assert_eq!(
                (policy["next_rotation_at"].as_str(), &policy["status"]),
                (Some(next), &json!("ACTIVE")),
                "{sent}"
            );
            assert_eq!(policy["key_transition_period_ms"], MIN_TRANSITION, "{sent}");
        }
        for (sent, field) in [
            (json!({}), "rotation_policy"),
            (json!({ "rotation_period": "daily" }), "rotation_policy.rotation_period"),
            (json!({ "rotation_period": "weekly", "rotation_period_days": 3 }), "rotation_policy.rotation_period_days"),
            (json!({ "rotation_period_days": 0 }), "rotation_policy.rotation_period_days"),
            (json!({ "rotation_period_days": 366 }), "rotation_policy.rotation_period_days"),
            (json!({ "next_rotation_at": "2026-01-15T23:00:00Z" }), "rotation_policy.next_rotation_at"),
            (
                json!({ "rotation_period": "weekly", "key_transition_period_ms": 1_799_999 }),
                "rotation_policy.key_transition_period_ms",
            ),
            (
                json!({ "rotation_period_days": 1, "key_transition_period_ms": 86_400_000 }),
                "rotation_policy.key_transition_period_ms",
            ),
            (json!({ "period": "weekly" }), "rotation_policy.period"),
        ] {
            match checked(sent.clone(), now()) {
                Err(ApiError::Invalid { field: Some(found), .. }) => assert_eq!(found, field, "{sent}"),
                other => panic!("{sent}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_rotation_moves_the_next_one_by_a_period_or_ends_the_schedule() {
        let weekly = checked(json!({ "rotation_period": "weekly" }), now()).unwrap();
        let later = "2026-01-19T00:00:01Z".parse().unwrap();
        assert_eq!(advanced(weekly, later)["next_rotation_at"], "2026-01-26T00:00:00.000Z");
        assert_eq!(every(10, now()), checked(json!({ "rotation_period_days": 10 }), now()).unwrap());
        let once = checked(json!({ "next_rotation_at": "2026-03-01" }), now()).unwrap();
        assert_eq!(advanced(once, later)["next_rotation_at"], Value::Null);
    }
}
