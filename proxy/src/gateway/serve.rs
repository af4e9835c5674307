//! Assembles the process: one single-threaded service per core, each with its own listener and connection pool, and
//! the services behind them.
//!
//! Per-core listeners share one port by SO_REUSEPORT. Pingora's table of listening sockets is keyed by the address as
//! text, so each service spells the port with one more leading zero; the hand-over to a new process carries every
//! socket by that same text. A new process with fewer threads closes the sockets that it has nobody for, and with them
//! what waits there, so the number of threads must not shrink in a hand-over.

mod assemble;
pub(crate) mod deployment_heartbeat;
pub(crate) mod drain;
pub(crate) mod follow;
pub(crate) mod health;
pub(crate) mod successor;
pub(crate) mod supervised;
pub(crate) mod take_over;

use super::tasks;
use crate::gateway::Gateway;
use crate::gateway::access_log::AccessLog;
use crate::gateway::client_connection::ConnectionTimeouts;
use crate::gateway::client_connection_app::ClientConnectionApp;
use crate::gateway::control_plane::ControlPlane;
use crate::gateway::idle_timeout::MAX_TIMEOUT;
use anyhow::Context as _;
use assemble::Assembled;
use drain::{Drain, Signals};
use health::{Health, HealthPort};
use pingora_core::apps::HttpServerOptions;
use pingora_core::listeners::tls::TlsSettings;
use pingora_core::listeners::{L4BufferSettings, ListenerConfig, TcpSocketOptions};
use pingora_core::server::configuration::ServerConf;
use pingora_core::server::{RunArgs, Server};
use pingora_core::services::background::{BackgroundService, background_service};
use pingora_core::services::listening::Service;
use pingora_core::services::{Service as _, ServiceHandle};
use pingora_proxy::{HttpProxy, http_proxy};
use proxy::batches::runner::BatchRunner;
use proxy::catalog::models::read_bundled_names;
use proxy::catalog::providers::Providers;
use proxy::catalog::secrets::Secrets;
use proxy::catalog::signing::Signing;
use proxy::context::metrics::Metrics;
use proxy::identity::deployment::DeploymentIdentity;
use proxy::identity::tokens::trail;
use proxy::journal::Journal;
use proxy::journal::ship::{Pricer, Shipper};
use proxy::journal::traces::Traces;
use proxy::journal::upload::Uploader;
use proxy::limits::lease_keeper::LeaseKeeper;
use proxy::net::dial::Dialer;
use proxy::request::headers::Aliases;
use proxy::runtime::background::Background;
use proxy::runtime::settings::Settings;
use proxy::snapshot::Snapshot;
use shared::log_store::LogStore;
use shared::supervisor::Supervisor;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use supervised::{supervised, supervised_on};
use take_over::TakeOver;
use tokio::sync::Mutex;

/// Per connection. Pingora's default for reading is 64 KiB, most of what a waiting stream costs; its default for
/// writing holds no ordinary answer, which would then leave in two packets.
const READ_BUFFER: usize = 16 << 10;
const WRITE_BUFFER: usize = 16 << 10;

pub fn serve(settings: Settings) -> anyhow::Result<()> {
    let supervisor = Supervisor::new();
    let threads = threads(settings.process.proxy_threads);
    let dialer = Arc::new(Dialer::new(&settings.upstream)?);
    let providers = Providers::load(settings.prices.providers_file.as_deref(), &dialer)?;
    let metrics = Arc::new(Metrics::new(&providers.in_order())?);
    let snapshot = Arc::new(Snapshot::empty());
    let (trail, writer) = trail::trail(metrics.unrecorded_tokens.clone());
    let journal = match settings.journal.journal {
        true => Some(Journal::open(settings.journal.clone(), threads, metrics.journal.clone())?),
        false => None,
    };
    // Without a journal nobody would learn what was spent: then each process counts for itself.
    let limits = match &journal {
        Some(_) => proxy::limits::Limits::shared(settings.limits.clone(), metrics.limits.clone()),
        None => proxy::limits::Limits::alone(settings.limits.clone(), metrics.limits.clone()),
    };
    let journals = (journal.clone(), limits.clone());
    let outside = (dialer, providers);
    let services = assemble::services(&settings, snapshot.clone(), metrics.clone(), trail, journals, outside)?;
    let Assembled { capabilities, batch_parts } = assemble::capabilities(&settings, &services)?;
    let capabilities = Arc::new(capabilities);
    let engine = capabilities.engine.clone();
    services.router.guards.ask_models_through(&engine);
    let (control_plane, admins) = ControlPlane::new(&settings.process.admin_addresses)?;
    let write_timeout = patience(&settings).write;
    let drain = Duration::from_secs(settings.process.drain_timeout_s);
    let listeners = capabilities.mcp.drain.clone();
    let leave =
        Arc::new(Drain::new(metrics.clone(), journal.clone(), limits.clone(), listeners, drain, supervisor.clone()));
    let health = Arc::new(Health {
        services: services.clone(),
        cache: engine.cache.clone(),
        leave: leave.clone(),
        listens: AtomicBool::new(false),
        supervisor: supervisor.clone(),
    });
    let gateway = Gateway {
        services: services.clone(),
        capabilities: capabilities.clone(),
        control_plane: Arc::new(control_plane),
        write_timeout,
        readiness: settings.process.proxy_health.then(|| health.clone().readiness_check()),
        access_log: settings.process.access_log.then(|| AccessLog::to_stdout(&metrics, &supervisor)).transpose()?,
    };

    let address = SocketAddr::new(settings.listen.metrics_host, settings.listen.metrics_port);
    let metrics_socket = health::bind(address).with_context(|| format!("METRICS_PORT cannot be used: {address}"))?;
    let mut server = Server::new_with_opt_and_conf(None, server_conf(&settings)?);
    // Pingora's own way to take sockets over is not used: see `take_over`.
    server.bootstrap();

    let background = Background::start().context("threads for work in the background")?;
    let follower = follow::Follow::new(&settings, snapshot.clone(), background.handle(), supervisor.clone());
    let following = server.add_service(background_service("snapshot", follower));
    let (mut listeners, mut addresses) = (Vec::new(), HashSet::new());
    for index in 0..threads {
        let service = listener_service(&server.configuration, gateway.clone(), &settings, index)?;
        addresses.extend(service.listen_addresses().unwrap_or_default());
        listeners.push(server.add_service(service));
    }
    let can_hand_over = take_over::can_be_sent(&addresses);
    let upgrade_timeout = Duration::from_secs(settings.process.upgrade_timeout_s);
    let taking = settings.upgrade.then(|| {
        let socket = settings.process.upgrade_sock.clone();
        let taking =
            server.add_service(TakeOver { socket, patience: upgrade_timeout, snapshot: snapshot.clone(), addresses });
        taking.add_dependency(&following);
        taking
    });
    for listener in &listeners {
        listener.add_dependency(taking.as_ref().unwrap_or(&following));
    }
    // What must not begin beside a predecessor that still serves.
    let after_taking = |service: ServiceHandle| taking.iter().for_each(|taking| service.add_dependency(taking));
    if let Some(identity) = DeploymentIdentity::from_settings(&settings.deployment) {
        let sign = Arc::new(deployment_heartbeat::DeploymentHeartbeat {
            identity,
            database: settings.database.clone(),
            snapshot: snapshot.clone(),
        });
        server.add_service(supervised(&supervisor, tasks::DEPLOYMENT, move |shutdown| {
            let sign = sign.clone();
            async move { sign.run(shutdown).await }
        }));
    }
    server.add_service(supervised(&supervisor, tasks::ADMIN_CHECKS, move |shutdown| {
        let admins = admins.clone();
        async move { admins.start(shutdown).await }
    }));
    let sealer = services.router.sealer.clone();
    server.add_service(supervised(&supervisor, tasks::KEYRING, move |_| sealer.clone().watch()));
    let calls = &services.calls;
    let credentials = CredentialsService(supervisor.clone(), calls.secrets.clone(), calls.signing.clone());
    server.add_service(background_service("credentials", credentials));
    let trail = Arc::new((Mutex::new(writer), settings.database.clone()));
    server.add_service(supervised(&supervisor, tasks::AUDIT_TRAIL, move |shutdown| {
        let trail = trail.clone();
        async move { trail.0.lock().await.run(&trail.1, shutdown).await }
    }));
    // Reports MCP servers that tell something else than was approved.
    let changed = Arc::new((capabilities.mcp.changed.clone(), settings.database.clone()));
    server.add_service(supervised(&supervisor, tasks::MCP_CHANGES, move |shutdown| {
        let changed = changed.clone();
        async move { changed.0.run(&changed.1, shutdown).await }
    }));
    let behind = background.handle();
    behind.spawn_blocking(read_bundled_names);
    if let Some(journal) = journal {
        if settings.limits.redis_url.is_some() {
            let limits = limits.clone();
            server.add_service(supervised(&supervisor, tasks::REDIS_RATES, move |_| {
                let limits = limits.clone();
                async move { limits.follow_redis().await }
            }));
        }
        let shipped = journal.clone();
        let shipped_ago = move || shipped.shipped_ago();
        // Goes on while the process drains: calls that still run settle what they were promised.
        let keeper = LeaseKeeper::new(limits, journal.boot(), shipped_ago, settings.database.clone());
        let keeper = Arc::new(Mutex::new(keeper));
        server.add_service(supervised(&supervisor, tasks::LIMIT_LEASES, move |_| {
            let keeper = keeper.clone();
            async move { keeper.lock().await.run().await }
        }));
        let sources = services.admitter.tariff.sources.clone();
        let traces = Traces::open(&settings.traces, services.calls.dialer.clone(), metrics.journal.clone())?;
        if let Some(collector) = traces.as_ref().map(Traces::collector) {
            supervisor.spawn_on(&behind, tasks::TRACES, move || {
                let collector = collector.clone();
                async move { collector.run().await }
            });
        }
        let pricer = Pricer::new(sources, snapshot.clone());
        let shipper = Shipper::new(settings.database.clone(), pricer, metrics.journal.clone(), traces)
            .counting_workspaces(settings.process.metrics_workspaces as usize);
        let aliases = Arc::new(Aliases::new(&settings.identity.header_prefix_aliases)?);
        let store = LogStore::open(&settings.log_store)?;
        let uploader = Uploader::new(store, aliases, settings.database.clone(), &settings.log_store);
        // Go on while the process drains: the drain ends the process, and asks for the last logs before it does.
        run_journal(&supervisor, &behind, &journal, (shipper, snapshot.clone()), uploader)?;
    } else {
        let (unlogged, meters) = (services.recorder.unlogged.clone(), metrics.journal.clone());
        supervisor.spawn_on(&behind, tasks::ASYNC_GUARDRAILS, move || {
            let (unlogged, meters) = (unlogged.clone(), meters.clone());
            async move { unlogged.run(&meters).await }
        });
    }
    if let Some(remote) = engine.cache.remote() {
        let (reads, writes) = (remote.clone(), remote.clone());
        // Requests wait for this connection.
        server.add_service(supervised(&supervisor, tasks::CACHE_STORE_READS, move |_| reads.clone().connect()));
        supervisor.spawn_on(&behind, tasks::CACHE_STORE_WRITES, move || writes.clone().write());
    }
    if let Some(semantic) = engine.cache.semantic() {
        let semantic = semantic.clone();
        // Requests wait for its index, so it is not with the work in the background.
        server.add_service(supervised(&supervisor, tasks::SEMANTIC_CACHE, move |_| {
            let semantic = semantic.clone();
            async move { semantic.run().await }
        }));
    }
    let cache = engine.cache.clone();
    supervisor.spawn_on(&behind, tasks::CACHE_SWEEP, move || {
        let cache = cache.clone();
        async move { cache.run().await }
    });
    if settings.batches.batch_runner
        && let Some((day, files)) = batch_parts
    {
        let (database, batches) = (settings.database.clone(), settings.batches.clone());
        let runner = BatchRunner::new(&services, (engine, day), files, database, batches);
        let leases = runner.clone();
        supervisor.spawn_on(&behind, tasks::BATCH_LEASES, move || leases.clone().extend_leases());
        // Begins nothing more once the process is to end.
        let batches =
            supervised_on(behind.clone(), &supervisor, tasks::BATCHES, move |shutdown| runner.clone().run(shutdown));
        after_taking(server.add_service(batches));
    }
    // Ends the process as soon as it is idle.
    let leaving = leave.clone();
    server.add_service(supervised(&supervisor, tasks::DRAIN, move |shutdown| {
        let leaving = leaving.clone();
        async move { leaving.exit_when_idle(shutdown).await }
    }));
    let proxy = reachable(settings.listen.proxy_host, settings.listen.proxy_port);
    let port = Arc::new(HealthPort::new(metrics_socket, proxy, health));
    after_taking(server.add_service(supervised(&supervisor, tasks::METRICS_PORT, move |_| {
        let port = port.clone();
        async move { port.run().await }
    })));

    tracing::info!(threads, port = settings.listen.proxy_port, "starting");
    let upgrade_sock = settings.process.upgrade_sock.clone();
    let signals = Signals { drain: leave, upgrade_sock, patience: upgrade_timeout, can_hand_over };
    server.run(RunArgs { shutdown_signal: Box::new(signals) });
    Ok(())
}

/// Secrets that outside managers hold and tokens of providers' logins: two tasks on one thread, of ordinary priority because
/// requests wait for them.
struct CredentialsService(Arc<Supervisor>, Arc<Secrets>, Arc<Signing>);

#[async_trait::async_trait]
impl BackgroundService for CredentialsService {
    async fn start(&self, _shutdown: pingora_core::server::ShutdownWatch) {
        let (secrets, signing) = (self.1.clone(), self.2.clone());
        let renew_logins = move || {
            let signing = signing.clone();
            async move { signing.run().await }
        };
        tokio::join!(
            self.0.clone().keep(tasks::SECRETS, move || secrets.clone().run()),
            self.0.clone().keep(tasks::PROVIDER_LOGINS, renew_logins)
        );
    }
}

/// The journal's tasks, each apart from the others.
fn run_journal(
    supervisor: &Arc<Supervisor>,
    behind: &tokio::runtime::Handle,
    journal: &Arc<Journal>,
    (shipper, snapshot): (Shipper, Arc<Snapshot>),
    uploader: Uploader,
) -> anyhow::Result<()> {
    let shipping = Arc::new((journal.clone(), Mutex::new(shipper)));
    supervisor.spawn_on(behind, tasks::JOURNAL_SHIP, move || {
        let (shipping, snapshot) = (shipping.clone(), snapshot.clone());
        async move {
            // What a process before left on disk is priced by the accounts and tools as they are.
            snapshot.until_followed().await;
            shipping.0.ship(&mut *shipping.1.lock().await).await
        }
    });
    let uploading = Arc::new((journal.clone(), uploader));
    supervisor.spawn_on(behind, tasks::LOG_BODIES, move || {
        let uploading = uploading.clone();
        async move { uploading.0.upload(&uploading.1).await }
    });
    let bounded = journal.clone();
    supervisor.spawn_on(behind, tasks::JOURNAL_BOUND, move || {
        let bounded = bounded.clone();
        async move { bounded.keep().await }
    });
    let late = journal.clone();
    supervisor.spawn_on(behind, tasks::ASYNC_GUARDRAILS, move || {
        let late = late.clone();
        async move { late.run_late().await }
    });
    if journal.is_synced_at_intervals() {
        let synced = journal.clone();
        let thread = supervisor.spawn_thread(tasks::JOURNAL_SYNC, move |pulse| synced.sync_at_intervals(pulse));
        thread.context("a thread that syncs the journal")?;
    }
    Ok(())
}

fn listener_service(
    conf: &Arc<ServerConf>,
    gateway: Gateway,
    settings: &Settings,
    index: usize,
) -> anyhow::Result<Service<ClientConnectionApp<HttpProxy<Gateway>>>> {
    let mut options = HttpServerOptions::default();
    options.h2c = true;
    let patience = patience(settings);
    options.h2_idle_timeout = Some(patience.idle);
    let mut proxy = http_proxy(conf, gateway);
    proxy.server_options = Some(options);
    let mut service = Service::new(format!("proxy {index}"), ClientConnectionApp::new(proxy, patience));
    service.threads = Some(1);
    let listen = &settings.listen;
    service.add_listener(listener(address(listen.proxy_host, listen.proxy_port, index)));
    if let (Some(port), Some(cert), Some(key)) = (listen.proxy_tls_port, &listen.proxy_tls_cert, &listen.proxy_tls_key)
    {
        let mut tls = TlsSettings::intermediate(&cert.to_string_lossy(), &key.to_string_lossy())
            .map_err(|error| anyhow::anyhow!("PROXY_TLS_CERT or PROXY_TLS_KEY: {error}"))?;
        tls.enable_h2();
        service.add_listener(listener(address(listen.proxy_host, port, index)).tls(tls));
    }
    Ok(service)
}

fn patience(settings: &Settings) -> ConnectionTimeouts {
    let seconds = |seconds: u64| Duration::from_secs(seconds).min(MAX_TIMEOUT);
    let process = &settings.process;
    ConnectionTimeouts {
        idle: seconds(process.client_idle_timeout_s),
        head: seconds(process.client_head_timeout_s),
        write: seconds(process.client_write_timeout_s),
    }
}

fn listener(address: String) -> ListenerConfig {
    let mut socket = TcpSocketOptions::default();
    socket.so_reuseport = Some(true);
    ListenerConfig::tcp(address).tcp_socket_options(socket).l4_buffer(L4BufferSettings::new(READ_BUFFER, WRITE_BUFFER))
}

/// The same address with `index` leading zeros before the port: equal to the kernel, different to Pingora's table.
fn address(host: IpAddr, port: u16, index: usize) -> String {
    let zeros = "0".repeat(index);
    match host {
        IpAddr::V4(host) => format!("{host}:{zeros}{port}"),
        IpAddr::V6(host) => format!("[{host}]:{zeros}{port}"),
    }
}

/// Where this machine itself reaches a listening address.
fn reachable(host: IpAddr, port: u16) -> SocketAddr {
    let host = match host {
        IpAddr::V4(host) if host.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(host) if host.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        host => host,
    };
    SocketAddr::new(host, port)
}

fn server_conf(settings: &Settings) -> anyhow::Result<ServerConf> {
    let sock = &settings.process.upgrade_sock;
    if let Some(folder) = sock.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("UPGRADE_SOCK: {}", folder.display()))?;
    }
    Ok(ServerConf {
        threads: 1,
        work_stealing: false,
        upgrade_sock: sock.to_string_lossy().into_owned(),
        // The drain service leaves earlier when nothing is in flight.
        grace_period_seconds: Some(drain::longest(Duration::from_secs(settings.process.drain_timeout_s)).as_secs()),
        graceful_shutdown_timeout_seconds: Some(1),
        ca_file: settings.upstream.outbound.upstream_ca_file.as_ref().map(|path| path.to_string_lossy().into_owned()),
        ..ServerConf::default()
    })
}

fn threads(asked: usize) -> usize {
    match asked {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        asked => asked,
    }
}

#[cfg(test)]
mod tests;
