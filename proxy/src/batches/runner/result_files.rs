//! The end of a batch: its results, in the order of the input, become an output and an error file, and its rows go. They are
//! read a page at a time and stored part by part, so neither is ever held whole.
//!
//! Files and batch are finished by one transaction. A proxy that dies before it leaves uploads that nobody sees, which the
//! control plane sweeps, and rows from which another writes the files anew.

use super::{StepFailure, output_line};
use crate::batches::files::{FileOwner, Intake, ManagedFiles, PART_BYTES};
use crate::batches::record::{BatchRecord, PREFIX};
use crate::batches::rows::ANSWERED;
use crate::runtime::small_pool::{SmallPool, bounded};
use bytes::Bytes;
use rust_decimal::Decimal;
use shared::amount::Amount;
use shared::batches::{BatchStatus, MAX_LINE};
use shared::log_store::unpack;
use std::time::Duration;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

/// Rows of a page, and bytes of their results as they are stored; one row may pass the second.
const PAGE: i64 = 500;
const PAGE_BYTES: i64 = 4 << 20;
/// Of a line: an answer and what stands around it.
pub const MAX_LINE_BYTES: usize = MAX_LINE + (64 << 10);
/// For a page, and for the last transaction.
const PATIENCE: Duration = Duration::from_secs(60);

/// Counted while results are written.
#[derive(Debug, Default)]
struct Totals {
    answered: i32,
    failed: i32,
    /// Rows without a result.
    missing: i32,
    cost: Decimal,
}

/// One of the two files.
struct ResultFile<'s> {
    id: Uuid,
    intake: Intake<'s>,
    name: &'static str,
}

/// Writes the files and ends the batch, whose rows are all closed. False when it was cancelled meanwhile, or another has it.
pub async fn finish_batch(
    pool: &SmallPool,
    files: &ManagedFiles,
    batch: &BatchRecord,
    lease: Uuid,
) -> Result<bool, StepFailure> {
    let ids = begin_files(pool, batch.owner, batch.api_key).await?;
    let written = write_files(pool, files, batch, ids, lease).await;
    if !matches!(written, Ok(true)) {
        for id in ids {
            // If this fails too they are swept later.
            let _ = files.rows.discard(batch.owner, id).await;
        }
    }
    written
}

/// They are not refused for want of room: what is in them was paid for.
async fn begin_files(pool: &SmallPool, owner: FileOwner, key: Uuid) -> Result<[Uuid; 2], StepFailure> {
    const BEGIN: &str = "INSERT INTO managed_files (id, organisation_id, workspace_id, created_by, part_bytes)
        SELECT id, $2::uuid, $3::uuid, $4::uuid, $5::bigint FROM unnest($1::uuid[]) AS id";
    let ids = [Uuid::now_v7(), Uuid::now_v7()];
    let lent = pool.lend_own().await?;
    bounded(
        lent.client
            .execute(BEGIN, &[&ids.as_slice(), &owner.organisation, &owner.workspace, &key, &(PART_BYTES as i64)]),
    )
    .await?;
    lent.give_back();
    Ok(ids)
}

async fn write_files(
    pool: &SmallPool,
    files: &ManagedFiles,
    batch: &BatchRecord,
    [output, errors]: [Uuid; 2],
    lease: Uuid,
) -> Result<bool, StepFailure> {
    let file = |id, name| ResultFile { id, intake: Intake::new(&files.store, batch.owner, id), name };
    let (mut output, mut errors) = (file(output, "output"), file(errors, "errors"));
    let mut totals = Totals::default();
    let mut after = 0;
    loop {
        let page = page(pool, batch.id, after).await?;
        let Some(last) = page.last() else { break };
        after = last.try_get("row_no")?;
        for row in &page {
            write_row(row, batch, &mut totals, &mut output, &mut errors).await?;
        }
    }
    let ends = [end_file(output).await?, end_file(errors).await?];
    finish(pool, files, batch, lease, &totals, ends).await
}

async fn page(pool: &SmallPool, batch: Uuid, after: i32) -> Result<Vec<Row>, StepFailure> {
    const READ: &str = "SELECT row_no, custom_id, state, asked, cost, result FROM (
            SELECT p.*, sum(coalesce(octet_length(result), 0)) OVER (ORDER BY row_no) AS up_to,
                row_number() OVER (ORDER BY row_no) AS nth
            FROM (SELECT row_no, custom_id, state, asked, cost, result FROM batch_rows
                  WHERE batch_id = $1 AND row_no > $2 ORDER BY row_no LIMIT $3) AS p) AS q
        WHERE up_to <= $4 OR nth = 1 ORDER BY row_no";
    let lent = pool.lend_own().await?;
    let parameters: [&(dyn ToSql + Sync); 4] = [&batch, &after, &PAGE, &PAGE_BYTES];
    let read = lent.client.query(READ, &parameters);
    let rows = tokio::time::timeout(PATIENCE, read).await.map_err(StepFailure::because)??;
    lent.give_back();
    Ok(rows)
}

async fn write_row<'s>(
    row: &Row,
    batch: &BatchRecord,
    totals: &mut Totals,
    output: &mut ResultFile<'s>,
    errors: &mut ResultFile<'s>,
) -> Result<(), StepFailure> {
    let (state, result): (i16, Option<&[u8]>) = (row.try_get("state")?, row.try_get("result")?);
    let cost: Option<Amount> = row.try_get("cost")?;
    totals.cost += cost.unwrap_or_default().0;
    let (line, file) = match (result, state) {
        (Some(result), ANSWERED) => {
            totals.answered += 1;
            (unpack(result, MAX_LINE_BYTES).map_err(StepFailure::because)?.into(), output)
        }
        (Some(result), _) => {
            totals.failed += 1;
            (unpack(result, MAX_LINE_BYTES).map_err(StepFailure::because)?.into(), errors)
        }
        (None, _) => {
            totals.missing += 1;
            (missing_line(row, batch)?, errors)
        }
    };
    file.intake.take(line).await?;
    file.intake.take(Bytes::from_static(b"\n")).await?;
    Ok(())
}

/// Of a row that was not run, or of which nobody knows whether it was.
fn missing_line(row: &Row, batch: &BatchRecord) -> Result<Bytes, StepFailure> {
    let (number, asked): (i32, i16) = (row.try_get("row_no")?, row.try_get("asked")?);
    let (code, message) = match batch.status {
        BatchStatus::Cancelling => ("batch_cancelled", "the batch was cancelled before this row was answered"),
        _ => ("batch_expired", "the time of the batch was over before this row was answered"),
    };
    let id = format!("{}-{number}", batch.id.simple());
    Ok(output_line::unanswered(row.try_get("custom_id")?, &id, code, message, asked))
}

/// A file that was written, or whose row is of no use.
struct EndedFile {
    id: Uuid,
    bytes: u64,
    name: &'static str,
}

async fn end_file(file: ResultFile<'_>) -> Result<EndedFile, StepFailure> {
    Ok(EndedFile { id: file.id, bytes: file.intake.finish().await?, name: file.name })
}

async fn finish(
    pool: &SmallPool,
    files: &ManagedFiles,
    batch: &BatchRecord,
    lease: Uuid,
    totals: &Totals,
    ends: [EndedFile; 2],
) -> Result<bool, StepFailure> {
    let mut lent = pool.lend_own().await?;
    let work = async {
        let tx = lent.client.transaction().await?;
        for file in &ends {
            if !end_row(&tx, batch, file, files.settings.files_retention_days).await? {
                return Ok(false);
            }
        }
        if !end_batch(&tx, batch, lease, totals, &ends).await? {
            return Ok(false);
        }
        tx.execute("DELETE FROM batch_rows WHERE batch_id = $1", &[&batch.id]).await?;
        tx.commit().await?;
        Ok::<_, StepFailure>(true)
    };
    let is_done = tokio::time::timeout(PATIENCE, work).await.map_err(StepFailure::because)??;
    lent.give_back();
    Ok(is_done)
}

/// From now on the file exists, if there is anything in it. False when it was swept.
async fn end_row(
    tx: &Transaction<'_>,
    batch: &BatchRecord,
    file: &EndedFile,
    days: u32,
) -> Result<bool, tokio_postgres::Error> {
    const STORED: &str =
        "UPDATE managed_files SET status = 'processed', filename = $4, purpose = 'batch_output', bytes = $5,
            expires_at = CASE WHEN $6::float8 > 0 THEN now() + $6::float8 * interval '1 day' END
        WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3 AND status = 'uploading'";
    const UNUSED: &str = "DELETE FROM managed_files
        WHERE organisation_id = $1 AND workspace_id = $2 AND id = $3 AND status = 'uploading'";
    let FileOwner { organisation, workspace } = batch.owner;
    if file.bytes == 0 {
        tx.execute(UNUSED, &[&organisation, &workspace, &file.id]).await?;
        return Ok(true);
    }
    let name = format!("{PREFIX}{}-{}.jsonl", batch.id, file.name);
    let bytes = i64::try_from(file.bytes).unwrap_or(i64::MAX);
    let days = f64::from(days);
    let stored = tx.execute(STORED, &[&organisation, &workspace, &file.id, &name, &bytes, &days]).await?;
    Ok(stored == 1)
}

async fn end_batch(
    tx: &Transaction<'_>,
    batch: &BatchRecord,
    lease: Uuid,
    totals: &Totals,
    [output, errors]: &[EndedFile; 2],
) -> Result<bool, tokio_postgres::Error> {
    const END: &str =
        "UPDATE batches SET status = $4, output_file_id = $5, error_file_id = $6, completed = $7, failed = $8,
            cost = $9, errors = NULL, completion_next_at = CASE WHEN completion_url IS NOT NULL THEN now() END,
            completed_at = CASE WHEN $4 = 'completed' THEN now() END,
            expired_at = CASE WHEN $4 = 'expired' THEN now() END,
            cancelled_at = CASE WHEN $4 = 'cancelled' THEN now() END
        WHERE id = $1 AND lease_owner = $2 AND status = $3";
    let end = match (batch.status, totals.missing) {
        (BatchStatus::Cancelling, _) => BatchStatus::Cancelled,
        (_, 0) => BatchStatus::Completed,
        _ => BatchStatus::Expired,
    };
    let id = |file: &EndedFile| (file.bytes > 0).then_some(file.id);
    let (had, cost) = (batch.status.as_str(), Amount(totals.cost));
    let ended = tx
        .execute(
            END,
            &[
                &batch.id,
                &lease,
                &had,
                &end.as_str(),
                &id(output),
                &id(errors),
                &totals.answered,
                &totals.failed,
                &cost,
            ],
        )
        .await?;
    Ok(ended == 1)
}
