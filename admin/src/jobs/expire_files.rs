//! Deletes files that the gateway keeps once their time is over, those of archived workspaces, and what uploads left whose
//! proxy died. Their folders in the log store are noted for `delete_objects`, in the same transaction.

use super::{Job, JobRun};
use futures::FutureExt as _;
use shared::log_store;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job = Job { name: "expire_files", every: Duration::from_secs(60), work: |_, tx| work(tx).boxed() };

const AT_ONCE: i64 = 500;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // An upload may take an hour; one that is older has nobody any more.
    const GONE: &str = "DELETE FROM managed_files WHERE id = ANY (ARRAY(
            SELECT f.id FROM managed_files f JOIN workspaces w ON w.id = f.workspace_id
            WHERE f.expires_at < now() OR w.status = 'archived'
               OR (f.status = 'uploading' AND f.created_at < now() - interval '2 hours')
            LIMIT $1 FOR UPDATE OF f SKIP LOCKED))
        RETURNING id, organisation_id, workspace_id";
    const NOTE: &str = "INSERT INTO object_deletions (folder) VALUES ($1) ON CONFLICT DO NOTHING";
    let rows = tx.query(GONE, &[&AT_ONCE]).await?;
    for row in &rows {
        let (organisation, workspace) = (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
        tx.execute(NOTE, &[&log_store::file_folder(organisation, workspace, row.try_get("id")?)]).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: (rows.len() as i64) < AT_ONCE })
}
