//! Forgets batches that have long been over, and those of archived workspaces with whatever was left of their rows. What a provider
//! runs for such a workspace is cancelled first, and remembered until a proxy has stopped it there, for a day at most. Files go by
//! their own time.

use super::{Job, JobRun};
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job = Job { name: "expire_batches", every: Duration::from_secs(3600), work: |_, tx| work(tx).boxed() };

const AT_ONCE: i64 = 100;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const STOP: &str = "UPDATE batches b SET status = 'cancelling', cancelling_at = now(), next_step_at = now()
        FROM workspaces w WHERE w.id = b.workspace_id AND w.status = 'archived' AND b.mode = '24h'
            AND b.status IN ('validating', 'in_progress', 'finalizing')";
    const GONE: &str = "DELETE FROM batches WHERE id = ANY (ARRAY(
            SELECT b.id FROM batches b JOIN workspaces w ON w.id = b.workspace_id
            WHERE (w.status = 'archived' AND (b.mode = 'immediate' OR b.cancelling_at < now() - interval '1 day'
                    OR b.status IN ('completed', 'failed', 'expired', 'cancelled')))
                OR (b.created_at < now() - interval '90 days'
                    AND b.status IN ('completed', 'failed', 'expired', 'cancelled'))
            LIMIT $1 FOR UPDATE OF b SKIP LOCKED))";
    let stopped = tx.execute(STOP, &[]).await?;
    let gone = tx.execute(GONE, &[&AT_ONCE]).await?;
    Ok(JobRun { items: stopped + gone, is_all: gone < AT_ONCE.unsigned_abs() })
}
