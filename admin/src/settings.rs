//! What `gateway-admin` is told: settings by flag or environment, and which of its three jobs to do.

use shared::conf;

/// The control plane of Portcullis. Without a command it migrates the database, makes the first organisation when
/// there is none, and serves.
#[derive(Debug, clap::Parser)]
#[command(name = "gateway-admin", version)]
pub struct Settings {
    #[command(flatten)]
    pub database: conf::Database,
    #[command(flatten)]
    pub listen: conf::Listen,
    #[command(flatten)]
    pub identity: conf::Identity,
    #[command(flatten)]
    pub features: conf::Features,
    #[command(flatten)]
    pub bootstrap: conf::Bootstrap,
    #[command(flatten)]
    pub mail: conf::Mail,
    #[command(flatten)]
    pub logs: conf::Logs,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Bring the database to this version's schema, and stop.
    Migrate,
    /// Make a further organisation, and print its admin key once.
    CreateOrganisation {
        /// Name of the organisation.
        #[arg(long)]
        name: String,
        /// E-mail address of its owner.
        #[arg(long)]
        owner_email: String,
    },
}
