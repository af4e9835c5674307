//! The proxy killed again and again under load. What reached a client is in the logs, once; what is not in the logs was
//! cut by a kill.

use super::report::Report;
use super::stack::Stack;
use super::tagged::{self, Tagged};
use crate::process::Signal;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// Requests that the provider remembers: more than any run makes.
const REMEMBERED: usize = 1_000_000;

pub async fn prove(kills: u32, report: &mut Report) -> anyhow::Result<()> {
    let mut stack = Stack::remembering(&[("JOURNAL_SHIP_MS", "200")], REMEMBERED).await?;
    let load = Tagged::start(&stack.caller()?);
    for kill in 0..kills {
        // At ever different moments of its work.
        tokio::time::sleep(Duration::from_millis(200 + u64::from(kill * 37 % 400))).await;
        stack.proxy.signal(Signal::KILL)?;
        stack.proxy.ended_within(PATIENCE).await?;
        stack.restart_proxy().await?;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let outcome = load.stop().await?;
    report.figure("kills", kills);
    tagged::compare(&stack, &outcome, report).await?;
    stack.stop(report)
}
