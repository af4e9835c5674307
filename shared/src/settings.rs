//! Every setting, one struct per concern. A setting has one name: its environment variable. The command line and
//! `conf/gateway.toml` spell the same name in their own way, and `--help` documents it.

pub mod alerts;
pub mod batches;
pub mod bootstrap;
pub mod cache;
pub mod cache_store;
pub mod config_limits;
pub mod configs;
pub mod database;
pub mod deployment;
pub mod features;
mod file;
pub mod files;
pub mod identity;
pub mod journal;
pub mod jwt;
pub mod limits;
pub mod listen;
pub mod load;
pub mod log_store;
pub mod logs;
pub mod mail;
pub mod mcp;
mod misspelt;
pub mod outbound;
pub mod prices;
pub mod process;
pub mod provider_login;
pub mod retention;
pub mod sealing;
pub mod secrets;
pub mod semantic_cache;
pub mod sign_in;
pub mod snapshot;
pub mod traces;
pub mod upstream;

pub use alerts::Alerts;
pub use batches::BatchSettings;
pub use bootstrap::Bootstrap;
pub use cache::CacheSettings;
pub use cache_store::CacheStoreSettings;
pub use configs::Configs;
pub use database::{Database, DbSsl};
pub use deployment::{DeploymentLimits, DeploymentSettings};
pub use features::Features;
pub use files::FileSettings;
pub use identity::Identity;
pub use journal::Journal;
pub use jwt::Jwt;
pub use limits::LimitSettings;
pub use listen::Listen;
pub use load::load;
pub use log_store::LogStoreSettings;
pub use logs::Logs;
pub use mail::Mail;
pub use mcp::McpSettings;
pub use misspelt::warn_of_misspelt;
pub use outbound::Outbound;
pub use prices::PriceSettings;
pub use process::Process;
pub use provider_login::ProviderLogin;
pub use retention::Retention;
pub use sealing::Sealing;
pub use secrets::Secrets;
pub use semantic_cache::SemanticCache;
pub use sign_in::SignIn;
pub use snapshot::Snapshot;
pub use traces::Traces;
pub use upstream::Upstream;

/// Every concern in one: what the settings file may name, whichever program reads it.
#[derive(Debug, Clone, clap::Parser)]
pub struct AllSettings {
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub database: Database,
    #[command(flatten)]
    pub bootstrap: Bootstrap,
    #[command(flatten)]
    pub identity: Identity,
    #[command(flatten)]
    pub jwt: Jwt,
    #[command(flatten)]
    pub sign_in: SignIn,
    #[command(flatten)]
    pub features: Features,
    #[command(flatten)]
    pub sealing: Sealing,
    #[command(flatten)]
    pub secrets: Secrets,
    #[command(flatten)]
    pub provider_login: ProviderLogin,
    #[command(flatten)]
    pub mail: Mail,
    #[command(flatten)]
    pub alerts: Alerts,
    #[command(flatten)]
    pub process: Process,
    #[command(flatten)]
    pub upstream: Upstream,
    #[command(flatten)]
    pub prices: PriceSettings,
    #[command(flatten)]
    pub configs: Configs,
    #[command(flatten)]
    pub deployment: DeploymentSettings,
    #[command(flatten)]
    pub deployment_limits: DeploymentLimits,
    #[command(flatten)]
    pub snapshot: Snapshot,
    #[command(flatten)]
    pub journal: Journal,
    #[command(flatten)]
    pub limits: LimitSettings,
    #[command(flatten)]
    pub cache: CacheSettings,
    #[command(flatten)]
    pub cache_store: CacheStoreSettings,
    #[command(flatten)]
    pub semantic_cache: SemanticCache,
    #[command(flatten)]
    pub retention: Retention,
    #[command(flatten)]
    pub log_store: LogStoreSettings,
    #[command(flatten)]
    pub files: FileSettings,
    #[command(flatten)]
    pub batches: BatchSettings,
    #[command(flatten)]
    pub mcp: McpSettings,
    #[command(flatten)]
    pub traces: Traces,
    #[command(flatten)]
    pub logs: Logs,
}
