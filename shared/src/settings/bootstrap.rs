//! What the first start creates on an empty store.

use std::fmt;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "First start (used only while no organisation exists)")]
pub struct Bootstrap {
    /// Name of the first organisation.
    #[arg(long, env = "BOOTSTRAP_ORGANISATION", default_value = "Default")]
    pub bootstrap_organisation: String,
    /// E-mail address of its owner.
    #[arg(long, env = "BOOTSTRAP_OWNER_EMAIL", default_value = "owner@localhost")]
    pub bootstrap_owner_email: String,
    /// Its admin key, at least 32 characters; generated and printed once when absent.
    #[arg(long, env = "BOOTSTRAP_ADMIN_KEY", hide_env_values = true)]
    pub bootstrap_admin_key: Option<String>,
}

/// Settings end up in debug output sooner or later; the key must not.
impl fmt::Debug for Bootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bootstrap")
            .field("bootstrap_organisation", &self.bootstrap_organisation)
            .field("bootstrap_owner_email", &self.bootstrap_owner_email)
            .field("bootstrap_admin_key", &self.bootstrap_admin_key.as_ref().map(|_| "…"))
            .finish()
    }
}
