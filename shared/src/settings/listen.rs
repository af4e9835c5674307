//! Where the services listen.

use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Addresses")]
pub struct Listen {
    /// Address the proxy listens on.
    #[arg(long, env = "PROXY_HOST", default_value = "0.0.0.0")]
    pub proxy_host: IpAddr,
    /// Port for inference, pass-through and relayed control-plane calls.
    #[arg(long, env = "PROXY_PORT", default_value_t = 8787)]
    pub proxy_port: u16,
    /// Further port that speaks TLS (HTTP/1.1 and HTTP/2); needs PROXY_TLS_CERT and PROXY_TLS_KEY.
    #[arg(long, env = "PROXY_TLS_PORT", requires_all = ["proxy_tls_cert", "proxy_tls_key"])]
    pub proxy_tls_port: Option<u16>,
    /// PEM file of the proxy's certificate chain.
    #[arg(long, env = "PROXY_TLS_CERT")]
    pub proxy_tls_cert: Option<PathBuf>,
    /// PEM file of the proxy's private key.
    #[arg(long, env = "PROXY_TLS_KEY")]
    pub proxy_tls_key: Option<PathBuf>,
    /// Address the admin service listens on.
    #[arg(long, env = "ADMIN_HOST", default_value = "127.0.0.1")]
    pub admin_host: IpAddr,
    /// Port of the admin service.
    #[arg(long, env = "ADMIN_PORT", default_value_t = 8788)]
    pub admin_port: u16,
    /// Most connections the admin service holds open; further ones wait until one ends.
    #[arg(long, env = "ADMIN_MAX_CONNECTIONS", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub admin_max_connections: u32,
    /// Most control-plane requests a minute of one key or token; 0 is no limit.
    ///
    /// Counted in each admin process.
    #[arg(long, env = "ADMIN_REQUESTS_PER_MINUTE", default_value_t = 0)]
    pub admin_requests_per_minute: u32,
    /// Feedback that one workspace may send in a day (UTC); 0 is no limit.
    #[arg(long, env = "FEEDBACK_PER_DAY", default_value_t = 100_000)]
    pub feedback_per_day: u32,
    /// Address of the proxy's metrics and health port.
    #[arg(long, env = "METRICS_HOST", default_value = "127.0.0.1")]
    pub metrics_host: IpAddr,
    /// Port of the proxy's /metrics, /healthz and /readyz.
    #[arg(long, env = "METRICS_PORT", default_value_t = 9090)]
    pub metrics_port: u16,
}
