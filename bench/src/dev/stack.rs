//! `gateway-dev stack -- <command>`: a whole stack for one command, then the command's own exit code.
//!
//! It is `gateway-dev run` itself, in a folder and on ports of its own: what the command meets is what a newcomer
//! meets, and it learns of it from the same file, `.run/env`.

use super::test::code;
use crate::ports::Reservation;
use crate::postgres::{template, testing};
use crate::process::{self, Signal};
use anyhow::{Context as _, bail};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// A first start makes a database cluster and migrates it, on a machine that may be busy with tests.
const READY_WITHIN: Duration = Duration::from_secs(120);
const STOPPED_WITHIN: Duration = Duration::from_secs(30);
/// How much of the supervisor's log is shown when something failed.
const SHOWN_LINES: usize = 60;

/// Runs the command against a fresh stack; returns the exit code to leave with.
pub async fn run(command: &[String]) -> anyhow::Result<u8> {
    // Ctrl-C reaches the command by itself; we must outlive it to stop the stack.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let place = tempfile::Builder::new().prefix("portcullis-stack-").tempdir().context("cannot make a run folder")?;
    let database = Database::given().await?;
    let log = place.path().join("log");
    let mut supervisor = start(place.path(), &log, database.as_ref())?;
    let outcome = tokio::select! {
        outcome = against(command, place.path(), &mut supervisor) => outcome,
        _ = interrupt.recv() => Ok(130),
        _ = terminate.recv() => Ok(143),
    };
    stop(&mut supervisor).await;
    if let Some(database) = database {
        database.drop().await?;
    }
    remove_distant_postgres(place.path());
    if !matches!(outcome, Ok(0)) {
        eprintln!("--- last lines of the stack ---\n{}", tail(&log));
    }
    outcome
}

async fn against(command: &[String], folder: &Path, supervisor: &mut Child) -> anyhow::Result<u8> {
    let (program, arguments) = command.split_first().context("there is no command to run")?;
    let environment = until_ready(folder, supervisor).await?;
    let mut child = Command::new(program);
    child.args(arguments).envs(environment).kill_on_drop(true);
    let mut child = child.spawn().with_context(|| format!("cannot run {program}"))?;
    tokio::select! {
        status = child.wait() => Ok(code(status?)),
        status = supervisor.wait() => bail!("the stack ended under the command ({})", status?),
    }
}

fn start(folder: &Path, log: &Path, database: Option<&Database>) -> anyhow::Result<Child> {
    let output = File::create(log)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("run").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    // A group of its own: Ctrl-C must reach the command first.
    command.process_group(0).kill_on_drop(true);
    // What a developer has set for a stack of their own must not lead this one to it.
    for name in [
        "DATABASE_URL",
        "DATABASE_LISTEN_URL",
        "ADMIN_ADDRESSES",
        "SNAPSHOT_DIR",
        "JOURNAL_DIR",
        "LOG_STORE_URL",
        "UPGRADE_SOCK",
        "MOCK_PORT",
    ] {
        command.env_remove(name);
    }
    command.env("RUN_DIR", folder);
    for name in ["PROXY_PORT", "ADMIN_PORT", "METRICS_PORT"] {
        // The supervisor checks and takes the port at once, so the reservation need not live longer.
        command.env(name, Reservation::any()?.port().to_string());
    }
    if let Some(database) = database {
        command.env("DATABASE_URL", &database.url);
    }
    command.spawn().context("cannot start the supervisor")
}

/// The names and values of the environment file, once it is there.
async fn until_ready(folder: &Path, supervisor: &mut Child) -> anyhow::Result<Vec<(String, String)>> {
    let end = tokio::time::Instant::now() + READY_WITHIN;
    loop {
        if let Ok(text) = fs::read_to_string(folder.join("env")) {
            return Ok(assignments(&text));
        }
        if let Some(status) = supervisor.try_wait()? {
            bail!("the stack did not start ({status})");
        }
        if tokio::time::Instant::now() >= end {
            bail!("the stack was not ready within {} s", READY_WITHIN.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn stop(supervisor: &mut Child) {
    if let Some(pid) = supervisor.id() {
        let _ = process::signal(pid, Signal::TERM);
    }
    if tokio::time::timeout(STOPPED_WITHIN, supervisor.wait()).await.is_err() {
        eprintln!("gateway-dev: the stack did not stop within {} s and is killed", STOPPED_WITHIN.as_secs());
        let _ = supervisor.kill().await;
    }
}

/// A database of its own on the server that the run's tests use.
struct Database {
    server: String,
    name: String,
    url: String,
}

impl Database {
    async fn given() -> anyhow::Result<Option<Self>> {
        let Some(server) = std::env::var(testing::URL).ok().filter(|url| !url.is_empty()) else { return Ok(None) };
        let name = format!("{}{}", template::CLONE_PREFIX, uuid::Uuid::new_v4().simple());
        let client = template::connect(&server, "postgres").await?;
        client.batch_execute(&format!("CREATE DATABASE \"{name}\"")).await?;
        let mut url = url::Url::parse(&server).with_context(|| format!("{} is malformed", testing::URL))?;
        url.set_path(&name);
        Ok(Some(Self { server, name, url: url.into() }))
    }

    async fn drop(self) -> anyhow::Result<()> {
        let client = template::connect(&self.server, "postgres").await?;
        client.batch_execute(&format!("DROP DATABASE IF EXISTS \"{}\" WITH (FORCE)", self.name)).await?;
        Ok(())
    }
}

/// Postgres' files lie elsewhere when its user cannot walk to our folder.
fn remove_distant_postgres(folder: &Path) {
    if let Ok(home) = fs::read_to_string(folder.join("postgres/location")) {
        let _ = fs::remove_dir_all(PathBuf::from(home.trim()));
    }
}

fn assignments(text: &str) -> Vec<(String, String)> {
    text.lines().filter_map(|line| line.split_once('=')).map(|(name, value)| (name.into(), value.into())).collect()
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let skipped = text.lines().count().saturating_sub(SHOWN_LINES);
    // What has no name before it is the welcome, which shows keys; and what the supervisor says of its own failure.
    let is_shown = |line: &&str| line.get(8..10) == Some("| ") || line.starts_with("gateway-dev: ");
    text.lines().skip(skipped).filter(is_shown).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_sees_every_name_of_the_environment_file() {
        let found = assignments("A=http://x/v1\nB=k=\n");
        assert_eq!(found, [("A".into(), "http://x/v1".into()), ("B".to_owned(), "k=".to_owned())]);
    }

    #[test]
    fn the_shown_end_of_a_log_holds_no_key() {
        let place = tempfile::tempdir().unwrap();
        let log = place.path().join("log");
        let welcome = "  owner key      pk_a\n  -H 'x-gateway-api-key: pk_b' \\\n";
        fs::write(&log, format!("proxy   | started\n{welcome}gateway-dev: it failed\n")).unwrap();
        assert_eq!(tail(&log), "proxy   | started\ngateway-dev: it failed");
    }
}
