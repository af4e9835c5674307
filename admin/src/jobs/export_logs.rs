//! Makes the files of running exports, a step in each transaction. Whoever waited longest is next, so a large export
//! does not keep a small one waiting for its end.

use super::{Job, JobRun};
use crate::app::App;
use crate::logs::exports::step::{RunningExport, StepError};
use anyhow::Context as _;
use futures::FutureExt as _;
use shared::log_store::Error;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job = Job { name: "export_logs", every: Duration::from_secs(2), work: |app, tx| work(app, tx).boxed() };

/// An export fails when so many steps failed one after the other.
const PATIENCE: i32 = 5;
/// A step that takes longer is given up, before the transaction is.
const MAX_STEP_TIME: Duration = Duration::from_secs(45);

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // Whoever cancels it waits for this step, or this step for them.
    let next = format!(
        "SELECT {} FROM exports WHERE status = 'in_progress' AND next_step_at <= clock_timestamp()
         ORDER BY next_step_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED",
        RunningExport::COLUMNS
    );
    let Some(row) = tx.query_opt(&next, &[]).await? else { return Ok(JobRun { items: 0, is_all: true }) };
    let export = RunningExport::from_row(&row)?;
    tx.batch_execute("SAVEPOINT step").await?;
    let stepped = tokio::time::timeout(MAX_STEP_TIME, export.step(app, tx)).await;
    let stepped = stepped.unwrap_or_else(|_| Err(StepError::Store(Error::Away("a step takes too long".into()))));
    match stepped {
        // At least one, so that an export of nothing shows that it was worked at.
        Ok(records) => Ok(JobRun { items: records.max(1), is_all: false }),
        Err(failed) => {
            tracing::error!(export_id = %export.id, error = cause(&failed), "a step of an export failed");
            tx.batch_execute("ROLLBACK TO SAVEPOINT step").await.context("the connection is gone")?;
            give_way(tx, &export, &failed).await?;
            Ok(JobRun { items: 0, is_all: false })
        }
    }
}

/// Later again, or never.
async fn give_way(
    tx: &Transaction<'_>,
    export: &RunningExport,
    failed: &StepError,
) -> Result<(), tokio_postgres::Error> {
    const GIVE_WAY: &str = "UPDATE exports SET failures = failures + 1, error = $2, last_updated_at = now(),
            next_step_at = clock_timestamp() + make_interval(secs => 2 ^ failures),
            status = CASE WHEN $3 OR failures + 1 >= $4 THEN 'failed' ELSE status END
        WHERE id = $1";
    let is_final = matches!(failed, StepError::Export(_));
    tx.execute(GIVE_WAY, &[&export.id, &failed.to_string(), &is_final, &PATIENCE]).await.map(drop)
}

fn cause(failed: &StepError) -> String {
    match failed {
        StepError::Database(error) => shared::db::explain(error),
        other => other.to_string(),
    }
}
