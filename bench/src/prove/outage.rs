//! Postgres away for a minute, then admin away: applications with a known key notice nothing.

use super::load::{Load, Tally};
use super::report::{Report, Spread};
use super::stack::Stack;
use crate::process::Signal;
use anyhow::bail;
use http::StatusCode;
use serde_json::json;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
const CALM: Duration = Duration::from_secs(3);

pub async fn prove(away: Duration, report: &mut Report) -> anyhow::Result<()> {
    let mut stack = Stack::start(&[]).await?;
    let caller = stack.caller()?;
    let load = Load::start(&caller);
    tokio::time::sleep(CALM).await;

    stack.crash_postgres()?;
    let (unknown, ready) = watch_the_outage(&stack, away).await?;
    report.promise("unknown keys are refused with 401 all the while", unknown.iter().all(|status| *status == 401));
    report.promise("readiness stays 200", ready.iter().all(|status| *status == 200));
    report.figure("Postgres was away for", format!("{} s", away.as_secs()));

    stack.resume_postgres()?;
    let resumed = Instant::now();
    let key = stack.new_key().await?;
    let newcomer = stack.caller_with(&key)?;
    until(async || Ok(newcomer.status(newcomer.chat(&json!({}), false)).await? == StatusCode::OK)).await?;
    report.figure("a key made after the outage works after", seconds(resumed.elapsed()));
    report.promise("a key made after the outage works without a restart", !stack.proxy.has_ended()?);
    let mut times = Vec::new();
    for _ in 0..20 {
        times.push(propagation(&stack).await?);
    }
    if let Some(spread) = Spread::of(times) {
        report.figure("further new keys work after", spread);
        report.promise("further new keys work within a second", spread.max < Duration::from_secs(1));
    }
    no_failure(&load.stop().await?, report, "Postgres was away");

    let load = Load::start(&caller);
    stack.admin.signal(Signal::KILL)?;
    stack.admin.ended_within(PATIENCE).await?;
    let control_plane = "/v1/api-keys/self";
    until(async || Ok(caller.status_of(control_plane).await? == StatusCode::SERVICE_UNAVAILABLE)).await?;
    report.promise("without admin the control plane answers 503", true);
    tokio::time::sleep(CALM).await;
    let still = caller.status_of(control_plane).await?;
    report.promise("and keeps answering 503", still == StatusCode::SERVICE_UNAVAILABLE);
    stack.restart_admin().await?;
    until(async || Ok(caller.status_of(control_plane).await? == StatusCode::OK)).await?;
    report.promise("with admin back the control plane answers again", true);
    no_failure(&load.stop().await?, report, "admin was away");
    stack.stop(report)
}

/// The statuses that an unknown key and readiness got, once a second.
async fn watch_the_outage(stack: &Stack, away: Duration) -> anyhow::Result<(Vec<StatusCode>, Vec<StatusCode>)> {
    let stranger = stack.caller_with("pk_nobody_has_ever_seen_this_key_0000000000000")?;
    let (mut unknown, mut ready) = (Vec::new(), Vec::new());
    let end = Instant::now() + away;
    while Instant::now() < end {
        unknown.push(stranger.status(stranger.chat(&json!({}), false)).await?);
        ready.push(stack.health().status_of("/readyz").await?);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok((unknown, ready))
}

/// From the commit of a new key to its first accepted request.
async fn propagation(stack: &Stack) -> anyhow::Result<Duration> {
    let key = stack.new_key().await?;
    let committed = Instant::now();
    let caller = stack.caller_with(&key)?;
    until(async || Ok(caller.status(caller.chat(&json!({}), false)).await? == StatusCode::OK)).await?;
    Ok(committed.elapsed())
}

fn no_failure(tally: &Tally, report: &mut Report, when: &str) {
    report.figure(&format!("requests while {when}"), tally.answered);
    report.figure(&format!("streams while {when}"), tally.streams);
    for (why, times) in &tally.failed {
        report.figure("failed", format!("{times} × {why}"));
    }
    let is_clean = tally.failures() == 0 && tally.refused == 0 && tally.reconnected == 0;
    report.promise(&format!("no request with a known key fails while {when}"), is_clean && tally.answered > 0);
}

async fn until(is_true: impl AsyncFn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_true().await? {
        if Instant::now() > end {
            bail!("waited {} s in vain", PATIENCE.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
