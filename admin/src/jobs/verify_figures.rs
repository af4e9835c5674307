//! Once a day, proves that yesterday's figures are what its logs add up to, and builds them again if they are not. They cannot
//! differ by anything that is known: this is for what is not.

use super::{Job, JobRun};
use crate::app::App;
use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use shared::db::usage_slots::{self, DayVerdict};
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "verify_figures", every: Duration::from_secs(24 * 60 * 60), work: |app, tx| work(app, tx).boxed() };

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // A day of logs is read once, which takes longer than a request may.
    tx.batch_execute("SET LOCAL statement_timeout = '10min'").await?;
    let now: DateTime<Utc> = tx.query_one("SELECT now()", &[]).await?.try_get(0)?;
    let verdict = usage_slots::verify_day(tx, now - TimeDelta::days(1)).await?;
    let items = match verdict {
        DayVerdict::Mended { figures } => {
            tracing::error!(figures, "figures of yesterday differed from its logs and were built again");
            app.metrics.figures_mended.inc_by(figures);
            figures
        }
        DayVerdict::Sound | DayVerdict::Begun | DayVerdict::Skipped => 0,
    };
    Ok(JobRun { items, is_all: true })
}
