//! How the provider's batch stands. While it runs it is asked after, ever more seldom; it is stopped when ours is cancelled or
//! its time is over; and when it is over its answers are read, however it ended.

use super::DayBatches;
use super::start::asked;
use super::trouble::{Trouble, object};
use super::{DayStep, RowSink};
use crate::batches::provider_jobs::JobTarget;
use crate::batches::record::BatchRecord;
use crate::wire::codecs::jobs::JobVerb;
use chrono::{DateTime, Utc};
use serde_json::Value;
use shared::batches::{BatchError, BatchStatus};
use std::time::Duration;

const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// Of what a provider says is wrong.
const MAX_ERRORS: usize = 100;

impl DayBatches {
    pub(super) async fn poll_day_batch(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        rows: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        let id = batch.provider_batch_id.clone().unwrap_or_default();
        let mut reply = object(&self.jobs.ask_job(job, asked(batch, JobVerb::Retrieve, &id)).await?)?;
        let (now, is_late) = (Utc::now(), Utc::now() >= batch.expires_at);
        let is_unwanted = batch.status == BatchStatus::Cancelling || is_late;
        if is_unwanted && !is_ending(&reply) {
            reply = object(&self.jobs.ask_job(job, asked(batch, JobVerb::Cancel, &id)).await?)?;
        }
        let end = ended(&reply);
        batch.provider_batch = Some(reply);
        let reply = batch.provider_batch.as_ref().unwrap_or(&Value::Null);
        let Some(end) = end else { return Ok(DayStep::Wait(until_next(batch, now))) };
        if end == BatchStatus::Failed {
            return Ok(DayStep::Failed(errors(reply)));
        }
        self.read_day_output(job, batch, reply, rows).await?;
        Ok(DayStep::Over(match end {
            BatchStatus::Cancelled if batch.status != BatchStatus::Cancelling => BatchStatus::Expired,
            end => end,
        }))
    }
}

/// The status in which it is over.
fn ended(reply: &Value) -> Option<BatchStatus> {
    reply["status"].as_str().and_then(BatchStatus::parse).filter(|status| status.is_final())
}

/// It is over, or about to be.
fn is_ending(reply: &Value) -> bool {
    ended(reply).is_some() || matches!(reply["status"].as_str(), Some("cancelling" | "finalizing"))
}

/// A tenth of the time that it has taken so far.
fn until_next(batch: &BatchRecord, now: DateTime<Utc>) -> Duration {
    let since = batch.in_progress_at.unwrap_or(batch.created_at);
    let taken = (now - since).to_std().unwrap_or_default();
    (taken / 10).clamp(MIN_PAUSE, MAX_PAUSE)
}

fn errors(reply: &Value) -> Vec<BatchError> {
    let data = reply.pointer("/errors/data").and_then(Value::as_array).into_iter().flatten();
    let errors = data.take(MAX_ERRORS).map(|one| {
        let text = |name: &str| one[name].as_str().map(|text| text.chars().take(1000).collect::<String>());
        BatchError {
            code: text("code").unwrap_or_else(|| "provider_error".into()),
            message: text("message").unwrap_or_default(),
            param: text("param"),
            line: one["line"].as_u64(),
        }
    });
    let errors: Vec<BatchError> = errors.collect();
    match errors.is_empty() {
        true => vec![BatchError::new("provider_error", "the provider's batch failed")],
        false => errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_end_is_told_from_what_still_runs() {
        for (status, end) in [
            ("validating", None),
            ("in_progress", None),
            ("finalizing", None),
            ("cancelling", None),
            ("completed", Some(BatchStatus::Completed)),
            ("expired", Some(BatchStatus::Expired)),
            ("cancelled", Some(BatchStatus::Cancelled)),
            ("failed", Some(BatchStatus::Failed)),
            ("strange", None),
        ] {
            assert_eq!(ended(&json!({ "status": status })), end, "{status}");
        }
        assert!(is_ending(&json!({ "status": "cancelling" })) && !is_ending(&json!({ "status": "in_progress" })));
    }

    #[test]
    fn what_the_provider_says_is_wrong_is_told() {
        let reply = json!({ "errors": { "data": [{ "code": "c", "message": "m", "param": null, "line": 3 }] } });
        assert_eq!(errors(&reply), [BatchError::new("c", "m").at(3)]);
        assert_eq!(errors(&json!({}))[0].code, "provider_error");
    }
}
