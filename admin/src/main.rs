//! `gateway-admin`: migrate, make organisations, verify the audit trail, or (by default) migrate as needed and serve.

use admin::cli::{self, Arguments};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Arguments = match shared::settings::load(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    if let Err(error) = shared::telemetry::init(&arguments.settings.logs, "admin") {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    shared::settings::warn_of_misspelt::<Arguments>();
    match cli::run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "admin stopped");
            ExitCode::FAILURE
        }
    }
}
