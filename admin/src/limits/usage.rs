//! Usage limits: a budget in dollars or tokens, with a threshold for an early word and a time to start over. What was
//! used so far survives a change of the limits. A reset is a new `last_reset_at`: counters are found by it.

use super::crossing::{BudgetCrossing, BudgetMarks};
use super::reset::{self, ResetPeriod, ResetSchedule};
use crate::http::{ApiError, Time, json};
use chrono::{DateTime, SubsecRound as _, Utc, Weekday};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::amount::Amount;
use shared::settings::limits::UnknownPrice;

/// The day on which weeks of keys, providers and workspaces begin.
const WEEK: Weekday = Weekday::Sun;

/// Checked limits and their state. What was used is counted elsewhere, from `last_reset_at` on, and joined here.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageLimits {
    kind: UsageKind,
    /// Nobody said the kind. It is not shown then: clients compare what they read with what they sent.
    is_kind_implied: bool,
    marks: BudgetMarks,
    schedule: Option<ResetSchedule>,
    next_usage_reset_at: Option<DateTime<Utc>>,
    is_strict: bool,
    unknown_price: Option<UnknownPrice>,
    is_expired_alerts_sent: bool,
    last_reset_at: DateTime<Utc>,
    used: Amount,
    /// Part of that: promised to calls whose proxy died before they were over.
    unconfirmed: Amount,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageKind {
    #[default]
    Cost,
    Tokens,
}

/// As sent: nothing beyond these fields.
#[derive(Deserialize)]
#[serde(expecting = "struct Sent", deny_unknown_fields)]
struct SentUsageLimits {
    #[serde(rename = "type", default)]
    kind: Option<UsageKind>,
    credit_limit: Option<Amount>,
    alert_threshold: Option<Amount>,
    periodic_reset: Option<ResetPeriod>,
    periodic_reset_days: Option<i64>,
    next_usage_reset_at: Option<String>,
    strict: Option<bool>,
    unknown_price: Option<UnknownPrice>,
}

/// What was sent as `usage_limits`: an object, an array of at most one, or null. `stored` is what they replace.
pub fn usage_limits(
    sent: Value,
    stored: Option<&UsageLimits>,
    now: DateTime<Utc>,
) -> Result<Option<UsageLimits>, ApiError> {
    let sent = match sent {
        Value::Null => return Ok(None),
        Value::Array(mut items) if items.len() < 2 => match items.pop() {
            None => return Ok(None),
            Some(one) => one,
        },
        Value::Array(_) => return Err(ApiError::field("usage_limits", "must hold at most one object")),
        other => other,
    };
    let sent: SentUsageLimits = json::parse_at("usage_limits", sent)?;
    let limits = checked(sent, now).map_err(|error| error.under("usage_limits"))?;
    Ok(Some(match stored {
        Some(old) => limits.replacing(old),
        None => limits,
    }))
}

fn checked(sent: SentUsageLimits, now: DateTime<Utc>) -> Result<UsageLimits, ApiError> {
    for (field, value) in [("credit_limit", sent.credit_limit), ("alert_threshold", sent.alert_threshold)] {
        if value.is_some_and(|value| !value.is_limit_from(1)) {
            return Err(ApiError::field(field, "must be ≥ 1"));
        }
    }
    if let Some(threshold) = sent.alert_threshold
        && sent.credit_limit.is_none_or(|limit| threshold >= limit)
    {
        return Err(ApiError::field("alert_threshold", "must be less than credit_limit"));
    }
    let schedule = ResetSchedule::checked(sent.periodic_reset, sent.periodic_reset_days, WEEK)?;
    let marks = BudgetMarks {
        credit_limit: sent.credit_limit,
        alert_threshold: sent.alert_threshold,
        ..BudgetMarks::default()
    };
    Ok(UsageLimits {
        kind: sent.kind.unwrap_or_default(),
        is_kind_implied: sent.kind.is_none(),
        marks,
        schedule,
        next_usage_reset_at: reset::first(schedule, sent.next_usage_reset_at.as_deref(), now)?,
        is_strict: sent.strict.unwrap_or(false),
        unknown_price: sent.unknown_price,
        is_expired_alerts_sent: false,
        last_reset_at: now.trunc_subsecs(3),
        used: Amount::ZERO,
        unconfirmed: Amount::ZERO,
    })
}

impl UsageLimits {
    /// As stored by `stored`; none for what cannot be read. `used` is what `budget_used` says.
    pub fn from_stored(stored: &Value, used: Option<Amount>) -> Option<Self> {
        let stored = stored.as_array().map_or(Some(stored), |items| items.first())?.as_object()?;
        let field = |name: &str| stored.get(name).unwrap_or(&Value::Null);
        let time = |name: &str| field(name).as_str().and_then(|text| text.parse().ok());
        let amount = |name: &str| Amount::deserialize(field(name)).ok();
        let flag = |name: &str| field(name).as_bool().unwrap_or(false);
        let period = ResetPeriod::deserialize(field("periodic_reset")).ok();
        Some(Self {
            kind: UsageKind::deserialize(field("type")).unwrap_or_default(),
            is_kind_implied: flag("is_type_implied"),
            marks: BudgetMarks {
                credit_limit: amount("credit_limit"),
                alert_threshold: amount("alert_threshold"),
                is_threshold_alerts_sent: flag("is_threshold_alerts_sent"),
                is_exhausted_alerts_sent: flag("is_exhausted_alerts_sent"),
            },
            schedule: ResetSchedule::checked(period, field("periodic_reset_days").as_i64(), WEEK).ok().flatten(),
            next_usage_reset_at: time("next_usage_reset_at"),
            is_strict: flag("strict"),
            unknown_price: UnknownPrice::deserialize(field("unknown_price")).ok(),
            is_expired_alerts_sent: flag("is_expired_alerts_sent"),
            last_reset_at: time("last_reset_at").unwrap_or_default(),
            used: used.unwrap_or_default(),
            unconfirmed: Amount::ZERO,
        })
    }

    /// What `budget_unconfirmed` says.
    pub fn with_unconfirmed(self, unconfirmed: Option<Amount>) -> Self {
        Self { unconfirmed: unconfirmed.unwrap_or_default(), ..self }
    }

    /// The object as it is stored, and as those read it who count: with the time from which on its usage counts.
    pub fn stored(&self) -> Value {
        let mut stored = self.sent();
        stored["type"] = json!(self.kind);
        stored["is_type_implied"] = self.is_kind_implied.into();
        stored["is_threshold_alerts_sent"] = self.marks.is_threshold_alerts_sent.into();
        stored["is_exhausted_alerts_sent"] = self.marks.is_exhausted_alerts_sent.into();
        stored["is_expired_alerts_sent"] = self.is_expired_alerts_sent.into();
        stored["last_reset_at"] = json!(Time(self.last_reset_at));
        stored
    }

    /// The object as the interface shows it.
    pub fn shown(&self) -> Value {
        let mut shown = self.sent();
        shown["current_usage"] = json!(self.used);
        shown["unconfirmed"] = json!(self.unconfirmed);
        shown["status"] = if self.is_exhausted() { "exhausted" } else { "active" }.into();
        shown["is_threshold_alerts_sent"] = self.marks.is_threshold_alerts_sent.into();
        shown["is_exhausted_alerts_sent"] = self.marks.is_exhausted_alerts_sent.into();
        shown["is_expired_alerts_sent"] = self.is_expired_alerts_sent.into();
        shown
    }

    /// The object as a client would send it: without its state.
    pub fn sent(&self) -> Value {
        json!({
            "type": (!self.is_kind_implied).then_some(self.kind),
            "credit_limit": self.marks.credit_limit,
            "alert_threshold": self.marks.alert_threshold,
            "periodic_reset": self.schedule.and_then(ResetSchedule::period),
            "periodic_reset_days": self.schedule.and_then(ResetSchedule::days),
            "next_usage_reset_at": self.next_usage_reset_at.map(Time),
            "strict": self.is_strict,
            "unknown_price": self.unknown_price,
        })
    }

    pub fn is_exhausted(&self) -> bool {
        self.marks.is_exhausted(self.used)
    }

    pub fn kind(&self) -> UsageKind {
        self.kind
    }

    pub fn marks(&self) -> &BudgetMarks {
        &self.marks
    }

    pub fn used(&self) -> Amount {
        self.used
    }

    /// Usage is counted from zero from `at` on, and alerts may be sent again.
    pub fn reset(mut self, at: DateTime<Utc>) -> Self {
        let BudgetMarks { credit_limit, alert_threshold, .. } = self.marks;
        self.marks = BudgetMarks { credit_limit, alert_threshold, ..BudgetMarks::default() };
        // As precise as it is written down: it is part of a counter's name.
        self.last_reset_at = at.trunc_subsecs(3);
        (self.used, self.unconfirmed) = (Amount::ZERO, Amount::ZERO);
        self
    }

    /// The reset that is due, if one is, and when that was.
    pub fn caught_up(self, now: DateTime<Utc>) -> Option<(Self, DateTime<Utc>)> {
        let (schedule, due) = (self.schedule?, self.next_usage_reset_at.filter(|due| *due <= now)?);
        let (began, next) = schedule.caught_up(due, now);
        let mut fresh = self.reset(began);
        fresh.next_usage_reset_at = Some(next);
        Some((fresh, began))
    }

    /// The same after the alert was sent.
    pub fn after_alert(mut self, crossing: BudgetCrossing) -> Self {
        self.marks = self.marks.after_alert(crossing);
        self
    }

    /// The same once the end of what it limits was moved; none where no mail told of that end.
    pub fn after_moved_expiry(self) -> Option<Self> {
        self.is_expired_alerts_sent.then_some(Self { is_expired_alerts_sent: false, ..self })
    }

    /// These limits in the place of `old`: usage stays unless its unit changed.
    fn replacing(mut self, old: &Self) -> Self {
        if self.kind != old.kind {
            return self;
        }
        self.marks = self.marks.replacing(&old.marks);
        self.is_expired_alerts_sent = old.is_expired_alerts_sent;
        self.last_reset_at = old.last_reset_at;
        (self.used, self.unconfirmed) = (old.used, old.unconfirmed);
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
            "type": null,
            "credit_limit": 500,
            "alert_threshold": 99.5,
            "periodic_reset": "monthly",
            "periodic_reset_days": null,
            "next_usage_reset_at": "2026-02-01T00:00:00.000Z",
            "strict": false,
            "unknown_price": null,
            "current_usage": 0,
            "unconfirmed": 0,
            "status": "active",
            "is_threshold_alerts_sent": false,
            "is_exhausted_alerts_sent": false,
            "is_expired_alerts_sent": false,
        });
        let sent = json!({ "credit_limit": 500.0, "alert_threshold": 99.5, "periodic_reset": "monthly" });
        assert_eq!(taken(sent.clone()), Ok(expected.clone()));
        assert_eq!(taken(json!([sent])), Ok(expected.clone()));
        let limits = usage_limits(sent, None, now()).unwrap().unwrap();
        assert_eq!(limits.stored()["last_reset_at"], "2026-01-15T10:30:00.000Z");
        assert_eq!(UsageLimits::from_stored(&limits.stored(), None).unwrap(), limits);
        for none in [json!(null), json!([])] {
            assert_eq!(taken(none), Ok(Value::Null));
        }
    }

    #[test]
    fn the_kind_is_shown_where_it_was_said_and_counts_where_it_was_not() {
        for (sent, shown, kind) in [
            (json!({ "credit_limit": 5 }), Value::Null, UsageKind::Cost),
            (json!({ "type": null, "credit_limit": 5 }), Value::Null, UsageKind::Cost),
            (json!({ "type": "cost", "credit_limit": 5 }), json!("cost"), UsageKind::Cost),
            (json!({ "type": "tokens", "credit_limit": 5 }), json!("tokens"), UsageKind::Tokens),
        ] {
            let limits = usage_limits(sent.clone(), None, now()).unwrap().unwrap();
            let again = UsageLimits::from_stored(&limits.stored(), None).unwrap();
            assert_eq!((&again.shown()["type"], again.kind()), (&shown, kind), "{sent}");
            assert_eq!(again.stored()["type"], json!(kind), "{sent}: whoever counts reads it");
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
                json!({ "periodic_reset": "weekly", "next_usage_reset_at": "2026-01-15T10:00:00Z" }),
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
    fn a_first_reset_is_kept_to_the_millisecond() {
        let sent = json!({ "periodic_reset_days": 30, "next_usage_reset_at": "2026-01-20T17:00:00.1239+02:00" });
        assert_eq!(taken(sent).unwrap()["next_usage_reset_at"], "2026-01-20T15:00:00.123Z");
    }

    fn stored(used: f64) -> UsageLimits {
        let stored = json!({
            "type": "cost", "credit_limit": 10, "alert_threshold": 5, "periodic_reset": "monthly",
            "next_usage_reset_at": "2026-02-01T00:00:00.000Z", "last_reset_at": "2026-01-03T00:00:00.123Z",
            "is_threshold_alerts_sent": true, "is_exhausted_alerts_sent": true,
        });
        UsageLimits::from_stored(&stored, Amount::from_float(used)).unwrap()
    }

    #[test]
    fn usage_survives_a_change_and_room_wakes_the_exhausted() {
        for (sent, usage, status, threshold_sent, exhausted_sent) in [
            (json!({ "credit_limit": 20, "alert_threshold": 5 }), 10.5, "active", false, false),
            (json!({ "credit_limit": 10.5, "alert_threshold": 5 }), 10.5, "exhausted", false, false),
            (json!({ "credit_limit": 10, "alert_threshold": 5 }), 10.5, "exhausted", true, true),
            (json!({ "credit_limit": 10, "alert_threshold": 7 }), 10.5, "exhausted", false, true),
            (json!({ "credit_limit": 10 }), 10.5, "exhausted", false, true),
            (json!({}), 10.5, "active", false, false),
            (json!({ "type": "tokens", "credit_limit": 10 }), 0.0, "active", false, false),
        ] {
            let limits = usage_limits(sent.clone(), Some(&stored(10.5)), now()).unwrap().unwrap();
            let shown = limits.shown();
            assert_eq!(shown["current_usage"], json!(Amount::from_float(usage)), "{sent}");
            assert_eq!(shown["status"], status, "{sent}");
            assert_eq!(shown["is_threshold_alerts_sent"], threshold_sent, "{sent}");
            assert_eq!(shown["is_exhausted_alerts_sent"], exhausted_sent, "{sent}");
            let since = if sent["type"] == "tokens" { "2026-01-15T10:30:00.000Z" } else { "2026-01-03T00:00:00.123Z" };
            assert_eq!(limits.stored()["last_reset_at"], since, "{sent}");
        }
    }

    #[test]
    fn a_reset_is_another_beginning_and_nothing_told() {
        let reset = stored(10.5).reset(now());
        assert_eq!(
            (reset.used(), reset.is_exhausted(), reset.marks().is_exhausted_alerts_sent),
            (Amount::ZERO, false, false)
        );
        assert_eq!(reset.stored()["last_reset_at"], "2026-01-15T10:30:00.000Z");
        assert_eq!(reset.stored()["next_usage_reset_at"], "2026-02-01T00:00:00.000Z");
        assert_eq!(stored(10.5).caught_up(now()), None, "not due yet");
        let (caught_up, began) = stored(10.5).caught_up("2026-04-15T10:30:00Z".parse().unwrap()).unwrap();
        assert_eq!(began, "2026-04-01T00:00:00Z".parse::<DateTime<Utc>>().unwrap());
        assert_eq!(caught_up.stored()["last_reset_at"], "2026-04-01T00:00:00.000Z");
        assert_eq!(caught_up.stored()["next_usage_reset_at"], "2026-05-01T00:00:00.000Z");
    }
}
