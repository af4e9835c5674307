//! Usage-limits policies: a budget of money, tokens or requests for each group, with an early word and a time to start
//! over. What a budget may be and what a change of it means is said in `budget`, what was used is shown by `usage_now`.

mod budget;
mod usage_now;

pub use budget::schedule_of;
pub use usage_now::{entities, read_policy};

use super::rates::described;
use super::rule::{LimitType, RuleFor};
use super::{matched, reset};
use crate::crud::{Action, Resource, Verb};
use crate::http::{ApiError, Field, Time, text};
use crate::identity::Call;
use crate::limits::reset::{self as resets, ResetPeriod, ResetSchedule};
use budget::{amounts, scheduled};
use chrono::{Utc, Weekday};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::amount::Amount;
use shared::db::table::{Columns, Filter, RowError, Table, Tenancy, row};
use shared::model::Status;
use shared::model::policy::{BudgetKind, Condition, GroupBy, PolicyTarget, UnknownPrice};
use tokio_postgres::Row;
use uuid::Uuid;

pub const KINDS: [&str; 3] = ["cost", "tokens", "requests"];
/// The day on which weeks of policies begin.
pub const WEEK: Weekday = Weekday::Mon;

#[derive(Serialize, Deserialize)]
pub struct UsagePolicy {
    pub id: Uuid,
    name: Option<String>,
    description: Option<String>,
    conditions: Value,
    pub group_by: Value,
    #[serde(rename = "type")]
    kind: String,
    credit_limit: Amount,
    alert_threshold: Option<Amount>,
    periodic_reset: Option<String>,
    periodic_reset_days: Option<i16>,
    next_usage_reset_at: Option<Time>,
    last_reset_at: Time,
    strict: bool,
    unknown_price: Option<String>,
    dry_run: bool,
    include_none: bool,
    trusted_metadata: bool,
    target: Option<String>,
    status: Status,
    workspace_id: Uuid,
    pub organisation_id: Uuid,
    created_at: Time,
    last_updated_at: Time,
}

#[derive(Deserialize)]
pub struct NewUsagePolicy {
    name: Option<String>,
    description: Option<String>,
    conditions: Option<Vec<Condition>>,
    group_by: Option<Vec<GroupBy>>,
    #[serde(rename = "type")]
    kind: BudgetKind,
    credit_limit: Amount,
    alert_threshold: Option<Amount>,
    periodic_reset: Option<ResetPeriod>,
    periodic_reset_days: Option<i64>,
    next_usage_reset_at: Option<String>,
    strict: Option<bool>,
    unknown_price: Option<UnknownPrice>,
    dry_run: Option<bool>,
    include_none: Option<bool>,
    trusted_metadata: Option<bool>,
    organisation_id: Option<Uuid>,
    target: Option<PolicyTarget>,
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
    credit_limit: Option<Amount>,
    alert_threshold: Field<Amount>,
    periodic_reset: Field<ResetPeriod>,
    periodic_reset_days: Field<i64>,
    next_usage_reset_at: Field<String>,
    strict: Option<bool>,
    unknown_price: Field<UnknownPrice>,
    dry_run: Option<bool>,
    include_none: Option<bool>,
    trusted_metadata: Option<bool>,
    target: Option<PolicyTarget>,
    status: Option<Status>,
    reset_usage_for_value: Option<String>,
}

impl Resource for UsagePolicy {
    type Create = NewUsagePolicy;
    type Update = UsagePolicyChange;
    const OBJECT: &'static str = "policy_usage_limits";
    const PATH: &'static str = "/policies/usage-limits";
    const TABLE: Table = Table::of_fields::<UsagePolicy>("usage_limits_policies", Tenancy::Workspace("workspace_id"));

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
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
        let rule = RuleFor { limit: LimitType::Usage, target: body.target };
        rule.check_unit(body.kind.as_str())?;
        let schedule = ResetSchedule::checked(body.periodic_reset, body.periodic_reset_days, WEEK)?;
        let next = resets::first(schedule, body.next_usage_reset_at.as_deref(), Utc::now())?;
        Ok(Columns::default()
            .set("name", body.name.map(|name| text::name("name", name)).transpose()?)
            .set("description", body.description.map(described).transpose()?)
            .set("conditions", rule.conditions(body.conditions.unwrap_or_default())?)
            .set("group_by", rule.group_by(body.group_by.unwrap_or_default())?)
            .set("type", body.kind.as_str())
            .set("credit_limit", body.credit_limit)
            .set("alert_threshold", body.alert_threshold)
            .set("strict", body.strict.unwrap_or(false))
            .set("unknown_price", body.unknown_price.map(UnknownPrice::as_str))
            .set("dry_run", body.dry_run.unwrap_or(false))
            .set("include_none", body.include_none.unwrap_or(false))
            .set("trusted_metadata", body.trusted_metadata.unwrap_or(false))
            .set("target", body.target.map(PolicyTarget::as_str))
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
        let rule = RuleFor::stored(LimitType::Usage, current.target.as_deref(), body.target)?;
        let schedule = current.rescheduled(&body)?;
        let columns = Columns::default()
            .set_if("name", body.name.try_map(|name| text::name("name", name))?.sent())
            .set_if("description", body.description.try_map(described)?.sent())
            .set_if("conditions", body.conditions.map(|sent| rule.conditions(sent)).transpose()?)
            .set_if("group_by", body.group_by.map(|sent| rule.group_by(sent)).transpose()?)
            .set_if("credit_limit", body.credit_limit)
            .set_if("alert_threshold", body.alert_threshold.sent())
            .set_if("strict", body.strict)
            .set_if("unknown_price", body.unknown_price.sent().map(|sent| sent.map(UnknownPrice::as_str)))
            .set_if("dry_run", body.dry_run)
            .set_if("include_none", body.include_none)
            .set_if("trusted_metadata", body.trusted_metadata)
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

    fn updated(&self, call: &Call) -> Value {
        self.shown(call)
    }
}
