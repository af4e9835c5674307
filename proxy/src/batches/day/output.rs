//! The provider's answers, read line by line: each becomes a row of ours, judged by guardrails, logged and priced. Lines of a
//! provider with a form of its own are rewritten first (`wire::codecs::jobs`).

use super::DayBatches;
use super::input::TOGETHER;
use super::start::asked;
use super::trouble::Trouble;
use super::unreported::guessed_use;
use super::{RowResult, RowSink, family, public_id};
use crate::batches::provider_jobs::{JobTarget, OutputForm};
use crate::batches::record::BatchRecord;
use crate::batches::row_guard::{Judged, RowGuard};
use crate::net::dial::Upstream;
use crate::request::refusal::Refusal;
use crate::wire::codecs::jobs::{JobVerb, MAX_LINE_BYTES, failed_row};
use bytes::Bytes;
use serde_json::Value;
use shared::batches::{LineTooLong, Lines, MAX_LINE};

/// Bytes of results that are stored together; one row may pass it.
const TOGETHER_BYTES: usize = 4 << 20;

impl DayBatches {
    pub(super) async fn read_day_output(
        &self,
        job: &JobTarget,
        batch: &BatchRecord,
        reply: &Value,
        rows: &impl RowSink,
    ) -> Result<(), Trouble> {
        let guard = self.row_guards.row_guard(job, family(batch), &public_id(batch));
        let guard = guard.as_ref();
        let mut reading = Reading { day: self, job, batch, guard, rows, results: Vec::new(), held: 0 };
        if job.codec().is_some() {
            let id = batch.provider_batch_id.clone().unwrap_or_default();
            match self.jobs.open_job_output(job, asked(batch, JobVerb::Output, &id)).await {
                Ok(Ok((upstream, form))) => reading.read_rows(upstream, Some(&form)).await?,
                Ok(Err(reply)) => return Err(Trouble::from_reply(reply.status, &reply.body)),
                // One that was stopped early has written nothing.
                Err(refusal) if refusal.status == 400 => return Ok(()),
                Err(refusal) => return Err(refusal.into()),
            }
        } else {
            for file in ["output_file_id", "error_file_id"] {
                if let Some(id) = reply[file].as_str().filter(|id| !id.is_empty()) {
                    let upstream = self.jobs.open_job_file(job, id).await?;
                    reading.read_rows(upstream, None).await?;
                }
            }
        }
        reading.finish().await
    }
}

struct Reading<'r, S: RowSink> {
    day: &'r DayBatches,
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
            let reply = upstream.read_body().await.ok().flatten().unwrap_or_default();
            return Err(Trouble::from_reply(status, &reply));
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
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(()),
                // All other rows are answered and paid for.
                Err(LineTooLong { .. }) => {
                    let start = lines.skip_long_line();
                    if let Some(custom_id) = beginning_custom_id(&start).filter(|_| form.is_none()) {
                        let result = self.too_long(custom_id, &start).await?;
                        self.results.push(result);
                    }
                    continue;
                }
            };
            // Of what cannot be read nobody knows whose answer it is; its row is told to have none.
            if form.is_some() && line.bytes.len() > MAX_LINE_BYTES {
                continue;
            }
            let Ok(reply @ Value::Object(_)) = serde_json::from_slice::<Value>(&line.bytes) else { continue };
            let number = usize::try_from(line.number.saturating_sub(1)).unwrap_or(usize::MAX);
            let row = form.map(|form| form.row(number, &reply)).unwrap_or(reply);
            let Some(custom_id) = row["custom_id"].as_str().map(str::to_owned) else { continue };
            let result = self.result(custom_id, row).await?;
            self.held += result.line.len();
            self.results.push(result);
            if self.results.len() >= TOGETHER || self.held >= TOGETHER_BYTES {
                self.held = 0;
                self.rows.store(std::mem::take(&mut self.results)).await?;
            }
        }
    }

    /// The row of an answer that is too long to be held: what it used is guessed from its beginning.
    async fn too_long(&self, custom_id: String, start: &[u8]) -> Result<RowResult, Trouble> {
        let guess = Some(guessed_use(self.day, self.batch, &custom_id, start, MAX_LINE as u64).await?);
        let cost = self.day.note_day_row(self.job, self.batch, &custom_id, 200, &Value::Null, guess).await;
        let row =
            failed_row(&custom_id, "answer_too_long", "the answer is longer than a line of an output file may be");
        Ok(RowResult { custom_id, is_answered: false, line: Bytes::from(row.to_string()), cost })
    }

    async fn result(&self, custom_id: String, mut row: Value) -> Result<RowResult, Trouble> {
        let status = row.pointer("/response/status_code").and_then(Value::as_u64);
        let status = status.and_then(|status| u16::try_from(status).ok()).unwrap_or(0);
        let is_error = !row["error"].is_null();
        let mut is_answered = (200..300).contains(&status) && !is_error;
        let body = &row["response"]["body"];
        let guess = match is_answered && !body["usage"].is_object() {
            true => {
                let body = body.to_string();
                Some(guessed_use(self.day, self.batch, &custom_id, body.as_bytes(), body.len() as u64).await?)
            }
            false => None,
        };
        let cost = self.day.note_day_row(self.job, self.batch, &custom_id, status, body, guess).await;
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
        Ok(RowResult { custom_id, is_answered, line: Bytes::from(row.to_string()), cost })
    }

    async fn finish(self) -> Result<(), Trouble> {
        if !self.results.is_empty() {
            self.rows.store(self.results).await?;
        }
        Ok(())
    }
}

/// The `custom_id` at the beginning of a row of OpenAI's form, before what may be long. None where something else comes first,
/// or where it is cut off: its row is told to have no answer then.
fn beginning_custom_id(start: &[u8]) -> Option<String> {
    const NAME: &[u8] = b"\"custom_id\"";
    // An answer may hold the same text; what stands before it holds none but ids.
    let response = memchr::memmem::find(start, b"\"response\"").unwrap_or(start.len());
    let name = memchr::memmem::find(&start[..response], NAME)?;
    let rest = start[name + NAME.len()..].trim_ascii_start().strip_prefix(b":")?;
    serde_json::Deserializer::from_slice(rest).into_iter::<String>().next()?.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_row_is_read_from_its_beginning() {
        for (start, id) in [
            (r#"{"id":"batch_req_1","custom_id":"a\"b","response":{"body":"#, Some("a\"b")),
            (r#"{ "custom_id" : "row", "response": {"#, Some("row")),
            (r#"{"id":"x","response":{"body":{"custom_id":"of the answer"}}"#, None),
            (r#"{"id":"x","custom_id":"cut o"#, None),
            (r#"{"id":"x","custom_id":7,"response":"#, None),
            ("", None),
        ] {
            assert_eq!(beginning_custom_id(start.as_bytes()).as_deref(), id, "{start}");
        }
    }
}
