//! Deletes exports as old as the logs that they hold may be, and links that are over.

use super::{Job, JobRun};
use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::logs::exports::files;
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "expire_exports", every: Duration::from_secs(10 * 60), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: i64 = 100;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const LINKS: &str = "DELETE FROM log_export_links WHERE expires_at < now()";
    const EXPORTS: &str = "DELETE FROM exports WHERE id = ANY (ARRAY(
            SELECT id FROM exports WHERE last_updated_at < now() - make_interval(days => $1) AND status <> 'in_progress'
            ORDER BY last_updated_at LIMIT $2 FOR UPDATE SKIP LOCKED))
        RETURNING id, organisation_id, workspace_id";
    const NOTE: &str = "INSERT INTO object_deletions (folder) VALUES ($1) ON CONFLICT DO NOTHING";
    let mut items = tx.execute(LINKS, &[]).await?;
    let days = i32::try_from(app.retention.log_days())?;
    if days == 0 {
        return Ok(JobRun { items, is_all: true });
    }
    let rows = tx.query(EXPORTS, &[&days, &AT_ONCE]).await?;
    for row in &rows {
        let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
        tx.execute(NOTE, &[&files::folder(organisation, id)]).await?;
        let mut record = AuditRecord::by_system(organisation, "log_exports", "delete");
        record.workspace_id = row.try_get("workspace_id")?;
        record.resource_id = Some(id.to_string());
        audit::record(tx, &record).await?;
    }
    items += rows.len() as u64;
    Ok(JobRun { items, is_all: (rows.len() as i64) < AT_ONCE })
}
