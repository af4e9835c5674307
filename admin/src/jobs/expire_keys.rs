//! Marks API keys whose time is over. They were refused from that instant on, marked or not; the mark is for lists and
//! people, and the audit trail says when it was set.

use super::{Job, JobRun};
use crate::audit::{self, AuditRecord};
use futures::FutureExt as _;
use serde_json::json;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job = Job { name: "expire_keys", every: Duration::from_secs(5), work: |_, tx| work(tx).boxed() };

const AT_ONCE: usize = 500;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // A key that somebody is changing right now may get a later expiry; the next run sees what became of it.
    const EXPIRE: &str = "WITH due AS (
            SELECT id, status FROM api_keys
            WHERE expires_at IS NOT NULL AND expires_at <= now() AND status IN ('active', 'exhausted')
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
        UPDATE api_keys k SET status = 'expired', last_updated_at = now() FROM due WHERE k.id = due.id
        RETURNING k.id, k.organisation_id, k.workspace_id, due.status AS was";
    let rows = tx.query(EXPIRE, &[&(AT_ONCE as i64)]).await?;
    for row in &rows {
        let mut record = AuditRecord::by_system(row.try_get("organisation_id")?, "api_keys", "update");
        record.workspace_id = row.try_get("workspace_id")?;
        record.resource_id = Some(row.try_get::<_, Uuid>("id")?.to_string());
        record.before = Some(json!({ "status": row.try_get::<_, &str>("was")? }));
        record.after = Some(json!({ "status": "expired" }));
        audit::record(tx, &record).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}
