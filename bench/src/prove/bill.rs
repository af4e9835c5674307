//! Every kind of call that costs something, made by many clients at once while the proxy is killed again and again, and batches
//! of both modes beside them. The mock provider keeps a bill of its own; each call bears a tag that the bill, the metadata of its
//! logs and its text have in common, so that the two are compared call by call, in tokens and in dollars.
//!
//! - `kinds`: the kinds of calls, and how each is made
//! - `shop`: the stack, and what must be there for them
//! - `session`: a realtime session, frame by frame
//! - `batches`: batches of both modes, one after the other
//! - `progress`: how far the calls are, and when the proxy was killed
//! - `tariff`: what the price list asks for each kind
//! - `books`: what the logs and the counters say, against the bill
//!
//! A call that was under way when the proxy was killed may be billed and have no log: nobody was left to write it. Those are
//! known by their clients and listed apart; under a strict budget they are charged as unconfirmed. A row of an immediate batch
//! that was under way at a kill is asked again, and its line in the output says so; a batch of 24h has no such rows, since its
//! provider runs on: of it every row must be right.

mod batches;
mod books;
mod kinds;
mod progress;
mod session;
mod shop;
mod tariff;

use super::report::Report;
use crate::process::Signal;
use anyhow::Context as _;
use batches::BatchTally;
use books::Books;
use kinds::{Kind, WINDOWS};
use progress::Progress;
use shop::Shop;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const CLIENTS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two lines about how far it is.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// What clients met.
#[derive(Default)]
struct Met {
    /// Tags of calls that a kill may have touched.
    touched: BTreeSet<String>,
    /// Calls that went wrong without a kill.
    failed: Vec<String>,
}

pub async fn prove(calls: u32, kills: u32, report: &mut Report) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut shop = Shop::open(calls).await?;
    let progress = Arc::new(Progress::new(calls));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(client(shop.counter(), progress.clone()));
    }
    let mut batches = JoinSet::new();
    for window in WINDOWS {
        batches.spawn(batches::run_all(shop.counter(), window, progress.clone()));
    }
    let teller = tokio::spawn(tell_progress(progress.clone()));
    let met_batches = kill_again_and_again(&mut shop, &progress, kills).await?;
    progress.no_more_kills();
    let mut met = Met::default();
    while let Some(client) = clients.join_next().await {
        let one = client?;
        met.touched.extend(one.touched);
        met.failed.extend(one.failed);
    }
    report.figure("calls were made within", format!("{:.0} s", begun.elapsed().as_secs_f64()));
    let mut tally = BatchTally::default();
    while let Some(one) = batches.join_next().await {
        let one = one??;
        met.touched.extend(one.asked_again.iter().cloned());
        tally.add(one);
    }
    teller.abort();
    report.figure("calls, and kills of the proxy", format!("{calls} of {} kinds, {kills}", Kind::ALL.len()));
    report.figure("batches", &tally);
    for (window, kills) in WINDOWS.iter().zip(met_batches) {
        report.figure(&format!("kills with a batch of {} under way", window.name), kills);
    }
    report.promise(
        "kills met batches of both modes while they ran",
        kills == 0 || met_batches.iter().all(|met| *met > 0),
    );
    met.failed.iter().take(5).for_each(|failed| report.figure("failed, for example", failed));
    report.promise("whoever was not killed was answered", met.failed.is_empty());
    report.promise("every row of every batch has its answer", tally.missing == 0);
    let books = Books::close(&shop, met.touched).await?;
    books.tell(&shop, report).await?;
    report.figure("the whole took", format!("{:.0} s", begun.elapsed().as_secs_f64()));
    shop.close(report)
}

/// Spread over the calls, at ever different moments of the work. Answers at how many of them a batch was under way, by window.
async fn kill_again_and_again(shop: &mut Shop, progress: &Progress, kills: u32) -> anyhow::Result<[u32; 2]> {
    let mut met = [0; 2];
    for kill in 0..kills {
        let at = u64::from(progress.calls) * u64::from(kill + 1) / u64::from(kills + 1);
        while progress.begun() < at {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(kill * 37 % 50))).await;
        for (met, is_running) in met.iter_mut().zip(shop.batches_under_way().await?) {
            *met += u32::from(is_running);
        }
        progress.note_kill();
        shop.stack.proxy.signal(Signal::KILL)?;
        shop.stack.proxy.ended_within(PATIENCE).await?.context("a killed proxy is still there")?;
        shop.end_leases().await?;
        shop.stack.restart_proxy().await?;
        progress.note_restart();
    }
    Ok(met)
}

/// Makes calls of all kinds in turn.
async fn client(shop: shop::Counter, progress: Arc<Progress>) -> Met {
    let mut met = Met::default();
    while let Some(number) = progress.next() {
        let kind = Kind::ALL[number as usize % Kind::ALL.len()];
        let tag = format!("{}-{number}", kind.name());
        let begun = progress.until_running().await;
        let made = tokio::time::timeout(PATIENCE, kind.call(&shop, &tag)).await;
        let made = made.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within {} s", PATIENCE.as_secs())));
        if progress.was_killed_since(begun) {
            met.touched.insert(tag);
        } else if let Err(error) = made {
            met.failed.push(format!("{tag}: {error:#}"));
        } else {
            progress.note_end(tag, Instant::now() + kind.records_within());
        }
    }
    met.touched.extend(progress.ended_at_kills());
    met
}

async fn tell_progress(progress: Arc<Progress>) {
    let begun = Instant::now();
    loop {
        tokio::time::sleep(TELL_EVERY).await;
        super::report::progress(&format!("{:.0} s: {progress}", begun.elapsed().as_secs_f64()));
    }
}
