//! Whom both services may call on a customer's word, and whose certificates they believe.

use super::features::on_or_off;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Outbound")]
pub struct Outbound {
    /// Hosts that customers may name although they are private or not https, comma separated.
    ///
    /// Subdomains match.
    #[arg(long, env = "TRUSTED_CUSTOM_HOSTS", value_delimiter = ',')]
    pub trusted_custom_hosts: Vec<String>,
    /// Whether customers may name any public host without TLS (ON or OFF).
    ///
    /// What is sent over http:// can be read on the way.
    #[arg(long, env = "PLAIN_CUSTOM_HOSTS", default_value = "OFF", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub plain_custom_hosts: bool,
    /// The gateway's own public host names, which a custom host may never name, comma separated.
    #[arg(long, env = "OWN_HOSTNAMES", value_delimiter = ',')]
    pub own_hostnames: Vec<String>,
    /// PEM file of further authorities to trust for providers and key sets.
    #[arg(long, env = "UPSTREAM_CA_FILE")]
    pub upstream_ca_file: Option<PathBuf>,
    /// DNS server that proofs of mail domains are asked from, as 10.0.0.2:53.
    ///
    /// Without it, the first of /etc/resolv.conf.
    #[arg(long, env = "DNS_SERVER")]
    pub dns_server: Option<SocketAddr>,
}
