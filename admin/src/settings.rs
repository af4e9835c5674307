//! The settings of `gateway-admin`, by flag or environment, one group for each concern.

use shared::conf;

// No doc comment: clap would show it instead of what `cli::Arguments` says about the program.
#[derive(Debug, clap::Parser)]
pub struct Settings {
    #[command(flatten)]
    pub database: conf::Database,
    #[command(flatten)]
    pub listen: conf::Listen,
    #[command(flatten)]
    pub identity: conf::Identity,
    #[command(flatten)]
    pub jwt: conf::Jwt,
    #[command(flatten)]
    pub outbound: conf::Outbound,
    #[command(flatten)]
    pub features: conf::Features,
    #[command(flatten)]
    pub bootstrap: conf::Bootstrap,
    #[command(flatten)]
    pub sealing: conf::Sealing,
    #[command(flatten)]
    pub secrets: conf::Secrets,
    #[command(flatten)]
    pub mail: conf::Mail,
    #[command(flatten)]
    pub catalogue: conf::Catalogue,
    #[command(flatten)]
    pub configs: conf::Configs,
    #[command(flatten)]
    pub deployment_limits: conf::DeploymentLimits,
    #[command(flatten)]
    pub retention: conf::Retention,
    #[command(flatten)]
    pub log_store: conf::LogStore,
    #[command(flatten)]
    pub logs: conf::Logs,
}
