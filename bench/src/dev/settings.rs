//! What `make run` can be told. Names and defaults are those of the services; everything else in the environment
//! reaches them untouched.

use std::path::PathBuf;

#[derive(Clone, clap::Args)]
pub struct Settings {
    /// Folder for data, keys, logs and the written environment. Two copies need two folders.
    #[arg(long, env = "RUN_DIR", default_value = ".run")]
    pub run_dir: PathBuf,
    /// Port of the proxy.
    #[arg(long, env = "PROXY_PORT", default_value_t = 8787)]
    pub proxy_port: u16,
    /// Port of the admin service.
    #[arg(long, env = "ADMIN_PORT", default_value_t = 8788)]
    pub admin_port: u16,
    /// Port of the proxy's metrics and health checks.
    #[arg(long, env = "METRICS_PORT", default_value_t = 9090)]
    pub metrics_port: u16,
    /// Port of the mock provider; a free one when absent, the same at the next start.
    #[arg(long, env = "MOCK_PORT")]
    pub mock_port: Option<u16>,
    /// A Postgres to use instead of a private one.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// What new API keys start with.
    #[arg(long, env = "API_KEY_PREFIX", default_value = "pk_")]
    pub api_key_prefix: String,
    /// The owner's key on an empty database; generated and kept in the run folder when absent.
    #[arg(long, env = "BOOTSTRAP_ADMIN_KEY", hide_env_values = true)]
    pub bootstrap_admin_key: Option<String>,
}
