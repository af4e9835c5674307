//! `gateway-admin`: migrate, make organisations, or (by default) all of that as needed, and serve.

use admin::settings::Command;
use admin::{Settings, serve};
use shared::bootstrap::FirstKeys;
use std::process::ExitCode;

fn main() -> ExitCode {
    let settings: Settings = match shared::conf::load(std::env::args_os()) {
        Ok(settings) => settings,
        Err(error) => error.exit(),
    };
    if let Err(error) = shared::telemetry::init(&settings.logs, "admin") {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    match run(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "admin stopped");
            ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(settings: &Settings) -> anyhow::Result<()> {
    match &settings.command {
        Some(Command::Migrate) => serve::migrate(settings).await,
        Some(Command::CreateOrganisation { name, owner_email }) => {
            show(&serve::create_organisation(settings, name, owner_email).await?);
            Ok(())
        }
        None => {
            serve::migrate(settings).await?;
            if let Some(keys) = serve::first_start(settings).await? {
                show(&keys);
            }
            serve::serve(settings).await
        }
    }
}

/// The only time an admin key is shown, as `NAME=value` lines that people and scripts both read. A key that the
/// operator gave is not repeated.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
fn show(keys: &FirstKeys) {
    println!("ORGANISATION_ID={}", keys.organisation_id);
    println!("WORKSPACE_ID={}", keys.workspace_id);
    if keys.is_generated {
        println!("# Shown once and stored only as a hash; keep it.");
        println!("GATEWAY_ADMIN_KEY={}", keys.admin_key.key);
    }
}
