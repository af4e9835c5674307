//! Very many logs: finding some of them by three filters, and one by its id, takes little time over HTTP, and a day that
//! is older than the retention is gone within a second.

use super::client::{Caller, empty};
use super::log_rows::{self, Logs, MODELS, TEAMS, USERS};
use super::report::Report;
use super::stack::Stack;
use crate::process::Signal;
use anyhow::{Context as _, ensure};
use chrono::{Days, NaiveDate, TimeDelta, Utc};
use http::{Method, StatusCode};
use serde_json::Value;
use std::time::{Duration, Instant};
use uuid::Uuid;

const WORKSPACES: usize = 8;
const DAYS: u64 = 30;
/// Far beyond what is kept.
const OLD: u64 = 200;
const READS: u64 = 200;
const LIMIT: Duration = Duration::from_millis(300);
const DROP_LIMIT: f64 = 1.0;
const PATIENCE: Duration = Duration::from_secs(60);

pub async fn prove(rows: u64, report: &mut Report) -> anyhow::Result<()> {
    let mut stack = Stack::start(&[]).await?;
    let client = stack.database().await?;
    let organisation: Uuid = client.query_one("SELECT id FROM organisations", &[]).await?.try_get(0)?;
    let mut workspaces = vec![stack.workspace().await?];
    while workspaces.len() < WORKSPACES {
        let insert = "INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, $2, $2) RETURNING id";
        let slug = format!("ws-{}", workspaces.len());
        workspaces.push(client.query_one(insert, &[&organisation, &slug]).await?.try_get(0)?);
    }
    let today = Utc::now().date_naive();
    let days = log_rows::days_before(today, DAYS);
    let logs = Logs { rows, organisation, workspaces: &workspaces, days: &days };
    let begun = Instant::now();
    log_rows::write(&client, &logs).await?;
    let old = today.checked_sub_days(Days::new(OLD)).context("there is such a day")?;
    log_rows::write(&client, &Logs { rows: rows / DAYS, days: &[old], ..logs }).await?;
    report.figure("rows, over a month", rows);
    report.figure("written in", format!("{:.0} s", begun.elapsed().as_secs_f64()));

    let caller = stack.administrator().await?;
    let lists = p95_of(&caller, |n| list(&days, n)).await?;
    report.figure("a list by three filters, p95", format!("{:.0} ms", lists.as_secs_f64() * 1000.0));
    // Those of the caller's own workspace, which has half of them.
    let own = own_ids(&client, workspaces[0]).await?;
    let reads = p95_of(&caller, |n| format!("/v1/logs/{}", own[n as usize % own.len()])).await?;
    report.figure("one log by its id, p95", format!("{:.0} ms", reads.as_secs_f64() * 1000.0));
    report.promise(&format!("a list is there within {} ms", LIMIT.as_millis()), lists < LIMIT);
    report.promise("and a single log too", reads < LIMIT);

    let taken = drop_of(&mut stack, &client, old).await?;
    report.figure("the old day was dropped in", format!("{taken:.3} s"));
    report.promise("a day is dropped within a second", taken < DROP_LIMIT);
    drop(client);
    stack.stop(report)
}

/// Three filters beside the time: model, team, and an outcome, a user or a range of tokens. A week each.
fn list(days: &[NaiveDate], n: u64) -> String {
    let from = days[n as usize % days.len()];
    let until = from + TimeDelta::days(7);
    let (provider, model, _) = MODELS[n as usize % MODELS.len()];
    let team = TEAMS[n as usize % TEAMS.len()];
    let third = match n % 3 {
        0 => "status_code=429".to_owned(),
        1 => "total_units_min=1000&total_units_max=1500".to_owned(),
        _ => "status_code=200".to_owned(),
    };
    let metadata = match n % 4 {
        0 => format!(r#"{{"_user":"user-{}"}}"#, n % USERS),
        _ => format!(r#"{{"team":"{team}"}}"#),
    };
    let metadata: String = url::form_urlencoded::byte_serialize(metadata.as_bytes()).collect();
    format!(
        "/v1/logs?time_of_generation_min={from}T00:00:00Z&time_of_generation_max={until}T00:00:00Z\
         &ai_org_model={provider}__{model}&metadata={metadata}&{third}&page_size=50"
    )
}

async fn own_ids(client: &tokio_postgres::Client, workspace: Uuid) -> anyhow::Result<Vec<Uuid>> {
    const IDS: &str = "SELECT id FROM request_logs TABLESAMPLE SYSTEM (1) WHERE workspace_id = $1
                       AND created_at > now() - interval '40 days' LIMIT 200";
    let rows = client.query(IDS, &[&workspace]).await?;
    ensure!(!rows.is_empty(), "there are too few rows");
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The time that 95 of 100 answers do not exceed. Each must be a success.
async fn p95_of(caller: &Caller, path: impl Fn(u64) -> String) -> anyhow::Result<Duration> {
    let mut times = Vec::new();
    for n in 0..READS {
        let path = path(n);
        let begun = Instant::now();
        let (status, text) = caller.answer(caller.request(Method::GET, &path, empty())).await?;
        times.push(begun.elapsed());
        ensure!(status == StatusCode::OK, "{path}: {status} {text}");
        ensure!(serde_json::from_str::<Value>(&text)?.is_object(), "{path}: {text}");
    }
    times.sort_unstable();
    Ok(times[(times.len() * 95).div_ceil(100) - 1])
}

/// How long admin's job took to drop the day: it is due at once, and looked at when admin starts.
async fn drop_of(stack: &mut Stack, client: &tokio_postgres::Client, day: NaiveDate) -> anyhow::Result<f64> {
    client.execute("DELETE FROM jobs WHERE name = 'expire_logs'", &[]).await?;
    stack.admin.signal(Signal::KILL)?;
    stack.admin.ended_within(PATIENCE).await?;
    stack.restart_admin().await?;
    let end = Instant::now() + PATIENCE;
    let gone = "SELECT to_regclass($1) IS NULL";
    let table = format!("request_logs_{}", day.format("%Y%m%d"));
    while !client.query_one(gone, &[&table]).await?.try_get::<_, bool>(0)? {
        ensure!(Instant::now() < end, "the old day is still there");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let caller = stack.administrator().await?;
    loop {
        let (_, text) = caller.answer(caller.request(Method::GET, "/metrics", empty())).await?;
        let seconds = text.lines().find_map(|line| {
            line.strip_prefix("gateway_admin_job_duration_seconds_sum{name=\"expire_logs\"}")?
                .trim()
                .parse::<f64>()
                .ok()
        });
        if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
            return Ok(seconds);
        }
        ensure!(Instant::now() < end, "admin does not say how long it took");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
