//! The rows of batches, as the runner leases them. A lease has an owner and an end; what is asked of a row (lease, put back,
//! finish) is one statement that looks at its state, so that any number of proxies may try and one succeeds.
//!
//! A row is finished once: whoever comes first with a result writes it, and counts it with its batch in the same statement.

use super::leases::{LEASE, millis};
use super::record::BatchRecord;
use crate::runtime::small_pool::{PostgresAway, SmallPool, bounded};
use shared::amount::Amount;
use shared::batches::BatchError;
use std::time::Duration;
use tokio_postgres::{Error, Transaction};
use uuid::Uuid;

/// While nothing else is to be done than to wait for rows under way.
const LOOK_AGAIN_MS: i64 = 1000;

const LEASED: i16 = 1;
pub const ANSWERED: i16 = 2;
pub const FAILED: i16 = 3;

/// A row that is to be asked.
#[derive(Debug, Clone)]
pub struct LeasedRow {
    pub number: i32,
    pub custom_id: String,
    /// Where its line stands in the input file.
    pub at: u64,
    pub bytes: u64,
    /// This time included.
    pub asked: i16,
    pub retries: i16,
    /// Another proxy had leased it and was not heard of again.
    pub is_taken_over: bool,
}

/// How much of a batch may be begun now.
#[derive(Debug, Clone, Copy)]
pub struct GroupSize {
    /// Of the pace: so many rows, so often.
    pub rows: u32,
    pub every: Duration,
    /// What the process has room for; one row may always pass the second if nothing else is under way.
    pub room_rows: u32,
    pub room_bytes: u64,
    /// Between two tries of a batch that is held up.
    pub held_up: Duration,
    /// Whether rows whose lease ended are free.
    pub takes_over: bool,
}

/// What is to be done with a batch in progress.
#[derive(Debug)]
pub enum Group {
    /// Somebody else looks after it, or its time has not come.
    None,
    /// Nothing may begin now.
    Wait,
    Begun(Box<BatchRecord>, Vec<LeasedRow>),
    /// All its rows are finished, or its time is over.
    Over,
}

/// What becomes of a row that has no result.
#[derive(Debug, Clone, Copy)]
pub struct PutBack {
    pub wait: Duration,
    pub is_asked: bool,
    pub is_failure: bool,
}

/// Leases the next rows of a batch, or moves it on when there are none.
pub async fn begin_group(pool: &SmallPool, id: Uuid, owner: Uuid, size: GroupSize) -> Result<Group, PostgresAway> {
    let mut lent = pool.lend_own().await?;
    let work = async {
        let tx = lent.client.transaction().await?;
        let group = next_group(&tx, id, owner, size).await?;
        tx.commit().await?;
        Ok(group)
    };
    let group = bounded(work).await?;
    lent.give_back();
    Ok(group)
}

async fn next_group(tx: &Transaction<'_>, id: Uuid, owner: Uuid, size: GroupSize) -> Result<Group, Error> {
    // Whoever cancels it waits for this, so that nothing begins after a cancellation.
    let find = format!(
        "SELECT {}, expires_at <= now() AS is_late FROM batches WHERE id = $1 AND status = 'in_progress'
         AND mode = 'immediate' AND next_step_at <= now() FOR UPDATE SKIP LOCKED",
        BatchRecord::COLUMNS
    );
    let Some(row) = tx.query_opt(&find, &[&id]).await? else { return Ok(Group::None) };
    let batch = BatchRecord::from_row(&row)?;
    if row.try_get("is_late")? {
        return match has_live(tx, id).await? {
            true => wait(tx, id, LOOK_AGAIN_MS).await,
            false => finalize(tx, id).await,
        };
    }
    let is_held_up = !batch.errors.is_empty();
    let wanted = if is_held_up { 1 } else { size.rows };
    let leased = lease_rows(tx, id, owner, wanted.min(size.room_rows), size.room_bytes, size.takes_over).await?;
    if leased.is_empty() {
        return no_more(tx, id, size.every).await;
    }
    let pause = match is_held_up {
        true => size.held_up,
        // A process that had room for less than a group comes again the sooner.
        false => size.every.mul_f64(leased.len() as f64 / f64::from(wanted.max(1))).max(Duration::from_millis(200)),
    };
    wait(tx, id, millis(pause)).await?;
    Ok(Group::Begun(Box::new(batch), leased))
}

async fn lease_rows(
    tx: &Transaction<'_>,
    id: Uuid,
    owner: Uuid,
    rows: u32,
    bytes: u64,
    takes_over: bool,
) -> Result<Vec<LeasedRow>, Error> {
    const LEASE_ROWS: &str = "WITH free AS (
            SELECT row_no, bytes, state AS was FROM batch_rows WHERE batch_id = $1 AND state IN (0, 1)
            AND (state = 0 AND (not_before IS NULL OR not_before <= now()) OR $6 AND state = 1 AND lease_until < now())
            ORDER BY row_no LIMIT $2 FOR UPDATE SKIP LOCKED),
        fitting AS (
            SELECT row_no, was, sum(bytes) OVER (ORDER BY row_no) AS up_to, row_number() OVER (ORDER BY row_no) AS nth
            FROM free)
        UPDATE batch_rows r SET state = 1, lease_owner = $3, lease_until = now() + $5::float8 * interval '1 millisecond',
            asked = r.asked + 1, not_before = NULL
        FROM fitting f WHERE r.batch_id = $1 AND r.row_no = f.row_no AND (f.up_to <= $4 OR f.nth = 1)
        RETURNING r.row_no, r.custom_id, r.at, r.bytes, r.asked, r.retries, f.was";
    let (rows, bytes) = (i64::from(rows), i64::try_from(bytes).unwrap_or(i64::MAX));
    let lease = millis(LEASE) as f64;
    let found = tx.query(LEASE_ROWS, &[&id, &rows, &owner, &bytes, &lease, &takes_over]).await?;
    let mut leased = Vec::with_capacity(found.len());
    for row in &found {
        leased.push(LeasedRow {
            number: row.try_get("row_no")?,
            custom_id: row.try_get("custom_id")?,
            at: row.try_get::<_, i64>("at")?.unsigned_abs(),
            bytes: u64::from(row.try_get::<_, i32>("bytes")?.unsigned_abs()),
            asked: row.try_get("asked")?,
            retries: row.try_get("retries")?,
            is_taken_over: row.try_get::<_, i16>("was")? == LEASED,
        });
    }
    leased.sort_unstable_by_key(|row| row.number);
    Ok(leased)
}

/// Nothing can begin: rows are under way or wait for their time, or none are left.
async fn no_more(tx: &Transaction<'_>, id: Uuid, every: Duration) -> Result<Group, Error> {
    const NEXT: &str =
        "SELECT extract(epoch FROM min(coalesce(not_before, now())) FILTER (WHERE state = 0) - now())::float8,
            count(*) FROM batch_rows WHERE batch_id = $1 AND state IN (0, 1)";
    let row = tx.query_one(NEXT, &[&id]).await?;
    let (next, open): (Option<f64>, i64) = (row.try_get(0)?, row.try_get(1)?);
    if open == 0 {
        return finalize(tx, id).await;
    }
    let next = next.map_or(LOOK_AGAIN_MS, |seconds| (seconds.clamp(0.0, 3600.0) * 1000.0) as i64);
    wait(tx, id, next.clamp(LOOK_AGAIN_MS, millis(every).max(LOOK_AGAIN_MS))).await
}

async fn has_live(tx: &Transaction<'_>, id: Uuid) -> Result<bool, Error> {
    const LIVE: &str =
        "SELECT EXISTS (SELECT FROM batch_rows WHERE batch_id = $1 AND state = 1 AND lease_until >= now())";
    tx.query_one(LIVE, &[&id]).await?.try_get(0)
}

async fn wait(tx: &Transaction<'_>, id: Uuid, millis: i64) -> Result<Group, Error> {
    const WAIT: &str = "UPDATE batches SET next_step_at = now() + $2::float8 * interval '1 millisecond' WHERE id = $1";
    tx.execute(WAIT, &[&id, &(millis as f64)]).await?;
    Ok(Group::Wait)
}

async fn finalize(tx: &Transaction<'_>, id: Uuid) -> Result<Group, Error> {
    const FINALIZE: &str = "UPDATE batches SET status = 'finalizing', finalizing_at = now(), next_step_at = now(),
        errors = NULL WHERE id = $1";
    tx.execute(FINALIZE, &[&id]).await?;
    Ok(Group::Over)
}

/// What a row came to.
#[derive(Debug)]
pub struct FinishedRow<'r> {
    /// Its line, compressed.
    pub result: &'r [u8],
    pub is_answered: bool,
    pub cost: Option<Amount>,
    /// It was asked to see whether what held its batch up is over.
    pub is_probe: bool,
}

/// A result, which counts if it is the first. False when another came before it.
pub async fn finish_row(
    pool: &SmallPool,
    batch: Uuid,
    number: i32,
    row: &FinishedRow<'_>,
) -> Result<bool, PostgresAway> {
    // The last one calls whoever finalises. The answer of a probe says that nothing holds the batch up any more; that of a row
    // which was begun before says nothing.
    const FINISH: &str = "WITH done AS (
            UPDATE batch_rows SET state = $3, result = $4, cost = $5, lease_owner = NULL, lease_until = NULL
            WHERE batch_id = $1 AND row_no = $2 AND state IN (0, 1) RETURNING 1)
        UPDATE batches SET completed = completed + ($3 = 2)::int, failed = failed + ($3 = 3)::int,
            cost = cost + coalesce($5, 0),
            errors = CASE WHEN $6::bool AND status = 'in_progress' THEN NULL ELSE errors END,
            next_step_at = CASE WHEN completed + failed + 1 >= total OR status = 'cancelling' OR $6::bool
                THEN least(next_step_at, now()) ELSE next_step_at END
        WHERE id = $1 AND EXISTS (SELECT FROM done)";
    let state = if row.is_answered { ANSWERED } else { FAILED };
    let is_over = row.is_probe && row.is_answered;
    let lent = pool.lend_own().await?;
    let done =
        bounded(lent.client.execute(FINISH, &[&batch, &number, &state, &row.result, &row.cost, &is_over])).await?;
    lent.give_back();
    Ok(done == 1)
}

/// Of rows that a provider ran: those that have a result keep it.
pub async fn finish_by_id(
    pool: &SmallPool,
    batch: Uuid,
    ids: &[String],
    states: &[i16],
    results: &[Vec<u8>],
    costs: &[Option<Amount>],
) -> Result<(), PostgresAway> {
    const FINISH: &str = "WITH done AS (
            UPDATE batch_rows r SET state = n.state, result = n.result, cost = n.cost
            FROM unnest($2::text[], $3::smallint[], $4::bytea[], $5::numeric[]) AS n (custom_id, state, result, cost)
            WHERE r.batch_id = $1 AND r.custom_id = n.custom_id AND r.state IN (0, 1) RETURNING r.state, r.cost)
        UPDATE batches SET completed = completed + (SELECT count(*) FILTER (WHERE state = 2) FROM done)::int,
            failed = failed + (SELECT count(*) FILTER (WHERE state = 3) FROM done)::int,
            cost = cost + (SELECT coalesce(sum(cost), 0) FROM done)
        WHERE id = $1";
    let lent = pool.lend_own().await?;
    bounded(lent.client.execute(FINISH, &[&batch, &ids, &states, &results, &costs])).await?;
    lent.give_back();
    Ok(())
}

/// A row goes back to those that wait, unless somebody else has it meanwhile.
pub async fn put_back(
    pool: &SmallPool,
    batch: Uuid,
    number: i32,
    owner: Uuid,
    back: PutBack,
) -> Result<(), PostgresAway> {
    const PUT_BACK: &str = "UPDATE batch_rows SET state = 0, lease_owner = NULL, lease_until = NULL,
            not_before = now() + $4::float8 * interval '1 millisecond', asked = asked - $5::smallint, retries = retries + $6::smallint
        WHERE batch_id = $1 AND row_no = $2 AND state = 1 AND lease_owner = $3";
    let wait = millis(back.wait) as f64;
    let (unasked, failures) = (i16::from(!back.is_asked), i16::from(back.is_failure));
    let lent = pool.lend_own().await?;
    bounded(lent.client.execute(PUT_BACK, &[&batch, &number, &owner, &wait, &unasked, &failures])).await?;
    lent.give_back();
    Ok(())
}

/// Nothing of the batch begins before `wait` is over; `why` is shown until a row that is begun then is answered.
pub async fn hold_up(pool: &SmallPool, batch: Uuid, wait: Duration, why: &BatchError) -> Result<(), PostgresAway> {
    const HOLD_UP: &str = "UPDATE batches SET errors = $3,
            next_step_at = greatest(next_step_at, now() + $2::float8 * interval '1 millisecond')
        WHERE id = $1 AND status = 'in_progress'";
    let why = serde_json::json!([why]);
    let lent = pool.lend_own().await?;
    bounded(lent.client.execute(HOLD_UP, &[&batch, &(millis(wait) as f64), &why])).await?;
    lent.give_back();
    Ok(())
}

/// Of rows that were not begun, and of those whose proxy is dead, nothing will come any more: they have no result for good.
/// False while rows are under way.
pub async fn close_rows(pool: &SmallPool, batch: Uuid, takes_over: bool) -> Result<bool, PostgresAway> {
    const CLOSE: &str = "UPDATE batch_rows SET state = 3, result = NULL, lease_owner = NULL, lease_until = NULL
        WHERE batch_id = $1 AND (state = 0 OR $2 AND state = 1 AND lease_until < now())";
    const OPEN: &str = "SELECT EXISTS (SELECT FROM batch_rows WHERE batch_id = $1 AND state IN (0, 1))";
    let mut lent = pool.lend_own().await?;
    let work = async {
        let tx = lent.client.transaction().await?;
        tx.execute(CLOSE, &[&batch, &takes_over]).await?;
        let is_open: bool = tx.query_one(OPEN, &[&batch]).await?.try_get(0)?;
        tx.commit().await?;
        Ok(!is_open)
    };
    let is_closed = patiently(work).await?;
    lent.give_back();
    Ok(is_closed)
}

/// Numbers and ids of some rows without a result.
pub async fn open_ids(pool: &SmallPool, batch: Uuid, most: i64) -> Result<Vec<(i32, String)>, PostgresAway> {
    const OPEN: &str = "SELECT row_no, custom_id FROM batch_rows WHERE batch_id = $1 AND state IN (0, 1)
        ORDER BY row_no LIMIT $2";
    let lent = pool.lend_own().await?;
    let rows = bounded(lent.client.query(OPEN, &[&batch, &most])).await?;
    lent.give_back();
    let ids = rows.iter().map(|row| Ok::<_, Error>((row.try_get(0)?, row.try_get(1)?)));
    ids.collect::<Result<_, _>>().map_err(PostgresAway::because)
}

/// Where a row's line stands in the input file.
#[derive(Debug, Clone, Copy)]
pub struct LinePlace {
    pub at: u64,
    pub bytes: u64,
}

pub async fn place_of(pool: &SmallPool, batch: Uuid, custom_id: &str) -> Result<Option<LinePlace>, PostgresAway> {
    const PLACE: &str = "SELECT at, bytes FROM batch_rows WHERE batch_id = $1 AND custom_id = $2";
    let lent = pool.lend_own().await?;
    let row = bounded(lent.client.query_opt(PLACE, &[&batch, &custom_id])).await?;
    lent.give_back();
    let Some(row) = row else { return Ok(None) };
    let place = || {
        let (at, bytes): (i64, i32) = (row.try_get(0)?, row.try_get(1)?);
        Ok::<_, Error>(LinePlace { at: at.unsigned_abs(), bytes: u64::from(bytes.unsigned_abs()) })
    };
    place().map(Some).map_err(PostgresAway::because)
}

/// Of a batch that cannot be run.
pub async fn delete_rows(pool: &SmallPool, batch: Uuid) -> Result<(), PostgresAway> {
    let lent = pool.lend_own().await?;
    patiently(lent.client.execute("DELETE FROM batch_rows WHERE batch_id = $1", &[&batch])).await?;
    lent.give_back();
    Ok(())
}

/// For statements about all rows of a batch.
async fn patiently<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, PostgresAway> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let done = tokio::time::timeout(PATIENCE, work).await.map_err(PostgresAway::because)?;
    done.map_err(|error| PostgresAway::because(shared::db::explain(&error)))
}
