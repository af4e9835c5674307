//! Background jobs: keys expire, the audit trail is chained, exports are written. Every admin runs them, and any
//! number of them together run each job as often as one would: an advisory lock says who works now, a row says when it
//! is due. Lock, work and row are one transaction, so a job that fails or whose admin dies did nothing, and a second
//! run finds nothing left to do. A job is one file and two lines here. One that asks others over the network does that after
//! its transaction (`ASKING`).

mod chain_audit;
mod delete_objects;
mod erase_late;
mod expire;
mod expire_batches;
mod expire_cache_purges;
mod expire_exports;
mod expire_files;
mod expire_logs;
mod expire_metrics;
mod expire_rejected;
mod expire_sessions;
mod export_logs;
mod log_days;
mod make_data_keys;
pub mod outbox;
mod purge_tombstones;
mod refresh_mcp_tokens;
mod remind_of_keys;
mod reset_budgets;
mod reset_policies;
mod roll_up;
mod rotate_keys;
mod serve_versions;
mod sync_mcp;
mod verify_figures;
mod watch_budgets;
mod watch_policies;

use crate::app::App;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use shared::supervisor::Task;
use std::panic::AssertUnwindSafe;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::{Client, Transaction};

pub static JOBS: &[Job] = &[
    chain_audit::JOB,
    delete_objects::JOB,
    erase_late::JOB,
    expire_batches::JOB,
    expire_cache_purges::JOB,
    expire_exports::JOB,
    expire_files::JOB,
    expire::KEYS,
    expire::PROVIDERS,
    expire::SECRETS,
    expire_logs::JOB,
    expire_metrics::JOB,
    expire_rejected::JOB,
    expire_sessions::JOB,
    export_logs::JOB,
    log_days::JOB,
    make_data_keys::JOB,
    purge_tombstones::JOB,
    refresh_mcp_tokens::JOB,
    remind_of_keys::JOB,
    reset_budgets::JOB,
    reset_policies::JOB,
    roll_up::JOB,
    rotate_keys::JOB,
    serve_versions::JOB,
    sync_mcp::JOB,
    verify_figures::JOB,
    watch_budgets::JOB,
    watch_policies::JOB,
];

/// Any number, as long as it is always this one: the lock of a job is this and the hash of its name.
const LOCK: i32 = 0x706f_7274;

/// The longest until a job is looked at again, so that one whose admin died, or whose time was changed, is not forgotten.
const LOOK: Duration = Duration::from_secs(60);
/// The shortest pause after a failure.
const RECOVER: Duration = Duration::from_secs(5);

pub struct Job {
    pub name: &'static str,
    pub every: Duration,
    pub work: JobWork,
}

/// Those whose memory depends on what tenants log. That they begin is noted apart from their work: one that gets its admin killed
/// must not be begun by every admin in turn.
const WATCHED: [&str; 3] = ["export_logs", "roll_up", "verify_figures"];
/// Runs without an end after which a watched job waits, the first pause, and the longest.
const MAX_UNFINISHED_RUNS: i32 = 3;
const FIRST_PAUSE: Duration = Duration::from_secs(300);
const MAX_PAUSE: Duration = Duration::from_secs(6 * 3600);

/// How long a watched job waits after it was begun for the last time.
fn unfinished_pause(runs: i32) -> Duration {
    match runs - MAX_UNFINISHED_RUNS {
        ..0 => Duration::ZERO,
        more => (FIRST_PAUSE * 2_u32.pow(more.unsigned_abs().min(10))).min(MAX_PAUSE),
    }
}

/// Must be idempotent, and small enough for one transaction: what is left is done in the next.
pub type JobWork = for<'a> fn(&'a App, &'a Transaction<'_>) -> BoxFuture<'a, anyhow::Result<JobRun>>;

/// What a job does once its transaction is over and its connection given back: what it asks others for. It claims rows for
/// itself, since another admin may be at it too, and tells how many.
pub type JobAsk = for<'a> fn(&'a App) -> BoxFuture<'a, anyhow::Result<u64>>;

const ASKING: [(&str, JobAsk); 2] = [("refresh_mcp_tokens", refresh_mcp_tokens::ask), ("sync_mcp", sync_mcp::ask)];

/// What a run did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobRun {
    pub items: u64,
    /// False when there is more to do than fits into one run: the next follows at once.
    pub is_all: bool,
}

/// The outcome of checking whether a job is due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JobOutcome {
    Ran(JobRun),
    /// It ran lately, here or elsewhere.
    NotDue {
        wait: Duration,
    },
    /// Another admin is at it.
    Elsewhere,
}

/// A turn of a job is bounded by the time limits of its statements; between two it looks at least once a minute.
const SILENCE: Duration = Duration::from_secs(900);
const OUTBOX: Task = Task::periodic("outbox", SILENCE);

/// Starts all jobs, and the sending of the mail that they write. They end when the set is dropped.
pub fn start(app: &App) -> JoinSet<()> {
    let mut running = JoinSet::new();
    for job in JOBS {
        // A series that appears only with its first failure hides that failure from `increase`.
        app.metrics.know_job(job.name);
        let (owned, task) = (app.clone(), Task::periodic(job.name, SILENCE));
        running.spawn(app.supervisor.clone().keep(task, move || keep_running(owned.clone(), job)));
    }
    let sending = app.clone();
    running.spawn(app.supervisor.clone().keep(OUTBOX, move || outbox::keep_sending(sending.clone())));
    running
}

async fn keep_running(app: App, job: &'static Job) {
    loop {
        let turn = attempt(&app, job).await;
        tokio::time::sleep(pause(job, &turn)).await;
    }
}

fn pause(job: &Job, turn: &anyhow::Result<JobOutcome>) -> Duration {
    match turn {
        Ok(JobOutcome::Ran(done)) if !done.is_all => Duration::ZERO,
        Ok(JobOutcome::Ran(_) | JobOutcome::Elsewhere) => job.every.min(LOOK),
        Ok(JobOutcome::NotDue { wait }) => (*wait).min(LOOK),
        Err(_) => job.every.clamp(RECOVER, LOOK),
    }
}

/// Runs the job if it is due and nobody else is at it.
pub async fn attempt(app: &App, job: &Job) -> anyhow::Result<JobOutcome> {
    let start = Instant::now();
    let turn = match in_transaction(app, job).await {
        Ok(JobOutcome::Ran(done)) => ask_others(app, job, done).await.map(JobOutcome::Ran),
        turn => turn,
    };
    match &turn {
        Ok(JobOutcome::Ran(done)) => {
            app.metrics.job_duration.with_label_values(&[job.name]).observe(start.elapsed().as_secs_f64());
            if done.items > 0 {
                tracing::info!(name = job.name, items = done.items, "a job did its work");
            }
        }
        Ok(JobOutcome::NotDue { .. } | JobOutcome::Elsewhere) => {}
        Err(error) => {
            app.metrics.job_failures.with_label_values(&[job.name]).inc();
            tracing::error!(name = job.name, error = format!("{error:#}"), "a job failed and will be tried again");
        }
    }
    turn
}

/// The second half of a job that has one, with what the first did.
async fn ask_others(app: &App, job: &Job, done: JobRun) -> anyhow::Result<JobRun> {
    let Some((_, ask)) = ASKING.iter().find(|(name, _)| *name == job.name) else { return Ok(done) };
    let asked = AssertUnwindSafe(ask(app)).catch_unwind().await;
    let asked = asked.unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked; the panic's own message stands above")))?;
    Ok(JobRun { items: done.items + asked, ..done })
}

async fn in_transaction(app: &App, job: &Job) -> anyhow::Result<JobOutcome> {
    let mut db = app.db.get().await?;
    let is_watched = WATCHED.contains(&job.name);
    if is_watched && let Some(turn) = begin_watched(&mut db, job).await? {
        return Ok(turn);
    }
    let tx = db.transaction().await?;
    // A bug in one run must not be the end of all later ones.
    let turn = AssertUnwindSafe(run_if_due(app, job, &tx)).catch_unwind().await;
    let turn = turn.unwrap_or_else(|_| Err(anyhow::anyhow!("it panicked; the panic's own message stands above")));
    // Awaited either way: whoever looks next must not find the lock of a run that is over.
    if matches!(turn, Ok((JobOutcome::Ran(_), _))) {
        tx.commit().await?;
    } else {
        // When this fails the session is gone, and the lock with it; the outcome tells more.
        let _ = tx.rollback().await;
        if is_watched && turn.is_err() {
            // It has ended, if not well.
            db.execute("UPDATE jobs SET unfinished_runs = 0 WHERE name = $1", &[&job.name]).await?;
        }
    }
    let (turn, last_success) = turn?;
    if let Some(last_success) = last_success {
        app.metrics.job_last_success.with_label_values(&[job.name]).set(last_success);
    }
    Ok(turn)
}

/// Notes that a watched job begins, if it is due. Else why it is not run now.
async fn begin_watched(db: &mut Client, job: &Job) -> anyhow::Result<Option<JobOutcome>> {
    const LOCK_JOB: &str = "SELECT pg_try_advisory_xact_lock($1, hashtext($2))";
    const FOUND: &str = "SELECT extract(epoch FROM next_run_at - clock_timestamp())::float8 AS wait, unfinished_runs,
                                coalesce(extract(epoch FROM clock_timestamp() - begun_at), 0)::float8 AS ago
                         FROM jobs WHERE name = $1";
    const BEGUN: &str = "INSERT INTO jobs (name, next_run_at, last_success_at, unfinished_runs, begun_at)
                         VALUES ($1, clock_timestamp(), to_timestamp(0), 1, clock_timestamp())
                         ON CONFLICT (name) DO UPDATE SET unfinished_runs = jobs.unfinished_runs + 1,
                                                          begun_at = clock_timestamp()";
    let tx = db.transaction().await?;
    if !tx.query_one(LOCK_JOB, &[&LOCK, &job.name]).await?.try_get::<_, bool>(0)? {
        return Ok(Some(JobOutcome::Elsewhere));
    }
    if let Some(row) = tx.query_opt(FOUND, &[&job.name]).await? {
        if row.try_get::<_, f64>("wait")? > 0.0 {
            // The run that follows says for how long, and when it last succeeded.
            return Ok(None);
        }
        let (runs, ago): (i32, f64) = (row.try_get("unfinished_runs")?, row.try_get("ago")?);
        let wait = unfinished_pause(runs).saturating_sub(Duration::from_secs_f64(ago.max(0.0)));
        anyhow::ensure!(
            wait.is_zero(),
            "it was begun {runs} times without an end, as if its admin was killed each time; it waits for {} s",
            wait.as_secs()
        );
    }
    tx.execute(BEGUN, &[&job.name]).await?;
    tx.commit().await?;
    Ok(None)
}

/// What came of it, and when the job last succeeded, here or on another admin, as far as that was seen.
async fn run_if_due(app: &App, job: &Job, tx: &Transaction<'_>) -> anyhow::Result<(JobOutcome, Option<f64>)> {
    // The timeouts free the lock when this admin hangs instead of dying.
    const BEGIN: &str = "SELECT set_config('statement_timeout', '60s', true), set_config('lock_timeout', '10s', true),
                                set_config('idle_in_transaction_session_timeout', '60s', true),
                                pg_try_advisory_xact_lock($1, hashtext($2)) AS is_ours";
    // Not now(): this transaction may have begun before the run that it must see.
    const DUE: &str = "SELECT extract(epoch FROM next_run_at - clock_timestamp())::float8 AS wait,
                              extract(epoch FROM last_success_at)::float8 AS succeeded FROM jobs WHERE name = $1";
    const SUCCEEDED: &str = "INSERT INTO jobs (name, next_run_at, last_success_at)
                             VALUES ($1, clock_timestamp() + make_interval(secs => $2), clock_timestamp())
                             ON CONFLICT (name) DO UPDATE SET next_run_at = EXCLUDED.next_run_at, unfinished_runs = 0,
                                                              last_success_at = EXCLUDED.last_success_at
                             RETURNING extract(epoch FROM last_success_at)::float8";
    if !tx.query_one(BEGIN, &[&LOCK, &job.name]).await?.try_get::<_, bool>("is_ours")? {
        return Ok((JobOutcome::Elsewhere, None));
    }
    if let Some(row) = tx.query_opt(DUE, &[&job.name]).await? {
        let wait: f64 = row.try_get("wait")?;
        if wait > 0.0 {
            let turn = JobOutcome::NotDue { wait: Duration::from_secs_f64(wait.min(LOOK.as_secs_f64())) };
            return Ok((turn, row.try_get("succeeded")?));
        }
    }
    let done = (job.work)(app, tx).await?;
    let next = if done.is_all { job.every.as_secs_f64() } else { 0.0 };
    let succeeded = tx.query_one(SUCCEEDED, &[&job.name, &next]).await?.try_get(0)?;
    Ok((JobOutcome::Ran(done), Some(succeeded)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn jobs_have_names_of_their_own() {
        let names: BTreeSet<_> = JOBS.iter().map(|job| job.name).collect();
        assert_eq!(names.len(), JOBS.len());
    }

    #[test]
    fn a_job_that_never_ends_waits_ever_longer() {
        let pauses = [0, 2, 3, 4, 9, i32::MAX].map(|runs| unfinished_pause(runs).as_secs());
        assert_eq!(pauses, [0, 0, 300, 600, 19_200, 21_600]);
        let known = |name: &str| JOBS.iter().any(|job| job.name == name);
        assert!(WATCHED.iter().all(|name| known(name)) && ASKING.iter().all(|(name, _)| known(name)));
    }

    #[test]
    fn a_job_is_looked_at_again_at_once_when_work_is_left_and_within_a_minute_whatever_happened() {
        let ran = |is_all| Ok(JobOutcome::Ran(JobRun { items: 1, is_all }));
        let failed = || Err(anyhow::anyhow!("no"));
        let (often, seldom) = (Duration::from_secs(2), Duration::from_secs(3600));
        for (every, turn, expected) in [
            (often, ran(false), Duration::ZERO),
            (often, ran(true), often),
            (often, Ok(JobOutcome::Elsewhere), often),
            (often, Ok(JobOutcome::NotDue { wait: Duration::from_secs(1) }), Duration::from_secs(1)),
            (often, failed(), RECOVER),
            (seldom, ran(true), LOOK),
            (seldom, Ok(JobOutcome::Elsewhere), LOOK),
            (seldom, Ok(JobOutcome::NotDue { wait: seldom }), LOOK),
            (seldom, failed(), LOOK),
        ] {
            let job = Job { name: "x", every, work: purge_tombstones::JOB.work };
            assert_eq!(pause(&job, &turn), expected, "{every:?} {turn:?}");
        }
    }
}
