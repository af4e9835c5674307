//! `make bench`. Ends with 1 when a limit does not hold.

use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let settings = bench::compare::Settings::parse();
    let mut terminate = signal(SignalKind::terminate())?;
    // Dropping the run ends its processes.
    let all_hold = tokio::select! {
        outcome = bench::compare::run(&settings) => outcome?,
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
        _ = terminate.recv() => bail!("terminated"),
    };
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
