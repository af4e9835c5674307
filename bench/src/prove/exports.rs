//! A large export: admin holds little of it at once, and when it is killed half way the next one goes on; the files are
//! complete and no log is in them twice.

use super::client::{Caller, empty};
use super::log_rows::{self, Logs};
use super::report::{Report, megabytes};
use super::rotation::made;
use super::stack::Stack;
use crate::process::Signal;
use anyhow::{Context as _, ensure};
use chrono::Utc;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// All that admin may ever hold.
const MEMORY: u64 = 100 << 20;
const PER_FILE: u64 = 50_000;
const PATIENCE: Duration = Duration::from_secs(600);

pub async fn prove(rows: u64, report: &mut Report) -> anyhow::Result<()> {
    let mut stack = Stack::start(&[("LOG_STORE_URL", "file://logs")]).await?;
    let client = stack.database().await?;
    let organisation: Uuid = client.query_one("SELECT id FROM organisations", &[]).await?.try_get(0)?;
    let days = log_rows::days_before(Utc::now().date_naive(), 3);
    let workspaces = [stack.workspace().await?];
    log_rows::write(&client, &Logs { rows, organisation, workspaces: &workspaces, days: &days }).await?;
    let caller = stack.administrator().await?;
    let fields = json!([
        "id",
        "trace_id",
        "created_at",
        "is_success",
        "ai_org",
        "ai_model",
        "req_units",
        "res_units",
        "total_units",
        "request_url",
        "cost",
        "cost_currency",
        "response_time",
        "response_status_code",
        "mode",
        "config",
        "metadata",
    ]);
    let export = made(&caller, "/v1/logs/exports", &json!({ "filters": {}, "requested_data": fields })).await?;
    let path = format!("/v1/logs/exports/{}", export["id"].as_str().context("it has an id")?);
    let begun = Instant::now();
    made(&caller, &format!("{path}/start"), &json!({})).await?;

    let half = until(&caller, &path, |export| exported(export) >= rows / 2).await?;
    let first = stack.admin.peak_memory()?;
    stack.admin.signal(Signal::KILL)?;
    stack.admin.ended_within(PATIENCE).await?;
    stack.restart_admin().await?;
    let done = until(&caller, &path, |export| export["status"] != "in_progress").await?;
    let second = stack.admin.peak_memory()?;
    report.figure("logs", rows);
    report.figure("killed after", exported(&half));
    report.figure("made in", format!("{:.1} s", begun.elapsed().as_secs_f64()));
    report.figure("peak memory of admin, before and after", format!("{} and {}", megabytes(first), megabytes(second)));
    report.promise("it was killed half way", half["status"] == "in_progress");
    report.promise("and complete all the same", done["status"] == "success" && exported(&done) == rows);
    report.promise("admin never held 100 MB", first.max(second) < MEMORY);

    let seen = fetched(&stack, &caller, &path, report).await?;
    report.promise("the files hold every log, and none twice", seen.lines == rows && seen.ids.len() as u64 == rows);
    report.promise("in files of at most 50,000", seen.files == rows.div_ceil(PER_FILE) && seen.longest <= PER_FILE);
    drop(client);
    stack.stop(report)
}

#[derive(Default)]
struct Fetched {
    ids: HashSet<Uuid>,
    lines: u64,
    files: u64,
    longest: u64,
}

/// All files by their links, which need no key, through the proxy.
async fn fetched(stack: &Stack, caller: &Caller, path: &str, report: &mut Report) -> anyhow::Result<Fetched> {
    let links = read(caller, &format!("{path}/download")).await?;
    let (visitor, mut seen, mut bytes) = (stack.caller()?, Fetched::default(), 0);
    for link in links["signed_urls"].as_array().context("there are links")? {
        let (_, path) = link.as_str().and_then(|link| link.split_once("/v1")).context("a link has a path")?;
        let (status, text) = visitor.answer(visitor.request(Method::GET, &format!("/v1{path}"), empty())).await?;
        ensure!(status == StatusCode::OK, "a file: {status}");
        let mut lines = 0;
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).context("a line is no JSON")?;
            seen.ids.insert(line["id"].as_str().context("a log has an id")?.parse()?);
            lines += 1;
        }
        bytes += text.len() as u64;
        seen.files += 1;
        seen.lines += lines;
        seen.longest = seen.longest.max(lines);
    }
    report.figure("files", format!("{} with {}", seen.files, megabytes(bytes)));
    Ok(seen)
}

fn exported(export: &Value) -> u64 {
    export["exported_records"].as_u64().unwrap_or_default()
}

async fn read(caller: &Caller, path: &str) -> anyhow::Result<Value> {
    let (status, text) = caller.answer(caller.request(Method::GET, path, empty())).await?;
    ensure!(status == StatusCode::OK, "{path}: {status} {text}");
    Ok(serde_json::from_str(&text)?)
}

async fn until(caller: &Caller, path: &str, is_so: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
    let end = Instant::now() + PATIENCE;
    loop {
        let export = read(caller, path).await?;
        if is_so(&export) {
            return Ok(export);
        }
        ensure!(Instant::now() < end, "it does not end: {export}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
