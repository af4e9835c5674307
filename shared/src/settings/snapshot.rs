//! The proxy's copy of the control plane's data.

use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Snapshot")]
pub struct Snapshot {
    /// Folder of the copy on disk that lets the proxy start without Postgres.
    #[arg(long, env = "SNAPSHOT_DIR", default_value = "/var/lib/portcullis/snapshot")]
    pub snapshot_dir: PathBuf,
    /// How often changes are looked for when no notice arrives, in milliseconds.
    #[arg(long, env = "SNAPSHOT_POLL_MS", default_value_t = 15_000)]
    pub snapshot_poll_ms: u64,
    /// Shortest time between two writes of the disk copy, in milliseconds.
    #[arg(long, env = "SNAPSHOT_SAVE_MS", default_value_t = 5_000)]
    pub snapshot_save_ms: u64,
    /// A disk copy last confirmed longer ago than this is not used, in seconds.
    ///
    /// It could revive a revoked key.
    #[arg(long, env = "SNAPSHOT_MAX_AGE_S", default_value_t = 86_400)]
    pub snapshot_max_age_s: u64,
}
