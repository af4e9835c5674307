//! The rows on their way to the provider, piece by piece: in a form where its files are OpenAI's own, else as the bytes of a file,
//! or as the request for the batch itself.

use super::DayBatches;
use super::input::WrittenInput;
use super::input::write_day_input;
use super::trouble::{Trouble, object};
use super::{DayStep, RowSink, public_id};
use crate::batches::files::{FileReader, ManagedFile, ManagedFiles};
use crate::batches::provider_jobs::{JobQuestion, JobTarget};
use crate::batches::record::BatchRecord;
use crate::net::dial::{PieceSource, UpstreamError};
use crate::request::refusal::Refusal;
use crate::wire::codecs::jobs::{JobVerb, UploadedFile};
use bytes::Bytes;
use serde_json::{Map, Value};
use shared::batches::BatchStatus;
use shared::providers::Family;
use std::time::Duration;

/// The next step follows at once.
const AT_ONCE: Duration = Duration::from_millis(10);

impl DayBatches {
    pub(super) async fn upload_day_input(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        rows: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        let files = self.files.as_ref().ok_or_else(Refusal::files_unavailable)?;
        let written = write_day_input(&self.row_guards, job, batch, files, rows).await?;
        let sent = match written.rows {
            0 => Ok(DayStep::Over(BatchStatus::Completed)),
            _ => self.send_day_input(job, batch, files, &written, rows).await,
        };
        // If this fails it is swept later.
        let _ = files.rows.discard(batch.owner, written.file.id).await;
        sent
    }

    async fn send_day_input(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        files: &ManagedFiles,
        written: &WrittenInput,
        rows: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        let Some(codec) = job.codec() else {
            batch.provider_input_file_id = Some(self.send_natively(job, batch, files, &written.file).await?);
            return Ok(DayStep::Wait(AT_ONCE));
        };
        let length = usize::try_from(written.file.bytes).unwrap_or(usize::MAX);
        let reader = FileReader::new(&files.store, batch.owner, &written.file, &(0..written.file.bytes));
        let mut pieces = FormPieces { before: None, reader, after: None };
        if codec.name() == "message_batches" {
            // It takes its rows with the request for the batch.
            return self.start_with_rows(job, batch, written.rows, (length, &mut pieces), rows).await;
        }
        // Its rows are in the provider's form already, so no purpose is said for which they would be rewritten.
        let file = UploadedFile { name: format!("{}.jsonl", public_id(batch)), bytes: Bytes::new() };
        let question = JobQuestion {
            family: Family::Files,
            verb: JobVerb::Create,
            id: String::new(),
            after: None,
            body: Map::new(),
            file: Some(file),
            request_id: public_id(batch),
        };
        let reply = object(&self.jobs.send_job(job, question, length, &mut pieces).await?)?;
        batch.provider_input_file_id = Some(id_of(&reply)?);
        Ok(DayStep::Wait(AT_ONCE))
    }

    async fn send_natively(
        &self,
        job: &JobTarget,
        batch: &BatchRecord,
        files: &ManagedFiles,
        file: &ManagedFile,
    ) -> Result<String, Trouble> {
        let boundary = format!("batch-{}", batch.id);
        let before = Bytes::from(format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{boundary}\r\n\
             Content-Disposition: form-data; name=\"file\"; filename=\"{}.jsonl\"\r\n\
             Content-Type: application/jsonl\r\n\r\n",
            public_id(batch)
        ));
        let after = Bytes::from(format!("\r\n--{boundary}--\r\n"));
        let length = usize::try_from(file.bytes).unwrap_or(usize::MAX).saturating_add(before.len() + after.len());
        let reader = FileReader::new(&files.store, batch.owner, file, &(0..file.bytes));
        let mut form = FormPieces { before: Some(before), reader, after: Some(after) };
        let kind = format!("multipart/form-data; boundary={boundary}");
        let (status, body) = self.jobs.upload_job_file(job, &kind, length, &mut form).await?;
        if !(200..300).contains(&status) {
            return Err(Trouble::from_reply(status, &body));
        }
        id_of(&serde_json::from_slice(&body).unwrap_or_default())
    }
}

/// A file that comes from the store, and what of a form stands around it.
struct FormPieces<'f> {
    before: Option<Bytes>,
    reader: FileReader<'f>,
    after: Option<Bytes>,
}

impl PieceSource for FormPieces<'_> {
    async fn next_piece(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        if let Some(before) = self.before.take() {
            return Ok(Some(before));
        }
        match self.reader.next_piece().await {
            Ok(Some(piece)) => Ok(Some(piece)),
            Ok(None) => Ok(self.after.take()),
            Err(_) => Err(UpstreamError::protocol("the file could not be read")),
        }
    }
}

pub fn id_of(reply: &Value) -> Result<String, Trouble> {
    let id = reply["id"].as_str().filter(|id| !id.is_empty() && id.len() <= 2048);
    id.map(str::to_owned).ok_or_else(|| Trouble::lasting("provider_error", "the provider's answer has no id"))
}
