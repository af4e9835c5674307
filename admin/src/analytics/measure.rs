//! What can be measured of some logs: names, and how Postgres adds them up. Each is a number, 0 where there is nothing.

use crate::logs::row;
use rust_decimal::Decimal;
use serde_json::Value;
use tokio_postgres::{Error, Row};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// An aggregate over `request_logs` (or feedback, where the graph is of feedback).
    pub sql: &'static str,
}

impl Measure {
    /// Whether it is a time and no figure.
    pub fn is_time(self) -> bool {
        self == FIRST_SEEN || self == LAST_SEEN
    }
}

const fn measure(sql: &'static str) -> Measure {
    Measure { sql }
}

pub const REQUESTS: Measure = measure("count(*)");
pub const COST: Measure = measure("sum(cost)");
pub const AVG_COST: Measure = measure("sum(cost) / nullif(count(*), 0)");
pub const SAVED_COST: Measure = measure("sum(cache_saved_cost)");
pub const TOKENS: Measure = measure("sum(total_units)");
pub const AVG_TOKENS: Measure = measure("avg(total_units)");
pub const AVG_INPUT_TOKENS: Measure = measure("avg(req_units)");
pub const AVG_OUTPUT_TOKENS: Measure = measure("avg(res_units)");
pub const AVG_LATENCY: Measure = measure("avg(response_time)");
pub const P50_LATENCY: Measure = measure("percentile_cont(0.5) WITHIN GROUP (ORDER BY response_time)");
pub const P90_LATENCY: Measure = measure("percentile_cont(0.9) WITHIN GROUP (ORDER BY response_time)");
pub const P95_LATENCY: Measure = measure("percentile_cont(0.95) WITHIN GROUP (ORDER BY response_time)");
pub const P99_LATENCY: Measure = measure("percentile_cont(0.99) WITHIN GROUP (ORDER BY response_time)");
pub const USERS: Measure = measure("count(DISTINCT metadata ->> '_user')");
/// Of requests that name their user.
pub const USERS_REQUESTS: Measure = measure("count(metadata ->> '_user')");
pub const REQUESTS_PER_USER: Measure =
    measure("count(metadata ->> '_user')::numeric / nullif(count(DISTINCT metadata ->> '_user'), 0)");
pub const ERRORS: Measure = measure("count(*) FILTER (WHERE NOT is_success)");
pub const ERROR_RATE: Measure = measure("100.0 * count(*) FILTER (WHERE NOT is_success) / nullif(count(*), 0)");
pub const SUCCESS_RATE: Measure = measure("100.0 * count(*) FILTER (WHERE is_success) / nullif(count(*), 0)");
pub const ERROR_CODES: Measure = measure("count(DISTINCT response_status_code) FILTER (WHERE NOT is_success)");
pub const RESCUED_BY_RETRY: Measure = measure("count(*) FILTER (WHERE is_success AND retry_success_count > 0)");
pub const RESCUED_BY_FALLBACK: Measure = measure("count(*) FILTER (WHERE is_success AND attempt > 0)");
pub const HITS: Measure = measure("count(*) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT'))");
pub const SIMPLE_HITS: Measure = measure("count(*) FILTER (WHERE cache_status = 'HIT')");
pub const SEMANTIC_HITS: Measure = measure("count(*) FILTER (WHERE cache_status = 'SEMANTIC HIT')");
pub const HIT_RATE: Measure =
    measure("100.0 * count(*) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT')) / nullif(count(*), 0)");
pub const SIMPLE_SAVINGS: Measure = measure("sum(cache_saved_cost) FILTER (WHERE cache_status = 'HIT')");
pub const SEMANTIC_SAVINGS: Measure = measure("sum(cache_saved_cost) FILTER (WHERE cache_status = 'SEMANTIC HIT')");
pub const HIT_LATENCY: Measure = measure("avg(response_time) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT'))");
pub const OTHER_LATENCY: Measure =
    measure("avg(response_time) FILTER (WHERE cache_status NOT IN ('HIT', 'SEMANTIC HIT'))");

/// Milliseconds since 1970.
pub const FIRST_SEEN: Measure = measure("extract(epoch FROM min(created_at)) * 1000");
pub const LAST_SEEN: Measure = measure("extract(epoch FROM max(created_at)) * 1000");
/// Of calls that are joined with what was said of their traces.
pub const AVG_SAID: Measure = measure("avg(said)");
pub const SAID: Measure = measure("count(said)");

// Of feedback.
pub const FEEDBACKS: Measure = measure("count(*)");
pub const WEIGHTED: Measure = measure("avg(weighted)");

/// The columns of a select list, as `m0`, `m1`, …
pub fn columns(measures: &[Measure]) -> String {
    let columns = measures.iter().enumerate().map(|(n, measure)| format!("{} AS m{n}", rounded(*measure)));
    columns.collect::<Vec<_>>().join(", ")
}

/// As a number with at most ten decimals, which is what costs have.
fn rounded(measure: Measure) -> String {
    format!("round(coalesce(({})::numeric, 0), 10)", measure.sql)
}

/// The values of a row that was selected by `columns`.
pub fn values(row: &Row, count: usize) -> Result<Vec<Value>, Error> {
    (0..count).map(|n| row.try_get::<_, Decimal>(format!("m{n}").as_str()).map(row::number)).collect()
}
