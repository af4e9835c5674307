//! The programs under the supervisor: started in process groups of their own (Ctrl-C reaches the supervisor alone,
//! which then stops them in order), with every line of theirs under their name.

use super::folder::RunFolder;
use crate::process::{self, Signal};
use anyhow::Context as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};

/// One supervised program.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    child: Child,
}

impl Program {
    /// Starts a program that lies beside this one. Secrets go by environment: everybody can read a command line.
    pub fn start(
        name: &'static str,
        executable: &Path,
        arguments: &[String],
        environment: &[(String, String)],
        folder: &RunFolder,
    ) -> anyhow::Result<Self> {
        let mut command = Command::new(executable);
        command.args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", executable.display()))?;
        if let Some(pid) = child.id() {
            folder.remember(pid)?;
        }
        tokio::spawn(prefix(name, child.stdout.take()));
        tokio::spawn(prefix(name, child.stderr.take()));
        Ok(Self { name, child })
    }

    /// Resolves when the program has ended.
    pub async fn ended(&mut self) -> String {
        describe(self.name, self.child.wait().await)
    }

    /// Whether it ended already, and how.
    pub fn has_ended(&mut self) -> Option<String> {
        self.child.try_wait().transpose().map(|status| describe(self.name, status))
    }

    /// Asks it to leave, and insists when the time is over.
    pub async fn stop(&mut self, patience: Duration) {
        if let Some(pid) = self.child.id() {
            let _ = process::signal(pid, Signal::TERM);
        }
        if tokio::time::timeout(patience, self.child.wait()).await.is_err() {
            say(&format!("{} did not leave within {} s and is killed", self.name, patience.as_secs()));
            let _ = self.child.kill().await;
        }
    }
}

/// One line of the supervisor's own.
pub fn say(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout().lock(), "{:<8}| {line}", "run");
}

fn describe(name: &str, status: std::io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => format!("{name} ended by itself ({status})"),
        Err(error) => format!("{name} cannot be watched: {error}"),
    }
}

async fn prefix(name: &'static str, output: Option<impl AsyncRead + Unpin>) {
    let Some(output) = output else { return };
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await.is_ok_and(|length| length > 0) {
        let text = format!("{name:<8}| {}\n", String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']));
        // Written in one piece, so that lines of several programs do not mix.
        let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), text.as_bytes());
        line.clear();
    }
}
