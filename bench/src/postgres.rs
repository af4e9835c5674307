//! A private Postgres from the machine's own binaries, for `make run`, `make test` and `make bench` alike: real
//! Postgres, because two processes need many connections, LISTEN and transactions, which no imitation offers.
//!
//! Everything lies in one folder; a second start finds the data, port and password of the first. The server is
//! started by `pg_ctl`, so it has its own process group (Ctrl-C reaches the supervisor alone) and can outlive us.

mod account;
mod binaries;
mod settings;
pub mod template;
pub mod testing;

use crate::{ports, process};
use account::Account;
use anyhow::{Context as _, bail};
use binaries::Binaries;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The role that owns everything in a private server.
const USER: &str = "gateway";

/// What a server is for: data to keep, or data to throw away fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Run,
    Test,
}

/// Certificate and key the server shows, and the authority of client certificates if it demands them (PEM files).
#[derive(Debug, Clone)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
    pub client_authority: Option<PathBuf>,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub folder: PathBuf,
    pub purpose: Purpose,
    pub tls: Option<Tls>,
    /// From the wheel although there is one on this machine: it has pgvector.
    pub is_fetched: bool,
}

impl Options {
    pub fn new(folder: impl Into<PathBuf>, purpose: Purpose) -> Self {
        Self { folder: folder.into(), purpose, tls: None, is_fetched: false }
    }
}

/// A running server. Dropping it stops it, unless it was detached.
#[derive(Debug)]
pub struct Server {
    account: Account,
    binaries: Binaries,
    home: PathBuf,
    port: u16,
    password: String,
    stops_on_drop: bool,
}

impl Server {
    /// Starts a server in the folder, making it first if need be. Blocks for a second or two. A server that a killed
    /// predecessor left running there is stopped first.
    pub fn start(options: &Options) -> anyhow::Result<Self> {
        let (mut server, _lock) = Self::prepare(options)?;
        server.stop_predecessor()?;
        server.launch(options)?;
        Ok(server)
    }

    /// Like `start`, but a server that answers there already is taken as it is. The flag says whether it was started.
    pub fn start_or_join(options: &Options) -> anyhow::Result<(Self, bool)> {
        let (mut server, _lock) = Self::prepare(options)?;
        if server.is_running() {
            return Ok((server, false));
        }
        server.stop_predecessor()?;
        server.launch(options)?;
        Ok((server, true))
    }

    /// The connection URL of a database of this server. It holds the password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The server's own log file.
    pub fn log(&self) -> PathBuf {
        self.home.join("log")
    }

    /// Creates the database unless it exists.
    pub async fn create_database(&self, name: &str) -> anyhow::Result<()> {
        let (client, connection) = tokio_postgres::connect(&self.url("postgres"), tokio_postgres::NoTls).await?;
        let driver = tokio::spawn(connection);
        let exists = client.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&name]).await?.is_some();
        if !exists {
            client.batch_execute(&format!("CREATE DATABASE \"{name}\"")).await?;
        }
        drop(client);
        let _ = driver.await;
        Ok(())
    }

    /// Lets the server outlive this value.
    pub fn detach(mut self) -> Self {
        self.stops_on_drop = false;
        self
    }

    /// Ends all connections, writes everything down and stops.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.stops_on_drop = false;
        self.halt("fast")
    }

    /// Stops and deletes everything, for servers that were only tried out.
    pub fn remove(mut self) -> anyhow::Result<()> {
        self.stops_on_drop = false;
        self.halt("immediate")?;
        fs::remove_dir_all(&self.home).with_context(|| format!("cannot remove {}", self.home.display()))
    }

    /// Stops as if the machine had lost power. `resume` brings it back on the same port.
    pub fn crash(&self) -> anyhow::Result<()> {
        self.halt("immediate")
    }

    /// Starts again after `crash`, with the settings it had.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.pg_ctl(&["start", "-w", "-t", "60", "-l", &self.log().to_string_lossy()])
    }

    /// Whether it accepts connections.
    pub fn is_running(&self) -> bool {
        self.postmaster().is_some() && TcpStream::connect(("127.0.0.1", self.port)).is_ok()
    }

    /// The process number of the server, if it runs.
    pub fn postmaster(&self) -> Option<u32> {
        let pid = fs::read_to_string(self.data().join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()?;
        // The number alone proves nothing: after a restart of the container it may be anybody's.
        let command = process::command_line(pid)?;
        command.contains(&*self.data().to_string_lossy()).then_some(pid)
    }

    fn prepare(options: &Options) -> anyhow::Result<(Self, File)> {
        let account = Account::for_server()?;
        let home = account.home(&options.folder)?;
        let lock = File::create(home.join("lock"))?;
        lock.lock().context("cannot lock the server's folder")?;
        let binaries = Binaries::find(&home, &home.join("data"), &account, options.is_fetched)?;
        let port = fs::read_to_string(home.join("port")).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let mut server = Self { account, binaries, home, port, password: String::new(), stops_on_drop: false };
        server.password = server.remembered_password()?;
        if !server.data().join("PG_VERSION").exists() {
            server.initialise(options.purpose)?;
        }
        Ok((server, lock))
    }

    fn initialise(&self, purpose: Purpose) -> anyhow::Result<()> {
        // A killed initdb leaves half a folder, so the whole one gets its name last.
        let half = self.home.join("data.half");
        let _ = fs::remove_dir_all(&half);
        let locale = if cfg!(target_os = "macos") { "en_US.UTF-8" } else { "C.UTF-8" };
        let mut command = self.account.command(&self.binaries.program("initdb"), &self.home);
        command.args(["--no-sync", settings::stored_password(purpose), "--encoding=UTF8", "-U", USER]);
        command.arg(format!("--locale={locale}")).arg("--pwfile").arg(self.home.join("password")).arg("-D").arg(&half);
        let output = command.output().context("cannot run initdb")?;
        if !output.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        File::options().append(true).open(half.join("postgresql.conf"))?.write_all(settings::INCLUDE.as_bytes())?;
        fs::rename(&half, self.data()).context("cannot name the data folder")
    }

    fn launch(&mut self, options: &Options) -> anyhow::Result<()> {
        if let Some(tls) = &options.tls {
            self.copy_private(&tls.certificate, "server.crt")?;
            self.copy_private(&tls.key, "server.key")?;
            if let Some(authority) = &tls.client_authority {
                self.copy_private(authority, "client-ca.crt")?;
            }
        }
        self.account.write_private(&self.data().join("pg_hba.conf"), settings::hba(options).as_bytes())?;
        let mut failure = None;
        // A free port can be taken by somebody else before Postgres binds it.
        for _ in 0..3 {
            let reserved = ports::Reservation::any()?;
            if self.port == 0 || !ports::is_free(self.port) {
                self.port = reserved.port();
            }
            let conf = settings::conf(options, self.port, &self.home);
            self.account.write_private(&self.data().join(settings::FILE), conf.as_bytes())?;
            match self.pg_ctl(&["start", "-w", "-t", "60", "-l", &self.log().to_string_lossy()]) {
                Ok(()) => {
                    fs::write(self.home.join("port"), self.port.to_string())?;
                    self.stops_on_drop = true;
                    return Ok(());
                }
                Err(error) => failure = Some(error.context(format!("see {}", self.log().display()))),
            }
            // A `pg_ctl` that was ended half way has started a server that nobody would know of.
            let _ = self.halt("immediate");
            self.port = 0;
        }
        Err(failure.context("Postgres did not start")?)
    }

    fn stop_predecessor(&self) -> anyhow::Result<()> {
        if self.postmaster().is_some() {
            return self.halt("fast");
        }
        // Postgres itself takes a stale file for a live server when the number now belongs to another process of
        // the same user.
        match fs::remove_file(self.data().join("postmaster.pid")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    fn halt(&self, mode: &str) -> anyhow::Result<()> {
        let Some(pid) = self.postmaster() else { return Ok(()) };
        let result = self.pg_ctl(&["stop", "-w", "-t", "30", "-m", mode]);
        if result.is_err() && process::wait_until(Duration::from_secs(5), || self.postmaster() != Some(pid)) {
            return Ok(());
        }
        result
    }

    fn pg_ctl(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = self.account.command(&self.binaries.program("pg_ctl"), &self.home);
        let output = command.arg("-D").arg(self.data()).args(arguments).output().context("cannot run pg_ctl")?;
        if output.status.success() {
            return Ok(());
        }
        let printed = String::from_utf8_lossy(&output.stderr);
        bail!("pg_ctl {} failed: {}; last words: {}", arguments[0], printed.trim(), tail(&self.log()))
    }

    fn remembered_password(&self) -> anyhow::Result<String> {
        let path = self.home.join("password");
        if let Ok(password) = fs::read_to_string(&path) {
            return Ok(password.trim().to_owned());
        }
        if self.data().exists() {
            bail!("{} is lost; remove {} to start afresh", path.display(), self.home.display());
        }
        let password = format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple());
        self.account.write_private(&path, password.as_bytes())?;
        Ok(password)
    }

    fn copy_private(&self, from: &Path, name: &str) -> anyhow::Result<()> {
        let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
        self.account.write_private(&self.home.join(name), &content)
    }

    fn data(&self) -> PathBuf {
        self.home.join("data")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.stops_on_drop {
            let _ = self.halt("fast");
        }
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" | ")
}

#[cfg(test)]
mod tests;
