//! How both services reach Postgres.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Database")]
pub struct Database {
    /// Postgres connection URL (`postgres://user:password@host:port/database`).
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
    /// Direct URL for LISTEN when a transaction pooler stands in front of DATABASE_URL.
    #[arg(long, env = "DATABASE_LISTEN_URL", hide_env_values = true)]
    pub database_listen_url: Option<String>,
    /// Most connections the process holds open.
    #[arg(long, env = "DATABASE_POOL_SIZE", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub database_pool_size: u32,
    /// Longest wait for a connection, in milliseconds.
    #[arg(long, env = "DATABASE_CONNECT_TIMEOUT_MS", default_value_t = 5000)]
    pub database_connect_timeout_ms: u64,
    /// Longest that a statement for a request to admin may run, in milliseconds; 0 is no bound.
    ///
    /// Jobs have their own. Not sent where DATABASE_LISTEN_URL names a
    /// pooler: set it for the role there, with max_parallel_workers_per_gather = 0.
    #[arg(long, env = "DATABASE_STATEMENT_TIMEOUT_MS", default_value_t = 15_000)]
    pub database_statement_timeout_ms: u32,
    /// TLS towards Postgres.
    #[arg(long, env = "DB_SSL", value_enum, ignore_case = true, default_value_t = DbSsl::Preferred)]
    pub db_ssl: DbSsl,
    /// PEM file of the authorities to trust for Postgres; the system's when absent.
    #[arg(long, env = "DB_SSL_CA")]
    pub db_ssl_ca: Option<PathBuf>,
    /// PEM file of our client certificate.
    #[arg(long, env = "DB_SSL_CERT", requires = "db_ssl_key")]
    pub db_ssl_cert: Option<PathBuf>,
    /// PEM file of the client certificate's private key.
    #[arg(long, env = "DB_SSL_KEY", requires = "db_ssl_cert")]
    pub db_ssl_key: Option<PathBuf>,
}

/// The URLs hold a password, and settings end up in debug output sooner or later.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database")
            .field("database_url", &"…")
            .field("database_listen_url", &self.database_listen_url.as_ref().map(|_| "…"))
            .field("database_pool_size", &self.database_pool_size)
            .field("database_connect_timeout_ms", &self.database_connect_timeout_ms)
            .field("database_statement_timeout_ms", &self.database_statement_timeout_ms)
            .field("db_ssl", &self.db_ssl)
            .field("db_ssl_ca", &self.db_ssl_ca)
            .field("db_ssl_cert", &self.db_ssl_cert)
            .field("db_ssl_key", &self.db_ssl_key)
            .finish()
    }
}

/// From no TLS at all to a verified chain and host name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DbSsl {
    #[value(name = "DISABLED")]
    Disabled,
    #[value(name = "PREFERRED")]
    Preferred,
    #[value(name = "REQUIRED")]
    Required,
    #[value(name = "VERIFY_CA")]
    VerifyCa,
    #[value(name = "VERIFY_IDENTITY")]
    VerifyIdentity,
}
