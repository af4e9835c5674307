//! Runs batches: every proxy looks for batches whose next step is due, leases what it does, and lets others have the rest. What
//! a proxy held when it died is free again once its lease is over; nothing else knows who runs what.
//!
//! - `validate`: the input becomes rows
//! - `group`: some rows of a batch in progress are begun, at its pace
//! - `row`, `input_row`, `verdict`, `output_line`: one row is asked, and what becomes of it
//! - `day`: a step of a batch that a provider runs
//! - `result_files`: the end of a batch, its output and error files
//! - `notice`: whoever wants to know is told of the end
//! - `under_way`: what this process has begun, within bounds
//! - `turns`: how much is done at once for one tenant
//! - `outage`: whose leases may have ended while Postgres was away
//!
//! It lives on the threads of the background, of lower priority than those that serve, and has connections of its own.

mod day;
mod group;
mod input_row;
mod notice;
mod outage;
mod output_line;
mod result_files;
mod row;
pub(crate) mod turns;
mod under_way;
mod validate;
mod verdict;

use super::day::DayBatches;
use super::day::NotNow;
use super::files::{FilesAway, ManagedFiles};
use crate::batches::leases::{self, DueBatch};
use crate::batches::record::{BatchRecord, Mode};
use crate::batches::records::BatchRecords;
use crate::batches::rows;
use crate::context::metrics::batches::BatchMeters;
use crate::engine::{Engine, Services};
use crate::journal::ship::Pricer;
use crate::runtime::small_pool::PostgresAway;
use crate::runtime::tenant_share::Tenant;
use chrono::Utc;
use outage::Outage;
use shared::batches::{BatchError, BatchStatus};
use shared::settings::{BatchSettings, Database};
use shared::telemetry::{Brief, LogLimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use turns::Turns;
use under_way::UnderWay;
use uuid::Uuid;
use validate::Validation;

/// Between two looks for batches that are due.
const TICK: Duration = Duration::from_millis(500);
/// While Postgres is away.
const MAX_TICK: Duration = Duration::from_secs(5);
/// Between two extensions of leases, and between two tries of one.
const EXTEND_EVERY: Duration = Duration::from_secs(20);
const EXTEND_AGAIN: Duration = Duration::from_secs(1);
const SURVEY_EVERY: Duration = Duration::from_secs(15);
/// Batches that are looked at in one go.
const MAX_DUE: i64 = 100;
/// Steps of batches at once, in all and of one tenant: inputs that are read, files that are written.
pub(crate) const STEPS: usize = 3;
const STEPS_OF_ONE: usize = 2;
/// The same of those that ask a provider, who may take long to answer.
const PROVIDER_STEPS: usize = 4;
const PROVIDER_STEPS_OF_ONE: usize = 2;
/// After a step that could not be done.
const STEP_AGAIN: Duration = Duration::from_secs(5);

/// A process that leaves lets rows end that it has begun, however long one may take: else each of them would be asked, and paid
/// for, again. The rest is for storing them.
pub const MAX_DRAIN_TIME: Duration = row::MAX_REQUEST_TIME.saturating_add(Duration::from_secs(30));

/// Postgres or the log store is away: what was being done is done again later.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a step of a batch could not be done now")]
struct StepFailure;

impl StepFailure {
    fn because(error: impl std::fmt::Display) -> Self {
        static FAILED: LogLimit = LogLimit::new();
        if let Some(skipped) = FAILED.pass() {
            tracing::warn!(error = %Brief(error), skipped, "a step of a batch could not be done now");
        }
        Self
    }
}

impl From<PostgresAway> for StepFailure {
    fn from(_: PostgresAway) -> Self {
        Self
    }
}

impl From<FilesAway> for StepFailure {
    fn from(_: FilesAway) -> Self {
        Self
    }
}

impl From<NotNow> for StepFailure {
    fn from(_: NotNow) -> Self {
        Self
    }
}

impl From<tokio_postgres::Error> for StepFailure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::because(shared::db::explain(&error))
    }
}

pub struct BatchRunner {
    services: Services,
    engine: Arc<Engine>,
    /// Runs batches of mode `24h`.
    day: DayBatches,
    files: Arc<ManagedFiles>,
    records: BatchRecords,
    database: Database,
    settings: BatchSettings,
    pricer: Pricer,
    meters: Arc<BatchMeters>,
    /// Whose leases are this process's.
    owner: Uuid,
    under_way: Arc<UnderWay>,
    steps: Arc<Turns>,
    provider_steps: Arc<Turns>,
    notices: Arc<Turns>,
    /// As `outage` says.
    takes_over: AtomicBool,
}

impl BatchRunner {
    pub fn new(
        services: &Services,
        (engine, day): (Arc<Engine>, DayBatches),
        files: Arc<ManagedFiles>,
        database: Database,
        settings: BatchSettings,
    ) -> Arc<Self> {
        let pricer = Pricer::new(services.admitter.tariff.sources.clone(), services.snapshot.clone());
        let meters = services.metrics.batches.clone();
        Arc::new(Self {
            services: services.clone(),
            day,
            files,
            records: BatchRecords::new(database.clone()),
            database,
            settings,
            pricer,
            under_way: Arc::new(UnderWay::new(meters.clone())),
            takes_over: AtomicBool::new(false),
            meters,
            owner: Uuid::now_v7(),
            steps: Turns::new(STEPS, STEPS_OF_ONE),
            provider_steps: Turns::new(PROVIDER_STEPS, PROVIDER_STEPS_OF_ONE),
            notices: notice::turns(),
            engine,
        })
    }

    /// Begins nothing more once the process is to end; what is under way goes on as long as the process does.
    pub async fn run(self: Arc<Self>, mut shutdown: watch::Receiver<bool>) {
        let mut tick = TICK;
        let mut surveyed: Option<Instant> = None;
        let mut outage = Outage::default();
        loop {
            tokio::select! {
                _ = shutdown.changed() => return,
                () = tokio::time::sleep(tick) => {}
            }
            if *shutdown.borrow() {
                return;
            }
            if !self.services.snapshot.is_loaded() {
                continue;
            }
            tick = match self.look(&mut outage).await {
                Ok(()) => TICK,
                Err(PostgresAway) => (tick * 2).min(MAX_TICK),
            };
            if surveyed.is_none_or(|at| at.elapsed() >= SURVEY_EVERY)
                && let Ok((counts, late)) = leases::survey(&self.records.pool).await
            {
                surveyed = Some(Instant::now());
                self.meters.survey(&counts, late);
            }
        }
    }

    async fn look(self: &Arc<Self>, outage: &mut Outage) -> Result<(), PostgresAway> {
        let due = leases::due(&self.records.pool, MAX_DUE).await;
        outage.saw(due.is_ok(), Instant::now());
        self.takes_over.store(!outage.is_settling(Instant::now()), Relaxed);
        let mut due = due?;
        let held = self.under_way.batches();
        if !held.is_empty() {
            let cancelled = leases::cancelled(&self.records.pool, &held).await?;
            cancelled.into_iter().for_each(|id| self.under_way.cancel(id));
        }
        // Whoever has little under way comes before whoever has much: there may not be room for all.
        due.sort_by_cached_key(|due| self.has_under_way(due.tenant));
        for due in due {
            if !self.services.authenticator.serves(due.tenant.workspace) {
                continue;
            }
            match due.is_running {
                true => self.begin_group(due.id).await?,
                false => self.begin_step(due).await?,
            }
        }
        self.send_notices().await
    }

    /// Whether leases that ended are free for others.
    fn takes_over(&self) -> bool {
        self.takes_over.load(Relaxed)
    }

    /// Rows and steps of a tenant's organisation, and of the tenant itself.
    fn has_under_way(&self, tenant: Tenant) -> (usize, usize) {
        let parts = [self.under_way.rows_of(tenant), self.steps.of(tenant), self.provider_steps.of(tenant)];
        parts.into_iter().fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }

    async fn begin_step(self: &Arc<Self>, due: DueBatch) -> Result<(), PostgresAway> {
        let turns = if due.is_at_provider { &self.provider_steps } else { &self.steps };
        let Some(turn) = turns.take(due.tenant) else { return Ok(()) };
        let Some(batch) = leases::lease_batch(&self.records.pool, due.id, self.owner, self.takes_over()).await? else {
            return Ok(());
        };
        let (runner, held) = (self.clone(), self.under_way.hold_batch(due.id));
        tokio::spawn(async move {
            let (id, had) = (batch.id, batch.status);
            let wait = runner.step(batch).await.unwrap_or(STEP_AGAIN);
            let release = || leases::release_batch(&runner.records.pool, id, runner.owner, had, wait);
            persist(release).await;
            drop((held, turn));
        });
        Ok(())
    }

    /// The next step of a leased batch; tells how long the one after it waits.
    async fn step(&self, batch: BatchRecord) -> Result<Duration, StepFailure> {
        match (batch.mode, batch.status) {
            (_, BatchStatus::Validating) => {
                match validate::validate(&self.database, &self.files, &batch, self.owner).await? {
                    Validation::Good | Validation::Lost => {}
                    Validation::Bad(errors) => self.fail(batch, errors).await?,
                }
                Ok(Duration::ZERO)
            }
            (Mode::Day, BatchStatus::Finalizing) => self.finish_day(&batch).await,
            (Mode::Immediate, BatchStatus::Finalizing | BatchStatus::Cancelling) => self.finish(&batch).await,
            (Mode::Day, BatchStatus::InProgress | BatchStatus::Cancelling) => self.step_day(batch).await,
            // Rows that are to be run, or nothing at all.
            _ => Ok(Duration::ZERO),
        }
    }

    /// Waits for rows under way, and then writes what there is.
    async fn finish(&self, batch: &BatchRecord) -> Result<Duration, StepFailure> {
        const LOOK_AGAIN: Duration = Duration::from_secs(1);
        if !rows::close_rows(&self.records.pool, batch.id, self.takes_over()).await? {
            return Ok(LOOK_AGAIN);
        }
        result_files::finish_batch(&self.records.pool, &self.files, batch, self.owner).await?;
        Ok(Duration::ZERO)
    }

    /// It cannot be run at all.
    async fn fail(&self, mut batch: BatchRecord, errors: Vec<BatchError>) -> Result<(), StepFailure> {
        let before = batch.status;
        let now = Utc::now();
        if !batch.become_status(BatchStatus::Failed, now) {
            return Ok(());
        }
        batch.errors = errors;
        batch.completion_next_at = batch.completion_url.as_ref().map(|_| now);
        if self.records.save(&batch, before, self.owner).await? {
            rows::delete_rows(&self.records.pool, batch.id).await?;
        }
        Ok(())
    }

    /// Keeps what is under way leased, for as long as the process runs.
    pub async fn extend_leases(self: Arc<Self>) {
        let mut pause = EXTEND_EVERY;
        loop {
            tokio::time::sleep(pause).await;
            let held = self.under_way.batches();
            // Once Postgres is back this must come before others look for what nobody holds (`outage`).
            pause = match held.is_empty() || leases::extend(&self.records.pool, self.owner, &held).await.is_ok() {
                true => EXTEND_EVERY,
                false => EXTEND_AGAIN,
            };
        }
    }
}

/// Does what must be done however long Postgres is away, within reason: whoever gives up leaves it to the next holder.
async fn persist<T, F: Future<Output = Result<T, PostgresAway>>>(work: impl Fn() -> F) -> Option<T> {
    const MAX_PERSIST_TIME: Duration = Duration::from_secs(3600);
    let began = Instant::now();
    let mut wait = Duration::from_millis(200);
    loop {
        match work().await {
            Ok(done) => return Some(done),
            Err(PostgresAway) if began.elapsed() > MAX_PERSIST_TIME => return None,
            Err(PostgresAway) => tokio::time::sleep(wait).await,
        }
        wait = (wait * 2).min(Duration::from_secs(5));
    }
}
