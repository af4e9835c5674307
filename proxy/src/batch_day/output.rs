//! The provider's answers, read line by line: each becomes a row of ours, judged by guardrails, logged and priced. Lines of a
//! provider with a form of its own are rewritten first (`codecs::jobs`).

use super::input::TOGETHER;
use super::start::asked;
use super::trouble::Trouble;
use super::{RowResult, RowSink, family, public_id};
use crate::batches::record::BatchRecord;
use crate::codecs::jobs::{JobVerb, LONGEST_LINE, failed_row};
use crate::net::dial::Upstream;
use crate::refusal::Refusal;
use crate::walk::Engine;
use crate::walk::provider_jobs::{JobTarget, OutputForm};
use crate::walk::row_guard::{Judged, RowGuard};
use bytes::Bytes;
use serde_json::Value;
use shared::batches::{BatchError, Lines};

/// Bytes of results that are stored together; one row may pass it.
const TOGETHER_BYTES: usize = 4 << 20;

impl Engine {
    pub(super) async fn read_day_output(
        &self,
        job: &JobTarget,
        batch: &BatchRecord,
        told: &Value,
        rows: &impl RowSink,
    ) -> Result<(), Trouble> {
        let guard = self.row_guard(job, family(batch), &public_id(batch));
        let guard = guard.as_ref();
        let mut reading = Reading { engine: self, job, batch, guard, rows, results: Vec::new(), held: 0 };
        if job.codec().is_some() {
            let id = batch.provider_batch_id.clone().unwrap_or_default();
            match self.open_job_output(job, asked(batch, JobVerb::Output, &id)).await {
                Ok(Ok((upstream, form))) => reading.read_rows(upstream, Some(&form)).await?,
                Ok(Err(told)) => return Err(Trouble::told(told.status, &told.body)),
                // One that was stopped early has written nothing.
                Err(refusal) if refusal.status == 400 => return Ok(()),
                Err(refusal) => return Err(refusal.into()),
            }
        } else {
            for file in ["output_file_id", "error_file_id"] {
                if let Some(id) = told[file].as_str().filter(|id| !id.is_empty()) {
                    let upstream = self.open_job_file(job, id).await?;
                    reading.read_rows(upstream, None).await?;
                }
            }
        }
        reading.finish().await
    }
}

struct Reading<'r, S: RowSink> {
    engine: &'r Engine,
    job: &'r JobTarget,
    batch: &'r BatchRecord,
    guard: Option<&'r RowGuard>,
    rows: &'r S,
    results: Vec<RowResult>,
    /// Bytes of them.
    held: usize,
}

impl<S: RowSink> Reading<'_, S> {
    /// `form` is that of lines which are not OpenAI's.
    async fn read_rows(&mut self, mut upstream: Upstream, form: Option<&OutputForm>) -> Result<(), Trouble> {
        let status = upstream.head().status.as_u16();
        if !(200..300).contains(&status) {
            let told = upstream.read_body().await.ok().flatten().unwrap_or_default();
            return Err(Trouble::told(status, &told));
        }
        let mut lines = Lines::default();
        loop {
            let piece = upstream.read_body().await;
            let provider = &self.job.target.provider.name;
            let piece = piece.map_err(|error| Refusal::upstream_unreachable(provider, error.class().label()))?;
            match &piece {
                Some(piece) => lines.push(piece),
                None => lines.end(),
            }
            self.read_lines(&mut lines, form).await?;
            if piece.is_none() {
                upstream.release();
                return Ok(());
            }
        }
    }

    async fn read_lines(&mut self, lines: &mut Lines, form: Option<&OutputForm>) -> Result<(), Trouble> {
        loop {
            let line = lines.next_line().map_err(|long| {
                Trouble::Lasting(vec![BatchError::new("provider_error", format!("the provider's output: {long}"))])
            })?;
            let Some(line) = line else { return Ok(()) };
            // Of what cannot be read nobody knows whose answer it is; its row is told to have none.
            if form.is_some() && line.bytes.len() > LONGEST_LINE {
                continue;
            }
            let Ok(told @ Value::Object(_)) = serde_json::from_slice::<Value>(&line.bytes) else { continue };
            let number = usize::try_from(line.number.saturating_sub(1)).unwrap_or(usize::MAX);
            let row = form.map(|form| form.row(number, &told)).unwrap_or(told);
            let Some(custom_id) = row["custom_id"].as_str().map(str::to_owned) else { continue };
            let result = self.result(custom_id, row).await;
            self.held += result.line.len();
            self.results.push(result);
            if self.results.len() >= TOGETHER || self.held >= TOGETHER_BYTES {
                self.held = 0;
                self.rows.store(std::mem::take(&mut self.results)).await?;
            }
        }
    }

    async fn result(&self, custom_id: String, mut row: Value) -> RowResult {
        let status = row.pointer("/response/status_code").and_then(Value::as_u64);
        let status = status.and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
        let is_error = !row["error"].is_null();
        let mut is_answered = (200..300).contains(&status) && !is_error;
        let cost = self.engine.note_day_row(self.job, self.batch, &custom_id, status, &row["response"]["body"]).await;
        if let Some(guard) = self.guard.filter(|guard| is_answered && guard.judges_answers()) {
            let body = Bytes::from(row["response"]["body"].to_string());
            match guard.judge_answer(&body).await {
                Judged::Same => {}
                Judged::Changed(changed) => {
                    row["response"]["body"] = serde_json::from_slice(&changed).unwrap_or_default();
                }
                Judged::Denied(why) => {
                    is_answered = false;
                    row = failed_row(&custom_id, "hooks_failed", &why);
                }
            }
        }
        if !is_answered && row["error"].is_null() {
            // Those that read the error file look there.
            let body = &row["response"]["body"]["error"];
            let text = |name: &str| body[name].as_str().map(str::to_owned);
            let code = text("code").or_else(|| text("type")).unwrap_or_else(|| "provider_error".into());
            let message = text("message").unwrap_or_else(|| format!("the provider answered {status}"));
            row["error"] = serde_json::json!({ "code": code, "message": message });
        }
        RowResult { custom_id, is_answered, line: Bytes::from(row.to_string()), cost }
    }

    async fn finish(self) -> Result<(), Trouble> {
        if !self.results.is_empty() {
            self.rows.store(self.results).await?;
        }
        Ok(())
    }
}
