//! Deletes records that could not be stored when logs of their age are deleted, and the oldest of them when they are many: somebody
//! may have found a record that Postgres refuses, and send it again and again.

use super::{Job, JobRun};
use crate::app::App;
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "expire_rejected", every: Duration::from_secs(15 * 60), work: |app, tx| work(app, tx).boxed() };

/// Where logs are kept for ever, these are not: somebody should have looked by then.
const MAX_DAYS: u32 = 90;
const MAX_ROWS_PER_RUN: i64 = 100_000;
const AT_ONCE: i64 = 10_000;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const EXPIRE: &str = "DELETE FROM rejected_records WHERE id IN (SELECT id FROM rejected_records
        WHERE rejected_at < now() - make_interval(days => $1) ORDER BY rejected_at LIMIT $2)";
    const BOUND: &str = "DELETE FROM rejected_records WHERE id IN (SELECT id FROM rejected_records
        ORDER BY rejected_at DESC OFFSET $1 LIMIT $2)";
    let days = match app.retention.log_days() {
        0 => MAX_DAYS,
        days => days.min(MAX_DAYS),
    };
    let days = i32::try_from(days).unwrap_or(i32::MAX);
    let expired = tx.execute(EXPIRE, &[&days, &AT_ONCE]).await?;
    let beyond = tx.execute(BOUND, &[&MAX_ROWS_PER_RUN, &AT_ONCE]).await?;
    let at_once = AT_ONCE.unsigned_abs();
    Ok(JobRun { items: expired + beyond, is_all: expired < at_once && beyond < at_once })
}
