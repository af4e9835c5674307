//! What runs behind never starves what runs in front: minutes of steady load with default settings (journal, bodies,
//! Postgres on the same cores), against the same load without a journal, before and after. Short bursts do not show
//! it: what they leave behind is stored when nobody measures any more.

use super::client::Caller;
use super::report::Report;
use super::stack::{Program, Stack};
use crate::open_loop::{OpenLoop, Outcome};
use anyhow::Context as _;
use serde_json::json;
use std::fs;
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 64;
const WARM_UP: Duration = Duration::from_secs(3);
/// How much longer the slowest of a hundred calls may take than without a journal.
const MAX_TIMES: f64 = 2.0;
/// Threads of the proxy: one for each core, one for each service, few behind.
const MAX_THREADS: usize = 24;
const PATIENCE: Duration = Duration::from_secs(120);

pub async fn prove(rate: u32, length: Duration, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let plain = stack.replica("plain", &[("JOURNAL", "OFF")]).await?;
    let (caller, plain_caller) = (stack.caller()?, stack.caller_at(&plain)?);
    stack.until_answered(&caller).await?;
    stack.until_answered(&plain_caller).await?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.figure("cores, for clients, provider, proxy and Postgres together", cores);
    report.figure("load", format!("{rate} calls a second for {} s", length.as_secs()));
    let mut without = load(&plain_caller, rate, length / 2).await?;
    report.figure("without a journal, before", &without);
    let spent = stack.proxy.cpu_seconds();
    let (with, most_threads) = tokio::join!(load(&caller, rate, length), watch_threads(&stack.proxy, length));
    let with = with?;
    report.figure("with default settings", &with);
    let busy = (stack.proxy.cpu_seconds() - spent) / (length + WARM_UP).as_secs_f64();
    report.figure("processor of the proxy", format!("{busy:.2} cores"));
    report.figure("threads of the proxy", most_threads);
    let stored = until_stored(&stack, &with, report).await?;
    let after = load(&plain_caller, rate, length / 2).await?;
    report.figure("without a journal, after", &after);
    without.add(after);
    for (why, times) in with.failed.iter().chain(&without.failed) {
        report.figure("failed", format!("{times} × {why}"));
    }
    let times = with.percentile(0.99).as_secs_f64() / without.percentile(0.99).as_secs_f64();
    report.figure("p99 against that without a journal", format!("{times:.2} ×"));
    report.promise("no call failed", with.failures() + without.failures() == 0);
    report.promise("every call has its log and its bodies", stored);
    report.promise(&format!("p99 is at most {MAX_TIMES} × that without a journal"), times <= MAX_TIMES);
    report.promise(&format!("the proxy has at most {MAX_THREADS} threads"), most_threads <= MAX_THREADS.max(cores * 4));
    stack.stop(report)
}

async fn load(caller: &Caller, rate: u32, length: Duration) -> anyhow::Result<Outcome> {
    let request = caller.post_bytes("/v1/chat/completions", &body());
    let address = caller.address;
    let rate = f64::from(rate);
    OpenLoop { address, request, rate, length, warm_up: WARM_UP, connections: CONNECTIONS }.run().await
}

/// A chat of a few kilobytes, as applications send them.
fn body() -> String {
    let text = "Tell me more about the things that matter here. ".repeat(60);
    json!({ "model": "gpt-4o-mini", "messages": [
        { "role": "system", "content": "You are a helpful assistant." },
        { "role": "user", "content": text },
    ]})
    .to_string()
}

/// The most threads it had at once.
async fn watch_threads(program: &Program, length: Duration) -> usize {
    let end = Instant::now() + length;
    let mut most = 0;
    while Instant::now() < end {
        let tasks = fs::read_dir(format!("/proc/{}/task", program.pid())).into_iter().flatten().count();
        most = most.max(tasks);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    most
}

/// Waits until all calls are in Postgres and all bodies in the log store; false when that never comes.
async fn until_stored(stack: &Stack, outcome: &Outcome, report: &mut Report) -> anyhow::Result<bool> {
    let begun = Instant::now();
    let health = stack.health();
    loop {
        let (_, text) = health.answer(health.request(http::Method::GET, "/metrics", super::client::empty())).await?;
        let figure = |name: &str| -> anyhow::Result<u64> {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Ok(value.with_context(|| format!("no {name}"))?.parse::<f64>()? as u64)
        };
        let [noted, shipped, bodies] = [
            figure("gateway_journal_records_total")?,
            figure("gateway_journal_shipped_total")?,
            figure("gateway_log_bodies_stored_total")?,
        ];
        if noted >= outcome.calls && shipped == noted && bodies == noted {
            report.figure("all of it stored after", format!("{:.1} s", begun.elapsed().as_secs_f64()));
            return Ok(true);
        }
        if begun.elapsed() > PATIENCE {
            report.figure("stored", format!("of {noted} calls {shipped} logs and {bodies} bodies"));
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
