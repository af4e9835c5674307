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
const LARGEST_SHARE: f64 = 0.15;

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
    "groups/users",
    "groups/ai-models",
    "groups/workspaces",
    "groups/model?columns=cost,p95_latency,success_rate,last_seen&include_total=true",
    "groups/api_key?columns=cost,p99_latency",
    "groups/status_code",
    "groups/config",
    "groups/provider?columns=avg_latency",
];

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
    log_rows::write(&client, &logs).await?;
    let begun = Instant::now();
    for day in days.iter().rev() {
        let tx = client.transaction().await?;
        usage_slots::verify_day(&tx, day.and_time(NaiveTime::MIN).and_utc()).await?;
        tx.commit().await?;
    }
    let built = begun.elapsed();
    client.batch_execute("ANALYZE usage_slots").await?;
    report.figure("rows, over three months", rows);
    report.figure("slots were built at", format!("{:.0} logs/s", rows as f64 / built.as_secs_f64()));
    let share = sizes(&client, report).await?;

    let caller = stack.administrator().await?;
    for (name, width) in
        [("a day", TimeDelta::days(1)), ("a week", TimeDelta::days(7)), ("three months", TimeDelta::days(90))]
    {
        let mut slowest = (Duration::ZERO, "");
        for what in ASKED {
            slowest = slowest.max((p95(&caller, what, width, "").await?, *what));
        }
        report.figure(&format!("the slowest of {name}, p95"), format!("{} ms ({})", slowest.0.as_millis(), slowest.1));
        report.promise(&format!("every figure of {name} is there within {} ms", LIMIT.as_millis()), slowest.0 < LIMIT);
    }
    let metadata = "&metadata=%7B%22team%22%3A%22search%22%7D";
    let mut slowest = Duration::ZERO;
    for what in ASKED {
        slowest = slowest.max(p95(&caller, what, TimeDelta::days(1), metadata).await?);
    }
    report.figure("the slowest of a day by metadata, p95", format!("{} ms", slowest.as_millis()));
    report.promise("figures of a day by metadata are there within a second", slowest < LIMIT_OF_METADATA);
    report.promise("slots take less than 15 % of the room of logs", share < LARGEST_SHARE);
    drop(client);
    stack.stop(report)
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
        let path = format!(
            "/v1/analytics/{what}{and}time_of_generation_min={}&time_of_generation_max={}&workspace_slug=*{filter}",
            written(until - width),
            written(until)
        );
        let begun = Instant::now();
        let (status, text) = caller.answer(caller.request(Method::GET, &path, empty())).await?;
        times.push(begun.elapsed());
        ensure!(status == StatusCode::OK, "{path}: {status} {text}");
    }
    times.sort_unstable();
    Ok(times[(times.len() * 95).div_ceil(100) - 1])
}
