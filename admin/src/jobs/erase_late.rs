//! Erases again what arrived after it was erased: logs that proxies kept on disk, and bodies that followed.

use super::{Job, JobRun};
use crate::app::App;
use crate::logs::erase::late;
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job = Job { name: "erase_late", every: Duration::from_secs(60), work: |app, tx| work(app, tx).boxed() };

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    if let Some(erased) = late::repeat(tx, &app.log_store).await? {
        return Ok(JobRun { items: erased.logs, is_all: false });
    }
    let is_all = !late::repeat_bodies(tx, &app.log_store).await?;
    if is_all {
        late::forget(tx).await?;
    }
    Ok(JobRun { items: 0, is_all })
}
