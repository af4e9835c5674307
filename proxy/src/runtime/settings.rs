//! The proxy's settings: every concern it needs, each documented by `--help`.

use shared::settings;

/// The gateway's data plane: inference, pass-through, and the way to the control plane.
#[derive(Debug, clap::Parser)]
#[command(name = "gateway-proxy", version)]
pub struct Settings {
    /// Take the listening sockets over from a running proxy once ready (send that one SIGQUIT).
    #[arg(long)]
    pub upgrade: bool,
    #[command(flatten)]
    pub listen: settings::Listen,
    #[command(flatten)]
    pub process: settings::Process,
    #[command(flatten)]
    pub identity: settings::Identity,
    #[command(flatten)]
    pub jwt: settings::Jwt,
    #[command(flatten)]
    pub upstream: settings::Upstream,
    #[command(flatten)]
    pub prices: settings::PriceSettings,
    #[command(flatten)]
    pub sealing: settings::Sealing,
    #[command(flatten)]
    pub secrets: settings::Secrets,
    #[command(flatten)]
    pub provider_login: settings::ProviderLogin,
    #[command(flatten)]
    pub configs: settings::Configs,
    #[command(flatten)]
    pub deployment: settings::DeploymentSettings,
    #[command(flatten)]
    pub database: settings::Database,
    #[command(flatten)]
    pub snapshot: settings::Snapshot,
    #[command(flatten)]
    pub journal: settings::Journal,
    #[command(flatten)]
    pub limits: settings::LimitSettings,
    #[command(flatten)]
    pub cache: settings::CacheSettings,
    #[command(flatten)]
    pub cache_store: settings::CacheStoreSettings,
    #[command(flatten)]
    pub semantic_cache: settings::SemanticCache,
    #[command(flatten)]
    pub log_store: settings::LogStoreSettings,
    #[command(flatten)]
    pub files: settings::FileSettings,
    #[command(flatten)]
    pub batches: settings::BatchSettings,
    #[command(flatten)]
    pub mcp: settings::McpSettings,
    #[command(flatten)]
    pub traces: settings::Traces,
    #[command(flatten)]
    pub features: settings::Features,
    #[command(flatten)]
    pub logs: settings::Logs,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_first_line_about_each_setting_fits_a_line() {
        for argument in Settings::command().get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty() && help.len() < 100, "{}: {help}", argument.get_id());
        }
    }
}
