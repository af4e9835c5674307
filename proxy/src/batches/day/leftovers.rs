//! What a batch leaves at the provider: the file that was uploaded for it, and those of its answers. Providers keep them, and some
//! bill them, until somebody deletes them; so the gateway does, once it has everything of them or the batch has failed.

use super::DayBatches;
use super::{public_id, start::asked};
use crate::batches::provider_jobs::{JobQuestion, JobTarget};
use crate::batches::record::BatchRecord;
use crate::identity::identify::Principal;
use crate::wire::codecs::jobs::JobVerb;
use serde_json::Value;
use shared::providers::Family;
use std::time::Duration;

/// Before each try, in seconds. The batch waits meanwhile.
const TRY_AFTER_S: [u64; 3] = [0, 1, 3];

impl DayBatches {
    /// Any number of times. What the provider does not delete stays there, and a line of the process's log tells of it.
    pub async fn delete_day_files(&self, caller: &Principal, batch: &BatchRecord) {
        let files = left_files(batch);
        if files.is_empty() {
            return;
        }
        let Ok(job) = self.day_target(caller, batch).await else { return warn(batch, &files) };
        let mut remaining = Vec::new();
        for file in files {
            if !self.delete_day_file(&job, batch, file).await {
                remaining.push(file);
            }
        }
        if !remaining.is_empty() {
            warn(batch, &remaining);
        }
    }

    async fn delete_day_file(&self, job: &JobTarget, batch: &BatchRecord, file: &str) -> bool {
        for wait in TRY_AFTER_S {
            tokio::time::sleep(Duration::from_secs(wait)).await;
            let question = JobQuestion { family: Family::Files, ..asked(batch, JobVerb::Delete, file) };
            match self.jobs.delete_job_file(job, question).await {
                // What is gone is deleted.
                Ok(200..=299 | 404 | 410) => return true,
                Ok(408 | 409 | 425 | 429 | 500..) | Err(_) => {}
                Ok(_) => return false,
            }
        }
        false
    }
}

/// Ids as the provider has them.
fn left_files(batch: &BatchRecord) -> Vec<&str> {
    let provider_batch = batch.provider_batch.as_ref().unwrap_or(&Value::Null);
    let answers = ["output_file_id", "error_file_id"].map(|name| provider_batch[name].as_str());
    let all = [batch.provider_input_file_id.as_deref()].into_iter().chain(answers).flatten();
    all.filter(|id| !id.is_empty()).collect()
}

fn warn(batch: &BatchRecord, files: &[&str]) {
    let id = public_id(batch);
    tracing::warn!(
        batch = id,
        files = files.len(),
        "files of a batch that is over could not be deleted at its provider"
    );
}
