//! Credentials of providers that must be computed: whether accounts may use who we are, and where logins are.

use super::features::on_or_off;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Provider logins")]
pub struct ProviderLogin {
    /// Whether accounts of providers may use the cloud identity of this process (ON or OFF).
    ///
    /// `serviceRole` (AWS), `managed`, `workload` (Azure), `workloadIdentity` (Google) and the like need it.
    ///
    /// Only then is the metadata address of the machine (169.254.169.254) asked; to customers it stays closed.
    ///
    /// Whoever may make an account may then use what this process may use.
    #[arg(long, env = "PROVIDER_OWN_IDENTITY", default_value = "OFF", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub provider_own_identity: bool,
    /// Longest wait of a request for a token it has to have, in milliseconds.
    #[arg(long, env = "PROVIDER_LOGIN_TIMEOUT_MS", default_value_t = 5000)]
    pub provider_login_timeout_ms: u64,
    /// Address in place of AWS STS, for private clouds.
    #[arg(long, env = "PROVIDER_AWS_STS_URL")]
    pub provider_aws_sts_url: Option<String>,
    /// Address in place of https://login.microsoftonline.com, for other clouds of Azure.
    #[arg(long, env = "PROVIDER_AZURE_LOGIN_URL")]
    pub provider_azure_login_url: Option<String>,
}
