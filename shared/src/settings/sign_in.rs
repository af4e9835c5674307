//! How people sign in. Which identity providers there are is a setting of each organisation; this is what the
//! installation adds.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sign-in")]
pub struct SignIn {
    /// Scopes that are asked for at OIDC logins beyond the usual ones, comma separated.
    ///
    /// The usual ones are openid, profile, email and offline_access. An organisation adds its own in its auth settings.
    #[arg(long, env = "OIDC_CUSTOM_SCOPES", value_delimiter = ',')]
    pub oidc_custom_scopes: Vec<String>,
}
