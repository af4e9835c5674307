//! How several proxies share rate limits and budgets.

use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct LimitSettings {
    /// Redis or Valkey that counts rates exactly (`redis://host:port`, `rediss://` for TLS).
    ///
    /// Nodes of a Cluster with commas between them, or one and a comma. Without it proxies share rates by leases from
    /// Postgres. Budgets are always there.
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: Option<String>,
    /// Whether calls are refused (closed) or pass (open) while limits cannot be asked about.
    ///
    /// Applies once what was set aside for this proxy is used up. Strict budgets are always closed.
    #[arg(long, env = "LIMITS_STORE_AWAY", value_enum, default_value_t = StoreAway::Closed)]
    pub limits_store_away: StoreAway,
    /// Longest that a call waits for the store of limits, in milliseconds.
    ///
    /// For a store that is known to be away nobody waits.
    #[arg(long, env = "LIMITS_WAIT_MS", default_value_t = 1000)]
    pub limits_wait_ms: u64,
    /// Time without a sign after which a proxy loses its part of rate limits, in milliseconds.
    ///
    /// Its part goes to the others.
    #[arg(long, env = "LIMITS_LEASE_TTL_MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(500..=60_000))]
    pub limits_lease_ttl_ms: u64,
    /// Most counters (a limit, or one group of a policy) that are held in memory.
    ///
    /// About 900 bytes each, at most 1,250 with the longest names of groups. Beyond it those without reservations are
    /// forgotten and asked for anew when needed; if there are none, further ones are treated as if the store were away.
    #[arg(long, env = "LIMITS_MAX_COUNTERS", default_value_t = 200_000)]
    pub limits_max_counters: usize,
    /// Whether calls of models without a known price pass (allow) or are refused under budgets.
    ///
    /// For budgets of money that are not strict and do not say so themselves (`unknown_price`). Calls that pass cost
    /// nothing. Strict budgets always refuse them.
    #[arg(long, env = "UNKNOWN_PRICE", value_enum, default_value_t = UnknownPrice::Allow)]
    pub unknown_price: UnknownPrice,
}

/// The URL may hold a password.
impl fmt::Debug for LimitSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("redis_url", &self.redis_url.as_ref().map(|_| "…"))
            .field("limits_store_away", &self.limits_store_away)
            .field("limits_wait_ms", &self.limits_wait_ms)
            .field("limits_lease_ttl_ms", &self.limits_lease_ttl_ms)
            .field("limits_max_counters", &self.limits_max_counters)
            .field("unknown_price", &self.unknown_price)
            .finish()
    }
}

/// Of calls that nobody knows the price of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UnknownPrice {
    #[default]
    Allow,
    Refuse,
}

impl UnknownPrice {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Refuse => "refuse",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum StoreAway {
    Closed,
    Open,
}
