//! Where kept answers live beyond the memory of one proxy.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Cache")]
pub struct CacheStoreSettings {
    /// Where kept answers live: in the memory of each proxy, or also in the Redis of `REDIS_URL`.
    ///
    /// In Redis they are sealed with the organisation's data key, so a master key is needed. Memory stands in front of it.
    #[arg(long, env = "CACHE_STORE", value_enum, default_value_t = CacheStoreKind::Memory)]
    pub cache_store: CacheStoreKind,
    /// Longest that a call waits for a kept answer from Redis, in milliseconds.
    ///
    /// After it the call goes on to its provider. For a Redis that is known to be away nobody waits.
    #[arg(long, env = "CACHE_WAIT_MS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub cache_wait_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CacheStoreKind {
    Memory,
    Redis,
}
