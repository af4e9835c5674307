//! Resets budgets on keys, workspaces, providers and integrations whose time has come. Resets that were missed are made
//! up for as one, as of the last of them.

use super::{Job, JobRun};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::Time;
use crate::limits::UsageLimits;
use crate::limits::owners::{BudgetOwner, OWNERS};
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "reset_budgets", every: Duration::from_secs(5), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: usize = 500;

impl BudgetOwner {
    fn due(&self) -> String {
        let Self { table, budget, workspace, is_alive, called, .. } = self;
        // Times are written so that they sort as text; a cast would have to be made for every row.
        format!(
            "SELECT t.id, t.organisation_id, {workspace} AS workspace_id, {called} AS called, {budget} AS budget, now() AS now
             FROM {table} t
             WHERE t.usage_limits IS NOT NULL AND {is_alive}
               AND ({budget} ->> 'next_usage_reset_at') COLLATE \"C\"
                   <= to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')
             ORDER BY t.id LIMIT $1 FOR UPDATE OF t SKIP LOCKED"
        )
    }

    fn reset(&self) -> String {
        let status = match self.has_status {
            true => ", status = CASE WHEN status = 'exhausted' THEN 'active' ELSE status END",
            false => "",
        };
        format!(
            "UPDATE {} SET usage_limits = $2, last_reset_at = $3, last_updated_at = now(){status} WHERE id = $1",
            self.table
        )
    }
}

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    let mut done = JobRun { items: 0, is_all: true };
    if !app.features.usage_limits_enabled {
        return Ok(done);
    }
    for budget_owner in OWNERS {
        let rows = tx.query(&budget_owner.due(), &[&(AT_ONCE as i64)]).await?;
        for row in &rows {
            reset(tx, budget_owner, row).await?;
        }
        done.items += rows.len() as u64;
        done.is_all &= rows.len() < AT_ONCE;
    }
    Ok(done)
}

async fn reset(tx: &Transaction<'_>, budget_owner: &BudgetOwner, row: &Row) -> anyhow::Result<()> {
    let (stored, now): (Value, DateTime<Utc>) = (row.try_get("budget")?, row.try_get("now")?);
    let limits = UsageLimits::from_stored(&stored, None).and_then(|limits| limits.caught_up(now));
    // A time without a schedule is not written by anybody; it must not stop the others.
    let Some((fresh, began)) = limits else { return Ok(()) };
    let id: Uuid = row.try_get("id")?;
    tx.execute(&budget_owner.reset(), &[&id, &(budget_owner.wrapped)(fresh.stored()), &began]).await?;
    let mut record = AuditRecord::by_system(row.try_get("organisation_id")?, budget_owner.resource_type, "update");
    record.workspace_id = row.try_get("workspace_id")?;
    record.resource_id = Some(row.try_get("called")?);
    record.before = Some(json!({ "usage_limits": stored }));
    record.after = Some(json!({ "usage_limits": fresh.shown(), "last_reset_at": Time(began) }));
    Ok(audit::record(tx, &record).await?)
}
