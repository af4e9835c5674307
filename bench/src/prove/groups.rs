//! A policy with very many groups: each costs little memory, a request costs the same however many there are, and clients
//! who make up values cannot make the proxy grow beyond its setting.
//!
//! A group that may make one request and has made it stays in memory until its window ends, because the proxy knows without
//! asking anybody that the next one is refused. So two requests make a group, and a third measures what finding it costs.

use super::client::{Caller, chat, empty};
use super::report::{Report, megabytes};
use super::rotation::made;
use super::stack::{Replica, Stack};
use anyhow::{Context as _, ensure};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use tokio::task::JoinSet;

const CONNECTIONS: u64 = 64;
const FEW: u64 = 100;
/// Requests of a measurement, and how many there are of each kind, by turns.
const ROUND: u64 = 5000;
const ROUNDS: usize = 5;
/// What a group may cost in memory, in bytes; the help of `LIMITS_MAX_COUNTERS` speaks of about 900.
const MAX_BYTES: u64 = 1000;
/// The same of one with the longest name, which is kept in several places.
const MAX_BYTES_OF_LONG: u64 = 1250;
/// How much more a request may cost the proxy with all groups than with few.
const MAX_TIMES: f64 = 1.3;
/// What else may grow while so many requests pass.
const SLACK: u64 = 32 << 20;

/// Answers by their status.
type Statuses = BTreeMap<u16, u64>;

pub async fn prove(groups: u64, report: &mut Report) -> anyhow::Result<()> {
    let room = groups + groups / 5;
    let mut stack = Stack::start(&[("LIMITS_MAX_COUNTERS", &room.to_string()), ("LIMITS_WAIT_MS", "5000")]).await?;
    let body = json!({
        "name": "one each", "workspace_id": stack.workspace().await?, "type": "requests", "unit": "rpd", "value": 1,
        "conditions": [{ "key": "metadata._user", "value": "*", "excludes": "nobody" }],
        "group_by": [{ "key": "metadata._user" }],
    });
    made(&stack.administrator().await?, "/v1/policies/rate-limits", &body).await?;
    // One proxy meets few groups and the other very many, so that they can be measured by turns.
    let replicas = stack.replicas(2).await?;
    let [quiet, busy] = [&replicas[0], &replicas[1]];
    let callers = [stack.caller_at(quiet)?, stack.caller_at(busy)?];
    for caller in &callers {
        // What is measured is a proxy that is warm.
        calls(caller, 0..ROUND, 1, nobody).await?;
    }
    calls(&callers[0], 0..FEW, 2, few).await?;
    settled(&stack).await?;
    let before = busy.program.memory()?;

    let making = calls(&callers[1], 0..groups, 2, plain).await?;
    settled(&stack).await?;
    // Now that it is stored that they have nothing left, nobody needs to ask again before the day ends.
    calls(&callers[0], 0..FEW, 1, few).await?;
    calls(&callers[1], 0..groups, 1, plain).await?;
    settled(&stack).await?;
    let (after, live) = (busy.program.memory()?, counters(busy).await?);
    report.figure("groups", format!("{live} in one proxy, {} in the other", counters(quiet).await?));
    report.figure("answers while they were made", format!("{making:?}"));
    let each = after.saturating_sub(before) / live.max(1);
    report.figure("memory", format!("{} and {}, {each} bytes a group", megabytes(before), megabytes(after)));
    report.promise("all groups are in memory", live >= groups * 95 / 100);
    report.promise(
        &format!("a group costs at most {MAX_BYTES} bytes, and all of them {} more", megabytes(SLACK)),
        after <= before + live * MAX_BYTES + SLACK,
    );

    let (mut with_few, mut with_many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        with_few.push(cost(quiet, &callers[0], few).await?);
        with_many.push(cost(busy, &callers[1], spread(groups)).await?);
    }
    let (with_few, with_many) = (middle(with_few), middle(with_many));
    let ratio = with_many / with_few;
    report.figure("CPU for a refused request", format!("{with_few:.1} and {with_many:.1} µs, {ratio:.2} ×"));
    report.promise(&format!("a request costs at most {MAX_TIMES} × as much with all groups"), ratio <= MAX_TIMES);
    settled(&stack).await?;
    let rests = [at_rest(quiet).await * 100.0, at_rest(busy).await * 100.0];
    report.figure("CPU at rest", format!("{:.1} and {:.1} % of a core", rests[0], rests[1]));

    let made_up = groups / 2;
    let odd = calls(&callers[1], 0..made_up, 2, hostile).await?;
    let (end, live) = (busy.program.memory()?, counters(busy).await?);
    report.figure("answers to values that were made up", format!("{odd:?}"));
    report.figure("groups and memory in the end", format!("{live}, room for {room}; {}", megabytes(end)));
    report.promise("values that are made up make no more groups than the setting allows", live <= room + CONNECTIONS);
    let most = before + (room - made_up) * MAX_BYTES + made_up * MAX_BYTES_OF_LONG + SLACK;
    let promise =
        format!("long or odd ones cost at most {MAX_BYTES_OF_LONG} bytes each, all of it {}", megabytes(most));
    report.promise(&promise, end <= most);
    let again = calls(&callers[1], 0..FEW, 1, plain).await?;
    report.promise("a group that was pushed out is still refused", again.keys().eq([&429]));
    drop(replicas);
    stack.stop(report)
}

fn plain(n: u64) -> String {
    format!("user-{n}")
}

/// Whom no limit speaks of.
fn nobody(_: u64) -> String {
    "nobody".to_owned()
}

fn few(n: u64) -> String {
    format!("few-{}", n % FEW)
}

/// All over the groups.
fn spread(groups: u64) -> impl Fn(u64) -> String + Copy + Send + 'static {
    move |n| plain(n.wrapping_mul(7_919) % groups)
}

/// Long, in many alphabets, with separators and with nothing.
fn hostile(n: u64) -> String {
    match n % 4 {
        0 => format!("{n}{}", "x".repeat(20_000)),
        1 => format!("{n}{}", "é東🌍".repeat(50)),
        2 => format!("a\0b|metadata._user:{n}\u{202e}"),
        _ => format!("{n}{}", " ".repeat(200)),
    }
}

/// So many requests of each group, the next when the one before is answered.
async fn calls(
    caller: &Caller,
    numbers: Range<u64>,
    times: usize,
    name: impl Fn(u64) -> String + Copy + Send + 'static,
) -> anyhow::Result<Statuses> {
    let mut clients = JoinSet::new();
    for client in 0..CONNECTIONS {
        let (caller, numbers) = (caller.clone(), numbers.clone());
        clients.spawn(async move {
            let (mut statuses, mut connection) = (Statuses::new(), caller.connect().await?);
            for n in numbers.filter(|n| n % CONNECTIONS == client) {
                let mut body = chat(&json!({}), false);
                body["user"] = json!(name(n));
                for _ in 0..times {
                    if !connection.is_open() {
                        connection = caller.connect().await?;
                    }
                    let answer = connection.send(caller.post_json("/v1/chat/completions", &body)).await?;
                    *statuses.entry(answer.status().as_u16()).or_default() += 1;
                    answer.into_body().collect().await?;
                }
            }
            anyhow::Ok(statuses)
        });
    }
    let mut all = Statuses::new();
    while let Some(statuses) = clients.join_next().await {
        for (status, count) in statuses?? {
            *all.entry(status).or_default() += count;
        }
    }
    Ok(all)
}

/// CPU of a proxy for one request of a group that has nothing left, in microseconds.
async fn cost(
    replica: &Replica,
    caller: &Caller,
    name: impl Fn(u64) -> String + Copy + Send + 'static,
) -> anyhow::Result<f64> {
    let before = replica.program.cpu_seconds();
    let statuses = calls(caller, 0..ROUND, 1, name).await?;
    ensure!(statuses.keys().eq([&429]), "a group had something left: {statuses:?}");
    Ok((replica.program.cpu_seconds() - before) * 1e6 / ROUND as f64)
}

/// The part of a core that a proxy takes while nobody asks anything.
async fn at_rest(replica: &Replica) -> f64 {
    const WHILE: Duration = Duration::from_secs(5);
    let before = replica.program.cpu_seconds();
    tokio::time::sleep(WHILE).await;
    (replica.program.cpu_seconds() - before) / WHILE.as_secs_f64()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Waits until the logs of all calls so far are stored: that is work of its own.
async fn settled(stack: &Stack) -> anyhow::Result<()> {
    let (client, mut last) = (stack.database().await?, -1);
    loop {
        let logs: i64 = client.query_one("SELECT count(*) FROM request_logs", &[]).await?.try_get(0)?;
        if logs == last {
            return Ok(());
        }
        last = logs;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

/// Counters of limits that a proxy holds; it counts them now and then.
async fn counters(replica: &Replica) -> anyhow::Result<u64> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    let health = replica.health();
    let (_, text) = health.answer(health.request(Method::GET, "/metrics", empty())).await?;
    let value = text.lines().find_map(|line| line.strip_prefix("gateway_limits_counters ")?.trim().parse().ok());
    value.context("the proxy does not say how many counters it holds")
}
