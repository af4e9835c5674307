//! The proxy's settings: every concern it needs, each documented by `--help`.

use shared::conf;

/// The gateway's data plane: inference, pass-through, and the way to the control plane.
#[derive(Debug, clap::Parser)]
#[command(name = "gateway-proxy", version)]
pub struct Settings {
    /// Take the listening sockets over from a running proxy (send it SIGQUIT afterwards).
    #[arg(long)]
    pub upgrade: bool,
    #[command(flatten)]
    pub listen: conf::Listen,
    #[command(flatten)]
    pub process: conf::Process,
    #[command(flatten)]
    pub identity: conf::Identity,
    #[command(flatten)]
    pub jwt: conf::Jwt,
    #[command(flatten)]
    pub upstream: conf::Upstream,
    #[command(flatten)]
    pub catalogue: conf::Catalogue,
    #[command(flatten)]
    pub sealing: conf::Sealing,
    #[command(flatten)]
    pub secrets: conf::Secrets,
    #[command(flatten)]
    pub configs: conf::Configs,
    #[command(flatten)]
    pub deployment: conf::Deployment,
    #[command(flatten)]
    pub database: conf::Database,
    #[command(flatten)]
    pub snapshot: conf::Snapshot,
    #[command(flatten)]
    pub journal: conf::Journal,
    #[command(flatten)]
    pub limits: conf::Limits,
    #[command(flatten)]
    pub log_store: conf::LogStore,
    #[command(flatten)]
    pub traces: conf::Traces,
    #[command(flatten)]
    pub features: conf::Features,
    #[command(flatten)]
    pub logs: conf::Logs,
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
