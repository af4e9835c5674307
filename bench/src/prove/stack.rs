//! The stack of a proof: Postgres, admin and proxy as separate processes that can be killed one by one, and a mock
//! provider in this process, whose counters can be awaited.

mod replica;

pub use replica::Replica;

use super::client::Caller;
use super::report::Report;
use crate::mock::{Mock, Options};
use crate::ports::Reservation;
use crate::postgres::{self, Purpose, Server, template};
use crate::process::{self, Signal};
use anyhow::{Context as _, bail};
use http::StatusCode;
use shared::bootstrap;
use shared::identity::scopes;
use shared::model::KeyKind;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::process::{Child, Command};
use uuid::Uuid;

const READY_WITHIN: Duration = Duration::from_secs(60);
const DATABASE: &str = "gateway";
const KEY_PREFIX: &str = "pk_";
const SHOWN_LINES: usize = 20;

pub struct Stack {
    pub mock: Mock,
    pub proxy: Program,
    pub admin: Program,
    server: Server,
    environment: Vec<(&'static str, String)>,
    ports: [Reservation; 3],
    place: TempDir,
    key: String,
}

/// How a command ended, and what it said.
pub struct Outcome {
    pub code: Option<i32>,
    text: String,
}

impl Outcome {
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    pub fn says(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}

/// One of our programs; killed when dropped.
pub struct Program {
    child: Child,
    pid: u32,
    log: PathBuf,
}

impl Stack {
    /// `settings` are for the proxy and admin alike, beyond the usual ones.
    pub async fn start(settings: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        Self::remembering(settings, 0).await
    }

    /// The same, with a provider that remembers so many requests.
    pub async fn remembering(settings: &[(&'static str, &str)], remember: usize) -> anyhow::Result<Self> {
        Self::with_provider(settings, Options { remember, ..Options::default() }).await
    }

    /// The same, with a provider that keeps a bill.
    pub async fn billing(settings: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        Self::with_provider(settings, Options { remember: 0, bills: true, ..Options::default() }).await
    }

    async fn with_provider(settings: &[(&'static str, &str)], provider: Options) -> anyhow::Result<Self> {
        let place = tempfile::Builder::new().prefix("portcullis-prove-").tempdir()?;
        // Postgres may run as another user: it may walk through, but not look around.
        fs::set_permissions(place.path(), Permissions::from_mode(0o711))?;
        let options = postgres::Options::new(place.path().join("postgres"), Purpose::Run);
        let server = tokio::task::spawn_blocking(move || Server::start(&options)).await??;
        server.create_database(DATABASE).await?;
        let mock = Mock::try_start(provider)?;
        let ports = [Reservation::any()?, Reservation::any()?, Reservation::any()?];
        let mut environment = environment(&server.url(DATABASE), &ports);
        environment.extend(settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
        let mut admin = Program::start("gateway-admin", &[], &environment, place.path())?;
        admin.until_ready(&ports[1], "/readyz").await?;
        let key = new_key(&server).await?;
        let mut proxy = Program::start("gateway-proxy", &[], &environment, place.path())?;
        proxy.until_ready(&ports[2], "/readyz").await?;
        proxy.until_ready(&ports[0], "/").await?;
        Ok(Self { mock, proxy, admin, server, environment, ports, place, key })
    }

    /// An application with a known key, whose provider is the mock.
    pub fn caller(&self) -> anyhow::Result<Caller> {
        self.caller_with(&self.key)
    }

    pub fn caller_with(&self, key: &str) -> anyhow::Result<Caller> {
        self.application(self.ports[0].port(), key)
    }

    /// The application with the known key, whose provider is another mock.
    pub fn caller_to(&self, provider: &Mock) -> anyhow::Result<Caller> {
        application(self.ports[0].port(), &self.key, &provider.url())
    }

    fn application(&self, port: u16, key: &str) -> anyhow::Result<Caller> {
        application(port, key, &self.mock.url())
    }

    /// An application that calls a provider of the catalogue.
    pub async fn caller_of(&self, slug: &str) -> anyhow::Result<Caller> {
        self.bare()?.with("x-gateway-provider", &format!("@{slug}"))
    }

    /// An application that calls by a config, saved or inline.
    pub async fn caller_by(&self, config: &str) -> anyhow::Result<Caller> {
        self.bare()?.with("x-gateway-config", config)
    }

    /// An application without a provider, for what the gateway keeps itself.
    pub fn bare(&self) -> anyhow::Result<Caller> {
        Caller::at(self.ports[0].port()).with("x-gateway-api-key", &self.key)
    }

    /// Waits until a caller's chat is answered.
    pub async fn until_answered(&self, caller: &Caller) -> anyhow::Result<()> {
        let end = Instant::now() + READY_WITHIN;
        loop {
            let (status, text) = caller.answer(caller.chat(&serde_json::json!({}), false)).await?;
            if status == StatusCode::OK {
                return Ok(());
            }
            if Instant::now() > end {
                bail!("still {status}: {text}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Whoever may set up everything in the first workspace, at the proxy's own address.
    pub async fn administrator(&self) -> anyhow::Result<Caller> {
        let client = self.database().await?;
        let scopes = scopes::all_for(KeyKind::WorkspaceService);
        let key =
            bootstrap::create_workspace_key(&client, self.workspace().await?, "Setup", &scopes, KEY_PREFIX).await?;
        let caller = Caller::at(self.ports[1].port()).with("x-gateway-api-key", &key.key)?;
        Ok(caller)
    }

    /// Admin's own address, for who needs no key.
    pub fn administrator_address(&self) -> Caller {
        Caller::at(self.ports[1].port())
    }

    pub async fn workspace(&self) -> anyhow::Result<Uuid> {
        let client = self.database().await?;
        bootstrap::first_workspace(&client).await?.context("there is no default workspace")
    }

    /// What a command of `gateway-admin` came to; `settings` replace the stack's.
    pub async fn admin_command(
        &self,
        arguments: &[&str],
        settings: &[(&'static str, String)],
    ) -> anyhow::Result<Outcome> {
        let mut command = Command::new(executable("gateway-admin")?);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().chain(settings).map(|(name, value)| (name, value)));
        let output = command.current_dir(self.place.path()).stdin(Stdio::null()).kill_on_drop(true).output().await?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(Outcome { code: output.status.code(), text })
    }

    /// Where the programs run: their journal, their log store.
    pub fn folder(&self) -> &Path {
        self.place.path()
    }

    /// Metrics, health and readiness of the proxy.
    pub fn health(&self) -> Caller {
        Caller::at(self.ports[2].port())
    }

    /// A key written to Postgres just now.
    pub async fn new_key(&self) -> anyhow::Result<String> {
        new_key(&self.server).await
    }

    /// A connection to write rows by.
    pub async fn database(&self) -> anyhow::Result<tokio_postgres::Client> {
        template::connect(&self.server.url("postgres"), DATABASE).await
    }

    pub fn crash_postgres(&self) -> anyhow::Result<()> {
        self.server.crash()
    }

    pub fn resume_postgres(&self) -> anyhow::Result<()> {
        self.server.resume()
    }

    pub fn start_proxy(&self, arguments: &[&str]) -> anyhow::Result<Program> {
        Program::start("gateway-proxy", arguments, &self.environment, self.place.path())
    }

    pub async fn restart_proxy(&mut self) -> anyhow::Result<()> {
        self.proxy = self.start_proxy(&[])?;
        self.proxy.until_ready(&self.ports[2], "/readyz").await?;
        self.proxy.until_ready(&self.ports[0], "/").await
    }

    pub async fn restart_admin(&mut self) -> anyhow::Result<()> {
        self.admin = Program::start("gateway-admin", &[], &self.environment, self.place.path())?;
        self.admin.until_ready(&self.ports[1], "/readyz").await
    }

    /// Ends everything and removes its files. The proxy's last words are kept when a promise broke.
    pub fn stop(self, report: &mut Report) -> anyhow::Result<()> {
        if report.is_broken() {
            self.proxy.last_words().lines().for_each(|line| report.figure("proxy", line));
        }
        drop((self.proxy, self.admin, self.mock));
        self.server.remove()
    }
}

impl Program {
    fn start(
        name: &str,
        arguments: &[&str],
        environment: &[(&'static str, String)],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        Self::start_at(&executable(name)?, arguments, environment, folder)
    }

    /// Starts a program of any release.
    pub(super) fn start_at(
        executable: &Path,
        arguments: &[&str],
        environment: &[(&'static str, String)],
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let name = executable.file_name().unwrap_or_default().to_string_lossy();
        let path = folder.join(format!("{name}.log"));
        let log = File::options().create(true).append(true).open(&path)?;
        let mut command = Command::new(executable);
        // Nothing of the developer's settings: a proof is about ours.
        command.args(arguments).env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let child = command.spawn().with_context(|| format!("cannot start {}", executable.display()))?;
        let pid = child.id().context("the program ended at once")?;
        Ok(Self { child, pid, log: path })
    }

    /// Waits until an address of the program answers 200.
    pub(super) async fn until_ready(&mut self, port: &Reservation, path: &str) -> anyhow::Result<()> {
        let caller = Caller::at(port.port());
        let end = Instant::now() + READY_WITHIN;
        while caller.status_of(path).await.ok() != Some(StatusCode::OK) {
            if self.has_ended()? || Instant::now() > end {
                bail!("a program did not become ready; its last words:\n{}", self.last_words());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let skipped = text.lines().count().saturating_sub(SHOWN_LINES);
        text.lines().skip(skipped).collect::<Vec<_>>().join("\n")
    }

    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        process::signal(self.pid, signal)
    }

    pub fn has_ended(&mut self) -> anyhow::Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    pub async fn ended_within(&mut self, limit: Duration) -> anyhow::Result<Option<ExitStatus>> {
        match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(status) => Ok(Some(status?)),
            Err(_) => Ok(None),
        }
    }

    /// The most memory it ever held, in bytes.
    pub fn peak_memory(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmHWM:")
    }

    /// The memory it holds now, in bytes.
    pub fn memory(&self) -> anyhow::Result<u64> {
        self.status_bytes("VmRSS:")
    }

    fn status_bytes(&self, name: &str) -> anyhow::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).context("memory needs Linux")?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).with_context(|| format!("no {name}"))?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024)
    }

    /// The processor time it has taken, in seconds of all threads.
    pub fn cpu_seconds(&self) -> f64 {
        process::cpu_seconds(self.pid).unwrap_or(0.0)
    }
}

/// Where one of our programs stands: beside this one.
pub(super) fn executable(name: &str) -> anyhow::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}

pub(super) fn environment(url: &str, [proxy, admin, metrics]: &[Reservation; 3]) -> Vec<(&'static str, String)> {
    vec![
        ("DATABASE_URL", url.to_owned()),
        ("PROXY_HOST", "127.0.0.1".to_owned()),
        ("PROXY_PORT", proxy.port().to_string()),
        ("ADMIN_PORT", admin.port().to_string()),
        ("ADMIN_ADDRESSES", format!("127.0.0.1:{}", admin.port())),
        ("METRICS_PORT", metrics.port().to_string()),
        ("SNAPSHOT_DIR", "snapshot".to_owned()),
        ("JOURNAL_DIR", "journal".to_owned()),
        ("LOG_STORE_URL", "file://logs".to_owned()),
        ("UPGRADE_SOCK", "upgrade.sock".to_owned()),
        ("TRUSTED_CUSTOM_HOSTS", "127.0.0.1".to_owned()),
        ("LOG_LEVEL", "warn".to_owned()),
    ]
}

pub(super) fn application(port: u16, key: &str, provider: &str) -> anyhow::Result<Caller> {
    Caller::at(port)
        .with("x-gateway-api-key", key)?
        .with("x-gateway-provider", "openai")?
        .with("x-gateway-custom-host", provider)?
        .with("authorization", "Bearer sk-mock")
}

async fn new_key(server: &Server) -> anyhow::Result<String> {
    let client = template::connect(&server.url("postgres"), DATABASE).await?;
    let workspace = bootstrap::first_workspace(&client).await?.context("there is no default workspace")?;
    let scopes = ["completions.write"];
    Ok(bootstrap::create_workspace_key(&client, workspace, "Proof", &scopes, KEY_PREFIX).await?.key)
}
