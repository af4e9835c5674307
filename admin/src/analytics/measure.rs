//! What can be measured of some logs: names, and how Postgres adds them up. Each is a number, 0 where there is nothing.

use crate::logs::row;
use rust_decimal::Decimal;
use serde_json::Value;
use tokio_postgres::{Error, Row};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// An aggregate over `request_logs` (or feedback, where the graph is of feedback).
    pub sql: &'static str,
    /// The same over parts that are added up already (`slots`); empty where only logs have it.
    pub rolled: &'static str,
    /// What the parts must be divided by for that, as their `value`.
    pub divided_by: &'static str,
    /// The share of calls below it, of a percentile.
    pub percent: Option<u8>,
}

impl Measure {
    /// Whether it is a time and no figure.
    pub fn is_time(self) -> bool {
        self == FIRST_SEEN || self == LAST_SEEN
    }

    /// Whether slots have it.
    pub fn is_rolled(self) -> bool {
        !self.rolled.is_empty() || self.percent.is_some()
    }
}

const fn of_logs(sql: &'static str) -> Measure {
    Measure { sql, rolled: "", divided_by: "", percent: None }
}

const fn measure(sql: &'static str, rolled: &'static str) -> Measure {
    Measure { sql, rolled, divided_by: "", percent: None }
}

const fn divided(divided_by: &'static str, sql: &'static str, rolled: &'static str) -> Measure {
    Measure { sql, rolled, divided_by, percent: None }
}

const fn percentile(percent: u8, sql: &'static str) -> Measure {
    Measure { sql, rolled: "", divided_by: "", percent: Some(percent) }
}

pub const REQUESTS: Measure = measure("count(*)", "sum(requests)");
pub const COST: Measure = measure("sum(cost)", "sum(cost)");
pub const AVG_COST: Measure = measure("sum(cost) / nullif(count(*), 0)", "sum(cost) / nullif(sum(requests), 0)");
pub const SAVED_COST: Measure = measure("sum(cache_saved_cost)", "sum(saved)");
pub const TOKENS: Measure = measure("sum(total_units)", "sum(req_units + res_units)");
pub const AVG_TOKENS: Measure = measure("avg(total_units)", "sum(req_units + res_units) / nullif(sum(requests), 0)");
pub const AVG_INPUT_TOKENS: Measure = measure("avg(req_units)", "sum(req_units) / nullif(sum(requests), 0)");
pub const AVG_OUTPUT_TOKENS: Measure = measure("avg(res_units)", "sum(res_units) / nullif(sum(requests), 0)");
pub const AVG_LATENCY: Measure = measure("avg(response_time)", "sum(response_time) / nullif(sum(requests), 0)");
pub const P50_LATENCY: Measure = percentile(50, "percentile_cont(0.5) WITHIN GROUP (ORDER BY response_time)");
pub const P90_LATENCY: Measure = percentile(90, "percentile_cont(0.9) WITHIN GROUP (ORDER BY response_time)");
pub const P95_LATENCY: Measure = percentile(95, "percentile_cont(0.95) WITHIN GROUP (ORDER BY response_time)");
pub const P99_LATENCY: Measure = percentile(99, "percentile_cont(0.99) WITHIN GROUP (ORDER BY response_time)");
pub const USERS: Measure = divided("user", "count(DISTINCT metadata ->> '_user')", "count(DISTINCT value)");
/// Of requests that name their user.
pub const USERS_REQUESTS: Measure = measure("count(metadata ->> '_user')", "sum(user_requests)");
pub const REQUESTS_PER_USER: Measure = divided(
    "user",
    "count(metadata ->> '_user')::numeric / nullif(count(DISTINCT metadata ->> '_user'), 0)",
    "sum(user_requests) / nullif(count(DISTINCT value), 0)",
);
pub const ERRORS: Measure = measure("count(*) FILTER (WHERE NOT is_success)", "sum(errors)");
pub const ERROR_RATE: Measure = measure(
    "100.0 * count(*) FILTER (WHERE NOT is_success) / nullif(count(*), 0)",
    "100.0 * sum(errors) / nullif(sum(requests), 0)",
);
pub const SUCCESS_RATE: Measure = measure(
    "100.0 * count(*) FILTER (WHERE is_success) / nullif(count(*), 0)",
    "100.0 * sum(requests - errors) / nullif(sum(requests), 0)",
);
pub const ERROR_CODES: Measure = divided(
    "status_code",
    "count(DISTINCT response_status_code) FILTER (WHERE NOT is_success)",
    "count(DISTINCT value) FILTER (WHERE errors > 0)",
);
pub const RESCUED_BY_RETRY: Measure =
    measure("count(*) FILTER (WHERE is_success AND retry_success_count > 0)", "sum(retried)");
pub const RESCUED_BY_FALLBACK: Measure = measure("count(*) FILTER (WHERE is_success AND attempt > 0)", "sum(fallen)");
pub const HITS: Measure =
    measure("count(*) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT'))", "sum(simple_hits + semantic_hits)");
pub const SIMPLE_HITS: Measure = measure("count(*) FILTER (WHERE cache_status = 'HIT')", "sum(simple_hits)");
pub const SEMANTIC_HITS: Measure =
    measure("count(*) FILTER (WHERE cache_status = 'SEMANTIC HIT')", "sum(semantic_hits)");
pub const HIT_RATE: Measure = measure(
    "100.0 * count(*) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT')) / nullif(count(*), 0)",
    "100.0 * sum(simple_hits + semantic_hits) / nullif(sum(requests), 0)",
);
pub const SIMPLE_SAVINGS: Measure =
    measure("sum(cache_saved_cost) FILTER (WHERE cache_status = 'HIT')", "sum(simple_saved)");
pub const SEMANTIC_SAVINGS: Measure =
    measure("sum(cache_saved_cost) FILTER (WHERE cache_status = 'SEMANTIC HIT')", "sum(semantic_saved)");
pub const HIT_LATENCY: Measure = measure(
    "avg(response_time) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT'))",
    "sum(hit_time) / nullif(sum(simple_hits + semantic_hits), 0)",
);
pub const OTHER_LATENCY: Measure = measure(
    "avg(response_time) FILTER (WHERE cache_status NOT IN ('HIT', 'SEMANTIC HIT'))",
    "sum(response_time - hit_time) / nullif(sum(requests - simple_hits - semantic_hits), 0)",
);

/// Milliseconds since 1970.
pub const FIRST_SEEN: Measure =
    measure("extract(epoch FROM min(created_at)) * 1000", "extract(epoch FROM min(first_seen)) * 1000");
pub const LAST_SEEN: Measure =
    measure("extract(epoch FROM max(created_at)) * 1000", "extract(epoch FROM max(last_seen)) * 1000");
/// Of calls that are joined with what was said of their traces.
pub const AVG_SAID: Measure = of_logs("avg(said)");
pub const SAID: Measure = of_logs("count(said)");

// Of feedback.
pub const FEEDBACKS: Measure = of_logs("count(*)");
pub const WEIGHTED: Measure = of_logs("avg(weighted)");

/// The columns of a select list, as `m0`, `m1`, …
pub fn columns(measures: &[Measure]) -> String {
    let columns = measures.iter().enumerate().map(|(n, measure)| format!("{} AS m{n}", rounded(measure.sql)));
    columns.collect::<Vec<_>>().join(", ")
}

/// As a number with at most ten decimals, which is what costs have.
pub fn rounded(sql: &str) -> String {
    format!("round(coalesce(({sql})::numeric, 0), 10)")
}

/// The values of a row that was selected by `columns`.
pub fn values(row: &Row, count: usize) -> Result<Vec<Value>, Error> {
    (0..count).map(|n| row.try_get::<_, Decimal>(format!("m{n}").as_str()).map(row::number)).collect()
}
