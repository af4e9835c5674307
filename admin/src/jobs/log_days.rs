//! Creates the tables of the coming days of logs. A writer that finds no table for its day creates it, but all writers
//! would do so under load at midnight.

use super::{Job, JobRun};
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job = Job { name: "log_days", every: Duration::from_secs(60 * 60), work: |_, tx| work(tx).boxed() };

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // A week ahead: that long admin may be away.
    const MAKE: &str = "SELECT request_logs_day(day)
        FROM (SELECT (now() AT TIME ZONE 'UTC')::date + ahead AS day FROM generate_series(0, 7) ahead) days
        WHERE to_regclass('request_logs_' || to_char(day, 'YYYYMMDD')) IS NULL";
    let made = tx.query(MAKE, &[]).await?.len() as u64;
    Ok(JobRun { items: made, is_all: true })
}
