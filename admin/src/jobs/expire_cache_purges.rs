//! Deletes purges of kept answers that are older than anything that is kept.

use super::{Job, JobRun};
use crate::crud::cache_purges;
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "expire_cache_purges", every: Duration::from_secs(60 * 60), work: |_, tx| work(tx).boxed() };

/// Each leaves a tombstone that every proxy reads.
const AT_ONCE: i64 = 1000;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    let items = cache_purges::forget(tx, AT_ONCE).await?;
    Ok(JobRun { items, is_all: items < AT_ONCE.unsigned_abs() })
}
