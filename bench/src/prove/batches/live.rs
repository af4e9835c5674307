//! Live traffic beside a batch at its usual pace: the slowest of a hundred calls hardly notices.

use super::SharedSettings;
use super::client::{begin, get, line, upload};
use crate::open_loop::{OpenLoop, Outcome};
use crate::prove::client::Caller;
use crate::prove::report::Report;
use crate::prove::stack::Stack;
use anyhow::ensure;
use futures::stream;
use serde_json::json;
use std::time::Duration;

const RATE: f64 = 300.0;
const LENGTH: Duration = Duration::from_secs(20);
const WARM_UP: Duration = Duration::from_secs(2);
const CONNECTIONS: usize = 32;
const ROWS: u32 = 50_000;
/// How much longer the slowest of a hundred calls may take than without a batch.
const MAX_TIMES: f64 = 1.2;

pub async fn prove(report: &mut Report) -> anyhow::Result<()> {
    let shared = SharedSettings::new()?;
    let store = shared.store_url();
    let settings = [("GATEWAY_MASTER_KEY", shared.master_key.as_str()), ("LOG_STORE_URL", store.as_str())];
    let stack = Stack::start(&settings).await?;
    let (caller, bare) = (stack.caller()?, stack.bare()?);
    stack.until_answered(&caller).await?;
    let mut without = load(&caller).await?;
    let lines = (1..=ROWS).map(|number| line(number, &json!({}), "Be brief."));
    let file = upload(&bare, stream::iter(lines)).await?;
    let batch = begin(&bare, &file, &stack.mock.url()).await?;
    let with = load(&caller).await?;
    let now = get(&bare, &format!("/v1/batches/{batch}")).await?;
    ensure!(now["status"] == "in_progress", "the batch did not run meanwhile: {now}");
    report.figure("rows that ran meanwhile", &now["request_counts"]["completed"]);
    let cancel = bare.post_json(&format!("/v1/batches/{batch}/cancel"), &json!({}));
    ensure!(bare.status(cancel).await?.is_success(), "the batch cannot be cancelled");
    super::client::until_over(std::slice::from_ref(&bare), &batch, Duration::from_secs(60)).await?;
    without.add(load(&caller).await?);
    report.figure("live calls without a batch, before and after", &without);
    report.figure("live calls beside a batch", &with);
    let times = with.percentile(0.99).as_secs_f64() / without.percentile(0.99).as_secs_f64();
    report.figure("p99 against that without a batch", format!("{times:.2} ×"));
    report.promise("no live call failed", with.failures() + without.failures() == 0);
    report.promise(&format!("p99 is at most {MAX_TIMES} × that without a batch"), times <= MAX_TIMES);
    stack.stop(report)
}

async fn load(caller: &Caller) -> anyhow::Result<Outcome> {
    let body =
        json!({ "model": "gpt-4o-mini", "messages": [{ "role": "user", "content": "Hello there, live traffic." }] });
    let request = caller.post_bytes("/v1/chat/completions", &body.to_string());
    let (address, rate, length) = (caller.address, RATE, LENGTH);
    OpenLoop { address, request, rate, length, warm_up: WARM_UP, connections: CONNECTIONS }.run().await
}
