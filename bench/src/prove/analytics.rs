//! Very many logs over three months: every graph and group of a day, a week and all of them is there soon, from slots that take
//! little room beside the logs.

use super::client::{Caller, empty};
use super::log_rows::{self, Logs};
use super::report::{Report, megabytes};
use super::stack::Stack;
use anyhow::ensure;
use chrono::{NaiveTime, SecondsFormat, TimeDelta, Utc};
use http::{Method, StatusCode};
use shared::db::usage_slots;
use std::time::{Duration, Instant};
use tokio_postgres::Client;
use uuid::Uuid;

const WORKSPACES: usize = 4;
/// One less than logs and metrics are kept by default.
const DAYS: u64 = 89;
const READS: usize = 20;
const LIMIT: Duration = Duration::from_millis(300);
const LIMIT_OF_METADATA: Duration = Duration::from_secs(1);
const MAX_SHARE: f64 = 0.15;

static ASKED: &[&str] = &[
    "graphs/requests",
    "graphs/cost",
    "graphs/latency",
    "graphs/tokens",
    "graphs/users",
    "graphs/users/requests",
    "graphs/errors",
    "graphs/errors/rate",
    "graphs/errors/stacks",
    "graphs/errors/status-codes",
    "graphs/requests/rescued",
    "graphs/cache/hit-rate",
    "graphs/cache/latency",
    "summary/cache",
    "graphs/feedbacks",
    "graphs/feedbacks/scores",
    "graphs/feedbacks/weighted",
    "graphs/feedbacks/ai-models",
    "graphs/cost?group_by=model",
    "graphs/latency?group_by=user",
    "graphs/requests?compare=previous",
    "groups/users",
    "groups/users?order_by=cost",
    "groups/user?columns=cost,p95_latency,success_rate&order_by=p95_latency",
    "groups/ai-models",
    "groups/workspaces",
    "groups/model?columns=cost,p95_latency,success_rate,last_seen&include_total=true",
    "groups/api_key?columns=cost,p99_latency",
    "groups/status_code",
    "groups/config",
    "groups/provider?columns=avg_latency",
    "groups/prompt",
    "groups/prompt_version?columns=cost,total_tokens",
    "groups/guardrail?columns=cost,total_tokens",
    "graphs/cost?group_by=guardrail",
    "groups/workspace?columns=cost",
    "groups/ai_service?columns=total_tokens",
    BY_METADATA,
    "groups/metadata/team?order_by=avg_weighted_feedback",
    "groups/metadata/_user?order_by=cost",
    // Of no call.
    "groups/metadata/colour",
    BUDGETS,
];
/// Not of calls: they have no filter of metadata, and no time.
const BUDGETS: &str = "budgets";
const BY_METADATA: &str = "groups/metadata/environment";
/// What was thought of some traces; the table of logs has to be searched for each of them.
const FEEDBACK: &str = "INSERT INTO feedback (id, organisation_id, workspace_id, trace_id, value, created_at)
    SELECT gen_random_uuid(), organisation_id, workspace_id, trace_id, (hashtext(trace_id) & 15) - 7,
        created_at + interval '1 minute' FROM request_logs TABLESAMPLE BERNOULLI (0.01) REPEATABLE (24)";
/// The slowest that are named for each length of time.
const NAMED: usize = 5;

pub async fn prove(rows: u64, report: &mut Report) -> anyhow::Result<()> {
    let stack = Stack::start(&[]).await?;
    let mut client = stack.database().await?;
    let organisation: Uuid = client.query_one("SELECT id FROM organisations", &[]).await?.try_get(0)?;
    let mut workspaces = vec![stack.workspace().await?];
    while workspaces.len() < WORKSPACES {
        let insert = "INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, $2, $2) RETURNING id";
        let slug = format!("ws-{}", workspaces.len());
        workspaces.push(client.query_one(insert, &[&organisation, &slug]).await?.try_get(0)?);
    }
    let days = log_rows::days_before(Utc::now().date_naive(), DAYS);
    let logs = Logs { rows, organisation, workspaces: &workspaces, days: &days };
    let begun = Instant::now();
    log_rows::write(&client, &logs).await?;
    let written = begun.elapsed();
    let feedback = client.execute(FEEDBACK, &[]).await?;
    client.batch_execute("ANALYZE feedback").await?;
    let begun = Instant::now();
    for day in days.iter().rev() {
        let tx = client.transaction().await?;
        usage_slots::verify_day(&tx, day.and_time(NaiveTime::MIN).and_utc()).await?;
        tx.commit().await?;
    }
    build_the_rest(&mut client).await?;
    let built = begun.elapsed();
    client.batch_execute("VACUUM ANALYZE usage_slots").await?;
    report.figure("rows, over three months", rows);
    report.figure("feedback on their traces", feedback);
    report.figure("they were written at", format!("{:.0} logs/s", rows as f64 / written.as_secs_f64()));
    report.figure("slots were built at", format!("{:.0} logs/s", rows as f64 / built.as_secs_f64()));
    let share = sizes(&client, report).await?;
    report.promise("slots take less than 15 % of the room of logs", share < MAX_SHARE);

    let caller = stack.administrator().await?;
    // Of all workspaces, which a key of one does not see.
    let widen = "UPDATE api_keys SET kind = 'organisation-service', workspace_id = NULL WHERE name = 'Setup'";
    client.batch_execute(widen).await?;
    for (name, width) in
        [("a day", TimeDelta::days(1)), ("a week", TimeDelta::days(7)), ("three months", TimeDelta::days(90))]
    {
        let mut times = Vec::new();
        for what in ASKED {
            times.push((p95(&caller, what, width, "").await?, *what));
        }
        let slowest = slowest(name, times, report);
        report.promise(&format!("every figure of {name} is there within {} ms", LIMIT.as_millis()), slowest < LIMIT);
    }
    let metadata = "&metadata=%7B%22team%22%3A%22search%22%7D";
    let mut times = Vec::new();
    for what in ASKED.iter().copied().filter(|what| *what != BUDGETS) {
        times.push((p95(&caller, what, TimeDelta::days(1), metadata).await?, what));
    }
    let slowest = slowest("a day by metadata", times, report);
    report.promise("figures of a day by metadata are there within a second", slowest < LIMIT_OF_METADATA);
    drop(client);
    stack.stop(report)
}

/// What days leave stale: their weeks.
async fn build_the_rest(client: &mut Client) -> anyhow::Result<()> {
    loop {
        let tx = client.transaction().await?;
        let done = usage_slots::refresh(&tx, Utc::now()).await?;
        tx.commit().await?;
        if done.slots == 0 {
            return Ok(());
        }
    }
}

/// Names the slowest, and says how slow it is.
fn slowest(name: &str, mut times: Vec<(Duration, &str)>, report: &mut Report) -> Duration {
    times.sort_unstable_by(|one, other| other.cmp(one));
    let median = times.get(times.len() / 2).map_or(Duration::ZERO, |(time, _)| *time);
    report.figure(&format!("{name}, the median of p95s"), format!("{} ms", median.as_millis()));
    for (time, what) in times.iter().take(NAMED) {
        report.figure(&format!("{name}, p95 of {what}"), format!("{} ms", time.as_millis()));
    }
    times.first().map_or(Duration::ZERO, |(time, _)| *time)
}

/// How much room slots take, as a share of what logs take.
async fn sizes(client: &Client, report: &mut Report) -> anyhow::Result<f64> {
    const LOGS: &str = "SELECT sum(pg_total_relation_size(inhrelid))::bigint FROM pg_inherits
                        WHERE inhparent = 'request_logs'::regclass";
    const SLOTS: &str = "SELECT pg_total_relation_size('usage_slots')";
    let logs: i64 = client.query_one(LOGS, &[]).await?.try_get(0)?;
    let slots: i64 = client.query_one(SLOTS, &[]).await?.try_get(0)?;
    report.figure("logs take", megabytes(logs.unsigned_abs()));
    report.figure("slots take", megabytes(slots.unsigned_abs()));
    Ok(slots as f64 / logs as f64)
}

/// The time that 95 of 100 answers do not exceed; the end moves, so that edges are cut anywhere.
async fn p95(caller: &Caller, what: &str, width: TimeDelta, filter: &str) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(READS);
    for n in 0..READS {
        let until = Utc::now() - TimeDelta::minutes(17 * n as i64);
        let written = |time: chrono::DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
        let and = if what.contains('?') { '&' } else { '?' };
        let period =
            format!("time_of_generation_min={}&time_of_generation_max={}&", written(until - width), written(until));
        let period = if what == BUDGETS { "" } else { &period };
        let path = format!("/v1/analytics/{what}{and}{period}workspace_slug=*{filter}");
        let begun = Instant::now();
        let (status, text) = caller.answer(caller.request(Method::GET, &path, empty())).await?;
        times.push(begun.elapsed());
        ensure!(status == StatusCode::OK, "{path}: {status} {text}");
    }
    times.sort_unstable();
    Ok(times[(times.len() * 95).div_ceil(100) - 1])
}
