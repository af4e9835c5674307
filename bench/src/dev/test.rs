//! `gateway-dev test -- <command>`: one Postgres for one run of the tests, then the command's own exit code.

use crate::mock::authority::Authority;
use crate::postgres::testing::{self, Private};
use anyhow::Context as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// Where OpenSSL finds the authorities that it trusts.
pub const AUTHORITIES: &str = "SSL_CERT_FILE";
/// The value of that variable outside of the test run, for commands that install packages; empty if there was none.
pub const PUBLIC_AUTHORITIES: &str = "TEST_PUBLIC_SSL_CERT_FILE";

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
    let authorities = tempfile::Builder::new().prefix("portcullis-authority-").suffix(".pem").tempfile()?;
    std::fs::write(authorities.path(), Authority::new()?.pem()?)?;
    let mut command = Command::new(program);
    command.args(arguments).env(testing::URL, &url);
    // Tests reach no public host. OpenSSL reads the system's whole bundle for each client and program that a test starts,
    // which is half of the processor time of a short test; one authority is read at once.
    command.env(PUBLIC_AUTHORITIES, std::env::var_os(AUTHORITIES).unwrap_or_default());
    command.env(AUTHORITIES, authorities.path());
    let mut child = command.spawn().with_context(|| format!("cannot run {program}"))?;
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
