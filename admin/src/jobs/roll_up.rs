//! Builds the slots of `usage_slots` that are stale and over, so that analytics need not count logs one by one. A job that
//! does not run costs only speed: what is stale is counted from the logs.

use super::{Job, JobRun};
use crate::app::App;
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use shared::db::usage_slots::{self, Refreshed};
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job = Job { name: "roll_up", every: Duration::from_secs(15), work: |app, tx| work(app, tx).boxed() };

async fn work(_app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // After a long pause there is more to build than a request may wait for.
    tx.batch_execute("SET LOCAL statement_timeout = '10min'").await?;
    // By the clock of the database, which all admins share.
    let now: DateTime<Utc> = tx.query_one("SELECT now()", &[]).await?.try_get(0)?;
    let Refreshed { slots, is_all } = usage_slots::refresh(tx, now).await?;
    Ok(JobRun { items: slots, is_all })
}
