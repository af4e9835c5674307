//! The program `gateway-admin`: parses the command line and runs the command. Commands of the operator are here and
//! not with the resources, because nobody calls them over HTTP.

mod arguments;
mod commands;
mod compare_costs;
mod domains;
mod leases;
mod login_link;
mod prices;
mod unconfirmed;
mod verify_limits;

pub use arguments::Arguments;

use crate::app::settings::Settings;
use crate::audit::verify::ChainReport;
use crate::logs::erase::ErasureSubject;
use crate::server;
use anyhow::Context as _;
use arguments::{
    AnalyticsCommand, AuditCommand, Command, CostsCommand, DomainsCommand, KeysCommand, LimitsCommand, LogsCommand,
    PricesCommand,
};
use chrono::NaiveDate;
use shared::bootstrap::FirstKeys;
use shared::db::usage_slots::DayVerdict;
use shared::key_rotation::rotation::Progress;
use std::path::Path;
use std::process::ExitCode;
use uuid::Uuid;
use verify_limits::Finding;

/// Bad rows of a bill that are named one by one.
const MAX_BAD_ROWS: usize = 100;

/// Follows the command, or serves until a signal says otherwise.
#[tokio::main]
pub async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = &arguments.settings;
    match &arguments.command {
        Some(Command::Migrate) => commands::migrate(settings).await?,
        Some(Command::CreateOrganisation { name, owner_email }) => {
            show(&commands::create_organisation(settings, name, owner_email).await?);
        }
        Some(Command::Domains { command: DomainsCommand::Verify { organisation, domain } }) => {
            say(&domains::verify(settings, *organisation, domain).await?);
        }
        Some(Command::Domains { command: DomainsCommand::Release { domain } }) => {
            say(&domains::release(settings, domain).await?);
        }
        Some(Command::LoginLink { email, organisation }) => {
            say(&login_link::create(settings, email, *organisation).await?);
        }
        Some(Command::Audit { command: AuditCommand::Verify { organisation, anchor } }) => {
            return Ok(tell(&commands::verify_audit(settings, *organisation, *anchor).await?));
        }
        Some(Command::Analytics { command: AnalyticsCommand::Verify { from, until } }) => {
            return verify_figures(settings, *from, *until).await;
        }
        Some(Command::Keys { command }) => return keys(settings, command).await,
        Some(Command::Limits { command: LimitsCommand::Holders }) => {
            let holders = commands::limit_holders(settings).await?;
            holders.iter().for_each(|holder| say(&holder.to_string()));
        }
        Some(Command::Limits { command: LimitsCommand::Release { holder } }) => {
            say(&format!("{} leases given back", commands::release_limits(settings, *holder).await?));
        }
        Some(Command::Limits { command: LimitsCommand::Unconfirmed }) => {
            let charges = commands::unconfirmed_charges(settings).await?;
            charges.iter().for_each(|charge| say(&charge.to_string()));
        }
        Some(Command::Limits { command: LimitsCommand::Reconcile { request, verdict } }) => {
            say(&format!("{} charges reconciled", commands::reconcile_charges(settings, *request, *verdict).await?));
        }
        Some(Command::Limits { command: LimitsCommand::Verify { organisation, mend } }) => {
            let tell = &mut |finding: &Finding| say(&finding.to_string());
            let verified = commands::verify_limits(settings, *organisation, *mend, tell).await?;
            say(&verified.to_string());
            return Ok(if verified.left == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) });
        }
        Some(Command::Prices { command: PricesCommand::Import { file, from, plan } }) => {
            prices::import(settings, file.as_deref(), *from, *plan, &mut say).await?;
        }
        Some(Command::Costs { command: CostsCommand::Compare { bill, workspace, json } }) => {
            return compare_costs(settings, bill, *workspace, *json).await;
        }
        Some(Command::Logs { command: LogsCommand::Erase { organisation, user, trace, mode } }) => {
            let subject =
                ErasureSubject::from_user_or_trace(user.clone(), trace.clone()).context("name a user or a trace")?;
            say(&commands::erase_logs(settings, *organisation, &subject, *mode).await?.to_string());
        }
        None => {
            commands::migrate(settings).await?;
            if let Some(keys) = commands::first_start(settings).await? {
                show(&keys);
            }
            server::serve(settings).await?;
        }
    }
    Ok(ExitCode::SUCCESS)
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

#[expect(clippy::print_stdout, reason = "the answer of the command")]
fn say(words: &str) {
    println!("{words}");
}

/// Prints both sides, and which rows of the bill are left out.
async fn compare_costs(
    settings: &Settings,
    bill: &Path,
    workspace: Option<Uuid>,
    is_json: bool,
) -> anyhow::Result<ExitCode> {
    let invoice = compare_costs::read(bill).with_context(|| bill.display().to_string())?;
    let comparison = commands::compare_costs(settings, &invoice, workspace).await?;
    say(&if is_json { serde_json::to_string(&comparison)? } else { comparison.to_string() });
    for (line, reason) in invoice.unreadable.iter().take(MAX_BAD_ROWS) {
        eprintln!("line {line} is left out: {reason}");
    }
    if invoice.unreadable.len() > MAX_BAD_ROWS {
        eprintln!("{} rows are left out", invoice.unreadable.len());
    }
    Ok(if invoice.unreadable.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Says what was found of each day.
async fn verify_figures(settings: &Settings, from: NaiveDate, until: Option<NaiveDate>) -> anyhow::Result<ExitCode> {
    let verdicts = commands::verify_figures(settings, from, until).await?;
    verdicts.iter().for_each(|(day, verdict)| say(&format!("{day}: {verdict}")));
    let is_wrong = verdicts.iter().any(|(_, verdict)| matches!(verdict, DayVerdict::Mended { .. }));
    Ok(if is_wrong { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

/// What became of the keys; 3 is not what a failure to find out ends with.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
async fn keys(settings: &Settings, command: &KeysCommand) -> anyhow::Result<ExitCode> {
    let mut tell = |progress: Progress| match progress {
        Progress::Wrapped { keys } => println!("{keys} data keys are under the first master key now"),
        Progress::Sealed { organisation, values } => {
            println!("organisation {organisation}: {values} values sealed anew")
        }
    };
    let report = match command {
        KeysCommand::Status => commands::key_status(settings).await?,
        KeysCommand::Verify => commands::verify_keys(settings).await?,
        KeysCommand::Rotate { data_keys } => commands::rotate_keys(settings, *data_keys, &mut tell).await?,
    };
    println!("{report}");
    let is_judged = !matches!(command, KeysCommand::Status);
    Ok(if is_judged && !report.is_sound() { ExitCode::from(3) } else { ExitCode::SUCCESS })
}

/// Says what was found, and by the status whether the trail is intact; 3 is not what a failure to read it ends with.
#[expect(clippy::print_stdout, reason = "the answer of the command")]
fn tell(reports: &[ChainReport]) -> ExitCode {
    reports.iter().for_each(|report| println!("{report}"));
    if reports.iter().all(ChainReport::is_intact) { ExitCode::SUCCESS } else { ExitCode::from(3) }
}
