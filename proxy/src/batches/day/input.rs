//! The rows as the provider takes them: each is judged by guardrails, edited as the config says, names the model as the
//! provider calls it, and is in the form that the provider's codec gives it. They go into the store as they are written, as an upload that never becomes a file; so nothing is held,
//! and what dies half way is swept like any upload. A row that is denied, or that the
//! provider has no form for, is not sent, and has its result at once.

use super::trouble::Trouble;
use super::{RowResult, RowSink, family, public_id};
use crate::batches::files::{FileReader, Intake, ManagedFile, ManagedFiles, PART_BYTES};
use crate::batches::provider_jobs::JobTarget;
use crate::batches::record::BatchRecord;
use crate::batches::row_guard::{Judged, RowGuard, RowGuards};
use crate::request::body::Fields;
use crate::request::body::edit::Edits;
use crate::wire::codecs::jobs::{BatchRow, JSONL, MAX_LINE_BYTES, failed_row};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use shared::batches::{BatchError, Lines};
use shared::config::ParamPath;
use std::borrow::Cow;

/// Results that are stored together.
pub const TOGETHER: usize = 100;

/// What was written, and how many rows of it.
pub struct WrittenInput {
    pub file: ManagedFile,
    pub rows: u64,
}

#[derive(Deserialize)]
struct InputLine<'l> {
    #[serde(borrow)]
    custom_id: Cow<'l, str>,
    #[serde(borrow)]
    body: &'l RawValue,
}

#[derive(Serialize)]
struct SentLine<'l> {
    custom_id: &'l str,
    method: &'static str,
    url: &'l str,
    body: &'l RawValue,
}

/// Whoever uploads what is written discards it afterwards.
pub(super) async fn write_day_input(
    row_guards: &RowGuards,
    job: &JobTarget,
    batch: &BatchRecord,
    files: &ManagedFiles,
    rows: &impl RowSink,
) -> Result<WrittenInput, Trouble> {
    let found = files.rows.find(batch.owner, batch.input_file).await?;
    let input = found.ok_or_else(|| Trouble::lasting("input_file_gone", "the input file was deleted"))?;
    let begun = files.rows.begin(batch.owner, batch.api_key, input.bytes).await?;
    let full = || BatchError::new("no_room", "the workspace has no room for a copy of the input: delete some files");
    let id = begun.ok_or_else(|| Trouble::Passing(full()))?;
    let written = write_rows(row_guards, job, batch, files, &input, id, rows).await;
    if written.is_err() {
        // If this fails too it is swept later.
        let _ = files.rows.discard(batch.owner, id).await;
    }
    written
}

async fn write_rows(
    row_guards: &RowGuards,
    job: &JobTarget,
    batch: &BatchRecord,
    files: &ManagedFiles,
    input: &ManagedFile,
    id: uuid::Uuid,
    rows: &impl RowSink,
) -> Result<WrittenInput, Trouble> {
    let guard = row_guards.row_guard(job, family(batch), &public_id(batch));
    let mut reader = FileReader::new(&files.store, batch.owner, input, &(0..input.bytes));
    let mut intake = Intake::new(&files.store, batch.owner, id);
    let (mut lines, mut denied, mut sent) = (Lines::default(), Vec::new(), 0);
    let frame = job.codec().map_or(JSONL, |codec| codec.input_frame());
    let [before, between, after] = frame.map(|text| Bytes::from_static(text.as_bytes()));
    loop {
        let piece = reader.next_piece().await?;
        match &piece {
            Some(piece) => lines.push(piece),
            None => lines.end(),
        }
        while let Some(line) = next(&mut lines)? {
            match written_row(job, batch, guard.as_ref(), &line).await? {
                Ok(line) => {
                    intake.take(if sent == 0 { before.clone() } else { between.clone() }).await?;
                    intake.take(line).await?;
                    sent += 1;
                }
                Err(result) => denied.push(result),
            }
            if denied.len() >= TOGETHER {
                rows.store(std::mem::take(&mut denied)).await?;
            }
        }
        if piece.is_none() {
            break;
        }
    }
    if !denied.is_empty() {
        rows.store(denied).await?;
    }
    if sent > 0 {
        intake.take(after).await?;
    }
    let bytes = intake.finish().await?;
    let file = ManagedFile { id, bytes, part_bytes: PART_BYTES as u64, ..input.clone() };
    Ok(WrittenInput { file, rows: sent })
}

fn next(lines: &mut Lines) -> Result<Option<Bytes>, Trouble> {
    match lines.next_line() {
        Ok(line) => Ok(line.map(|line| line.bytes)),
        Err(long) => Err(changed(&long.to_string())),
    }
}

/// A row as it is sent, or its result, where it is not to be sent.
async fn written_row(
    job: &JobTarget,
    batch: &BatchRecord,
    guard: Option<&RowGuard>,
    line: &Bytes,
) -> Result<Result<Bytes, RowResult>, Trouble> {
    let row: InputLine<'_> = serde_json::from_slice(line).map_err(|error| changed(&error.to_string()))?;
    let mut body = Bytes::copy_from_slice(row.body.get().as_bytes());
    match guard {
        None => {}
        Some(guard) => match guard.judge_request(&body).await {
            Judged::Same => {}
            Judged::Changed(changed) => body = changed,
            Judged::Denied(why) => return Ok(Err(unsent(&row.custom_id, "hooks_failed", &why))),
        },
    }
    let fields = Fields::parse_object(&body).map_err(|refusal| changed(&refusal.message))?;
    let edited = match job.leaf() {
        Some(leaf) => leaf.edits.apply(&body, &fields, Some(job.sent_model())),
        None => body.clone(),
    };
    let edited = unstreamed(&edited)?;
    let Some(codec) = job.codec() else { return native_line(batch, &row.custom_id, &edited).map(Ok) };
    if edited.len() > MAX_LINE_BYTES {
        let why = format!("rows for this provider may have {MAX_LINE_BYTES} bytes");
        return Ok(Err(unsent(&row.custom_id, "line_too_long", &why)));
    }
    let body: Map<String, Value> = serde_json::from_slice(&edited).map_err(|error| changed(&error.to_string()))?;
    let plain = BatchRow { custom_id: row.custom_id.into_owned(), body };
    Ok(match codec.input_row(&plain, &job.model) {
        Ok(sent) => Ok(Bytes::from(sent.to_string())),
        Err(error) => Err(unsent(&plain.custom_id, "invalid_parameter", &error.to_string())),
    })
}

/// As OpenAI's files have it.
fn native_line(batch: &BatchRecord, custom_id: &str, edited: &Bytes) -> Result<Bytes, Trouble> {
    let text = std::str::from_utf8(edited).map_err(|error| changed(&error.to_string()))?;
    let one_line = text.replace(['\n', '\r'], " ");
    let body = RawValue::from_string(one_line).map_err(|error| changed(&error.to_string()))?;
    let sent = SentLine { custom_id, method: "POST", url: &batch.endpoint, body: &body };
    serde_json::to_vec(&sent).map(Bytes::from).map_err(|error| changed(&error.to_string()))
}

/// An answer is one JSON object in a line.
fn unstreamed(body: &Bytes) -> Result<Bytes, Trouble> {
    let fields = Fields::parse_object(body).map_err(|refusal| changed(&refusal.message))?;
    let names = ["stream", "stream_options"].into_iter().filter_map(ParamPath::parse).collect();
    Ok(Edits::new(None, None, names).apply(body, &fields, None))
}

fn unsent(custom_id: &str, code: &str, why: &str) -> RowResult {
    let line = failed_row(custom_id, code, why);
    RowResult { custom_id: custom_id.to_owned(), is_answered: false, line: Bytes::from(line.to_string()), cost: None }
}

/// It was found good before.
fn changed(why: &str) -> Trouble {
    Trouble::lasting("invalid_input", &format!("the input file is not what it was: {why}"))
}
