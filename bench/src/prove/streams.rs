//! A thousand streams at once: every one arrives whole, and the proxy holds little for each.

use super::client::Caller;
use super::report::{Report, Spread, megabytes};
use super::stack::Stack;
use anyhow::ensure;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const MAX_MEMORY: u64 = 150 << 20;
const EVENTS: usize = 30;
const PAUSE_MS: u64 = 300;
/// Connections opened at the same moment; a listener's queue is not endless.
const ABREAST: usize = 50;

pub async fn prove(count: usize, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let before = stack.proxy.peak_memory()?;
    let caller = stack.caller()?;
    let start = Instant::now();
    let mut readers = JoinSet::new();
    for first in (0..count).step_by(ABREAST) {
        for _ in first..count.min(first + ABREAST) {
            let caller = caller.clone();
            readers.spawn(async move { read(&caller).await });
        }
        let opened = count.min(first + ABREAST) as u64;
        let begun = stack.mock.until(|counts| counts.in_flight + counts.total() >= opened);
        ensure!(tokio::time::timeout(Duration::from_secs(60), begun).await.is_ok(), "{opened} streams did not begin");
    }
    let at_once = stack.mock.counts().in_flight;
    let (mut whole, mut failures, mut first_events) = (0, BTreeMap::<String, usize>::new(), Vec::new());
    while let Some(read) = readers.join_next().await {
        match read? {
            Ok(first_event) => {
                whole += 1;
                first_events.push(first_event);
            }
            Err(error) => *failures.entry(format!("{error:#}")).or_default() += 1,
        }
    }
    report.figure("streams at the same time", at_once);
    report.figure("all of them took", format!("{:.1} s", start.elapsed().as_secs_f64()));
    if let Some(spread) = Spread::of(first_events) {
        report.figure("first event after", spread);
    }
    for (failure, times) in &failures {
        report.figure("failed", format!("{times} × {failure}"));
    }
    report.promise(&format!("{count} streams run at the same time"), at_once == count as u64);
    report.promise("every stream arrives whole", whole == count);
    let peak = stack.proxy.peak_memory()?;
    report.figure("proxy memory before", megabytes(before));
    report.figure("proxy memory at most", megabytes(peak));
    report.figure("memory for each stream", format!("{:.1} kB", (peak - before) as f64 / 1024.0 / count as f64));
    report.promise(&format!("the proxy stays under {}", megabytes(MAX_MEMORY)), peak < MAX_MEMORY);
    stack.stop(report)
}

/// Reads one stream to its end; returns when the first event came.
async fn read(caller: &Caller) -> anyhow::Result<Duration> {
    let start = Instant::now();
    let fault = json!({ "chunks": EVENTS, "chunk_delay_ms": PAUSE_MS });
    let mut connection = caller.connect().await?;
    let answer = connection.send(caller.chat(&fault, true)).await?;
    ensure!(answer.status() == 200, "status {}", answer.status());
    let mut body = answer.into_body();
    let (mut text, mut first_event) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let data: Bytes = frame?.into_data().unwrap_or_default();
        first_event.get_or_insert_with(|| start.elapsed());
        text.extend_from_slice(&data);
    }
    let text = String::from_utf8(text)?;
    let events = text.matches("data: ").count();
    // The role, the pieces, the end, and the closing mark.
    ensure!(events == EVENTS + 3 && text.ends_with("data: [DONE]\n\n"), "{events} events and no proper end");
    Ok(first_event.unwrap_or_default())
}
