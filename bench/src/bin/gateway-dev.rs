//! The development supervisor: everything `make run` starts, and the Postgres under `make test`.

use bench::dev;
use clap::Parser;
use std::process::ExitCode;

#[derive(Parser)]
#[command(about = "Runs Portcullis on this machine, or its tests", version)]
enum Command {
    /// Starts Postgres, admin, proxy and the mock provider, and prints how to reach them.
    Run(dev::Settings),
    /// Runs a command with a Postgres for tests, named in TEST_DATABASE_URL.
    Test {
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Runs a command against a fresh stack, whose addresses and keys it finds in its environment.
    Stack {
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Run(settings) => dev::run::run(settings).await.map(|()| 0),
        Command::Test { command } => dev::test::run(&command).await,
        Command::Stack { command } => dev::stack::run(&command).await,
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("gateway-dev: {error:#}");
            ExitCode::FAILURE
        }
    }
}
