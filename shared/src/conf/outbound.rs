//! Whom both services may call on a customer's word, and whose certificates they believe.

use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Outbound")]
pub struct Outbound {
    /// Hosts that customers may name although they are private or not https; subdomains match, comma separated.
    #[arg(long, env = "TRUSTED_CUSTOM_HOSTS", value_delimiter = ',')]
    pub trusted_custom_hosts: Vec<String>,
    /// The gateway's own public host names, which a custom host may never name, comma separated.
    #[arg(long, env = "OWN_HOSTNAMES", value_delimiter = ',')]
    pub own_hostnames: Vec<String>,
    /// PEM file of further authorities to trust for providers and key sets.
    #[arg(long, env = "UPSTREAM_CA_FILE")]
    pub upstream_ca_file: Option<PathBuf>,
}
