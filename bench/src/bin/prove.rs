//! The heavier proofs as a program: `prove upload`, `prove streams`, … Leaves with 1 when a promise did not hold.

use bench::prove::Proof;
use clap::Parser;
use rustix::process::{Resource, getrlimit, setrlimit};
use std::process::ExitCode;

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
    match arguments.proof.run().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("prove {}: {error:#}", arguments.proof.name());
            ExitCode::FAILURE
        }
    }
}
