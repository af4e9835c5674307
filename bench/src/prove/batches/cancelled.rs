//! A batch at a high pace is cancelled in the middle while two proxies run it: a second later no row begins any more, and whatever
//! was asked is in the output.

use super::SharedSettings;
use super::client::{begin, get, line, results, until_over, upload};
use crate::prove::client::Caller;
use crate::prove::report::Report;
use crate::prove::stack::Stack;
use anyhow::{bail, ensure};
use futures::stream;
use serde_json::json;
use std::time::{Duration, Instant};

const PROXIES: usize = 2;
/// Rows a second.
const PACE: &str = "200";
const ROWS: u32 = 20_000;
/// So many ran before it is cancelled.
const RAN: u64 = 500;
/// Of each row, so that some are under way then.
const LATENCY_MS: u32 = 300;
/// Requests that the provider remembers: more than there are.
const REMEMBERED: usize = 100_000;
/// Within which nothing new begins any more.
const WITHIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);

pub async fn prove(report: &mut Report) -> anyhow::Result<()> {
    let shared = SharedSettings::new()?;
    let store = shared.store_url();
    let settings = [
        ("GATEWAY_MASTER_KEY", shared.master_key.as_str()),
        ("LOG_STORE_URL", store.as_str()),
        ("BATCH_ROWS", PACE),
        ("BATCH_EVERY_SECONDS", "1"),
    ];
    let mut stack = Stack::remembering(&settings, REMEMBERED).await?;
    let replicas = stack.replicas(PROXIES).await?;
    let callers: Vec<Caller> = replicas.iter().map(|replica| stack.bare_at(replica)).collect::<Result<_, _>>()?;
    let fault = json!({ "latency_ms": LATENCY_MS });
    let lines = (1..=ROWS).map(move |number| line(number, &fault, "Be brief."));
    let file = upload(&callers[0], stream::iter(lines)).await?;
    let batch = begin(&callers[0], &file, &stack.mock.url()).await?;
    until_ran(&callers[0], &batch).await?;
    let cancel = callers[1].post_json(&format!("/v1/batches/{batch}/cancel"), &json!({}));
    ensure!(callers[1].status(cancel).await?.is_success(), "the batch cannot be cancelled");
    let under_way = stack.mock.counts().in_flight;
    tokio::time::sleep(WITHIN).await;
    let soon = stack.mock.requests().len();
    let done = until_over(&callers, &batch, PATIENCE).await?;
    let asked = stack.mock.requests().len();
    let output = results(&callers[0], &done["output_file_id"]).await?.len();
    let errors = results(&callers[0], &done["error_file_id"]).await?.len();
    report.figure("rows under way when a batch was cancelled", under_way);
    report.figure("rows asked a second later, and at all", format!("{soon} and {asked}"));
    report.promise("a cancelled batch begins no row more after a second", soon == asked);
    let counts = json!({ "total": ROWS, "completed": output, "failed": 0 });
    let is_told = done["status"] == "cancelled" && done["request_counts"] == counts;
    let is_whole = output == asked && output + errors == ROWS as usize;
    report.figure("rows in its output and its error file", format!("{output} and {errors}"));
    report.promise("what ran is in the output, and every other row is told", is_told && is_whole);
    drop(replicas);
    stack.stop(report)
}

async fn until_ran(caller: &Caller, batch: &str) -> anyhow::Result<()> {
    let (path, end) = (format!("/v1/batches/{batch}"), Instant::now() + PATIENCE);
    loop {
        let now = get(caller, &path).await?;
        if now["request_counts"]["completed"].as_u64() >= Some(RAN) {
            return Ok(());
        }
        if Instant::now() > end {
            bail!("hardly a row ran: {now}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
