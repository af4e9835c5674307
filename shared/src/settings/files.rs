//! Files that the gateway keeps itself.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Files")]
pub struct FileSettings {
    /// Longest file that may be uploaded to the gateway's own store, in bytes.
    #[arg(long, env = "FILES_MAX_BYTES", default_value_t = 536_870_912, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub files_max_bytes: u64,
    /// Most bytes that the files of one workspace may take together; 0 is no limit.
    #[arg(long, env = "FILES_WORKSPACE_BYTES", default_value_t = 10_737_418_240, value_parser = clap::value_parser!(u64).range(0..=1 << 50))]
    pub files_workspace_bytes: u64,
    /// Days that files are kept unless their upload asks for less; 0 is for ever.
    #[arg(long, env = "FILES_RETENTION_DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(0..=36_500))]
    pub files_retention_days: u32,
}
