//! What a policy's budget may be, and what a change of it means: when it starts over next, and which groups wake because
//! they have room again.

use super::{UsagePolicy, UsagePolicyChange, WEEK};
use crate::crud::Action;
use crate::http::{ApiError, Field};
use crate::limits::is_raised;
use crate::limits::reset::{self as resets, ResetPeriod, ResetSchedule};
use chrono::Utc;
use shared::amount::Amount;
use shared::db::table::Columns;
use shared::model::policy::BudgetKind;

impl UsagePolicy {
    pub(super) fn kind(&self) -> BudgetKind {
        match self.kind.as_str() {
            "cost" => BudgetKind::Cost,
            "tokens" => BudgetKind::Tokens,
            _ => BudgetKind::Requests,
        }
    }

    fn schedule(&self) -> Result<Option<ResetSchedule>, ApiError> {
        schedule_of(self.periodic_reset.as_deref(), self.periodic_reset_days)
    }

    /// What a change says about resets. One way of repeating takes the place of the other.
    pub(super) fn rescheduled(&self, body: &UsagePolicyChange) -> Result<Columns, ApiError> {
        let stored = self.schedule()?;
        let period = match &body.periodic_reset {
            Field::Value(period) => Some(*period),
            Field::Absent if !matches!(body.periodic_reset_days, Field::Value(_)) => {
                stored.and_then(ResetSchedule::period)
            }
            Field::Absent | Field::Null => None,
        };
        let days = match &body.periodic_reset_days {
            Field::Value(days) => Some(*days),
            Field::Absent if !matches!(body.periodic_reset, Field::Value(_)) => {
                stored.and_then(ResetSchedule::days).map(i64::from)
            }
            Field::Absent | Field::Null => None,
        };
        let schedule = ResetSchedule::checked(period, days, WEEK)?;
        let is_sent = body.periodic_reset.is_sent() || body.periodic_reset_days.is_sent();
        let columns = if is_sent { scheduled(schedule) } else { Columns::default() };
        let asked = match &body.next_usage_reset_at {
            Field::Value(text) => Some(text.as_str()),
            Field::Absent if schedule == stored => return Ok(columns),
            Field::Absent | Field::Null => None,
        };
        Ok(columns.set("next_usage_reset_at", resets::first(schedule, asked, Utc::now())?))
    }

    /// Groups that have room again become active and may get alerts again; so do those below a raised threshold.
    pub(super) async fn wake(
        &self,
        action: &Action<'_>,
        limit: Amount,
        threshold: Option<Amount>,
    ) -> Result<(), ApiError> {
        const WAKE: &str = "UPDATE policy_entities e
            SET status = 'active', is_threshold_alerts_sent = false, is_exhausted_alerts_sent = false
            FROM usage_counters c
            WHERE e.policy_id = $1 AND e.organisation_id = $2 AND c.organisation_id = $2 AND c.scope = 'policy'
              AND c.scope_id = e.policy_id || '/' || e.value_key AND c.unit = $3 AND c.period = 'total'
              AND c.starts_at = greatest(e.last_reset_at, $4)
              AND c.value < $5::numeric * CASE $3 WHEN 'cost' THEN 100 ELSE 1 END";
        const FORGET_WORD: &str = "UPDATE policy_entities SET is_threshold_alerts_sent = false
            WHERE policy_id = $1 AND organisation_id = $2 AND is_threshold_alerts_sent";
        if is_raised(Some(limit), Some(self.credit_limit)) {
            let since = self.last_reset_at.0;
            action.tx.execute(WAKE, &[&self.id, &self.organisation_id, &self.kind, &since, &limit]).await?;
        }
        if is_raised(threshold, self.alert_threshold) {
            action.tx.execute(FORGET_WORD, &[&self.id, &self.organisation_id]).await?;
        }
        Ok(())
    }
}

/// A schedule as the two columns hold it.
pub fn schedule_of(period: Option<&str>, days: Option<i16>) -> Result<Option<ResetSchedule>, ApiError> {
    let period = period.map(|text| if text == "weekly" { ResetPeriod::Weekly } else { ResetPeriod::Monthly });
    ResetSchedule::checked(period, days.map(i64::from), WEEK)
}

pub(super) fn scheduled(schedule: Option<ResetSchedule>) -> Columns {
    let period = schedule.and_then(ResetSchedule::period).map(|period| match period {
        ResetPeriod::Weekly => "weekly",
        ResetPeriod::Monthly => "monthly",
    });
    let days = schedule.and_then(ResetSchedule::days).and_then(|days| i16::try_from(days).ok());
    Columns::default().set("periodic_reset", period).set("periodic_reset_days", days)
}

pub(super) fn amounts(kind: BudgetKind, limit: Amount, threshold: Option<Amount>) -> Result<(), ApiError> {
    let least = if kind == BudgetKind::Tokens { 100 } else { 1 };
    if !limit.is_limit_from(least) {
        return Err(ApiError::field("credit_limit", format!("must be ≥ {least}")));
    }
    match threshold {
        Some(threshold) if threshold < Amount::from(1) => Err(ApiError::field("alert_threshold", "must be ≥ 1")),
        Some(threshold) if threshold >= limit => {
            Err(ApiError::field("alert_threshold", "must be less than credit_limit"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_a_least_size_and_a_threshold_below_it() {
        for (kind, limit, threshold, expected) in [
            (BudgetKind::Cost, 1.0, None, None),
            (BudgetKind::Cost, 0.5, None, Some("credit_limit")),
            (BudgetKind::Tokens, 99.0, None, Some("credit_limit")),
            (BudgetKind::Tokens, 100.0, Some(50.0), None),
            (BudgetKind::Requests, 1.0, None, None),
            (BudgetKind::Cost, 10.0, Some(10.0), Some("alert_threshold")),
            (BudgetKind::Cost, 10.0, Some(0.5), Some("alert_threshold")),
            (BudgetKind::Cost, 1e16, None, Some("credit_limit")),
        ] {
            let amount = |number: f64| Amount::from_float(number).unwrap();
            let fault = match amounts(kind, amount(limit), threshold.map(amount)) {
                Err(ApiError::Invalid { field, .. }) => field,
                _ => None,
            };
            assert_eq!(fault.as_deref(), expected, "{kind:?} {limit} {threshold:?}");
        }
    }
}
