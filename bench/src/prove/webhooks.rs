//! A thousand requests at once, each of which a slow webhook judges: they wait side by side, on the threads that there are, and the
//! proxy holds little for each. A workspace may have 256 such calls under way in a proxy, so the last wait for a few turns.

use super::client::Caller;
use super::report::{Report, Spread, megabytes};
use super::stack::{Program, Stack};
use crate::mock::{Mock, Options};
use anyhow::ensure;
use http_body_util::BodyExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

const WEBHOOK_MS: u64 = 300;
const IN_FLIGHT: usize = 256;
const MAX_MEMORY: u64 = 150 << 20;
/// Of the proxy: one for each core, one for each service, few behind.
const MAX_THREADS: usize = 24;
/// What turns of the webhook would take alone, this many times.
const MAX_TIMES: u32 = 8;
/// Connections opened at the same moment; a listener's queue is not endless.
const ABREAST: usize = 50;

pub async fn prove(count: usize, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let service = Mock::start(Options::default());
    let answer =
        json!({ "body": json!({ "verdict": true }).to_string(), "latency_ms": WEBHOOK_MS, "times": count * 2 + 1000 });
    service.script(json!([answer]))?;
    let webhook = json!({ "webhookURL": format!("{}/chat/completions", service.url()), "headers": { "authorization": "Bearer sk-mock" }, "timeout": 60_000, "failOnError": true });
    let config = json!({
        "provider": "openai", "api_key": "sk-mock", "custom_host": stack.mock.url(),
        "input_guardrails": [{ "default.webhook": webhook, "deny": true }],
    });
    let caller = stack.caller_by(&config.to_string()).await?;
    stack.until_answered(&caller).await?;
    let before = stack.proxy.peak_memory()?;
    let began = Instant::now();
    let mut calls = JoinSet::new();
    for first in (0..count).step_by(ABREAST) {
        for _ in first..count.min(first + ABREAST) {
            let caller = caller.clone();
            calls.spawn(async move { ask(&caller).await });
        }
        tokio::task::yield_now().await;
    }
    let (mut times, mut failures) = (Vec::new(), BTreeMap::<String, usize>::new());
    let mut most_threads = threads(&stack.proxy);
    while let Some(asked) = calls.join_next().await {
        most_threads = most_threads.max(threads(&stack.proxy));
        match asked? {
            Ok(took) => times.push(took),
            Err(error) => *failures.entry(format!("{error:#}")).or_default() += 1,
        }
    }
    let took = began.elapsed();
    let (passed, peak) = (times.len(), stack.proxy.peak_memory()?);
    let turns = u32::try_from(count.div_ceil(IN_FLIGHT))?;
    let alone = Duration::from_millis(WEBHOOK_MS) * turns;
    report.figure("requests", format!("{count} at once, each judged by a webhook of {WEBHOOK_MS} ms"));
    report.figure(
        "all of them took",
        format!("{:.1} s, of which the webhook's turns {:.1} s", took.as_secs_f64(), alone.as_secs_f64()),
    );
    if let Some(spread) = Spread::of(times) {
        report.figure("a request took", spread);
    }
    report.figure("threads of the proxy", most_threads);
    report.figure("memory of the proxy", format!("{} before, at most {}", megabytes(before), megabytes(peak)));
    failures.iter().for_each(|(why, times)| report.figure(why, times));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    report.promise("every request was judged and answered", passed == count);
    report
        .promise(&format!("no thread waits: all within {MAX_TIMES} × the webhook's turns"), took <= alone * MAX_TIMES);
    report.promise(&format!("the proxy has at most {MAX_THREADS} threads"), most_threads <= MAX_THREADS.max(cores * 4));
    report.promise(&format!("the proxy holds at most {}", megabytes(MAX_MEMORY)), peak <= MAX_MEMORY);
    stack.stop(report)
}

async fn ask(caller: &Caller) -> anyhow::Result<Duration> {
    let began = Instant::now();
    let mut connection = caller.connect().await?;
    let body = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "Hello" }] });
    let answer = connection.send(caller.post_json("/v1/chat/completions", &body)).await?;
    let status = answer.status();
    answer.into_body().collect().await?;
    ensure!(status == 200, "status {status}");
    Ok(began.elapsed())
}

fn threads(program: &Program) -> usize {
    fs::read_dir(format!("/proc/{}/task", program.pid())).into_iter().flatten().count()
}
