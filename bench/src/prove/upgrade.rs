//! From an earlier release to this one, under load: the schema is migrated while the old programs serve, an export reads the
//! logs and administrators ask for figures. No table that calls need is locked for longer than a second, no call fails, no log
//! or object is lost, and figures are what the logs add up to. Where the old programs run on the new schema, both serve
//! together for a while, and the old ones alone again (a downgrade).

mod installation;
mod locks;
mod objects;
mod release;

use super::client::{Caller, chat};
use super::log_rows::{self, Logs};
use super::report::Report;
use crate::open_loop::{OpenLoop, Outcome};
use anyhow::{Context as _, ensure};
use chrono::Utc;
use installation::{Installation, Programs, Tenant};
use locks::LockWatch;
use release::Release;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

/// Calls a second to each proxy.
const RATE: f64 = 40.0;
const CONNECTIONS: usize = 16;
const DAYS: u64 = 30;
/// How long old and new programs serve side by side, and each alone.
const STRETCH: Duration = Duration::from_secs(10);
/// How long an export holds the logs open while the migration begins.
const EXPORT: Duration = Duration::from_secs(5);
/// A piece of the load that goes on until it is stopped.
const PIECE: Duration = Duration::from_secs(2);
const MAX_LOCK_WAIT: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn prove(rows: u64, report: &mut Report) -> anyhow::Result<()> {
    for release in release::all()? {
        report.figure("from", &release.version);
        upgrade(&release, rows, report).await.with_context(|| format!("upgrading from {}", release.version))?;
    }
    Ok(())
}

async fn upgrade(release: &Release, rows: u64, report: &mut Report) -> anyhow::Result<()> {
    let installation = Installation::start().await?;
    let old = installation.run(Programs::Of(release), 0).await?;
    let tenant = installation.tenant(&old).await?;
    let made = objects::create(&tenant.administrator_at(&old)?).await?;
    report.figure(
        "objects made by the old programs",
        made.iter().map(|object| object.kind()).collect::<Vec<_>>().join(", "),
    );
    let database = installation.database().await?;
    let days = log_rows::days_before(Utc::now().date_naive(), DAYS);
    let (organisation, workspaces) = (tenant.organisation, [tenant.workspace]);
    log_rows::write(&database, &Logs { rows, organisation, workspaces: &workspaces, days: &days }).await?;
    let before = stored(&database, &tenant).await?;

    let load = Load::start(tenant.caller_at(&old)?);
    let locks = LockWatch::start(installation.database().await?);
    let export = tokio::spawn(export(installation.database().await?));
    let begun = Instant::now();
    installation.migrate().await?;
    report.figure("migrated in", format!("{:.1} s", begun.elapsed().as_secs_f64()));
    export.await??;
    let waited = locks.stop().await?;
    report.figure("longest waits for a table", &waited);
    report.promise("no table is waited for longer than a second", waited.longest() <= MAX_LOCK_WAIT);
    let mut outcome = load.stop().await?;

    let mut new = installation.run(Programs::Current, 1).await?;
    if release.runs_on_newer_schema {
        let (to_old, to_new) = (tenant.caller_at(&old)?, tenant.caller_at(&new)?);
        let (by_old, by_new) = tokio::try_join!(call(&to_old, STRETCH), call(&to_new, STRETCH))?;
        outcome.add(by_old);
        outcome.add(by_new);
    }
    old.stop().await?;
    outcome.add(call(&tenant.caller_at(&new)?, STRETCH).await?);
    let missing = objects::missing(&tenant.administrator_at(&new)?, &made).await?;
    missing.iter().for_each(|path| report.figure("missing", path));
    report.promise("no object is lost", missing.is_empty());
    if release.runs_on_newer_schema {
        new.stop().await?;
        let old = installation.run(Programs::Of(release), 2).await?;
        outcome.add(call(&tenant.caller_at(&old)?, STRETCH).await?);
        let missing = objects::missing(&tenant.administrator_at(&old)?, &made).await?;
        report.promise("the old programs serve again on the new schema, with every object", missing.is_empty());
        old.stop().await?;
        new = installation.run(Programs::Current, 3).await?;
    }
    report.figure("calls", outcome.calls);
    outcome.failed.iter().for_each(|(why, times)| report.figure("failed", format!("{times} × {why}")));
    report.promise("no call failed", outcome.failures() == 0);

    let expected = before + outcome.calls - outcome.failures();
    let found = until_stored(&database, &tenant, expected).await?;
    report.figure("logs", format!("{found} of {expected}"));
    report.promise("no log is lost", found == expected);
    let code = installation.verify_figures(days[0]).await?;
    report.promise("figures are what the logs add up to", matches!(code, Some(0 | 3)));
    ensure!(installation.verify_figures(days[0]).await? == Some(0), "figures that were built again are right");
    new.stop().await?;
    installation.remove()
}

/// Reads the logs as a long export does, in a transaction that stays open.
async fn export(mut client: Client) -> anyhow::Result<()> {
    let transaction = client.transaction().await?;
    transaction.batch_execute("SELECT count(*) FROM request_logs").await?;
    tokio::time::sleep(EXPORT).await;
    Ok(transaction.commit().await?)
}

/// Calls that go on until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    task: JoinHandle<anyhow::Result<Outcome>>,
}

impl Load {
    fn start(caller: Caller) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut outcome = call(&caller, PIECE).await?;
            while !stopped.load(Relaxed) {
                outcome.add(call(&caller, PIECE).await?);
            }
            Ok(outcome)
        });
        Self { stop, task }
    }

    async fn stop(self) -> anyhow::Result<Outcome> {
        self.stop.store(true, Relaxed);
        self.task.await?
    }
}

async fn call(caller: &Caller, length: Duration) -> anyhow::Result<Outcome> {
    let request = caller.post_bytes("/v1/chat/completions", &chat(&json!({}), false).to_string());
    let (address, warm_up) = (caller.address, Duration::ZERO);
    OpenLoop { address, request, rate: RATE, length, warm_up, connections: CONNECTIONS }.run().await
}

async fn stored(client: &Client, tenant: &Tenant) -> anyhow::Result<u64> {
    let row =
        client.query_one("SELECT count(*) FROM request_logs WHERE workspace_id = $1", &[&tenant.workspace]).await?;
    Ok(u64::try_from(row.try_get::<_, i64>(0)?)?)
}

async fn until_stored(client: &Client, tenant: &Tenant, expected: u64) -> anyhow::Result<u64> {
    let begun = Instant::now();
    loop {
        let found = stored(client, tenant).await?;
        if found >= expected || begun.elapsed() > PATIENCE {
            return Ok(found);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
