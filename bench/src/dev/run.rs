//! `gateway-dev run`: Postgres, admin (which migrates and bootstraps), mock provider, proxy, in this order; then wait
//! for Ctrl-C or for a program to die, and stop everything in the reverse order. A program that dies is not started
//! again: in development its last words matter more than its return.

use super::banner::Stack;
use super::children::{Program, say};
use super::folder::RunFolder;
use super::{Settings, keys, sign_in};
use crate::ports::{self, Reservation};
use crate::postgres::{Options, Purpose, Server};
use anyhow::{Context as _, bail};
use clap::Parser as _;
use shared::identity::{KeyKind, scopes};
use shared::secrets::seal::Keyring;
use shared::{bootstrap, db, settings};
use std::path::PathBuf;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The file of master keys in the run folder.
const KEYRING: &str = "keyring";
/// The address of the private server in the run folder.
const PRIVATE: &str = "database-url";
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Hosts on this machine, which a production proxy refuses to dial.
const LOCAL_HOSTS: &str = "localhost,127.0.0.1,::1,host.docker.internal";
/// Runs the whole stack until it is told to stop.
pub async fn run(settings: Settings) -> anyhow::Result<()> {
    let mut stop = Stop::new()?;
    let folder = RunFolder::take(&settings.run_dir)?;
    folder.remove("env");
    let orphans = folder.end_orphans()?;
    if orphans > 0 {
        say(&format!("ended {orphans} programs that an earlier run left behind"));
    }
    let mock_port = mock_port(&settings, &folder)?;
    for (name, port) in [
        ("PROXY_PORT", settings.proxy_port),
        ("ADMIN_PORT", settings.admin_port),
        ("METRICS_PORT", settings.metrics_port),
        ("MOCK_PORT", mock_port),
    ] {
        if !is_free(port, orphans > 0).await {
            bail!("port {port} is in use by another program: set {name}");
        }
    }
    let (server, url) = database(&settings, &folder).await?;
    let mut programs = Vec::new();
    let outcome = tokio::select! {
        outcome = serve(&settings, &folder, &url, mock_port, &mut programs) => outcome,
        () = stop.asked() => Ok(()),
    };
    folder.remove("env");
    if let Err(error) = &outcome {
        say(&format!("{error:#}"));
    }
    say("stopping");
    tokio::select! {
        () = stop_all(&mut programs) => {}
        () = stop.asked() => say("killing what is left"),
    }
    drop(programs);
    folder.forget_all();
    if let Some(server) = server {
        tokio::task::spawn_blocking(|| server.stop()).await??;
    }
    say("stopped");
    outcome.map_err(|_| anyhow::anyhow!("the stack stopped because a part of it failed"))
}

/// A port of a program that was just ended may take a moment.
async fn is_free(port: u16, is_awaited: bool) -> bool {
    const TRIES: usize = 50;
    for _ in 0..if is_awaited { TRIES } else { 0 } {
        if ports::is_free(port) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ports::is_free(port)
}

/// Starts the programs and returns when one of them ends, which is always an error.
async fn serve(
    settings: &Settings,
    folder: &RunFolder,
    url: &str,
    mock_port: u16,
    programs: &mut Vec<Program>,
) -> anyhow::Result<()> {
    let mut stored_keys = keys::Keys::load(folder, settings.bootstrap_admin_key.as_deref(), &settings.api_key_prefix)?;
    let mut start = |name: &'static str, program: &str, arguments: &[String], environment: &[(String, String)]| {
        Program::start(name, &sibling_program(program)?, arguments, environment, folder)
            .map(|program| programs.push(program))
    };
    keep_keyring(folder)?;
    let environment = environment(settings, url);
    let for_admin = [("BOOTSTRAP_ADMIN_KEY".to_owned(), stored_keys.admin.clone())];
    start("mock", "mock-provider", &["--port".to_owned(), mock_port.to_string()], &[])?;
    start("admin", "gateway-admin", &[], &[&environment[..], &for_admin].concat())?;
    until_ready(settings.admin_port, "/readyz", programs).await?;

    let client = db::connect(&database_settings(url)?).await?;
    // Everything that a workspace's key may do, so that all of it can be tried.
    let scopes = scopes::all_for(KeyKind::WorkspaceService);
    let workspace_key = match &stored_keys.workspace {
        Some(key) if keys::is_known(&client, key).await? => {
            keys::widen(&client, key, &scopes).await?;
            key.clone()
        }
        _ => {
            let workspace = bootstrap::first_workspace(&client).await?.context("there is no default workspace")?;
            let name = "Development key";
            let issued =
                bootstrap::create_workspace_key(&client, workspace, name, &scopes, &settings.api_key_prefix).await?;
            stored_keys.workspace = Some(issued.key.clone());
            stored_keys.save(folder)?;
            issued.key
        }
    };
    let admin_key = keys::is_known(&client, &stored_keys.admin).await?.then(|| stored_keys.admin.clone());
    // Nothing else waits for it: a stack without a link runs as well.
    let sign_in = sign_in::link(&client, &sibling_program("gateway-admin")?, &environment).await;
    let sign_in = sign_in.unwrap_or_else(|error| {
        say(&format!("there is no link to the console: {error:#}"));
        None
    });
    drop(client);

    programs.push(Program::start("proxy", &sibling_program("gateway-proxy")?, &[], &environment, folder)?);
    until_ready(settings.metrics_port, "/readyz", programs).await?;
    until_ready(settings.proxy_port, "/", programs).await?;
    until_ready(mock_port, "/__mock/counts", programs).await?;

    let stack = Stack {
        proxy_port: settings.proxy_port,
        admin_port: settings.admin_port,
        metrics_port: settings.metrics_port,
        mock_port,
        admin_key,
        workspace_key,
        sign_in,
        database_url: url.to_owned(),
    };
    folder.write_private("env", &stack.env_file())?;
    print(&stack.welcome(&folder.join("env").to_string_lossy()));
    let ended = futures::future::select_all(programs.iter_mut().map(|program| Box::pin(program.ended()))).await.0;
    bail!(ended)
}

/// The database to use: the given one, or a private server's.
async fn database(settings: &Settings, folder: &RunFolder) -> anyhow::Result<(Option<Server>, String)> {
    // A shell that has read our environment file names the private server, which may not run now.
    let own = folder.read(PRIVATE).unwrap_or_default();
    if let Some(url) = settings.database_url.clone().filter(|url| !url.is_empty() && *url != own) {
        say("using the Postgres of DATABASE_URL");
        return Ok((None, url));
    }
    say("starting Postgres");
    let options = Options::new(folder.join("postgres"), Purpose::Run);
    let server = tokio::task::spawn_blocking(move || Server::start(&options)).await??;
    server.create_database("gateway").await?;
    let url = server.url("gateway");
    folder.write_private(PRIVATE, &url)?;
    Ok((Some(server), url))
}

/// What both services are told, where the environment does not say otherwise.
fn environment(settings: &Settings, url: &str) -> Vec<(String, String)> {
    let inside = |name: &str| settings.run_dir.join(name).to_string_lossy().into_owned();
    let ours = [
        ("DATABASE_URL", url.to_owned()),
        ("PROXY_PORT", settings.proxy_port.to_string()),
        ("ADMIN_PORT", settings.admin_port.to_string()),
        ("METRICS_PORT", settings.metrics_port.to_string()),
    ];
    let defaults = [
        ("ADMIN_ADDRESSES", format!("127.0.0.1:{}", settings.admin_port)),
        ("SNAPSHOT_DIR", inside("snapshot")),
        ("JOURNAL_DIR", inside("journal")),
        ("LOG_STORE_URL", format!("file://{}", inside("logs"))),
        ("UPGRADE_SOCK", inside("upgrade.sock")),
        ("TRUSTED_CUSTOM_HOSTS", LOCAL_HOSTS.to_owned()),
        ("LOG_FORMAT", "text".to_owned()),
        ("DRAIN_TIMEOUT_S", "3".to_owned()),
    ];
    let missing = defaults.into_iter().filter(|(name, _)| std::env::var_os(name).is_none());
    let keyring = [("GATEWAY_MASTER_KEY_FILE", inside(KEYRING))];
    let keyring = keyring.into_iter().filter(|_| !has_master_key());
    ours.into_iter().chain(missing).chain(keyring).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the services seal secrets under lies beside the data that it protects: fit for a desk, and for nothing else.
fn keep_keyring(folder: &RunFolder) -> anyhow::Result<()> {
    if has_master_key() || folder.read(KEYRING).is_some() {
        return Ok(());
    }
    folder.write_private(KEYRING, &Keyring::generate("development")?)
}

fn has_master_key() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    is_set("GATEWAY_MASTER_KEY") || is_set("GATEWAY_MASTER_KEY_FILE")
}

/// How the services reach this database, TLS settings included.
fn database_settings(url: &str) -> anyhow::Result<settings::Database> {
    #[derive(clap::Parser)]
    struct Only {
        #[command(flatten)]
        database: settings::Database,
    }
    Ok(Only::try_parse_from(["gateway-dev", "--database-url", url])?.database)
}

/// The mock's port: the given one, the last one if it is free, or a new one.
fn mock_port(settings: &Settings, folder: &RunFolder) -> anyhow::Result<u16> {
    if let Some(port) = settings.mock_port {
        return Ok(port);
    }
    let last = folder.read("mock-port").and_then(|text| text.trim().parse().ok());
    let port = match last.filter(|port| ports::is_free(*port)) {
        Some(port) => port,
        None => Reservation::any()?.port(),
    };
    folder.write_private("mock-port", &port.to_string())?;
    Ok(port)
}

fn sibling_program(program: &str) -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(program);
    if !path.is_file() {
        bail!("{} is not built: `make run` builds everything it needs", path.display());
    }
    Ok(path)
}

/// Polls an address until it answers 200; a program that ends meanwhile ends the wait.
async fn until_ready(port: u16, path: &str, programs: &mut [Program]) -> anyhow::Result<()> {
    let end = tokio::time::Instant::now() + READY_WITHIN;
    loop {
        if is_ready(port, path).await.unwrap_or(false) {
            return Ok(());
        }
        if let Some(ended) = programs.iter_mut().find_map(Program::has_ended) {
            bail!(ended);
        }
        if tokio::time::Instant::now() >= end {
            bail!("http://127.0.0.1:{port}{path} did not become ready within {} s", READY_WITHIN.as_secs());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// One GET, looking at nothing but the status.
async fn is_ready(port: u16, path: &str) -> std::io::Result<bool> {
    let ask = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        // To the end: a reader that leaves early is an error in the other's log.
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        Ok(answer.starts_with(b"HTTP/1.1 200"))
    };
    tokio::time::timeout(Duration::from_secs(2), ask).await.unwrap_or(Ok(false))
}

/// The proxy first, so that it can still reach what it depends on while it drains.
async fn stop_all(programs: &mut [Program]) {
    for program in programs.iter_mut().rev() {
        program.stop(Duration::from_secs(10)).await;
    }
}

fn print(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Ctrl-C, a polite kill, or the end of the terminal.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Stop {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
