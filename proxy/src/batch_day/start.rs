//! The provider's batch is started. A step before this one may have started it without living to say so: it is looked for first,
//! since each costs money. Where the provider keeps metadata or labels it is found by them; Bedrock makes one batch for one token;
//! and Anthropic's are told by their time and length, for which it is noted when a start was first tried.

use super::trouble::{Trouble, object};
use super::upload::id_of;
use super::{DayStep, RowSink, public_id};
use crate::batches::record::BatchRecord;
use crate::codecs::jobs::JobVerb;
use crate::net::dial::PieceSource;
use crate::walk::Engine;
use crate::walk::provider_jobs::{JobQuestion, JobTarget};
use chrono::Utc;
use serde_json::{Map, Value, json};
use shared::providers::Family;
use std::time::Duration;

/// Under this name the provider's batch has ours.
const OURS: &str = "gateway_batch_id";
/// In place of what the provider tells of its batch: since when it may have one.
const TRIED: &str = "start_tried_at";
/// By how much the provider's clock may be behind ours, in seconds.
const SKEW: i64 = 60;
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
        body.insert("metadata".into(), json!({ OURS: public_id(batch) }));
        if job.codec().is_some() {
            body.insert("model".into(), job.model.clone().into());
        }
        let question = JobQuestion { body, ..asked(batch, JobVerb::Create, "") };
        let told = object(&self.ask_job(job, question).await?)?;
        started(batch, told)
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
        let tried = tried_at(batch.provider_batch.as_ref());
        if let Some(tried) = tried {
            let found = self.started_since(job, batch, tried, rows).await?;
            if let Some(found) = found {
                return started(batch, found);
            }
        }
        batch.provider_batch = Some(json!({ TRIED: tried.unwrap_or_else(|| Utc::now().timestamp()) }));
        if !sink.note(batch).await? {
            return Err(Trouble::NotNow);
        }
        // What is written for it takes the place of these.
        let body = Map::from_iter([("requests".to_owned(), json!([]))]);
        let question = JobQuestion { body, ..asked(batch, JobVerb::Create, "") };
        let told = object(&self.send_job(job, question, length, pieces).await?)?;
        started(batch, told)
    }

    async fn started_before(&self, job: &JobTarget, batch: &BatchRecord) -> Result<Option<Value>, Trouble> {
        if job.codec().is_some_and(|codec| codec.name() != "vertex_batches") {
            return Ok(None);
        }
        let listed = object(&self.ask_job(job, asked(batch, JobVerb::List, "")).await?)?;
        let ours = public_id(batch);
        let mut data = listed["data"].as_array().into_iter().flatten();
        Ok(data.find(|one| one["metadata"][OURS].as_str() == Some(&*ours)).cloned())
    }

    /// The only batch of this length that was made since then and that no other batch of ours is known to have.
    async fn started_since(
        &self,
        job: &JobTarget,
        batch: &BatchRecord,
        since: i64,
        rows: u64,
    ) -> Result<Option<Value>, Trouble> {
        let listed = object(&self.ask_job(job, asked(batch, JobVerb::List, "")).await?)?;
        let mut alike = alike(&listed, since, rows);
        let ids: Vec<&str> = alike.iter().filter_map(|one| one["id"].as_str()).collect();
        let known = self.batches.known_at_providers(&ids).await?;
        alike.retain(|one| !known.iter().any(|known| one["id"].as_str() == Some(known.as_str())));
        Ok(match alike.as_slice() {
            [only] => Some((*only).clone()),
            _ => None,
        })
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

fn tried_at(told: Option<&Value>) -> Option<i64> {
    told.and_then(|told| told[TRIED].as_i64())
}

/// Batches of so many rows that were made since then.
fn alike(listed: &Value, since: i64, rows: u64) -> Vec<&Value> {
    let is_alike = |one: &&Value| {
        one["created_at"].as_i64() >= Some(since - SKEW) && one["request_counts"]["total"].as_u64() == Some(rows)
    };
    listed["data"].as_array().into_iter().flatten().filter(is_alike).collect()
}

fn started(batch: &mut BatchRecord, told: Value) -> Result<DayStep, Trouble> {
    batch.provider_batch_id = Some(id_of(&told)?);
    batch.provider_batch = Some(told);
    Ok(DayStep::Wait(SOON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_was_started_and_not_noted_is_told_by_its_time_and_length() {
        let one =
            |id: &str, at: i64, rows: u64| json!({ "id": id, "created_at": at, "request_counts": { "total": rows } });
        let odd = json!({ "id": "odd" });
        let listed = json!({ "data": [one("late", 1000, 3), one("early", 900, 3), one("longer", 1000, 4), odd] });
        let found: Vec<&str> = alike(&listed, 1000, 3).iter().filter_map(|one| one["id"].as_str()).collect();
        assert_eq!(found, ["late"]);
        assert_eq!(alike(&listed, 960, 3).len(), 2, "clocks differ");
        assert_eq!(alike(&json!({}), 0, 3).len(), 0);
        assert_eq!(tried_at(Some(&json!({ TRIED: 7 }))), Some(7));
        assert_eq!((tried_at(None), tried_at(Some(&json!({ "id": "b" })))), (None, None));
    }
}
