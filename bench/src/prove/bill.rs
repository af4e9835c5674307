//! Every kind of call that costs something, made by many clients at once while the proxy is killed again and again. The mock
//! provider keeps a bill of its own; each call bears a tag that the bill, the metadata of its logs and its text have in common, so
//! that the two are compared call by call.
//!
//! - `kinds`: the kinds of calls, and how each is made
//! - `shop`: the stack, and what must be there for them
//! - `session`: a realtime session, frame by frame
//! - `books`: what the logs and the counters say, against the bill
//!
//! A call that was under way when the proxy was killed may be billed and have no log: nobody was left to write it. Those are
//! known by their clients and listed apart; under a strict budget they are charged as unconfirmed. Batches come last, in calm:
//! a row that is under way at a kill is asked again, and paid twice.

mod books;
mod kinds;
mod session;
mod shop;

use super::report::Report;
use crate::process::Signal;
use anyhow::Context as _;
use books::Books;
use kinds::{BATCH_KINDS, KINDS};
use shop::Shop;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::JoinSet;

const CLIENTS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(60);
/// After a client is done with a call, until its record is surely written.
const AFTERWARDS: Duration = Duration::from_millis(300);

/// What all clients share.
struct Progress {
    next: AtomicU32,
    calls: u32,
    /// Odd while the proxy is away.
    generation: AtomicU64,
}

pub async fn prove(calls: u32, kills: u32, report: &mut Report) -> anyhow::Result<()> {
    let mut shop = Shop::open(calls).await?;
    let progress = Arc::new(Progress { next: AtomicU32::new(0), calls, generation: AtomicU64::new(0) });
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(client(shop.counter(), progress.clone()));
    }
    for kill in 0..kills {
        // Spread over the calls, at ever different moments of the work.
        let at = u64::from(calls) * u64::from(kill + 1) / u64::from(kills + 1);
        while u64::from(progress.next.load(Relaxed)) < at {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(u64::from(kill * 37 % 50))).await;
        progress.generation.fetch_add(1, Relaxed);
        shop.stack.proxy.signal(Signal::KILL)?;
        shop.stack.proxy.ended_within(PATIENCE).await?.context("a killed proxy is still there")?;
        shop.stack.restart_proxy().await?;
        progress.generation.fetch_add(1, Relaxed);
    }
    let mut touched = BTreeSet::new();
    while let Some(client) = clients.join_next().await {
        touched.extend(client??);
    }
    for (kind, window) in BATCH_KINDS {
        shop.run_batch(kind, window, (calls / 100).max(10)).await?;
    }
    report.figure("calls, and kills of the proxy", format!("{calls} of {} kinds, {kills}", KINDS.len()));
    let books = Books::close(&shop, touched).await?;
    books.tell(&shop, report).await?;
    shop.close(report)
}

/// Makes calls of all kinds in turn. Answers the tags of those that a kill may have touched.
async fn client(shop: shop::Counter, progress: Arc<Progress>) -> anyhow::Result<BTreeSet<String>> {
    let mut touched = BTreeSet::new();
    loop {
        let number = progress.next.fetch_add(1, Relaxed);
        if number >= progress.calls {
            return Ok(touched);
        }
        let kind = KINDS[number as usize % KINDS.len()];
        let tag = format!("{}-{number}", kind.name());
        let before = until_there(&progress).await;
        let made = kind.call(&shop, &tag).await;
        tokio::time::sleep(AFTERWARDS).await;
        let is_touched = progress.generation.load(Relaxed) != before;
        if is_touched {
            touched.insert(tag);
        } else if let Err(error) = made {
            return Err(error.context(tag));
        }
    }
}

/// Waits until the proxy runs.
async fn until_there(progress: &Progress) -> u64 {
    loop {
        let generation = progress.generation.load(Relaxed);
        if generation.is_multiple_of(2) {
            return generation;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
