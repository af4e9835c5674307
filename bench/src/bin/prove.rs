//! The heavier proofs as a program: `prove upload`, `prove streams`, … Leaves with 1 when a promise did not hold.

use bench::prove::Proof;
use clap::Parser;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

#[derive(Parser)]
#[command(about = "Proves what Portcullis promises under weight and in trouble", version)]
struct Arguments {
    #[command(subcommand)]
    proof: Proof,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // A thousand streams are four thousand sockets between the three processes.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    let _ = setrlimit(Resource::Nofile, files);
    // Whoever interrupts a proof must not leave its Postgres behind: dropping the proof stops everything it started.
    let mut terminate = signal(SignalKind::terminate()).expect("a process may listen to its signals");
    let outcome = tokio::select! {
        outcome = arguments.proof.run() => outcome,
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow::anyhow!("terminated")),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove {}: {error:#}", arguments.proof.name());
            ExitCode::FAILURE
        }
    }
}
