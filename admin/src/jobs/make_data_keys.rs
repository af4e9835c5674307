//! Gives every organisation a data key. Whoever seals in a transaction makes one when it is missing; proxies seal kept
//! answers without one, and would store nothing for an organisation that has no secrets yet.

use super::{Job, JobRun};
use crate::app::App;
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "make_data_keys", every: Duration::from_secs(5), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: i64 = 100;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const WITHOUT: &str = "SELECT id FROM organisations o WHERE NOT EXISTS (
        SELECT FROM data_keys k WHERE k.organisation_id = o.id AND k.status = 'active') ORDER BY id LIMIT $1";
    if !app.sealer.has_master_key() {
        return Ok(JobRun { items: 0, is_all: true });
    }
    let without = tx.query(WITHOUT, &[&AT_ONCE]).await?;
    for row in &without {
        app.sealer.ensure_data_key(tx, row.try_get::<_, Uuid>("id")?).await?;
    }
    Ok(JobRun { items: without.len() as u64, is_all: (without.len() as i64) < AT_ONCE })
}
