//! Deletes tombstones (records of deleted rows) that every running proxy has read long ago. A proxy that was away for
//! longer reads everything anew.

use super::{Job, JobRun};
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "purge_tombstones", every: Duration::from_secs(60 * 60), work: |_, tx| work(tx).boxed() };

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    let row = tx.query_one("SELECT purge_tombstones('7 days')", &[]).await?;
    Ok(JobRun { items: row.try_get::<_, i64>(0)?.unsigned_abs(), is_all: true })
}
