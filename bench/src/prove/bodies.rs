//! Very many calls with bodies, and a proxy that is killed among them: few objects, little more disk than their content, each
//! read soon, nothing left behind, and an erased person in no byte of any of them.

use super::client::{Caller, empty};
use super::ingest::figure;
use super::report::{Report, megabytes};
use super::stack::Stack;
use crate::process::Signal;
use anyhow::{Context as _, ensure};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use shared::log_store::unpack;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_postgres::Client;
use uuid::Uuid;

const CLIENTS: u64 = 16;
/// One of so many calls is of the person who is erased.
const ERASED_ONE_OF: u64 = 50;
const ERASED: &str = "ada-who-is-forgotten";
/// Calls that an object holds, at least, on average.
const MIN_CALLS: u64 = 200;
const READS: i64 = 500;
const SLOWEST: Duration = Duration::from_millis(50);
/// Above what it holds without bodies.
const MEMORY: u64 = 300 << 20;
const PATIENCE: Duration = Duration::from_secs(120);
/// Bytes of all ranges that rows name.
const CONTENT: &str = "SELECT sum(split_part(split_part(body_key, '#', 2), '+', 2)::bigint)::bigint FROM request_logs";
/// An object that is read here whole, unpacked.
const MAX_OBJECT: usize = 1 << 30;

pub async fn prove(calls: u64, report: &mut Report) -> anyhow::Result<()> {
    let mut stack = Stack::start(&[]).await?;
    stack.until_answered(&stack.caller()?).await?;
    fill(&stack, calls / 2).await?;
    // Bodies wait on disk now, and some are on their way.
    let memory = stack.proxy.peak_memory()?;
    stack.proxy.signal(Signal::KILL)?;
    stack.proxy.ended_within(PATIENCE).await?;
    stack.restart_proxy().await?;
    fill(&stack, calls - calls / 2).await?;
    let client = stack.database().await?;
    until_packed(&client, calls).await?;
    let memory = stack.proxy.peak_memory()?.max(memory);
    report.figure("calls", calls);
    report.figure(
        "bodies stored by the second process",
        figure(&stack.health(), "gateway_log_bodies_stored_total").await?,
    );
    report.figure("peak memory of the proxy", megabytes(memory));
    report.promise("the proxy holds little of them", memory < MEMORY);

    sweep(&client).await?;
    let store = stack.folder().join("logs");
    let objects = found(&store.join("bodies"))?;
    report.promise(
        "every object is named by rows, and none is missing",
        named(&client).await? == names(&store, &objects),
    );
    let disk = objects
        .iter()
        .map(|path| fs::metadata(path).map(|found| found.blocks() * 512))
        .sum::<std::io::Result<u64>>()?;
    let content = u64::try_from(client.query_one(CONTENT, &[]).await?.try_get::<_, i64>(0)?)?;
    report.figure("objects", objects.len());
    report.figure("content and disk", format!("{} and {}", megabytes(content), megabytes(disk)));
    report.promise("at most 5,000 objects for a million calls", objects.len() as u64 <= calls.div_ceil(MIN_CALLS));
    report.promise("disk is at most 1.15 times the content", disk as f64 <= content as f64 * 1.15);

    let reader = stack.administrator().await?;
    let slow = read_some(&client, &reader).await?;
    report.figure("GET /logs/{id}, p95", format!("{:.1} ms", slow.as_secs_f64() * 1000.0));
    report.promise("a log with its bodies is read in 50 ms (p95)", slow <= SLOWEST);

    report.promise("the person is found before", holds(&objects, ERASED)?);
    let organisation: Uuid = client.query_one("SELECT id FROM organisations", &[]).await?.try_get(0)?;
    let organisation = organisation.to_string();
    let arguments = ["logs", "erase", "--organisation", &organisation, "--user", ERASED, "--mode", "delete"];
    let began = Instant::now();
    let erased = stack.admin_command(&arguments, &[]).await?;
    report.figure("erased in", format!("{:.1} s", began.elapsed().as_secs_f64()));
    report.promise("the person is erased", erased.is_success());
    report.promise("and in no byte of any object", !holds(&found(&store.join("bodies"))?, ERASED)?);
    report.promise("everybody else is still read", read_some(&client, &reader).await.is_ok());
    drop(client);
    stack.stop(report)
}

/// Makes so many calls, each of which says something of its own.
async fn fill(stack: &Stack, calls: u64) -> anyhow::Result<()> {
    let left = Arc::new(AtomicU64::new(calls));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let (caller, left) = (stack.caller()?, left.clone());
        let erased = caller.with("x-gateway-metadata", &json!({ "_user": ERASED }).to_string())?;
        clients.spawn(async move {
            let mut connection = caller.connect().await?;
            while let Ok(n) = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)) {
                let is_erased = n % ERASED_ONE_OF == 0;
                let caller = if is_erased { &erased } else { &caller };
                let text = format!("{} {}", if is_erased { ERASED } else { "somebody" }, words(n));
                let body = json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": text }] });
                let answer = connection.send(caller.post_json("/v1/chat/completions", &body)).await?;
                ensure!(answer.status() == 200, "status {}", answer.status());
                answer.into_body().collect().await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(())
}

/// A text of its own for each number, which compresses about as well as language does.
fn words(n: u64) -> String {
    const WORDS: &[&str] =
        &["river", "stone", "letter", "gateway", "budget", "morning", "query", "answer", "table", "light"];
    let mut seed = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let word = |_| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        format!("{}-{}", WORDS[(seed % WORDS.len() as u64) as usize], seed % 1000)
    };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

async fn until_packed(client: &Client, calls: u64) -> anyhow::Result<()> {
    const PACKED: &str = "SELECT count(*) FILTER (WHERE body_key LIKE '%#%'), count(body_key) FROM request_logs";
    let (mut end, mut before) = (Instant::now() + PATIENCE, 0);
    loop {
        let row = client.query_one(PACKED, &[]).await?;
        let (packed, all): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if packed == all && u64::try_from(all)? >= calls {
            return Ok(());
        }
        // Packing yields to whatever else the machine does: only a standstill is a failure.
        if packed > before {
            (end, before) = (Instant::now() + PATIENCE, packed);
        }
        ensure!(Instant::now() < end, "{packed} of {all} bodies are stored, of {calls} calls");
        // Every row is counted each time.
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

/// Has admin delete now what a dead process left half way, not in an hour.
async fn sweep(client: &Client) -> anyhow::Result<()> {
    client.execute("UPDATE object_deletions SET noted_at = now()", &[]).await?;
    let end = Instant::now() + PATIENCE;
    loop {
        let left: i64 = client.query_one("SELECT count(*) FROM object_deletions", &[]).await?.try_get(0)?;
        if left == 0 {
            return Ok(());
        }
        ensure!(Instant::now() < end, "{left} objects are still to be deleted");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Every file below a folder.
fn found(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    Ok(found)
}

fn names(store: &Path, objects: &[PathBuf]) -> HashSet<String> {
    objects.iter().filter_map(|path| Some(path.strip_prefix(store).ok()?.display().to_string())).collect()
}

async fn named(client: &Client) -> anyhow::Result<HashSet<String>> {
    const NAMED: &str = "SELECT DISTINCT split_part(body_key, '#', 1) FROM request_logs WHERE body_key IS NOT NULL";
    let rows = client.query(NAMED, &[]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The time that 95 of 100 reads of some log with its bodies do not exceed.
async fn read_some(client: &Client, reader: &Caller) -> anyhow::Result<Duration> {
    const SOME: &str = "SELECT id FROM request_logs WHERE body_key IS NOT NULL ORDER BY random() LIMIT $1";
    let mut times = Vec::new();
    for row in client.query(SOME, &[&READS]).await? {
        let path = format!("/v1/logs/{}", row.try_get::<_, Uuid>(0)?);
        let began = Instant::now();
        let (status, text) = reader.answer(reader.request(Method::GET, &path, empty())).await?;
        times.push(began.elapsed());
        ensure!(status == StatusCode::OK, "{path}: {status} {text}");
        let log: Value = serde_json::from_str(&text)?;
        ensure!(log["log_format"] == "v2" && log["request"]["body"].is_object(), "{path} has no body: {text}");
    }
    times.sort_unstable();
    times.get((times.len() * 95).div_ceil(100).saturating_sub(1)).copied().context("there are logs")
}

/// Whether a text is in one of the objects, compressed or not.
fn holds(objects: &[PathBuf], text: &str) -> anyhow::Result<bool> {
    for path in objects {
        let bytes = fs::read(path)?;
        let unpacked = unpack(&bytes, MAX_OBJECT).with_context(|| path.display().to_string())?;
        if String::from_utf8_lossy(&bytes).contains(text) || String::from_utf8_lossy(&unpacked).contains(text) {
            return Ok(true);
        }
    }
    Ok(false)
}
