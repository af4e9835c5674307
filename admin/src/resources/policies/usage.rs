//! Usage-limits policies: a budget of money, tokens or requests for each group, with an early word and a time to start
//! over. Raising the limit wakes the groups that have room again.

use super::entities::{self, Wanted};
use super::rates::described;
use super::rule::{self, For};
use super::{Status, Target, matched, reset};
use crate::action::Action;
use crate::app::App;
use crate::call::Call;
use crate::crud::{self, Answer, Lock, Resource, Verb};
use crate::error::ApiError;
use crate::http::{Field, PageSizes, Time, text};
use crate::limits::reset::{self as resets, Period, Schedule};
use crate::limits::{is_raised, number};
use crate::tenancy;
use axum::Json;
use axum::extract::{Path, State};
use chrono::{Utc, Weekday};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::model::policy::{BudgetKind, Condition, GroupBy};
use shared::table::{Columns, Filter, OnDelete, Table, Tenancy};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub const KINDS: [&str; 3] = ["cost", "tokens", "requests"];
/// The day on which weeks of policies begin.
pub const WEEK: Weekday = Weekday::Mon;
/// The most groups that are shown inside their policy; the others are found by pages of its entities.
const MOST_SHOWN: i64 = 10_000;

#[derive(Serialize)]
pub struct UsagePolicy {
    pub id: Uuid,
    name: Option<String>,
    description: Option<String>,
    conditions: Value,
    pub group_by: Value,
    #[serde(rename = "type")]
    kind: String,
    credit_limit: f64,
    alert_threshold: Option<f64>,
    periodic_reset: Option<String>,
    periodic_reset_days: Option<i16>,
    next_usage_reset_at: Option<Time>,
    last_reset_at: Time,
    strict: bool,
    dry_run: bool,
    status: String,
    workspace_id: Uuid,
    pub organisation_id: Uuid,
    created_at: Time,
    last_updated_at: Time,
}

#[derive(Deserialize)]
pub struct NewUsagePolicy {
    name: Option<String>,
    description: Option<String>,
    conditions: Vec<Condition>,
    group_by: Vec<GroupBy>,
    #[serde(rename = "type")]
    kind: BudgetKind,
    credit_limit: f64,
    alert_threshold: Option<f64>,
    periodic_reset: Option<Period>,
    periodic_reset_days: Option<i64>,
    next_usage_reset_at: Option<String>,
    strict: Option<bool>,
    dry_run: Option<bool>,
    organisation_id: Option<Uuid>,
    #[serde(rename = "target")]
    _target: Option<Target>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct UsagePolicyChange {
    name: Field<String>,
    description: Field<String>,
    conditions: Option<Vec<Condition>>,
    group_by: Option<Vec<GroupBy>>,
    #[serde(rename = "type")]
    kind: Option<BudgetKind>,
    credit_limit: Option<f64>,
    alert_threshold: Field<f64>,
    periodic_reset: Field<Period>,
    periodic_reset_days: Field<i64>,
    next_usage_reset_at: Field<String>,
    strict: Option<bool>,
    dry_run: Option<bool>,
    status: Option<Status>,
    reset_usage_for_value: Option<String>,
}

impl Resource for UsagePolicy {
    type Create = NewUsagePolicy;
    type Update = UsagePolicyChange;
    const OBJECT: &'static str = "policy_usage_limits";
    const PATH: &'static str = "/policies/usage-limits";
    const TABLE: Table = Table {
        name: "usage_limits_policies",
        columns: "id, name, description, conditions, group_by, type, credit_limit, alert_threshold, periodic_reset,
                  periodic_reset_days, next_usage_reset_at, last_reset_at, strict, dry_run, status, workspace_id,
                  organisation_id, created_at, last_updated_at",
        slug: None,
        tenancy: Tenancy::Workspace("workspace_id"),
        on_delete: OnDelete::Archive,
    };

    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            name: row.try_get("name")?,
            description: row.try_get("description")?,
            conditions: row.try_get("conditions")?,
            group_by: row.try_get("group_by")?,
            kind: row.try_get("type")?,
            credit_limit: row.try_get("credit_limit")?,
            alert_threshold: row.try_get("alert_threshold")?,
            periodic_reset: row.try_get("periodic_reset")?,
            periodic_reset_days: row.try_get("periodic_reset_days")?,
            next_usage_reset_at: row.try_get("next_usage_reset_at")?,
            last_reset_at: row.try_get("last_reset_at")?,
            strict: row.try_get("strict")?,
            dry_run: row.try_get("dry_run")?,
            status: row.try_get("status")?,
            workspace_id: row.try_get("workspace_id")?,
            organisation_id: row.try_get("organisation_id")?,
            created_at: row.try_get("created_at")?,
            last_updated_at: row.try_get("last_updated_at")?,
        })
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.workspace_id)
    }

    async fn create(action: &Action<'_>, body: NewUsagePolicy) -> Result<Columns, ApiError> {
        if !action.app.features.usage_limits_enabled {
            return Err(ApiError::FeatureOff { setting: "USAGE_LIMITS_ENABLED" });
        }
        super::own_organisation(action.call, body.organisation_id)?;
        amounts(body.kind, body.credit_limit, body.alert_threshold)?;
        let schedule = Schedule::checked(body.periodic_reset, body.periodic_reset_days, WEEK)?;
        let next = resets::first(schedule, body.next_usage_reset_at.as_deref(), Utc::now())?;
        Ok(Columns::default()
            .set("name", body.name.map(|name| text::name("name", name)).transpose()?)
            .set("description", body.description.map(described).transpose()?)
            .set("conditions", rule::conditions(body.conditions, For::Usage)?)
            .set("group_by", rule::group_by(body.group_by, For::Usage)?)
            .set("type", body.kind.as_str())
            .set("credit_limit", body.credit_limit)
            .set("alert_threshold", body.alert_threshold)
            .set("strict", body.strict.unwrap_or(false))
            .set("dry_run", body.dry_run.unwrap_or(false))
            .join(scheduled(schedule))
            .set("next_usage_reset_at", next))
    }

    async fn update(action: &Action<'_>, current: &Self, body: UsagePolicyChange) -> Result<Columns, ApiError> {
        if body.kind.is_some_and(|kind| kind.as_str() != current.kind) {
            return Err(ApiError::field("type", "cannot be changed"));
        }
        let limit = body.credit_limit.unwrap_or(current.credit_limit);
        let threshold = body.alert_threshold.clone().sent().unwrap_or(current.alert_threshold);
        if body.credit_limit.is_some() || body.alert_threshold.is_sent() {
            amounts(current.kind(), limit, threshold)?;
        }
        let schedule = current.rescheduled(&body)?;
        let columns = Columns::default()
            .set_if("name", body.name.try_map(|name| text::name("name", name))?.sent())
            .set_if("description", body.description.try_map(described)?.sent())
            .set_if("conditions", body.conditions.map(|sent| rule::conditions(sent, For::Usage)).transpose()?)
            .set_if("group_by", body.group_by.map(|sent| rule::group_by(sent, For::Usage)).transpose()?)
            .set_if("credit_limit", body.credit_limit)
            .set_if("alert_threshold", body.alert_threshold.sent())
            .set_if("strict", body.strict)
            .set_if("dry_run", body.dry_run)
            .set_if("status", body.status.map(Status::as_str))
            .join(schedule);
        current.wake(action, limit, threshold).await?;
        let Some(value) = body.reset_usage_for_value else { return Ok(columns) };
        reset::value(action, current, &value).await?;
        // The row itself has changed too, for its time of change.
        Ok(Columns::default().set("name", current.name.clone()).join(columns))
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let filter = Filter::default().one_of("status", super::statuses(call)?);
        let kinds = call.query().choices("type", &KINDS)?;
        Ok(if kinds.is_empty() { filter } else { filter.one_of("type", kinds) })
    }

    fn named(call: &Call, name: &str) -> Result<Filter, ApiError> {
        super::named(call, name)
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete {
            matched::forget(&action.tx, self.organisation_id, self.id).await?;
            reset::forget(&action.tx, self.organisation_id, self.id).await?;
        }
        Ok(())
    }

    fn shown(&self, _: &Call) -> Value {
        let mut shown = crud::shown(Self::OBJECT, self);
        shown["credit_limit"] = number(self.credit_limit);
        shown["alert_threshold"] = self.alert_threshold.map_or(Value::Null, number);
        shown
    }

    fn updated(&self, call: &Call) -> Value {
        self.shown(call)
    }
}

impl UsagePolicy {
    fn kind(&self) -> BudgetKind {
        match self.kind.as_str() {
            "cost" => BudgetKind::Cost,
            "tokens" => BudgetKind::Tokens,
            _ => BudgetKind::Requests,
        }
    }

    fn schedule(&self) -> Result<Option<Schedule>, ApiError> {
        schedule_of(self.periodic_reset.as_deref(), self.periodic_reset_days)
    }

    /// What a change says about resets. One way of repeating takes the place of the other.
    fn rescheduled(&self, body: &UsagePolicyChange) -> Result<Columns, ApiError> {
        let stored = self.schedule()?;
        let period = match &body.periodic_reset {
            Field::Value(period) => Some(*period),
            Field::Absent if !matches!(body.periodic_reset_days, Field::Value(_)) => stored.and_then(Schedule::period),
            Field::Absent | Field::Null => None,
        };
        let days = match &body.periodic_reset_days {
            Field::Value(days) => Some(*days),
            Field::Absent if !matches!(body.periodic_reset, Field::Value(_)) => {
                stored.and_then(Schedule::days).map(i64::from)
            }
            Field::Absent | Field::Null => None,
        };
        let schedule = Schedule::checked(period, days, WEEK)?;
        let is_sent = body.periodic_reset.is_sent() || body.periodic_reset_days.is_sent();
        let columns = if is_sent { scheduled(schedule) } else { Columns::default() };
        let asked = match &body.next_usage_reset_at {
            Field::Value(text) => Some(text.as_str()),
            Field::Absent if schedule == stored => return Ok(columns),
            Field::Absent | Field::Null => None,
        };
        Ok(columns.set("next_usage_reset_at", resets::first(schedule, asked, Utc::now())?))
    }

    /// Groups that have room again are active and will be told again; a threshold further away is told again too.
    async fn wake(&self, action: &Action<'_>, limit: f64, threshold: Option<f64>) -> Result<(), ApiError> {
        const WAKE: &str = "UPDATE policy_entities e
            SET status = 'active', is_threshold_alerts_sent = false, is_exhausted_alerts_sent = false
            FROM usage_counters c
            WHERE e.policy_id = $1 AND e.organisation_id = $2 AND c.organisation_id = $2 AND c.scope = 'policy'
              AND c.scope_id = e.policy_id || '/' || e.value_key AND c.unit = $3 AND c.period = 'total'
              AND c.starts_at = greatest(e.last_reset_at, $4)
              AND c.value < $5::float8::numeric * CASE $3 WHEN 'cost' THEN 100 ELSE 1 END";
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

pub async fn found(db: &impl GenericClient, call: &Call, id: &str) -> Result<UsagePolicy, ApiError> {
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    crud::find(db, call, id, workspace, Lock::No).await
}

/// The policy, when a request last matched it, and on demand what each group has used.
pub async fn read(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let policy = found(&*db, &call, &id).await?;
    let last = matched::in_all(&*db, policy.organisation_id, policy.id).await?;
    let mut shown = policy.shown(&call);
    matched::show(&mut shown, last, policy.created_at.0, Utc::now());
    if call.query().text("include_usage") == Some("true") {
        let wanted = Wanted { page: (MOST_SHOWN, 0), ..Wanted::default() };
        let (_, groups) = policy.groups(&*db, &call, &wanted).await?;
        let usage = groups.into_iter().map(|group| {
            let state = json!({
                "current_usage": number(group.used),
                "status": group.status,
                "is_threshold_alerts_sent": group.is_threshold_alerts_sent,
                "is_exhausted_alerts_sent": group.is_exhausted_alerts_sent,
            });
            (group.value_key, state)
        });
        shown["value_key_usage_map"] = Value::Object(usage.collect::<Map<_, _>>());
    }
    Ok(Json(shown))
}

pub async fn entities(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let policy = found(&*db, &call, &id).await?;
    let page = call.query().page(PageSizes::USUAL)?;
    let wanted = Wanted { named: entities::named(&policy.conditions), ..Wanted::of(&call, page)? };
    let (total, groups) = policy.groups(&*db, &call, &wanted).await?;
    Ok(crud::listed(total, groups.iter().map(entities::Entity::shown_since).collect()))
}

impl UsagePolicy {
    async fn groups(
        &self,
        db: &impl GenericClient,
        call: &Call,
        wanted: &Wanted,
    ) -> Result<(i64, Vec<entities::Entity>), ApiError> {
        let budget = entities::Budget { kind: &self.kind, last_reset_at: self.last_reset_at.0 };
        entities::in_budget(db, call, self.id, self.credit_limit, &budget, wanted).await
    }
}

/// A schedule as the two columns hold it.
pub fn schedule_of(period: Option<&str>, days: Option<i16>) -> Result<Option<Schedule>, ApiError> {
    let period = period.map(|text| if text == "weekly" { Period::Weekly } else { Period::Monthly });
    Schedule::checked(period, days.map(i64::from), WEEK)
}

fn scheduled(schedule: Option<Schedule>) -> Columns {
    let period = schedule.and_then(Schedule::period).map(|period| match period {
        Period::Weekly => "weekly",
        Period::Monthly => "monthly",
    });
    let days = schedule.and_then(Schedule::days).and_then(|days| i16::try_from(days).ok());
    Columns::default().set("periodic_reset", period).set("periodic_reset_days", days)
}

fn amounts(kind: BudgetKind, limit: f64, threshold: Option<f64>) -> Result<(), ApiError> {
    let least = if kind == BudgetKind::Tokens { 100.0 } else { 1.0 };
    if !(least..=1e15).contains(&limit) {
        return Err(ApiError::field("credit_limit", format!("must be ≥ {least}")));
    }
    match threshold {
        Some(threshold) if threshold.is_nan() || threshold < 1.0 => {
            Err(ApiError::field("alert_threshold", "must be ≥ 1"))
        }
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
            let fault = match amounts(kind, limit, threshold) {
                Err(ApiError::Invalid { field, .. }) => field,
                _ => None,
            };
            assert_eq!(fault.as_deref(), expected, "{kind:?} {limit} {threshold:?}");
        }
    }
}
