//! An input as large as may be, and an output of half its size: the proxy that takes it, runs it and gives the results holds
//! little of either.

use super::SharedSettings;
use super::client::{begin, line, until_over, upload};
use crate::prove::client::{Caller, empty};
use crate::prove::report::{Report, megabytes};
use crate::prove::stack::Stack;
use anyhow::ensure;
use futures::stream;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use std::time::{Duration, Instant};

const MAX_MEMORY: u64 = 150 << 20;
const ROW_BYTES: u64 = 40_000;
const PATIENCE: Duration = Duration::from_secs(1200);

pub async fn prove(bytes: u64, report: &mut Report) -> anyhow::Result<()> {
    let shared = SharedSettings::new()?;
    let store = shared.store_url();
    let settings = [
        ("GATEWAY_MASTER_KEY", shared.master_key.as_str()),
        ("LOG_STORE_URL", store.as_str()),
        ("BATCH_ROWS", "500"),
        ("BATCH_EVERY_SECONDS", "1"),
    ];
    let stack = Stack::start(&settings).await?;
    let caller = stack.bare()?;
    let fault = json!({ "reply_bytes": ROW_BYTES / 2 });
    let empty_row = line(1, &fault, "").len() as u64;
    let padding = "x".repeat(usize::try_from(ROW_BYTES - empty_row - 10)?);
    let rows = u32::try_from(bytes / ROW_BYTES)?;
    let lines = (1..=rows).map(move |number| line(number, &fault, &padding));
    report.figure("proxy memory before", megabytes(stack.proxy.peak_memory()?));
    let file = upload(&caller, stream::iter(lines)).await?;
    let begun = Instant::now();
    let batch = begin(&caller, &file, &stack.mock.url()).await?;
    let done = until_over(std::slice::from_ref(&caller), &batch, PATIENCE).await?;
    report.figure(
        "rows of the large input, and how long they took",
        format!("{rows}, {:.0} s", begun.elapsed().as_secs_f64()),
    );
    let output = done["output_file_id"].as_str().unwrap_or_default();
    let (read, lines) = read_all(&caller, &format!("/v1/files/{output}/content")).await?;
    report.figure("output", megabytes(read));
    let counts = json!({ "total": rows, "completed": rows, "failed": 0 });
    report.promise(
        "all rows of the large input are answered, each in a line of the output",
        done["request_counts"] == counts && lines == u64::from(rows),
    );
    let peak = stack.proxy.peak_memory()?;
    report.figure("proxy memory at most", megabytes(peak));
    report.promise(&format!("the proxy stays under {}", megabytes(MAX_MEMORY)), peak < MAX_MEMORY);
    stack.stop(report)
}

/// How many bytes there are, and how many lines.
async fn read_all(caller: &Caller, path: &str) -> anyhow::Result<(u64, u64)> {
    let mut connection = caller.connect().await?;
    let mut answer = connection.send(caller.request(Method::GET, path, empty())).await?;
    ensure!(answer.status().is_success(), "{path}: {}", answer.status());
    let (mut bytes, mut lines) = (0, 0);
    while let Some(frame) = answer.body_mut().frame().await {
        if let Some(data) = frame?.data_ref() {
            bytes += data.len() as u64;
            lines += data.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }
    Ok((bytes, lines))
}
