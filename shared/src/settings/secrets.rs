//! Secret managers outside: how long what they gave is fresh, where they are, and whether tenants may use who we are.

use super::features::on_or_off;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Secret managers")]
pub struct Secrets {
    /// How long a fetched secret is fresh, in milliseconds; then it is renewed in the background.
    #[arg(long, env = "SECRETS_TTL_MS", default_value_t = 300_000)]
    pub secrets_ttl_ms: u64,
    /// Whether secret references may use the cloud identity of this process (ON or OFF).
    ///
    /// They may then read what it may read.
    #[arg(long, env = "SECRETS_OWN_IDENTITY", default_value = "OFF", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub secrets_own_identity: bool,
    /// Address in place of AWS Secrets Manager and AWS STS, for private clouds.
    #[arg(long, env = "SECRETS_AWS_URL")]
    pub secrets_aws_url: Option<String>,
    /// Address in place of https://login.microsoftonline.com, for other clouds of Azure.
    #[arg(long, env = "SECRETS_AZURE_LOGIN_URL")]
    pub secrets_azure_login_url: Option<String>,
}
