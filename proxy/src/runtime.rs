//! What the process runs on: its settings, the threads for work that no request waits for, timeouts that cost nothing when
//! nothing waits, connections to Redis and Postgres, and numbers that each thread keeps for itself and Prometheus reads. Knows
//! nothing of requests.

pub mod background;
pub mod heavy;
pub mod memory;
pub mod numbers;
pub mod redis_link;
pub mod settings;
pub mod small_pool;
pub(crate) mod stripes;
pub mod tenant_share;
pub mod timeout;
