//! `gateway-dev test -- <command>`: one Postgres for one run of the tests, then the command's own exit code.

use crate::postgres::testing::{self, Private};
use anyhow::Context as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Runs the command with a test server; returns the exit code to leave with.
pub async fn run(command: &[String]) -> anyhow::Result<u8> {
    let (program, arguments) = command.split_first().context("there is no command to run")?;
    // Ctrl-C reaches the command by itself; we must outlive it to stop the server.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let given = std::env::var(testing::URL).ok().filter(|url| !url.is_empty());
    let (server, url) = match given {
        Some(url) => (None, url),
        None => {
            let server = tokio::task::spawn_blocking(Private::start).await??;
            let url = server.url();
            testing::prepare(&url).await?;
            (Some(server), url)
        }
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env(testing::URL, &url)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {
                if let Some(pid) = child.id() {
                    crate::process::signal(pid, crate::process::Signal::TERM)?;
                }
            }
        }
    };
    if let Some(server) = server {
        tokio::task::spawn_blocking(|| server.stop()).await??;
    }
    Ok(code(status))
}

/// As a shell would say it: a signal is 128 and its number.
pub(super) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
