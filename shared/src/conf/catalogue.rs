//! What is known of providers and their models beside what is bundled.

use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Catalogue")]
pub struct Catalogue {
    /// File of further providers in the form of conf/providers.toml; its rows win over the bundled ones.
    #[arg(long, env = "PROVIDERS_FILE")]
    pub providers_file: Option<PathBuf>,
}
