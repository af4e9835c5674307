//! Mode `24h`: a provider's own batch does the work. The rows are written for the provider and uploaded, its batch is started
//! and asked after until it is over, and its answers are read, priced and logged, row by row.
//!
//! - `trouble`: what stands against a step: for a while, or for good
//! - `input`: the rows as the provider takes them, judged by guardrails
//! - `upload`: their way there
//! - `start`: the provider's batch
//! - `find`: one that was started without anybody noting it
//! - `poll`: how it stands, and whether it is to stop
//! - `output`: its answers, as rows of ours
//! - `leftovers`: its files at the provider, when it is over
//! - `ledger`: what each row cost, in the log and in budgets
//! - `unreported`: a guess for those that do not say what they used
//!
//! A step does one of these things and says when the next is due; what it learnt stands in the record, which whoever leased
//! the batch saves. A step that is done again does no harm: rows are stored and logged once, and a provider's batch is looked
//! for before another is made.

mod find;
mod input;
mod ledger;
mod leftovers;
mod output;
mod poll;
mod start;
mod trouble;
mod unreported;
mod upload;

use super::files::ManagedFiles;
use super::provider_jobs::{JobTarget, ProviderJobs};
use super::row_guard::RowGuards;
use crate::batches::record::{BatchRecord, PREFIX};
use crate::batches::records::BatchRecords;
use crate::engine::{Admitter, Recorder, Router, Services};
use crate::identity::identify::Principal;
use crate::runtime::small_pool::PostgresAway;
use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use pingora_http::RequestHeader;
use shared::amount::Amount;
use shared::batches::{BatchEndpoint, BatchError, BatchStatus};
use shared::providers::Family;
use start::StartTries;
use std::sync::Arc;
use std::time::Duration;
use trouble::Trouble;

/// What became of a row.
#[derive(Debug, Clone)]
pub struct RowResult {
    pub custom_id: String,
    /// Whether it goes to the output file; else to that of errors.
    pub is_answered: bool,
    /// Its line there, without a line break.
    pub line: Bytes,
    /// In cents, as logs have it.
    pub cost: Option<Amount>,
}

/// Takes results of rows of one batch, some at a time, and what is known of the batch. A row that has a result keeps it.
pub trait RowSink: Sync {
    fn store(&self, results: Vec<RowResult>) -> impl Future<Output = Result<(), PostgresAway>> + Send;

    /// Saves the batch in the middle of a step, before something is done that a later step must know of. False when it is not
    /// to be done any more: the batch was cancelled, or another has it.
    fn note(&self, batch: &BatchRecord) -> impl Future<Output = Result<bool, PostgresAway>> + Send;

    /// Notes which batch the provider runs, even if ours was cancelled or is another's meanwhile. The first that is noted stays:
    /// its id, and none when ours is over.
    fn note_started(&self, batch: &BatchRecord) -> impl Future<Output = Result<Option<String>, PostgresAway>> + Send;
}

/// What a step came to.
#[derive(Debug)]
pub enum DayStep {
    /// Look again after this long.
    Wait(Duration),
    /// The provider is done, and the results of all rows that it answered are stored. The status that the batch goes to once
    /// its files are written: completed, expired or cancelled. Rows without a result were not run.
    Over(BatchStatus),
    /// It cannot be run.
    Failed(Vec<BatchError>),
}

/// Postgres or the log store is away: the step is done again later.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the step could not be done now")]
pub struct NotNow;

impl From<PostgresAway> for NotNow {
    fn from(_: PostgresAway) -> Self {
        Self
    }
}

/// After something that passes.
const TRY_AGAIN: Duration = Duration::from_secs(15);
/// After something that somebody has to mend.
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// How long after its time a batch waits for a provider that does not end it, or does not answer.
const GRACE: TimeDelta = TimeDelta::hours(2);
/// How long one that was cancelled waits to hear whether the provider has it.
const SEARCH: TimeDelta = TimeDelta::hours(1);

/// Runs batches by a provider's own batch, a step at a time.
pub struct DayBatches {
    admitter: Arc<Admitter>,
    recorder: Arc<Recorder>,
    router: Arc<Router>,
    batches: Arc<BatchRecords>,
    files: Option<Arc<ManagedFiles>>,
    jobs: ProviderJobs,
    row_guards: RowGuards,
}

impl DayBatches {
    pub fn new(
        services: &Services,
        batches: Arc<BatchRecords>,
        files: Option<Arc<ManagedFiles>>,
        jobs: ProviderJobs,
        row_guards: RowGuards,
    ) -> Self {
        let Services { admitter, recorder, router, .. } = services.clone();
        Self { admitter, recorder, router, batches, files, jobs, row_guards }
    }

    /// The next step of a batch that is `in_progress` or `cancelling`, whose input was found good. `caller` is the key that
    /// made it, checked again. Changes `provider_batch`, `provider_batch_id`, `provider_input_file_id`, `model` and `errors`
    /// of the record; these last tell what holds it up.
    pub async fn step(
        &self,
        caller: &Principal,
        batch: &mut BatchRecord,
        rows: &impl RowSink,
    ) -> Result<DayStep, NotNow> {
        let now = Utc::now();
        // How it ends if nothing more comes from the provider.
        let (end, is_unwanted) = match batch.status {
            BatchStatus::Cancelling => (BatchStatus::Cancelled, true),
            _ => (BatchStatus::Expired, now >= batch.expires_at),
        };
        let is_known = batch.provider_batch_id.is_some();
        if is_unwanted && !is_known && StartTries::noted(batch).is_none() {
            return Ok(DayStep::Over(end));
        }
        // What is unwanted now may be begun without anybody knowing.
        let is_begun = is_known || is_unwanted;
        let is_lost = !is_known && batch.cancelling_at.is_some_and(|at| now >= at + SEARCH);
        let is_given_up = is_lost || now >= batch.expires_at + GRACE;
        let step = match self.day_target(caller, batch).await {
            Ok(job) if is_unwanted && !is_known => Box::pin(self.stop_unknown(&job, batch, end, rows)).await,
            Ok(job) => Box::pin(self.step_at_provider(&job, batch, rows)).await,
            Err(trouble) => Err(trouble),
        };
        match step {
            Err(Trouble::NotNow) => Err(NotNow),
            Ok(DayStep::Wait(_)) | Err(Trouble::Passing(_) | Trouble::Refused(_)) if is_given_up => {
                Ok(DayStep::Over(end))
            }
            Ok(step) => {
                batch.errors.clear();
                Ok(step)
            }
            Err(Trouble::Passing(why)) => {
                batch.errors = vec![why];
                Ok(DayStep::Wait(TRY_AGAIN))
            }
            // What the provider does is paid for; only who asks for no results does not wait for them.
            Err(Trouble::Refused(_)) if is_begun && batch.status == BatchStatus::Cancelling => Ok(DayStep::Over(end)),
            Err(Trouble::Refused(why)) if is_begun => {
                batch.errors = vec![why];
                Ok(DayStep::Wait(LOOK_AGAIN))
            }
            Err(Trouble::Refused(why)) => Ok(DayStep::Failed(vec![why])),
            Err(Trouble::Lasting(why)) => Ok(DayStep::Failed(why)),
        }
    }

    async fn step_at_provider(
        &self,
        job: &JobTarget,
        batch: &mut BatchRecord,
        rows: &impl RowSink,
    ) -> Result<DayStep, Trouble> {
        if batch.provider_batch_id.is_some() {
            return self.poll_day_batch(job, batch, rows).await;
        }
        if batch.provider_input_file_id.is_some() {
            return self.start_day_batch(job, batch, rows).await;
        }
        self.admit_day_batch(job, batch).await?;
        self.upload_day_input(job, batch, rows).await
    }

    /// The provider that the options name for the model of its rows.
    async fn day_target(&self, caller: &Principal, batch: &BatchRecord) -> Result<JobTarget, Trouble> {
        let options = self.batches.options(batch, &self.router.sealer).await.map_err(|_| Trouble::NotNow)?;
        let shut = || Trouble::Refused(BatchError::new("invalid_options", "its gateway_options do not open"));
        let options = options.ok_or_else(shut)?;
        let head = RequestHeader::build("POST", b"/v1/batches", Some(8));
        let mut head = head.map_err(|_| Trouble::lasting("internal_error", "no request can be made"))?;
        options.put_on(&mut head);
        let model = batch.model.as_deref().unwrap_or_default();
        let job = self.jobs.job_target(caller, head, model)?;
        match job.codec() {
            Some(codec) if codec.name() == "cohere_batches" => {
                let message = "this provider has no batches of requests: use completion_window immediate";
                Err(Trouble::lasting("endpoint_not_supported", message))
            }
            _ => Ok(job),
        }
    }
}

/// What its rows ask for.
fn family(batch: &BatchRecord) -> Family {
    match BatchEndpoint::parse(&batch.endpoint) {
        Some(BatchEndpoint::Completions) => Family::Complete,
        Some(BatchEndpoint::Embeddings) => Family::Embed,
        Some(BatchEndpoint::ChatCompletions) | None => Family::Chat,
    }
}

fn public_id(batch: &BatchRecord) -> String {
    format!("{PREFIX}{}", batch.id)
}
