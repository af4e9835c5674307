//! How the proxy dials providers.

use super::Outbound;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Upstream")]
pub struct Upstream {
    #[command(flatten)]
    pub outbound: Outbound,
    /// Longest time for TCP connect and TLS handshake, in milliseconds.
    #[arg(long, env = "UPSTREAM_CONNECT_TIMEOUT_MS", default_value_t = 5000)]
    pub upstream_connect_timeout_ms: u64,
    /// Longest wait for the head of an answer, in milliseconds.
    #[arg(long, env = "UPSTREAM_FIRST_BYTE_TIMEOUT_MS", default_value_t = 600_000)]
    pub upstream_first_byte_timeout_ms: u64,
    /// Longest silence inside an answer, in milliseconds.
    #[arg(long, env = "UPSTREAM_STREAM_IDLE_TIMEOUT_MS", default_value_t = 120_000)]
    pub upstream_stream_idle_timeout_ms: u64,
    /// Idle connections kept for each origin and thread.
    #[arg(long, env = "UPSTREAM_POOL_MAX_IDLE", default_value_t = 128)]
    pub upstream_pool_max_idle: usize,
    /// How long an idle connection is kept, in milliseconds.
    #[arg(long, env = "UPSTREAM_POOL_IDLE_MS", default_value_t = 60_000)]
    pub upstream_pool_idle_ms: u64,
    /// Streams on one HTTP/2 connection.
    #[arg(long, env = "UPSTREAM_MAX_H2_STREAMS", default_value_t = 100)]
    pub upstream_max_h2_streams: usize,
    /// How long a resolved address is used, in milliseconds.
    #[arg(long, env = "DNS_TTL_MS", default_value_t = 30_000)]
    pub dns_ttl_ms: u64,
}
