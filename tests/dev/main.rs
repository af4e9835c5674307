//! The development supervisor as a newcomer meets it: what it prints works, and whatever happens to it, the next
//! start is a good one.

mod deployed;
mod scripts;
mod settings;
mod stack;
mod supervisor;
mod tasks;

use bench::ports::Reservation;
use bench::process::{self, Signal};
use harness::{Client, Process, until};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// A run folder and ports, on which supervisors come and go.
struct Desk {
    folder: TempDir,
    ports: Vec<Reservation>,
}

/// One supervisor. It is asked to leave when dropped, so that nothing it started stays behind.
struct Supervisor(Process);

impl Desk {
    fn new() -> Self {
        let ports = (0..4).map(|_| Reservation::any().unwrap()).collect();
        Self { folder: tempfile::tempdir().unwrap(), ports }
    }

    fn run_dir(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    fn start(&self) -> Supervisor {
        self.start_told(&[])
    }

    fn start_told(&self, more: &[(&str, &str)]) -> Supervisor {
        let names = ["PROXY_PORT", "ADMIN_PORT", "METRICS_PORT", "MOCK_PORT"];
        let ports = names.iter().zip(&self.ports).map(|(name, port)| ((*name).to_owned(), port.port().to_string()));
        let folder = ("RUN_DIR".to_owned(), self.run_dir().to_string_lossy().into_owned());
        let more = more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let environment: Vec<_> = ports.chain([folder]).chain(more).collect();
        // `tempfile` may make a folder that the user under which Postgres runs cannot enter.
        open(self.folder.path());
        Supervisor(Process::start("gateway-dev", &["run"], &environment, self.folder.path()))
    }

    /// Starts one and waits until it says that everything is ready.
    async fn start_ready(&self) -> Supervisor {
        self.start_with(&[]).await
    }

    async fn start_with(&self, more: &[(&str, &str)]) -> Supervisor {
        let supervisor = self.start_told(more);
        until("the environment file is written", async || self.run_dir().join("env").exists()).await;
        until("the supervisor welcomes", async || supervisor.0.log().contains("Ctrl-C stops everything")).await;
        supervisor
    }

    fn environment(&self) -> HashMap<String, String> {
        let text = std::fs::read_to_string(self.run_dir().join("env")).unwrap();
        text.lines()
            .map(|line| line.split_once('=').unwrap())
            .map(|(name, value)| (name.into(), value.into()))
            .collect()
    }

    /// The programs that the supervisor noted.
    fn programs(&self) -> Vec<u32> {
        let noted = std::fs::read_to_string(self.run_dir().join("pids")).unwrap_or_default();
        noted.lines().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
    }

    /// What the proxy answers to the workspace key, without a provider.
    async fn chat_status(&self) -> u16 {
        let environment = self.environment();
        let client = Client::new(&environment["GATEWAY_BASE_URL"])
            .with_key(&environment["GATEWAY_WORKSPACE_KEY"])
            .with("x-gateway-provider", "openai")
            .with("authorization", "Bearer sk-mock")
            .with("x-gateway-custom-host", &environment["MOCK_PROVIDER_URL"]);
        client.post("/chat/completions", &harness::chat("Hello")).await.status.as_u16()
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.0.signal(Signal::TERM);
        process::wait_until(Duration::from_secs(30), || self.0.has_ended().is_some());
    }
}

/// The two commands of the welcome, as a person would copy them.
fn printed_commands(log: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut is_inside = false;
    for line in log.lines() {
        if line.starts_with("curl ") {
            commands.push(String::new());
            is_inside = true;
        }
        if is_inside {
            let command = commands.last_mut().unwrap();
            command.push_str(line);
            command.push('\n');
            is_inside = line.ends_with('\\');
        }
    }
    commands
}

fn shell(command: &str) -> String {
    let output = Command::new("sh").arg("-c").arg(command).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn open(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
}
