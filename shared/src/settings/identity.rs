//! How callers are recognised.

use super::features::on_or_off;
use ipnet::IpNet;
use std::net::IpAddr;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Identity")]
pub struct Identity {
    /// What every new API key starts with.
    #[arg(long, env = "API_KEY_PREFIX", default_value = "pk_")]
    pub api_key_prefix: String,
    /// Further header prefixes accepted as aliases of `x-gateway-`, comma separated.
    ///
    /// For example `x-acme-`.
    #[arg(long, env = "HEADER_PREFIX_ALIASES", value_delimiter = ',')]
    pub header_prefix_aliases: Vec<String>,
    /// Whether what agents say of themselves becomes metadata, ON or OFF.
    ///
    /// It is `_agent`, `_session` and `_user`. Everything else that names the same metadata wins.
    #[arg(long, env = "AGENT_METADATA", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub agent_metadata: bool,
    /// Headers whose values become metadata, as `header` or `header:name`, comma separated.
    ///
    /// Everything else that names the same metadata wins.
    #[arg(long, env = "HEADERS_TO_METADATA", value_delimiter = ',')]
    pub headers_to_metadata: Vec<String>,
    /// Networks whose `X-Forwarded-For` is believed, comma separated.
    #[arg(long, env = "TRUSTED_PROXIES", value_delimiter = ',', value_parser = network, default_value = "127.0.0.0/8,::1/128")]
    pub trusted_proxies: Vec<IpNet>,
}

/// A single address is a network, too.
fn network(text: &str) -> Result<IpNet, String> {
    let text = text.trim();
    let found = text.parse::<IpNet>().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
    found.ok_or_else(|| "it must be networks or addresses, as 10.0.0.0/8, with commas between them".to_owned())
}
