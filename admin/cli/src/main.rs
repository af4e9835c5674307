//! The program `portcullis`: the gateway from a terminal, a script or a pipeline.
//!
//! It speaks to the control plane over HTTP and knows nothing else of it: neither the database nor the other crates. Data goes to
//! stdout, words about it to stderr.

mod arguments;
mod call;
mod commands;
mod context;
mod curl;
mod global;
mod http;
mod import;
mod kinds;
mod objects;
mod outcome;
mod output;
mod secret_file;
mod secrets;
mod session;
mod tree;

use arguments::Arguments;
use clap::Parser;
use clap::error::ErrorKind;
use outcome::{Exit, Failure};
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            // Clap would end with 2, which means that there are changes.
            let is_asked_for = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            return if is_asked_for { Exit::Fine } else { Exit::Failed }.into();
        }
    };
    match arguments::run(arguments).await {
        Ok(exit) => exit.into(),
        Err(Failure::CallIsShown) => Exit::Fine.into(),
        Err(failure) => {
            eprintln!("portcullis: {}", output::printable_lines(&failure.to_string()));
            failure.exit().into()
        }
    }
}
