//! Answers that are kept, so that an equal request need not ask a provider again.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Cache")]
pub struct CacheSettings {
    /// Most memory that kept answers may take in a proxy, in bytes.
    ///
    /// Each workspace is sure of an equal part when there is not enough for all. An answer larger than a sixty-fourth of
    /// it (256 KiB at least), or than 8 MiB, is not kept.
    #[arg(long, env = "CACHE_MAX_BYTES", default_value_t = 268_435_456, value_parser = clap::value_parser!(u64).range(1_048_576..))]
    pub cache_max_bytes: u64,
}
