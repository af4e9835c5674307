//! From an earlier release to this one, under load: objects of every kind are made through the old programs' interface, the schema
//! is migrated while those serve, an export reads the logs and administrators ask for figures. No table that calls need is
//! locked for longer than a second, no call fails, no log is lost, every field of every object is answered as it was, what was
//! sealed still opens, and figures are what the logs add up to all the while. Where the old programs run on the new schema, both
//! serve together for a while, and the old ones alone again (a downgrade).

mod figures;
mod installation;
mod locks;
pub mod objects;
mod release;

use super::client::{Caller, chat};
use super::log_rows::{self, Logs};
use super::report::Report;
use crate::open_loop::{OpenLoop, Outcome};
use anyhow::{Context as _, ensure};
use chrono::Utc;
use figures::{Days, FigureWatch, Figures};
use installation::{Installation, Programs, Running, Tenant};
use locks::LockWatch;
use objects::Objects;
use release::Release;
use serde_json::json;
use std::collections::BTreeSet;
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
/// Longer than a proxy holds a log back.
const QUIET: Duration = Duration::from_secs(3);

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
    let callers = tenant.callers_at(&old)?;
    let mut objects = Objects::make(&callers, tenant.names()).await?;
    let database = installation.database().await?;
    let days = log_rows::days_before(Utc::now().date_naive(), DAYS);
    let (organisation, workspaces) = (tenant.organisation, [tenant.workspace]);
    log_rows::write(&database, &Logs { rows, organisation, workspaces: &workspaces, days: &days }).await?;
    let period = Days { first: days[0], last: *days.last().context("there are days")? };
    let figures = Figures::of_logs(&database, tenant.workspace, &period).await?;
    report.figure("figures of the days before", figures);
    // Made and filled before anything is read: what the old programs do by themselves is done by then.
    objects.read(&callers).await?;
    tell(&objects, release, report)?;
    let before = until_quiet(&database, &tenant).await?;

    let load = Load::start(tenant.caller_at(&old)?);
    let locks = LockWatch::start(installation.database().await?);
    let watch = FigureWatch::start(callers.administrator.clone(), tenant.workspace, period.clone(), figures);
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
    let watch_new = FigureWatch::start(tenant.administrator_at(&new)?, tenant.workspace, period.clone(), figures);
    if release.runs_on_newer_schema {
        let (to_old, to_new) = (tenant.caller_at(&old)?, tenant.caller_at(&new)?);
        let (by_old, by_new) = tokio::try_join!(call(&to_old, STRETCH), call(&to_new, STRETCH))?;
        outcome.add(by_old);
        outcome.add(by_new);
    }
    for (what, watched) in
        [("while the schema changed", watch.stop().await?), ("by the new programs", watch_new.stop().await?)]
    {
        report.figure(&format!("figures were asked for {what}"), format!("{} times", watched.asked));
        watched.wrong.iter().take(5).for_each(|wrong| report.figure("wrong", wrong));
        report.promise(&format!("figures are right {what}"), watched.wrong.is_empty());
    }
    old.stop().await?;
    outcome.add(call(&tenant.caller_at(&new)?, STRETCH).await?);
    let mut tried = keep_promises(&objects, &tenant, &new, "after the upgrade", report).await?;
    if release.runs_on_newer_schema {
        new.stop().await?;
        let old = installation.run(Programs::Of(release), 2).await?;
        outcome.add(call(&tenant.caller_at(&old)?, STRETCH).await?);
        tried += keep_promises(&objects, &tenant, &old, "by the old programs on the new schema", report).await?;
        old.stop().await?;
        new = installation.run(Programs::Current, 3).await?;
    }
    report.figure("calls", outcome.calls);
    outcome.failed.iter().for_each(|(why, times)| report.figure("failed", format!("{times} × {why}")));
    report.promise("no call failed", outcome.failures() == 0);

    let expected = before + outcome.calls - outcome.failures() + tried;
    let found = until_stored(&database, &tenant, expected).await?;
    report.figure("logs", format!("{found} of {expected}"));
    report.promise("no log is lost", found == expected);
    let code = installation.verify_figures(days[0]).await?;
    report.promise("figures are what the logs add up to", matches!(code, Some(0 | 3)));
    ensure!(installation.verify_figures(days[0]).await? == Some(0), "figures that were built again are right");
    let answered = Figures::answered(&tenant.administrator_at(&new)?, tenant.workspace, &period).await?;
    report
        .promise("figures are right after they were verified", answered.is_some_and(|answered| answered.is(&figures)));
    new.stop().await?;
    installation.remove()
}

/// What was made. A kind that nobody could make would prove nothing.
fn tell(objects: &Objects, release: &Release, report: &mut Report) -> anyhow::Result<()> {
    let list = |kinds: &BTreeSet<&'static str>| kinds.iter().copied().collect::<Vec<_>>().join(", ");
    report.figure("kinds made by the old programs", format!("{}: {}", objects.kinds().len(), list(objects.kinds())));
    if !objects.not_built().is_empty() {
        report.figure("kinds that this release has not", list(objects.not_built()));
    }
    let (answers, fields) = objects.size();
    report.figure("compared", format!("{fields} fields of {answers} answers"));
    ensure!(objects.kinds().len() >= release.kinds, "{} kinds, not {}", objects.kinds().len(), release.kinds);
    Ok(())
}

/// Every field of every object is as it was, and what was sealed still opens. Answers how many calls that took.
async fn keep_promises(
    objects: &Objects,
    tenant: &Tenant,
    running: &Running,
    when: &str,
    report: &mut Report,
) -> anyhow::Result<u64> {
    let differences = objects.differences(&tenant.callers_at(running)?).await?;
    differences.iter().take(40).for_each(|difference| report.figure("another", difference));
    report.promise(&format!("every field of every object is as it was, {when}"), differences.is_empty());
    let (mut refused, mut answered) = (Vec::new(), 0);
    for (what, name, header) in [
        ("a provider", "provider.slug", "x-gateway-provider"),
        ("a config with a version", "config.slug", "x-gateway-config"),
    ] {
        let (Some(value), Some(key)) = (objects.name(name), objects.name("key.key")) else {
            refused.push(format!("{what} was not made"));
            continue;
        };
        let value = if header == "x-gateway-provider" { format!("@{value}") } else { value.to_owned() };
        let caller = tenant.caller_with(running, key, (header, &value))?;
        let (status, text) = caller.answer(caller.chat(&json!({}), false)).await?;
        match status.is_success() {
            true => answered += 1,
            false => refused.push(format!("{what}: {status}: {text}")),
        }
    }
    refused.iter().for_each(|refused| report.figure("refused", refused));
    report.promise(&format!("keys, configs and sealed credentials work, {when}"), refused.is_empty());
    Ok(answered)
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

/// The logs that are stored once no more come.
async fn until_quiet(client: &Client, tenant: &Tenant) -> anyhow::Result<u64> {
    let mut last = stored(client, tenant).await?;
    loop {
        tokio::time::sleep(QUIET).await;
        let now = stored(client, tenant).await?;
        if now == last {
            return Ok(now);
        }
        last = now;
    }
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
