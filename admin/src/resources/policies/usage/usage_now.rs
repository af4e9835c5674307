//! A usage-limits policy as it is read: when a request last matched it, and what its groups have used.

use super::super::entities::{self as groups, EntityQuery};
use super::super::matched;
use super::UsagePolicy;
use crate::app::App;
use crate::crud::{self, Answer, Resource as _, RowLock};
use crate::http::{ApiError, PageSizes};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use chrono::Utc;
use serde_json::{Map, Value, json};
use tokio_postgres::GenericClient;

/// The most groups that are shown inside their policy; the others are found by pages of its entities.
const MAX_SHOWN: i64 = 10_000;

async fn found(db: &impl GenericClient, call: &Call, id: &str) -> Result<UsagePolicy, ApiError> {
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    crud::find(db, call, id, workspace, RowLock::No).await
}

/// The policy, when a request last matched it, and on demand what each group has used.
pub async fn read_policy(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let policy = found(&*db, &call, &id).await?;
    let last = matched::in_all(&*db, policy.organisation_id, policy.id).await?;
    let mut shown = policy.shown(&call);
    matched::show(&mut shown, last, policy.created_at.0, Utc::now());
    if call.query().flag("include_usage")? {
        let wanted = EntityQuery { page: (MAX_SHOWN, 0), ..EntityQuery::default() };
        let (_, groups) = policy.groups(&*db, &call, &wanted).await?;
        let usage = groups.into_iter().map(|group| {
            let state = json!({
                "current_usage": group.used,
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
    let wanted = EntityQuery { named: groups::named(&policy.conditions), ..EntityQuery::for_call(&call, page)? };
    let (total, groups) = policy.groups(&*db, &call, &wanted).await?;
    Ok(crud::listed(total, groups.iter().map(groups::Entity::shown_since).collect()))
}

impl UsagePolicy {
    async fn groups(
        &self,
        db: &impl GenericClient,
        call: &Call,
        wanted: &EntityQuery,
    ) -> Result<(i64, Vec<groups::Entity>), ApiError> {
        let budget = groups::BudgetCounters { kind: &self.kind, last_reset_at: self.last_reset_at.0 };
        groups::in_budget(db, call, self.id, self.credit_limit, &budget, wanted).await
    }
}
