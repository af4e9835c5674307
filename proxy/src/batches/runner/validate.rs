//! The first step of a batch: its input is read as the store gives it, line by line, and where each row stands is copied into
//! Postgres. One transaction, so that a batch has all its rows or none: a file with a fault starts nothing, and a proxy that
//! dies on the way leaves nothing behind.

use super::StepFailure;
use crate::batches::files::{FileReader, ManagedFile, ManagedFiles};
use crate::batches::record::{BatchRecord, Mode};
use shared::batches::{BatchEndpoint, BatchError, InputCheck, MAX_BYTES, Models, RowPlace};
use shared::db;
use shared::settings::Database;
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Transaction};
use uuid::Uuid;

/// Rows of one `COPY`.
const CHUNK: usize = 2000;
/// For the whole, and for a connection.
const MAX_TIME: Duration = Duration::from_secs(1800);
const PATIENCE: Duration = Duration::from_secs(5);

const COPY: &str = "COPY batch_rows (batch_id, row_no, organisation_id, workspace_id, custom_id, at, bytes)
    FROM STDIN BINARY";
const TYPES: [Type; 7] = [Type::UUID, Type::INT4, Type::UUID, Type::UUID, Type::TEXT, Type::INT8, Type::INT4];

/// What the input was found to be.
#[derive(Debug)]
pub enum Validation {
    /// The batch is in progress.
    Good,
    Bad(Vec<BatchError>),
    /// It was cancelled, or another has it.
    Lost,
}

/// A batch whose input is good is in progress afterwards. It has a connection of its own: it may take minutes.
pub async fn validate(
    database: &Database,
    files: &ManagedFiles,
    batch: &BatchRecord,
    lease: Uuid,
) -> Result<Validation, StepFailure> {
    let Some(endpoint) = BatchEndpoint::parse(&batch.endpoint) else {
        let error = BatchError::new("invalid_endpoint", "rows for this endpoint cannot be run").about("endpoint");
        return Ok(Validation::Bad(vec![error]));
    };
    let Some(file) = files.rows.find(batch.owner, batch.input_file).await? else {
        let error = BatchError::new("file_not_found", "the input file is gone").about("input_file_id");
        return Ok(Validation::Bad(vec![error]));
    };
    if file.bytes > MAX_BYTES {
        let message = format!("the file is larger than {MAX_BYTES} bytes");
        return Ok(Validation::Bad(vec![BatchError::new("file_too_large", message).about("input_file_id")]));
    }
    let connecting = tokio::time::timeout(PATIENCE, db::connect(database)).await;
    let mut client = connecting.map_err(StepFailure::because)?.map_err(StepFailure::because)?;
    let work = async {
        let tx = client.transaction().await?;
        copy_rows(tx, files, &file, batch, endpoint, lease).await
    };
    tokio::time::timeout(MAX_TIME, work).await.map_err(StepFailure::because)?
}

async fn copy_rows(
    tx: Transaction<'_>,
    files: &ManagedFiles,
    file: &ManagedFile,
    batch: &BatchRecord,
    endpoint: BatchEndpoint,
    lease: Uuid,
) -> Result<Validation, StepFailure> {
    const BEGIN: &str =
        "UPDATE batches SET status = 'in_progress', in_progress_at = now(), next_step_at = now(), total = $3,
            model = coalesce(model, $4), errors = NULL
        WHERE id = $1 AND lease_owner = $2 AND status = 'validating'";
    let models = match batch.mode {
        Mode::Immediate => Models::Any,
        Mode::Day => Models::One,
    };
    let mut check = InputCheck::new(endpoint, models).with_places();
    let mut reader = FileReader::new(&files.store, batch.owner, file, &(0..file.bytes));
    let mut waiting = Vec::new();
    while let Some(piece) = reader.next_piece().await? {
        let goes_on = check.push(&piece);
        waiting.append(&mut check.take_places());
        if waiting.len() >= CHUNK {
            copy(&tx, batch, &std::mem::take(&mut waiting)).await?;
        }
        if !goes_on {
            break;
        }
        // A large piece takes its time, and others run here too.
        tokio::task::yield_now().await;
    }
    check.end();
    waiting.append(&mut check.take_places());
    let summary = match check.finish() {
        Ok(summary) => summary,
        Err(errors) => return Ok(Validation::Bad(errors)),
    };
    copy(&tx, batch, &waiting).await?;
    let total = i32::try_from(summary.rows).unwrap_or(i32::MAX);
    let model: String = summary.model.replace('\0', "").chars().take(512).collect();
    match tx.execute(BEGIN, &[&batch.id, &lease, &total, &model]).await? {
        1 => {
            tx.commit().await?;
            Ok(Validation::Good)
        }
        _ => Ok(Validation::Lost),
    }
}

async fn copy(tx: &Transaction<'_>, batch: &BatchRecord, places: &[RowPlace]) -> Result<(), Error> {
    let mut writer = pin!(BinaryCopyInWriter::new(tx.copy_in(COPY).await?, &TYPES));
    for place in places {
        // The check has bounded all of them.
        let number = i32::try_from(place.number).unwrap_or(i32::MAX);
        let at = i64::try_from(place.at).unwrap_or(i64::MAX);
        let bytes = i32::try_from(place.bytes).unwrap_or(i32::MAX);
        let owner = batch.owner;
        writer
            .as_mut()
            .write(&[&batch.id, &number, &owner.organisation, &owner.workspace, &place.custom_id, &at, &bytes])
            .await?;
    }
    writer.finish().await.map(drop)
}
