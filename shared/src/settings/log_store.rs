//! Where bodies of logged calls and exports are kept.

use super::features::on_or_off;

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Log store")]
pub struct LogStoreSettings {
    /// Where bodies of logged calls and exports are kept: file://, s3://, gs:// or az://.
    ///
    /// As file:///folder, s3://bucket/folder, gs://bucket/folder or az://container/folder. Both services must see the
    /// same place. Credentials come from the environment, by the names each cloud uses (AWS_*, GOOGLE_*, AZURE_*):
    /// keys, or a federated identity.
    #[arg(long, env = "LOG_STORE_URL", default_value = "file:///var/lib/portcullis/logs")]
    pub log_store_url: String,
    /// Whether bodies and headers of calls are kept (ON or OFF). Without them a log is its row only.
    #[arg(long, env = "LOG_BODIES", default_value = "ON", value_parser = on_or_off, action = clap::ArgAction::Set)]
    pub log_bodies: bool,
    /// Longest body that is kept whole, in bytes; of a longer one the beginning is kept.
    #[arg(long, env = "LOG_BODY_BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(0..=16 << 20))]
    pub log_body_bytes: u32,
    /// Longest that bodies wait on a proxy's disk to be stored together with others, in seconds.
    ///
    /// Bodies of one workspace and hour become one object, a pack. A longer time makes fewer and larger ones, and shows
    /// bodies later.
    #[arg(long, env = "LOG_PACK_SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(0..=600))]
    pub log_pack_seconds: u32,
    /// Compressed bytes of bodies that are stored without waiting for more.
    ///
    /// A proxy holds about twice as much in memory.
    #[arg(long, env = "LOG_PACK_BYTES", default_value_t = 8 << 20, value_parser = clap::value_parser!(u32).range(64 << 10..=64 << 20))]
    pub log_pack_bytes: u32,
}
