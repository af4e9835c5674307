//! The settings of `gateway-admin`, by flag or environment, one group for each concern.

use shared::settings;

// No doc comment: clap would show it instead of what `cli::Arguments` says about the program.
#[derive(Debug, clap::Parser)]
pub struct Settings {
    #[command(flatten)]
    pub database: settings::Database,
    #[command(flatten)]
    pub listen: settings::Listen,
    #[command(flatten)]
    pub identity: settings::Identity,
    #[command(flatten)]
    pub jwt: settings::Jwt,
    #[command(flatten)]
    pub sign_in: settings::SignIn,
    #[command(flatten)]
    pub outbound: settings::Outbound,
    #[command(flatten)]
    pub features: settings::Features,
    #[command(flatten)]
    pub bootstrap: settings::Bootstrap,
    #[command(flatten)]
    pub sealing: settings::Sealing,
    #[command(flatten)]
    pub secrets: settings::Secrets,
    #[command(flatten)]
    pub mail: settings::Mail,
    #[command(flatten)]
    pub alerts: settings::Alerts,
    #[command(flatten)]
    pub prices: settings::PriceSettings,
    #[command(flatten)]
    pub configs: settings::Configs,
    #[command(flatten)]
    pub deployment_limits: settings::DeploymentLimits,
    #[command(flatten)]
    pub retention: settings::Retention,
    #[command(flatten)]
    pub log_store: settings::LogStoreSettings,
    #[command(flatten)]
    pub logs: settings::Logs,
    #[command(flatten)]
    pub mcp: settings::McpSettings,
}
