//! `gateway-proxy`: reads its settings, then serves until told to leave.

mod control_plane;
mod follow;
mod gateway;
mod health;
mod leave;
mod serve;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let settings: proxy::settings::Settings = match shared::conf::load(std::env::args_os()) {
        Ok(settings) => settings,
        Err(error) => error.exit(),
    };
    if let Err(error) = shared::telemetry::init(&settings.logs, "proxy") {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    match serve::serve(settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the proxy could not start");
            ExitCode::FAILURE
        }
    }
}
