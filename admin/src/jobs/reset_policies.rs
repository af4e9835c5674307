//! Resets usage-limits policies whose time has come, with all their groups. Resets that were missed are made up for as
//! one, as of the last of them.

use super::{Job, JobRun};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::Time;
use crate::resources::policy_schedule;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use serde_json::json;
use std::time::Duration;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "reset_policies", every: Duration::from_secs(5), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: usize = 100;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const DUE: &str =
        "SELECT id, organisation_id, workspace_id, periodic_reset, periodic_reset_days, next_usage_reset_at,
            last_reset_at, now() AS now
        FROM usage_limits_policies WHERE next_usage_reset_at <= now() AND status = 'active'
        ORDER BY next_usage_reset_at LIMIT $1 FOR UPDATE SKIP LOCKED";
    if !app.features.policy_enabled {
        return Ok(JobRun { items: 0, is_all: true });
    }
    let rows = tx.query(DUE, &[&(AT_ONCE as i64)]).await?;
    for row in &rows {
        reset(tx, row).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}

async fn reset(tx: &Transaction<'_>, row: &Row) -> anyhow::Result<()> {
    const RESET: &str = "UPDATE usage_limits_policies
        SET last_reset_at = $2, next_usage_reset_at = $3, last_updated_at = now() WHERE id = $1";
    // Alerts and resets of single groups belongs to the period before, unless they were reset since.
    const FORGET: &str =
        "DELETE FROM policy_entities WHERE policy_id = $1 AND coalesce(last_reset_at, '-infinity') < $2";
    let (id, now): (Uuid, DateTime<Utc>) = (row.try_get("id")?, row.try_get("now")?);
    let due: DateTime<Utc> = row.try_get("next_usage_reset_at")?;
    let schedule = policy_schedule(row.try_get("periodic_reset")?, row.try_get("periodic_reset_days")?)?;
    let last: DateTime<Utc> = row.try_get("last_reset_at")?;
    let (began, next) = match schedule {
        Some(schedule) => {
            let (began, next) = schedule.caught_up(due, now);
            (began, Some(next))
        }
        None => (last, None),
    };
    tx.execute(RESET, &[&id, &began, &next]).await?;
    tx.execute(FORGET, &[&id, &began]).await?;
    let mut record = AuditRecord::by_system(row.try_get("organisation_id")?, "policies", "update");
    record.workspace_id = row.try_get("workspace_id")?;
    record.resource_id = Some(id.to_string());
    record.before = Some(json!({ "last_reset_at": Time(last), "next_usage_reset_at": Time(due) }));
    record.after = Some(json!({ "last_reset_at": Time(began), "next_usage_reset_at": next.map(Time) }));
    Ok(audit::record(tx, &record).await?)
}
