//! The master key that stored secrets are sealed under.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Sealing of stored secrets")]
pub struct Sealing {
    /// File of master keys, one `id:base64` of 32 bytes a line, the first in use.
    ///
    /// Read again when it changes.
    #[arg(long, env = "GATEWAY_MASTER_KEY_FILE")]
    pub gateway_master_key_file: Option<PathBuf>,
    /// A single master key instead of the file, as 32 bytes in base64; it cannot be rotated.
    #[arg(long, env = "GATEWAY_MASTER_KEY", hide_env_values = true)]
    pub gateway_master_key: Option<String>,
}

/// Settings end up in debug output sooner or later; the key must not.
impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealing")
            .field("gateway_master_key_file", &self.gateway_master_key_file)
            .field("gateway_master_key", &self.gateway_master_key.as_ref().map(|_| "…"))
            .finish()
    }
}
