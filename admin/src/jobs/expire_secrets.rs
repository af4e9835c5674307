//! Forgets the secret that a key had before its rotation, once the transition is over. It was refused from that instant
//! on; this removes its hash, and the audit trail says when.

use super::{Job, JobRun};
use crate::audit::{self, AuditRecord};
use crate::http::Time;
use futures::FutureExt as _;
use serde_json::json;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job = Job { name: "expire_secrets", every: Duration::from_secs(5), work: |_, tx| work(tx).boxed() };

const AT_ONCE: usize = 500;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // The first condition is that of the small index over keys that have two secrets.
    const FORGET: &str = "WITH due AS (
            SELECT id, previous_expires_at FROM api_keys
            WHERE previous_hash IS NOT NULL AND previous_expires_at <= now() LIMIT $1 FOR UPDATE SKIP LOCKED)
        UPDATE api_keys k SET previous_hash = NULL, previous_expires_at = NULL FROM due WHERE k.id = due.id
        RETURNING k.id, k.organisation_id, k.workspace_id, due.previous_expires_at AS ended";
    let rows = tx.query(FORGET, &[&(AT_ONCE as i64)]).await?;
    for row in &rows {
        let mut record = AuditRecord::by_system(row.try_get("organisation_id")?, "api_keys", "rotate");
        record.workspace_id = row.try_get("workspace_id")?;
        record.resource_id = Some(row.try_get::<_, Uuid>("id")?.to_string());
        record.before = Some(json!({ "transition_expires_at": row.try_get::<_, Time>("ended")? }));
        record.after = Some(json!({ "transition_expires_at": null }));
        audit::record(tx, &record).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}
