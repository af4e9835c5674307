//! A new process takes the listening sockets over while clients are busy, and a process that is told to leave drains:
//! nobody is refused, nothing is cut.

use super::load::{Load, stream};
use super::report::Report;
use super::stack::Stack;
use crate::process::Signal;
use anyhow::Context as _;
use http::StatusCode;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(60);
const CALM: Duration = Duration::from_secs(2);
/// Far longer than the drain should take: leaving only at its end would show.
const DRAIN_TIMEOUT: &str = "120";
const STREAMS: usize = 20;

pub async fn prove(report: &mut Report) -> anyhow::Result<()> {
    let mut stack = Stack::start(&[("DRAIN_TIMEOUT_S", DRAIN_TIMEOUT)]).await?;
    for round in 1..=3 {
        hand_over(&mut stack, round, report).await?;
    }
    drain(&mut stack, report).await?;
    stack.stop(report)
}

async fn hand_over(stack: &mut Stack, round: usize, report: &mut Report) -> anyhow::Result<()> {
    let load = Load::start(&stack.caller()?);
    tokio::time::sleep(CALM).await;
    let start = Instant::now();
    let successor = stack.start_proxy(&["--upgrade"])?;
    stack.proxy.signal(Signal::QUIT)?;
    let mut old = std::mem::replace(&mut stack.proxy, successor);
    let ended = old.ended_within(PATIENCE).await?;
    let took = start.elapsed();
    tokio::time::sleep(CALM).await;
    let tally = load.stop().await?;
    report
        .figure(&format!("hand-over {round}: the old process was gone after"), format!("{:.1} s", took.as_secs_f64()));
    report.figure("requests and streams meanwhile", format!("{} and {}", tally.answered, tally.streams));
    report.figure("kept connections closed between two requests", tally.reconnected);
    for (why, times) in &tally.failed {
        report.figure("failed", format!("{times} × {why}"));
    }
    report.promise("the old process leaves by itself, in order", ended.is_some_and(|status| status.success()));
    report.promise("the new process serves", !stack.proxy.has_ended()?);
    report.promise("no connection is refused", tally.refused == 0);
    report.promise("no request fails and no stream is cut", tally.failures() == 0 && tally.streams > 0);
    Ok(())
}

async fn drain(stack: &mut Stack, report: &mut Report) -> anyhow::Result<()> {
    let caller = stack.caller()?;
    let before = stack.mock.counts().in_flight;
    let mut streams = JoinSet::new();
    for _ in 0..STREAMS {
        let caller = caller.clone();
        streams.spawn(async move {
            let connection = caller.connect().await?;
            stream(&caller, connection, 30, Duration::from_millis(100)).await
        });
    }
    let begun = stack.mock.until(|counts| counts.in_flight >= before + STREAMS as u64);
    tokio::time::timeout(PATIENCE, begun).await.context("the streams did not begin")?;
    stack.proxy.signal(Signal::TERM)?;
    let asked_to_leave = Instant::now();
    let health = stack.health();
    while health.status_of("/readyz").await? != StatusCode::SERVICE_UNAVAILABLE {
        anyhow::ensure!(asked_to_leave.elapsed() < PATIENCE, "readiness never turned off");
    }
    let unready = asked_to_leave.elapsed();
    report.figure("readiness is 503 after", format!("{:.1} ms", unready.as_secs_f64() * 1000.0));
    report.promise("readiness is 503 at once, while streams run", unready < Duration::from_millis(250));
    while caller.connect().await.is_ok() {
        anyhow::ensure!(asked_to_leave.elapsed() < PATIENCE, "the listeners never closed");
    }
    report.promise("no new connection is taken", !stack.proxy.has_ended()?);
    let mut whole = 0;
    while let Some(read) = streams.join_next().await {
        match read? {
            Ok(()) => whole += 1,
            Err(error) => report.figure("failed", format!("{error:#}")),
        }
    }
    let idle = Instant::now();
    report.promise(&format!("all {STREAMS} running streams finish"), whole == STREAMS);
    let ended = stack.proxy.ended_within(PATIENCE).await?;
    report.figure("gone after the last stream", format!("{:.2} s", idle.elapsed().as_secs_f64()));
    report.promise("the process leaves in order", ended.is_some_and(|status| status.success()));
    report.promise("as soon as it is idle", idle.elapsed() < Duration::from_secs(2));
    Ok(())
}
