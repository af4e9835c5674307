//! Mode `24h`: a provider's own batch does the work. The rows are written for the provider and uploaded, its batch is started
//! and asked after until it is over, and its answers are read, priced and logged, row by row.
//!
//! A step does one of these things and says when the next is due; what it learnt stands in the record, which whoever leased
//! the batch saves. A step that is done again does no harm: rows are stored and logged once, and a provider's batch is looked
//! for before another is made.

use crate::batches::record::BatchRecord;
use crate::identity::identify::Principal;
use crate::runtime::small_pool::PostgresAway;
use crate::walk::Engine;
use bytes::Bytes;
use shared::amount::Amount;
use shared::batches::{BatchError, BatchStatus};
use std::time::Duration;

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

/// Takes results of rows of one batch, some at a time. A row that has a result keeps it.
pub trait RowSink: Sync {
    fn store(&self, results: Vec<RowResult>) -> impl Future<Output = Result<(), PostgresAway>> + Send;
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

impl Engine {
    /// The next step of a batch that is `in_progress` or `cancelling`, whose input was found good. `caller` is the key that
    /// made it, checked again. Changes `provider_batch`, `provider_batch_id`, `provider_input_file_id` and `model` of the
    /// record.
    pub async fn step_day_batch(
        &self,
        caller: &Principal,
        batch: &mut BatchRecord,
        rows: &impl RowSink,
    ) -> Result<DayStep, NotNow> {
        todo!()
    }
}
