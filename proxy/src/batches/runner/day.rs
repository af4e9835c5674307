//! A step of a batch that a provider runs: taken in its own module, and what it comes to is made of the batch here.

use super::result_files::MAX_LINE_BYTES;
use super::{BatchRunner, StepFailure, output_line, persist};
use crate::batches::day::{DayStep, RowResult, RowSink};
use crate::batches::record::BatchRecord;
use crate::batches::rows::{self, ANSWERED, FAILED};
use crate::runtime::small_pool::PostgresAway;
use chrono::Utc;
use shared::amount::Amount;
use shared::batches::{BatchError, BatchStatus};
use shared::log_store::pack;
use std::time::Duration;
use uuid::Uuid;

/// Before the key that made it is looked at again.
const PAUSE: Duration = Duration::from_secs(60);
/// Rows that are told at once to have no result.
const CHUNK: i64 = 1000;

/// Results of one batch, on their way into its rows.
struct DayRows<'r> {
    runner: &'r BatchRunner,
    batch: Uuid,
    /// The status that the batch has before the step.
    before: BatchStatus,
}

impl RowSink for DayRows<'_> {
    async fn store(&self, results: Vec<RowResult>) -> Result<(), PostgresAway> {
        let results: Vec<RowResult> = results.into_iter().map(|result| self.bounded(result)).collect();
        let ids: Vec<String> = results.iter().map(|result| result.custom_id.clone()).collect();
        let states: Vec<i16> =
            results.iter().map(|result| if result.is_answered { ANSWERED } else { FAILED }).collect();
        let costs: Vec<Option<Amount>> = results.iter().map(|result| result.cost).collect();
        // What is in memory can be compressed.
        let lines: Vec<Vec<u8>> =
            results.into_iter().map(|result| pack(&result.line).unwrap_or_default().to_vec()).collect();
        rows::finish_by_id(&self.runner.records.pool, self.batch, &ids, &states, &lines, &costs).await
    }

    async fn note(&self, batch: &BatchRecord) -> Result<bool, PostgresAway> {
        self.runner.records.save_step(batch, self.before, self.runner.owner).await
    }

    async fn note_started(&self, batch: &BatchRecord) -> Result<Option<String>, PostgresAway> {
        persist(|| self.runner.records.note_started(batch)).await.ok_or(PostgresAway)
    }
}

impl DayRows<'_> {
    /// A line that is too long for a file of results could never be written.
    fn bounded(&self, result: RowResult) -> RowResult {
        if result.line.len() <= MAX_LINE_BYTES {
            return result;
        }
        let message = "the answer is longer than a line of an output file may be";
        let id = format!("{}-{}", self.batch.simple(), result.custom_id);
        let line = output_line::unanswered(&result.custom_id, &id, "answer_too_long", message, 1);
        RowResult { is_answered: false, line, ..result }
    }
}

impl BatchRunner {
    pub(super) async fn step_day(&self, mut batch: BatchRecord) -> Result<Duration, StepFailure> {
        let before = batch.status;
        let is_unwanted = before == BatchStatus::Cancelling || Utc::now() >= batch.expires_at;
        let caller = match self.services.authenticator.holder(&batch, Utc::now()) {
            Ok(caller) => caller,
            Err(refusal) if refusal.status == 503 => return Err(StepFailure),
            Err(refusal) if is_unwanted => match self.services.authenticator.former_holder(&batch) {
                // What the provider runs for a key that may not ask any more is stopped all the same.
                Some(caller) => caller,
                None => {
                    tracing::warn!(batch = %batch.id, error = %refusal.message, "nobody is left to stop a provider's batch");
                    let end =
                        if before == BatchStatus::Cancelling { BatchStatus::Cancelled } else { BatchStatus::Expired };
                    return self.end_day(batch, end).await;
                }
            },
            Err(refusal) => {
                let error = BatchError::new(refusal.code.as_str(), refusal.message.to_string());
                rows::hold_up(&self.records.pool, batch.id, PAUSE, &error).await?;
                return Ok(PAUSE);
            }
        };
        batch.errors.clear();
        let sink = DayRows { runner: self, batch: batch.id, before };
        let stepped = Box::pin(self.day.step(&caller, &mut batch, &sink)).await?;
        match stepped {
            DayStep::Wait(wait) => {
                self.save(&batch, before).await;
                Ok(wait)
            }
            DayStep::Failed(errors) => {
                self.day.delete_day_files(&caller, &batch).await;
                self.fail(batch, errors).await?;
                Ok(Duration::ZERO)
            }
            DayStep::Over(end) => self.end_day(batch, end).await,
        }
    }

    /// The provider will do nothing more of it.
    async fn end_day(&self, mut batch: BatchRecord, end: BatchStatus) -> Result<Duration, StepFailure> {
        let before = batch.status;
        let next = match (before, end) {
            (BatchStatus::InProgress, BatchStatus::Cancelled) => Some(BatchStatus::Cancelling),
            (BatchStatus::InProgress, _) => Some(BatchStatus::Finalizing),
            _ => None,
        };
        if end == BatchStatus::Completed {
            self.close_unanswered(&batch).await?;
        }
        if let Some(next) = next {
            batch.become_status(next, Utc::now());
        }
        match self.save(&batch, before).await {
            true => self.finish_day(&batch).await,
            false => Ok(Duration::ZERO),
        }
    }

    /// Writes what there is, and deletes what the provider has of it.
    pub(super) async fn finish_day(&self, batch: &BatchRecord) -> Result<Duration, StepFailure> {
        // All results are stored by now, and nobody reads them at the provider again.
        if batch.status == BatchStatus::Finalizing {
            self.delete_leftovers(batch).await;
        }
        let wait = self.finish(batch).await?;
        // Those of one that is cancelled are read again until it is over.
        if batch.status == BatchStatus::Cancelling && wait.is_zero() {
            self.delete_leftovers(batch).await;
        }
        Ok(wait)
    }

    async fn delete_leftovers(&self, batch: &BatchRecord) {
        let authenticator = &self.services.authenticator;
        let holder = authenticator.holder(batch, Utc::now()).ok();
        match holder.or_else(|| authenticator.former_holder(batch)) {
            Some(caller) => self.day.delete_day_files(&caller, batch).await,
            None => tracing::warn!(batch = %batch.id, "nobody is left to delete files of a batch at its provider"),
        }
    }

    /// What a provider was asked to do must not be forgotten because Postgres is away for a moment.
    async fn save(&self, batch: &BatchRecord, before: BatchStatus) -> bool {
        persist(|| self.records.save(batch, before, self.owner)).await.unwrap_or(false)
    }

    /// Of a batch that the provider calls complete, rows without a result are failures.
    async fn close_unanswered(&self, batch: &BatchRecord) -> Result<(), StepFailure> {
        let sink = DayRows { runner: self, batch: batch.id, before: batch.status };
        loop {
            let open = rows::open_ids(&self.records.pool, batch.id, CHUNK).await?;
            if open.is_empty() {
                return Ok(());
            }
            let results = open.into_iter().map(|(number, custom_id)| {
                let id = format!("{}-{number}", batch.id.simple());
                let message = "the provider's batch is complete and has no answer to this row";
                let line = output_line::unanswered(&custom_id, &id, "no_answer", message, 1);
                RowResult { custom_id, is_answered: false, line, cost: None }
            });
            sink.store(results.collect()).await?;
        }
    }
}
