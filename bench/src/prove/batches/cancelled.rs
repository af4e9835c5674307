//! A batch at a high pace is cancelled in the middle while two proxies run it: a second later no row begins any more, and whatever
//! was asked is in the output.

use super::client::{get, line};
use super::crew::Crew;
use crate::prove::client::Caller;
use crate::prove::report::Report;
use anyhow::{bail, ensure};
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
/// Within which nothing new begins any more.
const WITHIN: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(120);

pub async fn prove(report: &mut Report) -> anyhow::Result<()> {
    let crew = Crew::start(PROXIES, PACE).await?;
    let fault = json!({ "latency_ms": LATENCY_MS });
    let batch = crew.begin((1..=ROWS).map(move |number| line(number, &fault, "Be brief."))).await?;
    until_ran(&crew.callers[0], &batch).await?;
    let cancel = crew.callers[1].post_json(&format!("/v1/batches/{batch}/cancel"), &json!({}));
    ensure!(crew.callers[1].status(cancel).await?.is_success(), "the batch cannot be cancelled");
    let mock = &crew.stack.mock;
    let under_way = mock.counts().in_flight;
    tokio::time::sleep(WITHIN).await;
    let soon = mock.requests().len();
    let over = crew.until_over(&batch, PATIENCE).await?;
    let asked = mock.requests().len();
    let (output, errors) = (over.output.len(), over.errors.len());
    report.figure("rows under way when a batch was cancelled", under_way);
    report.figure("rows asked a second later, and at all", format!("{soon} and {asked}"));
    report.promise("a cancelled batch begins no row more after a second", soon == asked);
    let counts = json!({ "total": ROWS, "completed": output, "failed": 0 });
    let is_reported = over.object["status"] == "cancelled" && over.object["request_counts"] == counts;
    let is_whole = output == asked && output + errors == ROWS as usize;
    report.figure("rows in its output and its error file", format!("{output} and {errors}"));
    report.promise("what ran is in the output, and every other row is told", is_reported && is_whole);
    crew.stop(report)
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
