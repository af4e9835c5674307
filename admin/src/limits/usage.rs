//! Usage limits: a budget in dollars or tokens, with a threshold for an early word and a time to start over. What was
//! used so far survives a change of the limits.

use super::number;
use super::reset::{self, Period, Schedule};
use crate::error::ApiError;
use crate::http::{Time, json, time};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Checked limits and their state, as stored.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageLimits {
    kind: UsageKind,
    credit_limit: Option<f64>,
    alert_threshold: Option<f64>,
    schedule: Option<Schedule>,
    next_usage_reset_at: Option<DateTime<Utc>>,
    is_strict: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum UsageKind {
    #[default]
    Cost,
    Tokens,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default)]
struct State {
    current_usage: f64,
    is_threshold_alerts_sent: bool,
    is_exhausted_alerts_sent: bool,
    is_expired_alerts_sent: bool,
}

/// As sent: nothing beyond these fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    #[serde(rename = "type", default)]
    kind: Option<UsageKind>,
    credit_limit: Option<f64>,
    alert_threshold: Option<f64>,
    periodic_reset: Option<Period>,
    periodic_reset_days: Option<i64>,
    next_usage_reset_at: Option<String>,
    strict: Option<bool>,
}

/// What was sent as `usage_limits`: an object, an array of at most one, or null. `stored` is what they replace.
pub fn usage_limits(sent: Value, stored: Option<&Value>, now: DateTime<Utc>) -> Result<Option<UsageLimits>, ApiError> {
    let sent = match sent {
        Value::Null => return Ok(None),
        Value::Array(mut items) if items.len() < 2 => match items.pop() {
            None => return Ok(None),
            Some(one) => one,
        },
        Value::Array(_) => return Err(ApiError::field("usage_limits", "must hold at most one object")),
        other => other,
    };
    let sent: Sent = json::read_at("usage_limits", sent)?;
    let limits = checked(sent, now).map_err(|error| error.under("usage_limits"))?;
    let stored = stored.and_then(UsageLimits::from_stored);
    Ok(Some(match stored {
        Some(old) => limits.replacing(&old),
        None => limits,
    }))
}

fn checked(sent: Sent, now: DateTime<Utc>) -> Result<UsageLimits, ApiError> {
    for (field, value) in [("credit_limit", sent.credit_limit), ("alert_threshold", sent.alert_threshold)] {
        if value.is_some_and(|value| !(1.0..=1e15).contains(&value)) {
            return Err(ApiError::field(field, "must be ≥ 1"));
        }
    }
    if let Some(threshold) = sent.alert_threshold
        && sent.credit_limit.is_none_or(|limit| threshold >= limit)
    {
        return Err(ApiError::field("alert_threshold", "must be less than credit_limit"));
    }
    let schedule = match (sent.periodic_reset, sent.periodic_reset_days) {
        (Some(_), Some(_)) => {
            return Err(ApiError::field("periodic_reset_days", "cannot stand beside periodic_reset"));
        }
        (Some(period), None) => Some(Schedule::Every(period)),
        (None, Some(days)) if (1..=365).contains(&days) => Some(Schedule::Days(days as u16)),
        (None, Some(_)) => return Err(ApiError::field("periodic_reset_days", "must be from 1 to 365")),
        (None, None) => None,
    };
    let next_usage_reset_at = match (schedule, sent.next_usage_reset_at) {
        (None, Some(_)) => {
            return Err(ApiError::field("next_usage_reset_at", "needs periodic_reset or periodic_reset_days"));
        }
        (Some(_), Some(text)) => {
            let day = reset::midnight(time::parsed("next_usage_reset_at", &text)?.date_naive());
            if day <= now {
                return Err(ApiError::field("next_usage_reset_at", "must be a day in the future"));
            }
            Some(day)
        }
        (Some(schedule), None) => Some(reset::next(schedule, now)),
        (None, None) => None,
    };
    Ok(UsageLimits {
        kind: sent.kind.unwrap_or_default(),
        credit_limit: sent.credit_limit,
        alert_threshold: sent.alert_threshold,
        schedule,
        next_usage_reset_at,
        is_strict: sent.strict.unwrap_or(false),
        state: State::default(),
    })
}

impl UsageLimits {
    /// As stored by `to_stored`; none for what cannot be read.
    pub fn from_stored(stored: &Value) -> Option<Self> {
        let stored = stored.as_array().map_or(Some(stored), |items| items.first())?;
        let state = State::deserialize(stored).ok()?;
        let text = |name: &str| stored[name].as_str();
        let period = Period::deserialize(&stored["periodic_reset"]).ok().map(Schedule::Every);
        let days = stored["periodic_reset_days"].as_u64().and_then(|days| u16::try_from(days).ok()).map(Schedule::Days);
        Some(Self {
            kind: UsageKind::deserialize(&stored["type"]).unwrap_or_default(),
            credit_limit: stored["credit_limit"].as_f64(),
            alert_threshold: stored["alert_threshold"].as_f64(),
            schedule: period.or(days),
            next_usage_reset_at: text("next_usage_reset_at").and_then(|text| text.parse().ok()),
            is_strict: stored["strict"].as_bool().unwrap_or(false),
            state,
        })
    }

    /// The object as the interface shows it; it is stored the same.
    pub fn shown(&self) -> Value {
        json!({
            "type": self.kind,
            "credit_limit": self.credit_limit.map(number),
            "alert_threshold": self.alert_threshold.map(number),
            "periodic_reset": self.schedule.and_then(|one| if let Schedule::Every(period) = one { Some(period) } else { None }),
            "periodic_reset_days": self.schedule.and_then(|one| if let Schedule::Days(days) = one { Some(days) } else { None }),
            "next_usage_reset_at": self.next_usage_reset_at.map(Time),
            "strict": self.is_strict,
            "current_usage": number(self.state.current_usage),
            "status": if self.is_exhausted() { "exhausted" } else { "active" },
            "is_threshold_alerts_sent": self.state.is_threshold_alerts_sent,
            "is_exhausted_alerts_sent": self.state.is_exhausted_alerts_sent,
            "is_expired_alerts_sent": self.state.is_expired_alerts_sent,
        })
    }

    /// The object as a client would send it: without its state.
    pub fn sent(&self) -> Value {
        const STATE: [&str; 5] = [
            "current_usage",
            "status",
            "is_threshold_alerts_sent",
            "is_exhausted_alerts_sent",
            "is_expired_alerts_sent",
        ];
        let mut sent = self.shown();
        if let Value::Object(fields) = &mut sent {
            fields.retain(|name, _| !STATE.contains(&name.as_str()));
        }
        sent
    }

    pub fn is_exhausted(&self) -> bool {
        self.credit_limit.is_some_and(|limit| self.state.current_usage >= limit)
    }

    /// Usage back to zero, and whoever was told is told again.
    pub fn reset(mut self) -> Self {
        self.state = State::default();
        self
    }

    /// These limits in the place of `old`: usage stays unless its unit changed; a word already sent counts again once
    /// what it spoke of is further away.
    fn replacing(mut self, old: &Self) -> Self {
        if self.kind != old.kind {
            return self;
        }
        self.state = old.state;
        let is_raised = |new: Option<f64>, old: Option<f64>| match (new, old) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(new), Some(old)) => new > old,
        };
        let has_room = !self.is_exhausted();
        if has_room && is_raised(self.credit_limit, old.credit_limit) {
            (self.state.is_threshold_alerts_sent, self.state.is_exhausted_alerts_sent) = (false, false);
        }
        if is_raised(self.alert_threshold, old.alert_threshold) {
            self.state.is_threshold_alerts_sent = false;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> DateTime<Utc> {
        "2026-01-15T10:30:00Z".parse().unwrap()
    }

    fn taken(sent: Value) -> Result<Value, String> {
        match usage_limits(sent, None, now()) {
            Ok(limits) => Ok(limits.map_or(Value::Null, |limits| limits.shown())),
            Err(ApiError::Invalid { field, .. }) => Err(field.unwrap_or_default()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_limit_is_shown_whole_with_its_defaults() {
        let expected = json!({
            "type": "cost",
            "credit_limit": 500,
            "alert_threshold": 99.5,
            "periodic_reset": "monthly",
            "periodic_reset_days": null,
            "next_usage_reset_at": "2026-02-01T00:00:00.000Z",
            "strict": false,
            "current_usage": 0,
            "status": "active",
            "is_threshold_alerts_sent": false,
            "is_exhausted_alerts_sent": false,
            "is_expired_alerts_sent": false,
        });
        let sent = json!({ "credit_limit": 500.0, "alert_threshold": 99.5, "periodic_reset": "monthly" });
        assert_eq!(taken(sent.clone()), Ok(expected.clone()));
        assert_eq!(taken(json!([sent])), Ok(expected.clone()));
        assert_eq!(UsageLimits::from_stored(&expected).unwrap().shown(), expected);
        for none in [json!(null), json!([])] {
            assert_eq!(taken(none), Ok(Value::Null));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (sent, field) in [
            (json!({ "credit_limit": 0.5 }), "usage_limits.credit_limit"),
            (json!({ "credit_limit": -1 }), "usage_limits.credit_limit"),
            (json!({ "credit_limit": "5" }), "usage_limits.credit_limit"),
            (json!({ "credit_limit": 5, "alert_threshold": 5 }), "usage_limits.alert_threshold"),
            (json!({ "alert_threshold": 5 }), "usage_limits.alert_threshold"),
            (json!({ "credit_limit": 5, "alert_threshold": 0 }), "usage_limits.alert_threshold"),
            (json!({ "periodic_reset": "daily" }), "usage_limits.periodic_reset"),
            (json!({ "periodic_reset": "weekly", "periodic_reset_days": 3 }), "usage_limits.periodic_reset_days"),
            (json!({ "periodic_reset_days": 0 }), "usage_limits.periodic_reset_days"),
            (json!({ "periodic_reset_days": 366 }), "usage_limits.periodic_reset_days"),
            (json!({ "periodic_reset_days": 1.5 }), "usage_limits.periodic_reset_days"),
            (json!({ "next_usage_reset_at": "2026-02-01T00:00:00Z" }), "usage_limits.next_usage_reset_at"),
            (
                json!({ "periodic_reset": "weekly", "next_usage_reset_at": "2026-01-15T23:00:00Z" }),
                "usage_limits.next_usage_reset_at",
            ),
            (json!({ "periodic_reset": "weekly", "next_usage_reset_at": "soon" }), "usage_limits.next_usage_reset_at"),
            (json!({ "type": "requests" }), "usage_limits.type"),
            (json!({ "credit_limt": 5 }), "usage_limits.credit_limt"),
            (json!([{}, {}]), "usage_limits"),
            (json!(5), "usage_limits"),
        ] {
            assert_eq!(taken(sent.clone()), Err(field.to_owned()), "{sent}");
        }
    }

    #[test]
    fn a_first_reset_is_moved_to_its_midnight() {
        let sent = json!({ "periodic_reset_days": 30, "next_usage_reset_at": "2026-01-20T17:00:00+02:00" });
        assert_eq!(taken(sent).unwrap()["next_usage_reset_at"], "2026-01-20T00:00:00.000Z");
    }

    #[test]
    fn usage_survives_a_change_and_room_wakes_the_exhausted() {
        let stored = json!({
            "type": "cost", "credit_limit": 10, "alert_threshold": 5, "current_usage": 10.5,
            "is_threshold_alerts_sent": true, "is_exhausted_alerts_sent": true,
        });
        for (sent, usage, status, threshold_sent, exhausted_sent) in [
            (json!({ "credit_limit": 20, "alert_threshold": 5 }), 10.5, "active", false, false),
            (json!({ "credit_limit": 10.5, "alert_threshold": 5 }), 10.5, "exhausted", true, true),
            (json!({ "credit_limit": 10, "alert_threshold": 7 }), 10.5, "exhausted", false, true),
            (json!({ "credit_limit": 10 }), 10.5, "exhausted", false, true),
            (json!({}), 10.5, "active", false, false),
            (json!({ "type": "tokens", "credit_limit": 10 }), 0.0, "active", false, false),
        ] {
            let limits = usage_limits(sent.clone(), Some(&stored), now()).unwrap().unwrap();
            let shown = limits.shown();
            assert_eq!(shown["current_usage"], number(usage), "{sent}");
            assert_eq!(shown["status"], status, "{sent}");
            assert_eq!(shown["is_threshold_alerts_sent"], threshold_sent, "{sent}");
            assert_eq!(shown["is_exhausted_alerts_sent"], exhausted_sent, "{sent}");
        }
        let reset = UsageLimits::from_stored(&stored).unwrap().reset().shown();
        assert_eq!((&reset["current_usage"], &reset["status"]), (&json!(0), &json!("active")));
    }
}
