//! The provider's batch is started. A step before this one may have started it without living to say so: it is looked for first
//! (`find`), since each costs money. That a start is tried is noted before it is, and what came of it at once afterwards; so a
//! batch that is cancelled, or taken over by another proxy, in between is stopped at the provider whoever comes first.

use super::DayBatches;
use super::trouble::{Trouble, object};
use super::upload::id_of;
use super::{DayStep, RowSink, public_id};
use crate::batches::provider_jobs::{JobQuestion, JobTarget};
use crate::batches::record::BatchRecord;
use crate::net::dial::PieceSource;
use crate::wire::codecs::jobs::JobVerb;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::batches::BatchStatus;
use shared::providers::Family;
use std::time::Duration;

/// Under this name the provider's batch has ours.
pub const OURS: &str = "gateway_batch_id";
/// What was just started is looked at soon.
const SOON: Duration = Duration::from_secs(1);
/// How long after a try the provider may still make a batch of which we were not told, in seconds.
const SETTLES_S: i64 = 60;
/// Until it is looked for once more.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// Before each try to stop what nobody needs, in seconds.
const STOP_AFTER_S: [u64; 3] = [0, 2, 10];

/// Tries to start a batch, noted in place of what the provider tells of it: it may have one of which nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTries {
    /// When the first and the last were made, in seconds.
    #[serde(rename = "start_tried_at")]
    pub first: i64,
    #[serde(rename = "start_last_tried_at", default)]
    pub last: i64,
    /// How many rows were sent, where they come with the request.
    #[serde(default)]
    pub rows: u64,
}

impl StartTries {
    pub fn noted(batch: &BatchRecord) -> Option<Self> {
        batch.provider_batch.as_ref().and_then(|reply| Self::deserialize(reply).ok())
    }

    fn again(batch: &BatchRecord, rows: u64, now: DateTime<Utc>) -> Self {
        let last = now.timestamp();
        Self { first: Self::noted(batch).map_or(last, |tries| tries.first), last, rows }
    }

    fn is_settled(self, now: DateTime<Utc>) -> bool {
        now.timestamp() - self.last >= SETTLES_S
    }
}

impl DayBatches {
    pub(super) async fn start_day_batch(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        sink: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        if let Some(found) = self.started_before(job, batch).await? {
            return started(batch, found, sink).await;
        }
        note_try(batch, 0, sink).await?;
        let mut body = batch.provider_options.clone();
        body.insert("input_file_id".into(), batch.provider_input_file_id.clone().unwrap_or_default().into());
        body.insert("endpoint".into(), batch.endpoint.clone().into());
        body.insert("completion_window".into(), "24h".into());
        body.insert("metadata".into(), json!({ OURS: public_id(batch) }));
        if job.codec().is_some() {
            body.insert("model".into(), job.model.clone().into());
        }
        let question = JobQuestion { body, ..asked(batch, JobVerb::Create, "") };
        let reply = object(&self.jobs.ask_job(job, question).await?)?;
        self.note_made(job, batch, reply, sink).await
    }

    /// Where rows come with the request itself.
    pub(super) async fn start_with_rows(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        rows: u64,
        (length, pieces): (usize, &mut impl PieceSource),
        sink: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        if let Some(tries) = StartTries::noted(batch)
            && let Some(found) = self.started_since(job, batch, StartTries { rows, ..tries }).await?
        {
            return started(batch, found, sink).await;
        }
        note_try(batch, rows, sink).await?;
        // What is written for it takes the place of these.
        let body = Map::from_iter([("requests".to_owned(), json!([]))]);
        let question = JobQuestion { body, ..asked(batch, JobVerb::Create, "") };
        let reply = object(&self.jobs.send_job(job, question, length, pieces).await?)?;
        self.note_made(job, batch, reply, sink).await
    }

    /// Of a batch that is not wanted any more and that may have been started without anybody knowing: it is found, and stopped
    /// like one that is known.
    pub(super) async fn stop_unknown(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        end: BatchStatus,
        sink: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        if let Some(found) = self.started_unknown(job, batch).await? {
            started(batch, found, sink).await?;
            return self.poll_day_batch(job, batch, sink).await;
        }
        match StartTries::noted(batch) {
            Some(tries) if !tries.is_settled(Utc::now()) => Ok(DayStep::Wait(LOOK_AGAIN)),
            _ => Ok(DayStep::Over(end)),
        }
    }

    /// Notes a batch that was made now. Another may be noted already, made by a proxy that took this one for dead, or ours may
    /// be over: then the new one is stopped, since nobody will ask after it.
    async fn note_made(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        reply: Value,
        sink: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        let made = id_of(&reply)?;
        let step = started(batch, reply, sink).await;
        if batch.provider_batch_id.as_ref() != Some(&made) {
            self.stop_stray(job, batch, &made).await;
        }
        step
    }

    async fn stop_stray(&self, job: &JobTarget, batch: &BatchRecord, id: &str) {
        for wait in STOP_AFTER_S {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            let stopped = self.jobs.ask_job(job, asked(batch, JobVerb::Cancel, id)).await;
            match stopped.map_err(Trouble::from).and_then(|answer| object(&answer)) {
                Ok(_) => return,
                Err(Trouble::Passing(_) | Trouble::NotNow) => {}
                Err(_) => break,
            }
        }
        tracing::warn!(batch = %batch.id, provider_batch = id, "a second batch at the provider could not be stopped");
    }
}

/// A question about the provider's batch, or about all of them.
pub fn asked(batch: &BatchRecord, verb: JobVerb, id: &str) -> JobQuestion {
    JobQuestion {
        family: Family::Batches,
        verb,
        id: id.to_owned(),
        after: None,
        body: Map::new(),
        file: None,
        request_id: public_id(batch),
    }
}

/// Nothing is started of what was cancelled, or of what another proxy has.
async fn note_try(batch: &mut BatchRecord, rows: u64, sink: &impl RowSink) -> Result<(), Trouble> {
    batch.provider_batch = serde_json::to_value(StartTries::again(batch, rows, Utc::now())).ok();
    match sink.note(batch).await? {
        true => Ok(()),
        false => Err(Trouble::NotNow),
    }
}

/// The first that is noted is the batch's for good; the record has its id afterwards. Fails when ours is over, or gone.
async fn started(batch: &mut BatchRecord, reply: Value, sink: &impl RowSink) -> Result<DayStep, Trouble> {
    let id = id_of(&reply)?;
    batch.provider_batch_id = Some(id.clone());
    batch.provider_batch = Some(reply);
    let noted = sink.note_started(batch).await?;
    if noted.as_ref() != Some(&id) {
        // What is told of it is told when it is asked after.
        batch.provider_batch = None;
    }
    batch.provider_batch_id = noted;
    match batch.provider_batch_id {
        Some(_) => Ok(DayStep::Wait(SOON)),
        None => Err(Trouble::NotNow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_are_told_from_what_a_provider_tells() {
        let noted = |reply: Value| StartTries::deserialize(&reply).ok();
        let tries = StartTries { first: 7, last: 9, rows: 3 };
        assert_eq!(noted(serde_json::to_value(tries).unwrap()), Some(tries));
        assert_eq!(noted(json!({ "id": "b", "status": "in_progress" })), None);
    }

    #[test]
    fn a_batch_may_be_made_some_time_after_the_last_try() {
        let tries = StartTries { first: 0, last: 1000, rows: 0 };
        for (now, is_settled) in [(1000, false), (1059, false), (1060, true)] {
            assert_eq!(tries.is_settled(DateTime::from_timestamp(now, 0).unwrap()), is_settled, "{now}");
        }
    }
}
