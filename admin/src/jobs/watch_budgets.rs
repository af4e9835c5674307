//! Sends alerts when a budget on a key, workspace, provider or integration reaches its threshold or its limit: once,
//! by mail and in the audit trail. A budget that is used up is marked for lists; requests are refused by counters,
//! whether it is marked or not.

use super::{Job, JobRun, outbox};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::limits::owners::{BudgetOwner, OWNERS};
use crate::limits::{BudgetCrossing, UsageLimits};
use crate::mail::budget::{self, BudgetNotice};
use crate::mail::recipients;
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "watch_budgets", every: Duration::from_secs(5), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: usize = 200;

impl BudgetOwner {
    /// Those that crossed a threshold or limit for which no alert was sent yet. One statement for all of them, whatever their number.
    fn reached(&self) -> String {
        let Self { table, budget, scope, scope_id, workspace, name, is_alive, called, .. } = self;
        let factor = format!("CASE {budget} ->> 'type' WHEN 'cost' THEN 100 ELSE 1 END");
        let reaches = |mark: &str, flag: &str| {
            format!(
                "(c.value >= ({budget} ->> '{mark}')::numeric * {factor} AND ({budget} ->> '{flag}') IS DISTINCT FROM 'true')"
            )
        };
        format!(
            "SELECT t.id, t.organisation_id, {workspace} AS workspace_id, {name} AS name, {called} AS called,
                    {budget} AS budget,
                    c.value * CASE c.unit WHEN 'cost' THEN 0.01 ELSE 1 END AS used
             FROM {table} t JOIN usage_counters c
               ON c.organisation_id = t.organisation_id AND c.scope = '{scope}' AND c.scope_id = {scope_id}
              AND c.unit = {budget} ->> 'type' AND c.period = 'total'
              AND c.starts_at = ({budget} ->> 'last_reset_at')::timestamptz
             WHERE t.usage_limits IS NOT NULL AND {is_alive} AND ({} OR {})
             ORDER BY t.id LIMIT $1 FOR UPDATE OF t SKIP LOCKED",
            reaches("credit_limit", "is_exhausted_alerts_sent"),
            reaches("alert_threshold", "is_threshold_alerts_sent")
        )
    }

    fn mark(&self) -> String {
        let status = match self.has_status {
            true => ", status = CASE WHEN $3 AND status = 'active' THEN 'exhausted' ELSE status END",
            false => ", last_updated_at = CASE WHEN $3 THEN now() ELSE last_updated_at END",
        };
        format!("UPDATE {} SET usage_limits = $2{status} WHERE id = $1", self.table)
    }
}

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    let mut done = JobRun { items: 0, is_all: true };
    if !app.features.usage_limits_enabled {
        return Ok(done);
    }
    for budget_owner in OWNERS {
        let rows = tx.query(&budget_owner.reached(), &[&(AT_ONCE as i64)]).await?;
        for row in &rows {
            tell(app, tx, budget_owner, row).await?;
        }
        done.items += rows.len() as u64;
        done.is_all &= rows.len() < AT_ONCE;
    }
    Ok(done)
}

async fn tell(app: &App, tx: &Transaction<'_>, budget_owner: &BudgetOwner, row: &Row) -> anyhow::Result<()> {
    let stored: Value = row.try_get("budget")?;
    let Some(limits) = UsageLimits::from_stored(&stored, row.try_get("used")?) else { return Ok(()) };
    let used = limits.used();
    // Used up before the alert of the threshold was sent: one alert covers both.
    let crossing = limits.marks().crossed(used);
    let alerted = limits.clone().after_alert(crossing.unwrap_or(BudgetCrossing::Exhausted));
    let (id, called): (Uuid, String) = (row.try_get("id")?, row.try_get("called")?);
    tx.execute(&budget_owner.mark(), &[&id, &(budget_owner.wrapped)(alerted.stored()), &limits.is_exhausted()]).await?;
    let Some(crossing) = crossing else { return Ok(()) };
    let (organisation, workspace): (Uuid, Option<Uuid>) =
        (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
    let mut record = AuditRecord::by_system(organisation, budget_owner.resource_type, action(crossing));
    record.workspace_id = workspace;
    record.resource_id = Some(called.clone());
    record.after = Some(json!({ "current_usage": used, "usage_limits": alerted.shown() }));
    audit::record(tx, &record).await?;
    let name: Option<String> = row.try_get("name")?;
    let subject = BudgetNotice {
        subject: &format!("{} {}", budget_owner.spoken, name.as_deref().unwrap_or(&called)),
        kind: limits.kind().into(),
        marks: *limits.marks(),
        used,
        at: &format!("PUT {}{called}", budget_owner.path),
        is_dry_run: false,
    };
    let key = (budget_owner.table == "api_keys").then_some(id);
    for to in recipients::of_budget(tx, organisation, workspace, key).await? {
        outbox::put(tx, organisation, &budget::letter(to, &subject, crossing)).await?;
    }
    if app.alert_webhook.is_some() {
        outbox::put(tx, organisation, &budget::posted(organisation, workspace, &subject, crossing)).await?;
    }
    Ok(())
}

/// What the audit trail calls it.
pub fn action(crossing: BudgetCrossing) -> &'static str {
    match crossing {
        BudgetCrossing::Threshold => "threshold_reached",
        BudgetCrossing::Exhausted => "limit_reached",
    }
}
