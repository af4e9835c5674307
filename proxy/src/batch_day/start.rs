//! The provider's batch is started. A step before this one may have started it without living to say so: where it can be told,
//! it is looked for first, since each costs money.

use super::trouble::{Trouble, object};
use super::upload::id_of;
use super::{DayStep, public_id};
use crate::batches::record::BatchRecord;
use crate::codecs::jobs::JobVerb;
use crate::walk::Engine;
use crate::walk::provider_jobs::{JobQuestion, JobTarget};
use serde_json::{Map, Value, json};
use shared::providers::Family;
use std::time::Duration;

/// Under this name the provider's batch has ours.
const OURS: &str = "gateway_batch_id";
/// What was just started is looked at soon.
const SOON: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) async fn start_day_batch(&self, job: &JobTarget, batch: &mut BatchRecord) -> Result<DayStep, Trouble> {
        if let Some(found) = self.started_before(job, batch).await? {
            return started(batch, found);
        }
        let mut body = batch.provider_options.clone();
        body.insert("input_file_id".into(), batch.provider_input_file_id.clone().unwrap_or_default().into());
        body.insert("endpoint".into(), batch.endpoint.clone().into());
        body.insert("completion_window".into(), "24h".into());
        match job.codec() {
            None => body.insert("metadata".into(), json!({ OURS: public_id(batch) })),
            Some(_) => body.insert("model".into(), job.model.clone().into()),
        };
        self.make_day_batch(job, batch, body).await
    }

    /// Where rows come with the request itself.
    pub(super) async fn start_with_rows(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        rows: &[u8],
    ) -> Result<DayStep, Trouble> {
        let lines = rows.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let parsed: Result<Vec<Value>, _> = lines.map(serde_json::from_slice).collect();
        let parsed = parsed.map_err(|_| Trouble::lasting("invalid_input", "the rows cannot be read"))?;
        let mut body = Map::new();
        body.insert("requests".into(), parsed.into());
        self.make_day_batch(job, batch, body).await
    }

    async fn make_day_batch(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        body: Map<String, Value>,
    ) -> Result<DayStep, Trouble> {
        let question = JobQuestion { body, ..asked(batch, JobVerb::Create, "") };
        let told = object(&self.ask_job(job, question).await?)?;
        started(batch, told)
    }

    async fn started_before(&self, job: &JobTarget, batch: &BatchRecord) -> Result<Option<Value>, Trouble> {
        if job.codec().is_some() {
            return Ok(None);
        }
        let listed = object(&self.ask_job(job, asked(batch, JobVerb::List, "")).await?)?;
        let ours = public_id(batch);
        let mut data = listed["data"].as_array().into_iter().flatten();
        Ok(data.find(|one| one["metadata"][OURS].as_str() == Some(&*ours)).cloned())
    }
}

/// A question about the provider's batch, or about all of them.
pub fn asked(batch: &BatchRecord, verb: JobVerb, id: &str) -> JobQuestion {
    JobQuestion {
        family: Family::Batches,
        verb,
        id: id.to_owned(),
        body: Map::new(),
        file: None,
        request_id: public_id(batch),
    }
}

fn started(batch: &mut BatchRecord, told: Value) -> Result<DayStep, Trouble> {
    batch.provider_batch_id = Some(id_of(&told)?);
    batch.provider_batch = Some(told);
    Ok(DayStep::Wait(SOON))
}
