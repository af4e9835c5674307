//! Rate-limits policies: so many requests or tokens in each minute, hour or day. A new value holds in the running
//! window; another unit or rule counts from zero.

use super::entities::{self, Entity, EntityQuery};
use super::matched;
use super::rule::{LimitType, RuleFor};
use crate::app::App;
use crate::crud::{self, Action, Answer, Resource, RowLock, Verb};
use crate::http::{ApiError, Field, PageSizes, Time, text};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, DurationRound as _, SubsecRound as _, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::amount::Amount;
use shared::db::table::{Columns, Filter, RowError, Table, Tenancy, row};
use shared::model::policy::{Condition, GroupBy, PolicyTarget, RateKind};
use shared::model::{RateLimitsPolicy, Status};
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

pub const UNITS: [&str; 3] = ["rpm", "rph", "rpd"];
pub const KINDS: [&str; 2] = ["requests", "tokens"];

#[derive(Serialize, Deserialize)]
pub struct RatePolicy {
    pub id: Uuid,
    name: Option<String>,
    description: Option<String>,
    conditions: Value,
    group_by: Value,
    #[serde(rename = "type")]
    kind: String,
    unit: String,
    value: Amount,
    dry_run: bool,
    include_none: bool,
    trusted_metadata: bool,
    target: Option<String>,
    status: Status,
    workspace_id: Uuid,
    organisation_id: Uuid,
    created_at: Time,
    last_updated_at: Time,
    #[serde(skip_serializing)]
    counters_since: DateTime<Utc>,
}

#[derive(Deserialize)]
pub struct NewRatePolicy {
    name: Option<String>,
    description: Option<String>,
    conditions: Option<Vec<Condition>>,
    group_by: Option<Vec<GroupBy>>,
    #[serde(rename = "type")]
    kind: RateKind,
    unit: Unit,
    value: Amount,
    dry_run: Option<bool>,
    include_none: Option<bool>,
    trusted_metadata: Option<bool>,
    organisation_id: Option<Uuid>,
    target: Option<PolicyTarget>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub struct RatePolicyChange {
    name: Field<String>,
    description: Field<String>,
    conditions: Option<Vec<Condition>>,
    group_by: Option<Vec<GroupBy>>,
    #[serde(rename = "type")]
    kind: Option<RateKind>,
    unit: Option<Unit>,
    value: Option<Amount>,
    dry_run: Option<bool>,
    include_none: Option<bool>,
    trusted_metadata: Option<bool>,
    target: Option<PolicyTarget>,
    status: Option<Status>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Rpm,
    Rph,
    Rpd,
}

impl Unit {
    fn parse(text: &str) -> Self {
        match text {
            "rpm" => Self::Rpm,
            "rph" => Self::Rph,
            _ => Self::Rpd,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Rpm => "rpm",
            Self::Rph => "rph",
            Self::Rpd => "rpd",
        }
    }

    /// The period of its counters.
    fn period(self) -> &'static str {
        match self {
            Self::Rpm => "minute",
            Self::Rph => "hour",
            Self::Rpd => "day",
        }
    }

    fn window_end(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let length = match self {
            Self::Rpm => TimeDelta::minutes(1),
            Self::Rph => TimeDelta::hours(1),
            Self::Rpd => TimeDelta::days(1),
        };
        now.duration_trunc(length).unwrap_or(now) + length
    }
}

impl Resource for RatePolicy {
    type Create = NewRatePolicy;
    type Update = RatePolicyChange;
    const OBJECT: &'static str = "policy_rate_limits";
    const PATH: &'static str = "/policies/rate-limits";
    const TABLE: Table = Table::of_fields::<RatePolicy>("rate_limits_policies", Tenancy::Workspace("workspace_id"));

    fn from_row(row: &Row) -> Result<Self, RowError> {
        row::read(row)
    }

    fn id(&self) -> Uuid {
        self.id
    }

    fn workspace_id(&self) -> Option<Uuid> {
        Some(self.workspace_id)
    }

    async fn create(action: &Action<'_>, body: NewRatePolicy) -> Result<Columns, ApiError> {
        super::own_organisation(action.call, body.organisation_id)?;
        let rule = RuleFor { limit: LimitType::Rate, target: body.target };
        rule.check_unit(named_kind(body.kind))?;
        Ok(Columns::default()
            .set("name", body.name.map(|name| text::name("name", name)).transpose()?)
            .set("description", body.description.map(described).transpose()?)
            .set("conditions", rule.conditions(body.conditions.unwrap_or_default())?)
            .set("group_by", rule.group_by(body.group_by.unwrap_or_default())?)
            .set("type", named_kind(body.kind))
            .set("unit", body.unit.as_str())
            .set("value", checked_value(body.value)?)
            .set("dry_run", body.dry_run.unwrap_or(false))
            .set("include_none", body.include_none.unwrap_or(false))
            .set("trusted_metadata", body.trusted_metadata.unwrap_or(false))
            .set("target", body.target.map(PolicyTarget::as_str)))
    }

    async fn update(_: &Action<'_>, current: &Self, body: RatePolicyChange) -> Result<Columns, ApiError> {
        if body.kind.is_some_and(|kind| named_kind(kind) != current.kind) {
            return Err(ApiError::field("type", "cannot be changed"));
        }
        let rule = RuleFor::stored(LimitType::Rate, current.target.as_deref(), body.target)?;
        let conditions = body.conditions.map(|sent| rule.conditions(sent)).transpose()?;
        let group_by = body.group_by.map(|sent| rule.group_by(sent)).transpose()?;
        let restarts = body.unit.is_some_and(|unit| unit.as_str() != current.unit)
            || conditions.as_ref().is_some_and(|sent| *sent != current.conditions)
            || group_by.as_ref().is_some_and(|sent| *sent != current.group_by)
            || body.include_none.is_some_and(|sent| sent != current.include_none)
            || body.trusted_metadata.is_some_and(|sent| sent != current.trusted_metadata);
        Ok(Columns::default()
            .set_if("name", body.name.try_map(|name| text::name("name", name))?.sent())
            .set_if("description", body.description.try_map(described)?.sent())
            .set_if("conditions", conditions)
            .set_if("group_by", group_by)
            .set_if("unit", body.unit.map(Unit::as_str))
            .set_if("value", body.value.map(checked_value).transpose()?)
            .set_if("dry_run", body.dry_run)
            .set_if("include_none", body.include_none)
            .set_if("trusted_metadata", body.trusted_metadata)
            .set_if("status", body.status.map(Status::as_str))
            .set_if("counters_since", restarts.then(|| Utc::now().trunc_subsecs(3))))
    }

    fn filter(call: &Call) -> Result<Filter, ApiError> {
        let mut filter = Filter::default().one_of("status", super::statuses(call)?);
        for (column, allowed) in [("type", &KINDS[..]), ("unit", &UNITS[..])] {
            let asked = call.query().choices(column, allowed)?;
            if !asked.is_empty() {
                filter = filter.one_of(column, asked);
            }
        }
        Ok(filter)
    }

    fn named(call: &Call, name: &str) -> Result<Filter, ApiError> {
        super::named(call, name)
    }

    async fn after(&self, verb: Verb, action: &Action<'_>) -> Result<(), ApiError> {
        if verb == Verb::Delete {
            matched::forget(&action.tx, self.organisation_id, self.id).await?;
        }
        Ok(())
    }

    fn updated(&self, call: &Call) -> Value {
        self.shown(call)
    }
}

async fn found(db: &impl GenericClient, call: &Call, id: &str) -> Result<RatePolicy, ApiError> {
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    crud::find(db, call, id, workspace, RowLock::No).await
}

/// The policy, and when a request last matched it.
pub async fn read_policy(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let policy = found(&*db, &call, &id).await?;
    let last = matched::in_windows(&*db, policy.organisation_id, policy.id, Unit::parse(&policy.unit).period()).await?;
    let mut shown = policy.shown(&call);
    matched::show(&mut shown, last, policy.created_at.0, Utc::now());
    Ok(Json(shown))
}

/// The groups that the policy names, and those that were counted in the running window.
pub async fn entities(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let policy = found(&*db, &call, &id).await?;
    let unit = Unit::parse(&policy.unit);
    let page = call.query().page(PageSizes::USUAL)?;
    let wanted = EntityQuery { named: entities::named(&policy.conditions), ..EntityQuery::for_call(&call, page)? };
    let prefix = RateLimitsPolicy::scope_prefix_of(policy.id, policy.counters_since);
    let source = entities::RateCounters { prefix: &prefix, kind: &policy.kind, period: unit.period() };
    let (total, found) = entities::in_window(&*db, &call, policy.id, policy.value, &source, &wanted).await?;
    let resets_at = Time(unit.window_end(Utc::now()));
    let shown = |entity: &Entity| {
        let mut shown = entity.shown();
        shown["limit"] = json!(policy.value);
        shown["window_resets_at"] = json!(resets_at);
        shown
    };
    Ok(crud::listed(total, found.iter().map(shown).collect()))
}

fn named_kind(kind: RateKind) -> &'static str {
    match kind {
        RateKind::Requests => "requests",
        RateKind::Tokens => "tokens",
    }
}

pub fn described(text: String) -> Result<String, ApiError> {
    text::sized("description", text, 0..=500)
}

fn checked_value(value: Amount) -> Result<Amount, ApiError> {
    if !value.is_limit_from(1) {
        return Err(ApiError::field("value", "must be ≥ 1"));
    }
    Ok(value)
}
