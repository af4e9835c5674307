//! A brown-out: a provider that still works, mostly. With retries and one fallback its users should hardly notice, and
//! the provider must not be sent a multiple of its traffic on top of its trouble. Both targets are in it.

use super::client::{Caller, Connection};
use super::report::Report;
use super::stack::Stack;
use anyhow::ensure;
use futures::StreamExt as _;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const AT_ONCE: usize = 64;
/// Nobody waits longer than this for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Of a hundred calls: five fail, two stall, one is cut off before it says anything.
fn fault(number: usize) -> Value {
    match spread(number) {
        0..5 => json!({ "status": 500 }),
        5 => json!({ "latency_ms": 3_600_000 }),
        6 => json!({ "stall_after_bytes": 5 }),
        7 => json!({ "cut_at": 5 }),
        _ => json!({}),
    }
}

/// Each number of a hundred once in a hundred calls, in no order that a client could be in step with.
fn spread(number: usize) -> usize {
    (number * 37 + number / 100 * 11) % 100
}

pub async fn prove(count: usize, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let target = json!({ "provider": "openai", "api_key": "sk-mock", "custom_host": stack.mock.url() });
    let config = json!({
        "strategy": { "mode": "fallback" }, "targets": [target, target],
        "retry": { "attempts": 2, "jitter": "full" },
        "request_timeout": 2000, "stream_idle_timeout": 2000,
    });
    let caller = stack.caller_by(&config.to_string()).await?;
    // Twice as many as there are requests: whoever is asked again meets the same provider.
    let faults: Vec<Value> = (0..count * 2).map(fault).collect();
    stack.mock.script(Value::Array(faults))?;
    let began = Instant::now();
    let outcomes: Vec<anyhow::Result<()>> = futures::stream::iter(0..count)
        .map(|number| one(&caller, number % 2 == 0))
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let took = began.elapsed();
    let mut failures = BTreeMap::<String, usize>::new();
    for error in outcomes.into_iter().filter_map(Result::err) {
        *failures.entry(format!("{error:#}")).or_default() += 1;
    }
    let failed: usize = failures.values().sum();
    let calls = stack.mock.counts().total() + stack.mock.counts().in_flight;
    let extra = calls.saturating_sub(count as u64);
    report.figure("requests", format!("{count}, half of them streams, in {:.1} s", took.as_secs_f64()));
    report.figure("upstream calls", format!("{calls} ({:+.2} %)", 100.0 * extra as f64 / count as f64));
    report.figure("failed for the client", format!("{failed} ({:.3} %)", 100.0 * failed as f64 / count as f64));
    failures.iter().for_each(|(why, times)| report.figure(why, times));
    report.promise("at most one request in a thousand fails", failed * 1000 <= count);
    report.promise("at most a tenth more upstream calls", extra * 10 <= count as u64);
    stack.stop(report)
}

/// One request on a connection of its own, and whether its answer was whole.
async fn one(caller: &Caller, is_stream: bool) -> anyhow::Result<()> {
    let connection = caller.connect().await?;
    tokio::time::timeout(PATIENCE, exchange(caller, connection, is_stream)).await?
}

async fn exchange(caller: &Caller, mut connection: Connection, is_stream: bool) -> anyhow::Result<()> {
    let body =
        json!({ "model": "gpt-4o-mini", "stream": is_stream, "messages": [{ "role": "user", "content": "Hello" }] });
    let answer = connection.send(caller.post_json("/v1/chat/completions", &body)).await?;
    let status = answer.status();
    let text = answer.into_body().collect().await?.to_bytes();
    ensure!(status == 200, "status {status}");
    match is_stream {
        true => ensure!(text.ends_with(b"data: [DONE]\n\n") && !contains(&text, b"\"error\""), "a stream broke off"),
        false => {
            ensure!(serde_json::from_slice::<Value>(&text)?["object"] == "chat.completion", "an answer is not whole")
        }
    }
    Ok(())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_of_every_hundred_calls_go_wrong() {
        for block in 0..50 {
            let wrong = (0..100).filter(|number| fault(block * 100 + number) != json!({})).count();
            assert_eq!(wrong, 8);
        }
    }
}
