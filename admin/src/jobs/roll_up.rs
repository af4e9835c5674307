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

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // The earliest moment that is counted from logs; there is always one, if only now.
    const UNTIL: &str = "SELECT extract(epoch FROM least(min(slot), now()))::double precision FROM usage_stale";
    // After a long pause there is more to build than a request may wait for.
    tx.batch_execute("SET LOCAL statement_timeout = '10min'").await?;
    // By the clock of the database, which all admins share.
    let now: DateTime<Utc> = tx.query_one("SELECT now()", &[]).await?.try_get(0)?;
    let Refreshed { slots, is_all, .. } = usage_slots::refresh(tx, now).await?;
    app.metrics.figures_built.inc_by(slots);
    app.metrics.figures_until.set(tx.query_one(UNTIL, &[]).await?.try_get(0)?);
    Ok(JobRun { items: slots, is_all })
}
