//! Which batches are due, and who does their next step. Leases of batches and of rows last equally long, and are extended
//! together.

use super::record::BatchRecord;
use crate::runtime::small_pool::{PostgresAway, SmallPool, bounded};
use crate::runtime::tenant_share::Tenant;
use shared::batches::BatchStatus;
use std::time::Duration;
use tokio_postgres::Error;
use uuid::Uuid;

/// Nobody can extend one while Postgres is away: see `outage` of the runner.
pub const LEASE: Duration = Duration::from_secs(120);

/// Whoever holds these goes on holding them.
pub async fn extend(pool: &SmallPool, owner: Uuid, batches: &[Uuid]) -> Result<(), PostgresAway> {
    const ROWS: &str = "UPDATE batch_rows SET lease_until = now() + $3::float8 * interval '1 millisecond'
        WHERE batch_id = ANY($2) AND state = 1 AND lease_owner = $1";
    const BATCHES: &str = "UPDATE batches SET lease_until = now() + $3::float8 * interval '1 millisecond'
        WHERE id = ANY($2) AND lease_owner = $1";
    let lease = millis(LEASE) as f64;
    let lent = pool.lend_own().await?;
    for statement in [ROWS, BATCHES] {
        bounded(lent.client.execute(statement, &[&owner, &batches, &lease])).await?;
    }
    lent.give_back();
    Ok(())
}

/// A batch whose next step is due.
#[derive(Debug, Clone, Copy)]
pub struct DueBatch {
    pub id: Uuid,
    pub tenant: Tenant,
    /// Its rows are to be run, for which it need not be leased.
    pub is_running: bool,
    /// Its provider is to be asked.
    pub is_at_provider: bool,
}

/// The first of each organisation come first, then the second, and of one organisation so by workspace: who has many does not
/// hide those of others.
pub async fn due(pool: &SmallPool, most: i64) -> Result<Vec<DueBatch>, PostgresAway> {
    const DUE: &str =
        "SELECT id, organisation_id, workspace_id, status = 'in_progress' AND mode = 'immediate' AS is_running,
            status IN ('in_progress', 'cancelling') AND mode = '24h' AS is_at_provider
        FROM (SELECT id, organisation_id, workspace_id, status, mode, next_step_at,
                row_number() OVER (PARTITION BY workspace_id ORDER BY next_step_at) AS nth FROM batches
            WHERE status IN ('validating', 'in_progress', 'finalizing', 'cancelling') AND next_step_at <= now()
            AND (lease_until IS NULL OR lease_until < now())) AS of_workspaces
        ORDER BY row_number() OVER (PARTITION BY organisation_id ORDER BY nth, next_step_at), next_step_at LIMIT $1";
    let lent = pool.lend_own().await?;
    let rows = bounded(lent.client.query(DUE, &[&most])).await?;
    lent.give_back();
    let due = rows.iter().map(|row| {
        Ok::<_, Error>(DueBatch {
            id: row.try_get("id")?,
            tenant: Tenant { organisation: row.try_get("organisation_id")?, workspace: row.try_get("workspace_id")? },
            is_running: row.try_get("is_running")?,
            is_at_provider: row.try_get("is_at_provider")?,
        })
    });
    due.collect::<Result<_, _>>().map_err(PostgresAway::because)
}

/// Leases a batch for its next step. None when somebody else has it, or the step was done meanwhile.
pub async fn lease_batch(
    pool: &SmallPool,
    id: Uuid,
    owner: Uuid,
    takes_over: bool,
) -> Result<Option<BatchRecord>, PostgresAway> {
    let lease_batch = format!(
        "UPDATE batches SET lease_owner = $2, lease_until = now() + $3::float8 * interval '1 millisecond'
         WHERE id = (SELECT id FROM batches WHERE id = $1 AND next_step_at <= now()
             AND status IN ('validating', 'in_progress', 'finalizing', 'cancelling')
             AND (lease_until IS NULL OR $4 AND lease_until < now()) FOR UPDATE SKIP LOCKED)
         RETURNING {}",
        BatchRecord::COLUMNS
    );
    let lent = pool.lend_own().await?;
    let row =
        bounded(lent.client.query_opt(&lease_batch, &[&id, &owner, &(millis(LEASE) as f64), &takes_over])).await?;
    lent.give_back();
    row.as_ref().map(BatchRecord::from_row).transpose().map_err(PostgresAway::because)
}

/// A step of a batch is over. The next one waits, unless the batch has come to another status than it `had`.
pub async fn release_batch(
    pool: &SmallPool,
    id: Uuid,
    owner: Uuid,
    had: BatchStatus,
    wait: Duration,
) -> Result<(), PostgresAway> {
    const RELEASE: &str = "UPDATE batches SET lease_owner = NULL, lease_until = NULL, next_step_at = CASE
            WHEN status = $4 THEN greatest(next_step_at, now() + $3::float8 * interval '1 millisecond') ELSE next_step_at END
        WHERE id = $1 AND lease_owner = $2";
    let lent = pool.lend_own().await?;
    bounded(lent.client.execute(RELEASE, &[&id, &owner, &(millis(wait) as f64), &had.as_str()])).await?;
    lent.give_back();
    Ok(())
}

/// Which of these are to be cancelled.
pub async fn cancelled(pool: &SmallPool, batches: &[Uuid]) -> Result<Vec<Uuid>, PostgresAway> {
    const CANCELLED: &str = "SELECT id FROM batches WHERE id = ANY($1) AND status = 'cancelling'";
    let lent = pool.lend_own().await?;
    let rows = bounded(lent.client.query(CANCELLED, &[&batches])).await?;
    lent.give_back();
    rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>().map_err(PostgresAway::because)
}

/// How many batches are in each status that is not final, and how many seconds the one that waits longest is late.
pub async fn survey(pool: &SmallPool) -> Result<(Vec<(BatchStatus, i64)>, f64), PostgresAway> {
    const SURVEY: &str = "SELECT status, count(*), max(extract(epoch FROM now() - next_step_at))::float8 FROM batches
        WHERE status IN ('validating', 'in_progress', 'finalizing', 'cancelling') GROUP BY status";
    let lent = pool.lend_own().await?;
    let rows = bounded(lent.client.query(SURVEY, &[])).await?;
    lent.give_back();
    let (mut counts, mut late) = (Vec::new(), 0_f64);
    for row in &rows {
        let status = BatchStatus::parse(row.try_get(0).map_err(PostgresAway::because)?);
        counts.extend(status.zip(row.try_get(1).ok()));
        late = late.max(row.try_get::<_, Option<f64>>(2).ok().flatten().unwrap_or(0.0));
    }
    Ok((counts, late))
}

pub fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
