//! `make bench`. Ends with 1 when a limit does not hold.

use std::process::ExitCode;

use clap::Parser;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let settings = bench::compare::Settings::parse();
    let all_hold = tokio::select! {
        outcome = bench::compare::run(&settings) => outcome?,
        // Dropping the run ends its processes.
        _ = tokio::signal::ctrl_c() => false,
    };
    Ok(if all_hold { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
