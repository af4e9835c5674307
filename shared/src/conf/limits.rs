//! How several proxies share rate limits and budgets.

#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// What happens to calls whose limits the store cannot be asked about, once what was set aside for this proxy is used up: they are refused (closed) or pass (open). Strict budgets are always closed.
    #[arg(long, env = "LIMITS_STORE_AWAY", value_enum, default_value_t = StoreAway::Closed)]
    pub limits_store_away: StoreAway,
    /// Longest that a call waits for the store of limits, in milliseconds.
    #[arg(long, env = "LIMITS_WAIT_MS", default_value_t = 250)]
    pub limits_wait_ms: u64,
    /// A proxy that is not heard of for this long loses its part of rate limits to the others, in milliseconds.
    #[arg(long, env = "LIMITS_LEASE_TTL_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(500..=60_000))]
    pub limits_lease_ttl_ms: u64,
    /// Most counters (a limit, or one group of a policy) that are held in memory; about 500 bytes each.
    #[arg(long, env = "LIMITS_MAX_COUNTERS", default_value_t = 200_000)]
    pub limits_max_counters: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StoreAway {
    Closed,
    Open,
}
