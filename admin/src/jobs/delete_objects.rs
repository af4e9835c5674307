//! Deletes folders of the log store that were noted as no longer needed, and packs whose upload died half way: those are
//! noted before they are stored, for later, and the note goes when rows point into them. Deleting is not undone by a
//! failure, so what is left of a folder is found by the next run.

use super::{Job, JobRun};
use crate::app::App;
use futures::FutureExt as _;
use shared::log_store::is_pack;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "delete_objects", every: Duration::from_secs(30), work: |app, tx| work(app, tx).boxed() };

/// A folder may hold millions of objects; the transaction must not wait for them all.
const MAX_TIME: Duration = Duration::from_secs(40);

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const NEXT: &str = "SELECT folder FROM object_deletions WHERE noted_at <= now() ORDER BY noted_at LIMIT 1
        FOR UPDATE SKIP LOCKED";
    const DONE: &str = "DELETE FROM object_deletions WHERE folder = $1";
    const LATER: &str = "UPDATE object_deletions SET noted_at = clock_timestamp() WHERE folder = $1";
    let Some(row) = tx.query_opt(NEXT, &[]).await? else { return Ok(JobRun { items: 0, is_all: true }) };
    let folder: &str = row.try_get("folder")?;
    let deletion = async {
        match is_pack(folder) {
            true => app.log_store.delete(folder).await,
            false => app.log_store.delete_prefix(folder).await.map(drop),
        }
    };
    match tokio::time::timeout(MAX_TIME, deletion).await {
        Ok(Ok(())) => {
            tx.execute(DONE, &[&folder]).await?;
            Ok(JobRun { items: 1, is_all: false })
        }
        Ok(Err(error)) => {
            tracing::error!(%error, folder, "a folder of the log store cannot be deleted now");
            tx.execute(LATER, &[&folder]).await?;
            Ok(JobRun { items: 0, is_all: true })
        }
        Err(_) => Ok(JobRun { items: 0, is_all: false }),
    }
}
