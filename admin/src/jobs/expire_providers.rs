//! Marks providers whose time is over. The proxy refuses them from that instant on, marked or not; the mark is for whoever
//! reads the rows, and the audit trail says when it was set.

use super::{Job, JobRun};
use crate::audit::{self, AuditRecord};
use futures::FutureExt as _;
use serde_json::json;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job = Job { name: "expire_providers", every: Duration::from_secs(5), work: |_, tx| work(tx).boxed() };

const AT_ONCE: usize = 500;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // One that somebody is changing right now may get a later end; the next run sees what became of it.
    const EXPIRE: &str = "WITH due AS (
            SELECT id, status FROM providers
            WHERE expires_at IS NOT NULL AND expires_at <= now() AND status IN ('active', 'exhausted')
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
        UPDATE providers p SET status = 'expired', last_updated_at = now() FROM due WHERE p.id = due.id
        RETURNING p.id, p.organisation_id, p.workspace_id, due.status AS was";
    let rows = tx.query(EXPIRE, &[&(AT_ONCE as i64)]).await?;
    for row in &rows {
        let mut record = AuditRecord::by_system(row.try_get("organisation_id")?, "providers", "update");
        record.workspace_id = row.try_get("workspace_id")?;
        record.resource_id = Some(row.try_get::<_, Uuid>("id")?.to_string());
        record.before = Some(json!({ "status": row.try_get::<_, &str>("was")? }));
        record.after = Some(json!({ "status": "expired" }));
        audit::record(tx, &record).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}
