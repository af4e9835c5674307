//! Creates the tables of the coming days of logs. A writer that finds no table for its day creates it, but all writers
//! would do so under load at midnight.

use super::{Job, JobRun};
use futures::FutureExt as _;
use shared::db::request_logs::days;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job = Job { name: "log_days", every: Duration::from_secs(60 * 60), work: |_, tx| work(tx).boxed() };

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    Ok(JobRun { items: days::make_coming_days(tx, days::DAYS_AHEAD).await?, is_all: true })
}
