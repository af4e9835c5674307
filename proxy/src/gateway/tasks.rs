//! Every long-lived task of the proxy, by its name in metrics and in `/readyz`.
//!
//! Vital are those without which calls are lost or judged wrongly: the journal's, the snapshot's and the one that keeps
//! leases of limits. A process is not ready while one of them is dead.

use shared::supervisor::Task;
use std::time::Duration;

/// Loops that take a turn every second or so, with time limits of a minute around what they wait for.
const MINUTES: Duration = Duration::from_secs(180);
/// Loops whose turn is several questions to Postgres, one after the other.
const LONG: Duration = Duration::from_secs(600);

pub const SNAPSHOT: Task = Task::periodic("snapshot", LONG).vital();
pub const LIMIT_LEASES: Task = Task::periodic("limit leases", MINUTES).vital();
pub const JOURNAL_SHIP: Task = Task::periodic("journal ship", LONG).vital();
pub const JOURNAL_BOUND: Task = Task::periodic("journal bound", MINUTES).vital();
/// A thread: Linux cuts names of threads at 15 bytes.
pub const JOURNAL_SYNC: Task = Task::periodic("journal sync", MINUTES).vital();
pub const LOG_BODIES: Task = Task::periodic("log bodies", LONG);
pub const ASYNC_GUARDRAILS: Task = Task::waiting("async guardrails");
pub const TRACES: Task = Task::waiting("traces");
pub const ACCESS_LOG: Task = Task::waiting("access log");
pub const REDIS_RATES: Task = Task::waiting("redis rates");
pub const CACHE_SWEEP: Task = Task::waiting("cache sweep");
pub const CACHE_STORE_READS: Task = Task::waiting("cache store reads");
pub const CACHE_STORE_WRITES: Task = Task::waiting("cache store writes");
/// An index in memory has nothing to do.
pub const SEMANTIC_CACHE: Task = Task::waiting("semantic cache").may_end();
pub const BATCHES: Task = Task::periodic("batches", LONG);
pub const BATCH_LEASES: Task = Task::periodic("batch leases", MINUTES);
pub const DEPLOYMENT: Task = Task::waiting("deployment heartbeat");
pub const ADMIN_CHECKS: Task = Task::periodic("admin checks", MINUTES);
pub const KEYRING: Task = Task::periodic("keyring", MINUTES);
pub const SECRETS: Task = Task::waiting("secrets");
pub const PROVIDER_LOGINS: Task = Task::waiting("provider logins");
pub const AUDIT_TRAIL: Task = Task::waiting("audit trail");
pub const MCP_CHANGES: Task = Task::waiting("mcp changes");
pub const DRAIN: Task = Task::waiting("drain");
pub const METRICS_PORT: Task = Task::waiting("metrics port");
