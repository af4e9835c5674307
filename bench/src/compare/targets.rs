//! The processes that are compared: the provider itself, nginx, a bare Pingora proxy, and the gateway with its two
//! lanes. All run on loopback with two threads, from the same build.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, kill_process_group};
use serde_json::json;
use tokio::process::{Child, Command};

use super::prompt;
use super::request::{self, Request};
use super::store::Store;
use super::translation;
use crate::ports::Reservation;
use crate::process::{self, Signal};

const ENGINE_PATH: &str = "/v1/chat/completions";
/// Not a first-class endpoint, so the gateway relays it; the provider answers with the same bytes as to a chat.
const RELAY_PATH: &str = "/v1/fixed";
const KEY: &str = "x-gateway-api-key";

/// A started program. Dropping it kills it and its children.
pub struct Process {
    child: Child,
    pub pid: u32,
    name: &'static str,
}

impl Process {
    /// Its words go to `<name>.log` in the folder.
    fn start(name: &'static str, mut command: Command, folder: &Path) -> anyhow::Result<Self> {
        let log = File::create(folder.join(format!("{name}.log")))?;
        command.current_dir(folder).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        // Ctrl-C is for the comparison, which then ends its processes itself.
        let child =
            command.process_group(0).kill_on_drop(true).spawn().with_context(|| format!("cannot start {name}"))?;
        let pid = child.id().with_context(|| format!("{name} ended at once"))?;
        Ok(Self { child, pid, name })
    }

    /// Asks it to leave and waits until it has.
    pub async fn stop(mut self, signal: Signal) -> anyhow::Result<()> {
        process::signal(self.pid, signal)?;
        match tokio::time::timeout(Duration::from_secs(60), self.child.wait()).await {
            Ok(status) => status.map(drop).with_context(|| format!("cannot wait for {}", self.name)),
            Err(_) => bail!("{} did not leave within a minute", self.name),
        }
    }

    /// Waits until it answers the request.
    pub async fn answers(&mut self, request: &Request) -> anyhow::Result<()> {
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status} before it answered", self.name);
            }
            let probed = request.clone();
            match tokio::task::spawn_blocking(move || probed.probe()).await? {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > end => {
                    return Err(error.context(format!("{} never answered", self.name)));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The whole group: nginx's workers outlive a killed master. An id is there only while nobody else can have it.
        if let Some(group) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
            // Failing means that they are gone.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Where programs and files are, and the ports in use.
pub struct Place {
    /// The folder of the built programs.
    pub programs: PathBuf,
    /// Logs, sockets and configuration of this run.
    pub folder: PathBuf,
    ports: Vec<Reservation>,
}

impl Place {
    pub fn new(programs: PathBuf, folder: PathBuf) -> Self {
        Self { programs, folder, ports: Vec::new() }
    }

    fn address(&mut self) -> anyhow::Result<SocketAddr> {
        let port = Reservation::any()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.port()));
        self.ports.push(port);
        Ok(address)
    }

    /// The command for one of our programs, below `wrapper` if there is one.
    fn program(&self, name: &str, wrapper: &[String]) -> Command {
        let program = self.programs.join(name);
        match wrapper.split_first() {
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
            None => Command::new(program),
        }
    }

    pub async fn mock(&mut self) -> anyhow::Result<(Process, Request)> {
        let request = plain(self.address()?);
        let mut command = self.program("mock-provider", &[]);
        command.args(["--remember", "0", "--port", &request.address.port().to_string()]);
        let mut process = Process::start("mock-provider", command, &self.folder)?;
        process.answers(&request).await?;
        Ok((process, request))
    }

    pub async fn nginx(&mut self, upstream: SocketAddr) -> anyhow::Result<(Process, Request)> {
        let request = plain(self.address()?);
        let conf = self.folder.join("nginx.conf");
        fs::write(&conf, nginx_conf(request.address, upstream, &self.folder))?;
        // Debian keeps it off the path of ordinary users.
        let installed = Path::new("/usr/sbin/nginx");
        let mut command = Command::new(if installed.exists() { installed } else { Path::new("nginx") });
        command.arg("-p").arg(&self.folder).arg("-c").arg(conf).args(["-e", "nginx.error.log"]);
        let mut process = Process::start("nginx", command, &self.folder)?;
        process.answers(&request).await?;
        Ok((process, request))
    }

    pub async fn bare(&mut self, upstream: SocketAddr, wrapper: &[String]) -> anyhow::Result<(Process, Request)> {
        let request = plain(self.address()?);
        let mut command = self.program("bare-pingora", wrapper);
        command.args(["--listen", &request.address.to_string(), "--upstream", &upstream.to_string()]);
        let mut process = Process::start("bare-pingora", command, &self.folder)?;
        process.answers(&request).await?;
        Ok((process, request))
    }

    /// Another build of the gateway.
    pub async fn other_gateway(
        &mut self,
        program: &Path,
        upstream: SocketAddr,
        store: &Store,
    ) -> anyhow::Result<(Process, Lanes)> {
        let program = program.canonicalize().with_context(|| program.display().to_string())?;
        self.start_gateway(Command::new(program), upstream, store, Variant::PLAIN).await
    }

    /// The gateway and the requests that are sent to it.
    pub async fn gateway(
        &mut self,
        upstream: SocketAddr,
        store: &Store,
        variant: Variant,
        wrapper: &[String],
    ) -> anyhow::Result<(Process, Lanes)> {
        let command = self.program("gateway-proxy", wrapper);
        self.start_gateway(command, upstream, store, variant).await
    }

    async fn start_gateway(
        &mut self,
        mut command: Command,
        upstream: SocketAddr,
        store: &Store,
        variant: Variant,
    ) -> anyhow::Result<(Process, Lanes)> {
        let (address, metrics) = (self.address()?, self.address()?);
        command.envs([
            ("DATABASE_URL", store.url()),
            ("PROXY_HOST", address.ip().to_string()),
            ("PROXY_PORT", address.port().to_string()),
            ("METRICS_PORT", metrics.port().to_string()),
            ("PROXY_THREADS", variant.threads.to_string()),
            // Of its own: a start that finds a copy does other work than one that finds none.
            ("SNAPSHOT_DIR", format!("snapshot-{}", address.port())),
            ("JOURNAL", if variant.journal { "ON" } else { "OFF" }.into()),
            ("JOURNAL_DIR", format!("journal-{}", address.port())),
            ("LOG_BODIES", if variant.bodies { "ON" } else { "OFF" }.into()),
            ("LOG_STORE_URL", format!("file://logs-{}", address.port())),
            ("UPGRADE_SOCK", format!("upgrade-{}.sock", address.port())),
            ("TRUSTED_CUSTOM_HOSTS", "127.0.0.1".into()),
            // Under callgrind a first lease takes seconds, and so does reading authorities that nobody asks.
            ("LIMITS_WAIT_MS", "10000".into()),
            ("SSL_CERT_FILE", "/dev/null".into()),
        ]);
        let mut process = Process::start("gateway-proxy", command, &self.folder)?;
        let mut engine = plain(address);
        engine.headers.extend([
            (KEY, store.key.clone()),
            ("x-gateway-provider", "openai".into()),
            ("x-gateway-custom-host", format!("http://{upstream}/v1")),
        ]);
        let limited = with_key(&engine, &store.limited_key);
        let guarded = with_key(&engine, &store.guarded_key);
        // First, so that it is always this thread that reads the prices, and not now and then the one that ships.
        process.answers(&limited).await?;
        process.answers(&engine).await?;
        let mut hit = limited.clone();
        hit.headers.push(("x-gateway-cache", "simple".into()));
        process.answers(&hit).await?;
        let mut miss = hit.clone();
        // It is kept each time, and never looked for: the load sends one body.
        miss.headers.push(("x-gateway-cache-force-refresh", "true".into()));
        process.answers(&miss).await?;
        process.answers(&guarded).await?;
        let relay = Request { path: RELAY_PATH, ..engine.clone() };
        process.answers(&relay).await?;
        let routed = Request { headers: routed(upstream, store), ..engine.clone() };
        process.answers(&routed).await?;
        let translation = translation::requests(&engine);
        for (_, request) in &translation {
            process.answers(request).await?;
        }
        let prompt = prompt::request(&engine)?;
        process.answers(&prompt).await?;
        Ok((process, Lanes { engine, routed, relay, limited, guarded, prompt, hit, miss, translation }))
    }
}

/// Requests that take different ways through the gateway.
pub struct Lanes {
    pub engine: Request,
    /// The engine lane with a config.
    pub routed: Request,
    pub relay: Request,
    /// The engine lane by a key that limits speak of.
    pub limited: Request,
    /// A stored prompt that becomes the same chat.
    pub prompt: Request,
    /// The same, answered from the cache; and put into it.
    pub hit: Request,
    pub miss: Request,
    /// The engine lane by a key of a workspace with guardrails.
    pub guarded: Request,
    /// To a provider of another format, and what that is held against.
    pub translation: [(&'static str, Request); 5],
}

/// How the gateway is run.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// The others keep none: ours is measured with and without.
    pub journal: bool,
    /// Whether it keeps what clients sent and got beside the journal.
    pub bodies: bool,
    pub threads: usize,
}

impl Variant {
    pub const PLAIN: Self = Self { journal: false, bodies: false, threads: 2 };
    pub const NOTING: Self = Self { journal: true, ..Self::PLAIN };
    pub const KEEPING: Self = Self { bodies: true, ..Self::NOTING };
    pub const ALONE: Self = Self { threads: 1, ..Self::NOTING };
}

/// The same request by another key.
fn with_key(request: &Request, key: &str) -> Request {
    let mut request = request.clone();
    for (name, value) in &mut request.headers {
        if *name == KEY {
            key.clone_into(value);
        }
    }
    request
}

/// A config of two targets, of which the first answers, with a parameter written over, and metadata.
fn routed(upstream: SocketAddr, store: &Store) -> Vec<(&'static str, String)> {
    let target = json!({
        "provider": "openai", "api_key": "sk-mock", "custom_host": format!("http://{upstream}/v1"),
        "override_params": { "temperature": 0.2, "user": "bench" },
    });
    let config = json!({ "strategy": { "mode": "fallback" }, "retry": { "attempts": 2 }, "targets": [target, target] });
    vec![
        ("content-type", "application/json".into()),
        (KEY, store.key.clone()),
        ("x-gateway-config", config.to_string()),
        ("x-gateway-metadata", json!({ "_user": "u-1", "team": "search", "env": "bench" }).to_string()),
    ]
}

/// What a client sends when nothing stands between it and the provider.
fn plain(address: SocketAddr) -> Request {
    let headers = vec![("authorization", "Bearer sk-mock".into()), ("content-type", "application/json".into())];
    Request { address, path: ENGINE_PATH, headers, body: request::body().into() }
}

/// Connections live as long as those of the others; nginx would otherwise close each after a thousand requests.
fn nginx_conf(listen: SocketAddr, upstream: SocketAddr, folder: &Path) -> String {
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("  {kind}_temp_path {folder}/nginx-{kind};\n"))
        .collect();
    format!(
        "daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/nginx.error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
{temporary}  keepalive_requests 1000000000;
  upstream provider {{ server {upstream}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen {listen};
    location / {{ proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection \"\"; }}
  }}
}}
"
    )
}
