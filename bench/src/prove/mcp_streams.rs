//! A thousand clients that listen to an MCP server which has nothing to say: none is dropped, the proxy holds little for
//! each, and when they leave the server hears of it.

use super::client::{Caller, Connection, empty};
use super::report::{Report, megabytes};
use super::stack::Stack;
use crate::compare::mcp::INSERT;
use anyhow::{Context as _, ensure};
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use shared::bootstrap;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const MAX_MEMORY: u64 = 150 << 20;
/// Connections opened at the same moment; a listener's queue is not endless.
const ABREAST: usize = 50;
const PATH: &str = "/bench/mcp";
/// Longer than the pause between two heartbeats.
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn prove(count: usize, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let caller = caller(&stack).await?;
    let before = stack.proxy.peak_memory()?;
    let start = Instant::now();
    let mut listeners = JoinSet::new();
    for first in (0..count).step_by(ABREAST) {
        for _ in first..count.min(first + ABREAST) {
            let caller = caller.clone();
            listeners.spawn(async move { tokio::time::timeout(PATIENCE, listen(&caller)).await? });
        }
        let opened = count.min(first + ABREAST) as u64;
        let begun = stack.mock.until(|counts| counts.in_flight >= opened);
        ensure!(tokio::time::timeout(PATIENCE, begun).await.is_ok(), "{opened} streams did not begin");
    }
    report.figure("all of them opened within", format!("{:.1} s", start.elapsed().as_secs_f64()));
    let (mut open, mut failures) = (Vec::with_capacity(count), 0);
    while let Some(listener) = listeners.join_next().await {
        match listener? {
            Ok(listener) => open.push(listener),
            Err(error) => {
                failures += 1;
                report.figure("failed", format!("{error:#}"));
            }
        }
    }
    let at_once = stack.mock.counts().in_flight;
    report.figure("streams at the same time", at_once);
    report.promise(&format!("{count} clients listen at the same time"), at_once == count as u64);
    report.promise("every stream has its event and a heartbeat after it", failures == 0 && open.len() == count);
    let peak = stack.proxy.peak_memory()?;
    report.figure("proxy memory before", megabytes(before));
    report.figure("proxy memory at most", megabytes(peak));
    report.figure("memory for each stream", format!("{:.1} kB", (peak - before) as f64 / 1024.0 / count as f64));
    report.promise(&format!("the proxy stays under {}", megabytes(MAX_MEMORY)), peak < MAX_MEMORY);
    drop(open);
    let left = stack.mock.until(|counts| counts.in_flight == 0);
    report.promise("the server hears that they left", tokio::time::timeout(PATIENCE, left).await.is_ok());
    stack.stop(report)
}

/// A client of a server that the proxy knows.
async fn caller(stack: &Stack) -> anyhow::Result<Caller> {
    let (client, workspace) = (stack.database().await?, stack.workspace().await?);
    client.execute(INSERT, &[&workspace, &format!("{}/mcp/idle", stack.mock.origin())]).await?;
    let key = bootstrap::create_workspace_key(&client, workspace, "MCP", &["mcp.invoke"], "pk_").await?.key;
    let caller = stack.bare()?.with("x-gateway-api-key", &key)?.with("accept", "text/event-stream")?;
    let end = Instant::now() + PATIENCE;
    while caller.status(caller.request(Method::DELETE, PATH, empty())).await? != http::StatusCode::OK {
        ensure!(Instant::now() < end, "the proxy does not learn of the server");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(caller)
}

/// An open stream that has said its event, and lived on after it.
async fn listen(caller: &Caller) -> anyhow::Result<(Connection, Incoming)> {
    let mut connection = caller.connect().await?;
    let answer = connection.send(caller.request(Method::GET, PATH, empty())).await?;
    ensure!(answer.status() == 200, "status {}", answer.status());
    let mut body = answer.into_body();
    let mut text = Vec::new();
    while !is_alive(&text) {
        let frame = body.frame().await.context("the stream has ended")??;
        text.extend_from_slice(&frame.into_data().unwrap_or_default());
    }
    Ok((connection, body))
}

fn is_alive(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    text.split_once("data: ").is_some_and(|(_, after)| after.contains("\n:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_counts_after_the_event_alone() {
        for (text, expected) in
            [("", false), (": beat\n\n", false), (": beat\n\ndata: x\n\n", false), ("data: x\n\n: beat\n\n", true)]
        {
            assert_eq!(is_alive(text.as_bytes()), expected, "{text:?}");
        }
    }
}
