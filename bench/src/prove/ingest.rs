//! How many records a second go from the journal into Postgres. They are written by the proxy itself while Postgres is
//! away, and sent when it is back and nothing else happens.

use super::client::Caller;
use super::report::Report;
use super::stack::Stack;
use anyhow::{Context as _, bail, ensure};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Records a second.
const MIN_RATE: f64 = 10_000.0;
const CLIENTS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(300);

pub async fn prove(records: u64, with_bodies: bool, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[("LOG_BODIES", if with_bodies { "ON" } else { "OFF" })]).await?;
    let caller = stack.caller()?;
    stack.until_answered(&caller).await?;
    stack.crash_postgres()?;
    fill(&caller, records).await?;
    let health = stack.health();
    let noted = figure(&health, "gateway_journal_records_total").await?;
    report.figure("records that wait", noted);
    report.figure("they take", format!("{} bytes on disk", figure(&health, "gateway_journal_backlog_bytes").await?));
    let before = figure(&health, "gateway_journal_shipped_total").await?;
    stack.resume_postgres()?;
    // From the first batch to the last: not how long it takes until Postgres is up and somebody notices.
    let (begun, first) = until(&health, before + 1).await?;
    let busy = stack.proxy.cpu_seconds();
    let (ended, last) = until(&health, noted).await?;
    let busy = stack.proxy.cpu_seconds() - busy;
    let rate = (last - first) as f64 / (ended - begun).as_secs_f64();
    report.figure("stored", format!("{} records in {:.1} s", last - first, (ended - begun).as_secs_f64()));
    report.figure("records a second", format!("{rate:.0}"));
    let each = busy * 1e6 / (last - first).max(1) as f64;
    report.figure("processor time of the proxy for a record", format!("{each:.1} µs"));
    let rows = stack.database().await?.query_one("SELECT count(*) FROM request_logs", &[]).await?.get::<_, i64>(0);
    report.promise("every record is a row, once", u64::try_from(rows)? == noted);
    report.promise(&format!("at least {MIN_RATE:.0} records a second are stored"), rate >= MIN_RATE);
    stack.stop(report)
}

/// Makes so many calls.
async fn fill(caller: &Caller, records: u64) -> anyhow::Result<()> {
    let left = Arc::new(AtomicU64::new(records));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (caller, left) = (caller.clone(), left.clone());
        clients.spawn(async move {
            let mut connection = caller.connect().await?;
            while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                let answer = connection.send(caller.chat(&json!({}), false)).await?;
                ensure!(answer.status() == 200, "status {}", answer.status());
                answer.into_body().collect().await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

/// When so many were stored, and how many they were then.
async fn until(health: &Caller, stored: u64) -> anyhow::Result<(Instant, u64)> {
    let end = Instant::now() + PATIENCE;
    loop {
        let found = figure(health, "gateway_journal_shipped_total").await?;
        if found >= stored {
            return Ok((Instant::now(), found));
        }
        if Instant::now() > end {
            bail!("{found} of {stored} records were stored within {} s", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A number of the proxy's metrics.
pub async fn figure(health: &Caller, name: &str) -> anyhow::Result<u64> {
    let (_, text) = health.answer(health.request(Method::GET, "/metrics", super::client::empty())).await?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).context(name.to_owned())?;
    value.trim().parse().with_context(|| format!("{name} is {value}"))
}
