//! Postgres gone, frozen, and out of connections, under load: no call fails, and all logs arrive afterwards, once.

use super::report::Report;
use super::stack::Stack;
use super::tagged::{self, Tagged};
use crate::process::{self, Signal};
use anyhow::Context as _;
use std::fs;
use std::time::Duration;

const REMEMBERED: usize = 1_000_000;
/// More than the logs of a minute may ever need in memory.
const GROWTH: u64 = 64 << 20;

pub async fn prove(away: Duration, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::remembering(&[], REMEMBERED).await?;
    let load = Tagged::start(&stack.caller()?);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = stack.proxy.peak_memory()?;

    stack.crash_postgres()?;
    tokio::time::sleep(away).await;
    stack.resume_postgres()?;
    tokio::time::sleep(Duration::from_secs(5)).await;

    let frozen = processes(&stack).await?;
    frozen.iter().try_for_each(|pid| process::signal(*pid, Signal::STOP))?;
    tokio::time::sleep(away).await;
    frozen.iter().rev().try_for_each(|pid| process::signal(*pid, Signal::CONT))?;
    tokio::time::sleep(Duration::from_secs(5)).await;

    let taken = take_all_connections(&stack).await?;
    report.figure("connections taken from the others", taken.len());
    tokio::time::sleep(away).await;
    drop(taken);

    let outcome = load.stop().await?;
    let grown = stack.proxy.peak_memory()?.saturating_sub(before);
    report.figure("Postgres was away three times for", format!("{} s", away.as_secs()));
    report.figure("memory grew by", format!("{} MiB", grown >> 20));
    report.promise("no call failed", outcome.cut.is_empty());
    report.promise("memory stayed flat", grown < GROWTH);
    tagged::compare(&stack, &outcome, report).await?;
    stack.stop(report)
}

/// The server and all its children, the server first.
async fn processes(stack: &Stack) -> anyhow::Result<Vec<u32>> {
    let row = stack.database().await?.query_one("SELECT pg_backend_pid()", &[]).await?;
    let backend = u32::try_from(row.get::<_, i32>(0))?;
    let server = parent(backend).context("a backend has a parent")?;
    let all = fs::read_dir("/proc")?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let children = all.filter(|pid: &u32| parent(*pid) == Some(server));
    Ok([server].into_iter().chain(children).collect())
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Ends everybody's connections and opens new ones until there are no more.
async fn take_all_connections(stack: &Stack) -> anyhow::Result<Vec<tokio_postgres::Client>> {
    const END_OTHERS: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let mut taken = vec![stack.database().await?];
    while let Ok(connection) = stack.database().await {
        taken.push(connection);
    }
    taken[0].execute(END_OTHERS, &[]).await?;
    taken.truncate(1);
    while let Ok(connection) = stack.database().await {
        taken.push(connection);
    }
    Ok(taken)
}
