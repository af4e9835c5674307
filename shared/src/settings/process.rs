//! The proxy as a process: threads, memory, its way to admin, and how it leaves.

use super::features::on_or_off;
use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Proxy process")]
pub struct Process {
    /// Worker threads, each with its own listener and connection pool; one per core when 0.
    #[arg(long, env = "PROXY_THREADS", default_value_t = 0)]
    pub proxy_threads: usize,
    /// Largest JSON body of a first-class endpoint, in bytes.
    #[arg(long, env = "MAX_BODY_BYTES", default_value_t = 100 << 20)]
    pub max_body_bytes: usize,
    /// Request bodies held in memory by all requests together, in bytes; beyond it 503.
    ///
    /// Bodies over 64 KiB of one workspace may not hold more than is left: half when it is alone, a third each when
    /// there are two.
    #[arg(long, env = "BODY_MEMORY_BYTES", default_value_t = 1 << 30)]
    pub body_memory_bytes: usize,
    /// Longest time a client may take to send its body, in milliseconds.
    #[arg(long, env = "BODY_TIMEOUT_MS", default_value_t = 60_000)]
    pub body_timeout_ms: u64,
    /// Bytes a second that a body over 64 KiB must bring, or it is 408.
    ///
    /// Measured over each BODY_RATE_PERIOD_MS.
    #[arg(long, env = "BODY_MIN_BYTES_PER_S", default_value_t = 8192)]
    pub body_min_bytes_per_s: u64,
    /// That period, in milliseconds.
    #[arg(long, env = "BODY_RATE_PERIOD_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub body_rate_period_ms: u64,
    /// A client's connection is closed after this long without a request, in seconds.
    ///
    /// Longer than the idle timeout of a load balancer in front, or it will send requests into closed connections.
    #[arg(long, env = "CLIENT_IDLE_TIMEOUT_S", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..))]
    pub client_idle_timeout_s: u64,
    /// Longest time from the first byte of a request's head to its last, over HTTP/1, in seconds.
    #[arg(long, env = "CLIENT_HEAD_TIMEOUT_S", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub client_head_timeout_s: u64,
    /// A client that leaves its answer unread for this long is disconnected, in seconds.
    ///
    /// Its call is cancelled. The time adds up while it reads less than a kilobyte a second.
    #[arg(long, env = "CLIENT_WRITE_TIMEOUT_S", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub client_write_timeout_s: u64,
    /// Addresses of the admin service, comma separated.
    #[arg(long, env = "ADMIN_ADDRESSES", value_delimiter = ',', default_value = "127.0.0.1:8788")]
    pub admin_addresses: Vec<String>,
    /// After SIGTERM, how long running streams may go on, in seconds.
    #[arg(long, env = "DRAIN_TIMEOUT_S", default_value_t = 300)]
    pub drain_timeout_s: u64,
    /// Unix socket over which a new process takes the listening sockets from the old one.
    #[arg(long, env = "UPGRADE_SOCK", default_value = "/var/lib/portcullis/upgrade.sock")]
    pub upgrade_sock: PathBuf,
    /// How long a hand-over may wait until the new process is ready, in seconds.
    ///
    /// The old one serves all that time, and goes on when nobody came; the new one gives up.
    #[arg(long, env = "UPGRADE_TIMEOUT_S", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub upgrade_timeout_s: u64,
    /// Whether PROXY_PORT answers /healthz and /readyz, too (ON or OFF).
    ///
    /// For balancers that know one port.
    #[arg(long, env = "PROXY_HEALTH", default_value = "OFF", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub proxy_health: bool,
    /// Whether each request is written to standard output as a line of JSON (ON or OFF).
    ///
    /// With ids, path, status, provider and times; never with a query, header or body. A reader that is too slow loses
    /// lines, which are counted.
    #[arg(long, env = "ACCESS_LOG", default_value = "OFF", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub access_log: bool,
    /// Most workspaces whose calls, tokens and costs are metrics of their own; 0 is none.
    ///
    /// Those beyond it are counted together as `other`.
    #[arg(long, env = "METRICS_WORKSPACES", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub metrics_workspaces: u32,
}
