//! The proxy's journal: every call is noted on disk before its answer is complete, and stored in Postgres afterwards.

use super::features::on_or_off;
use std::path::PathBuf;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Journal")]
pub struct Journal {
    /// Whether calls are logged at all (ON or OFF). Without it there are no logs, no costs and no usage.
    #[arg(long, env = "JOURNAL", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub journal: bool,
    /// Folder of what is not stored in Postgres yet.
    ///
    /// Several proxies may share it; each adopts what a dead one left.
    #[arg(long, env = "JOURNAL_DIR", default_value = "/var/lib/portcullis/journal")]
    pub journal_dir: PathBuf,
    /// When the disk is told to keep what was written.
    ///
    /// Power loss costs at most JOURNAL_FSYNC_MS, nothing, or more. A process that is killed loses nothing either way.
    #[arg(long, env = "JOURNAL_FSYNC", value_enum, default_value_t = Fsync::Interval)]
    pub journal_fsync: Fsync,
    /// That interval, in milliseconds.
    #[arg(long, env = "JOURNAL_FSYNC_MS", default_value_t = 1000)]
    pub journal_fsync_ms: u64,
    /// A file of the journal is closed at this size, in bytes.
    #[arg(long, env = "JOURNAL_SEGMENT_BYTES", default_value_t = 8 << 20)]
    pub journal_segment_bytes: u64,
    /// Most that the journal may hold on disk, in bytes.
    #[arg(long, env = "JOURNAL_MAX_BYTES", default_value_t = 4 << 30)]
    pub journal_max_bytes: u64,
    /// What happens beyond that: drop the oldest logs, or refuse new calls with 503.
    ///
    /// Logs that are dropped are counted.
    #[arg(long, env = "JOURNAL_WHEN_FULL", value_enum, default_value_t = WhenFull::Drop)]
    pub journal_when_full: WhenFull,
    /// How often logs are sent to Postgres, in milliseconds.
    #[arg(long, env = "JOURNAL_SHIP_MS", default_value_t = 500)]
    pub journal_ship_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Fsync {
    Interval,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WhenFull {
    Drop,
    Refuse,
}
