//! What can be measured of some logs: names, and how Postgres adds them up. Each is a number, 0 where there is nothing.

use super::rolled::Rolled;
use super::row;
use rust_decimal::Decimal;
use serde_json::Value;
use tokio_postgres::{Error, Row};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// An aggregate over `request_logs` (or feedback, where the graph is of feedback).
    pub(super) sql: &'static str,
    /// The same over figures of slots; none where only logs have it.
    pub(super) rolled: Option<Rolled>,
}

impl Measure {
    /// Whether it is an amount of money.
    pub fn is_money(self) -> bool {
        [COST, AVG_COST, SAVED_COST, SIMPLE_SAVINGS, SEMANTIC_SAVINGS].contains(&self)
    }

    /// Whether it is a time and no figure.
    pub fn is_time(self) -> bool {
        self == FIRST_SEEN || self == LAST_SEEN
    }
}

const fn of_logs(sql: &'static str) -> Measure {
    Measure { sql, rolled: None }
}

const fn measure(sql: &'static str, rolled: Rolled) -> Measure {
    Measure { sql, rolled: Some(rolled) }
}

pub const REQUESTS: Measure = measure("count(*)", Rolled::Requests);
pub const COST: Measure = measure("sum(cost)", Rolled::Cost);
pub const AVG_COST: Measure = measure("sum(cost) / nullif(count(*), 0)", Rolled::AvgCost);
pub const SAVED_COST: Measure = measure("sum(cache_saved_cost)", Rolled::SavedCost);
pub const TOKENS: Measure = measure("sum(total_units)", Rolled::Tokens);
pub const AVG_TOKENS: Measure = measure("avg(total_units)", Rolled::AvgTokens);
pub const AVG_INPUT_TOKENS: Measure = measure("avg(req_units)", Rolled::AvgInputTokens);
pub const AVG_OUTPUT_TOKENS: Measure = measure("avg(res_units)", Rolled::AvgOutputTokens);
pub const AVG_LATENCY: Measure = measure("avg(response_time)", Rolled::AvgLatency);
pub const P50_LATENCY: Measure =
    measure("percentile_cont(0.5) WITHIN GROUP (ORDER BY response_time)", Rolled::Latency(50));
pub const P90_LATENCY: Measure =
    measure("percentile_cont(0.9) WITHIN GROUP (ORDER BY response_time)", Rolled::Latency(90));
pub const P95_LATENCY: Measure =
    measure("percentile_cont(0.95) WITHIN GROUP (ORDER BY response_time)", Rolled::Latency(95));
pub const P99_LATENCY: Measure =
    measure("percentile_cont(0.99) WITHIN GROUP (ORDER BY response_time)", Rolled::Latency(99));
pub const USERS: Measure = measure("count(DISTINCT metadata ->> '_user')", Rolled::Users);
/// Of requests that name their user.
pub const USERS_REQUESTS: Measure = measure("count(metadata ->> '_user')", Rolled::UserRequests);
pub const REQUESTS_PER_USER: Measure = measure(
    "count(metadata ->> '_user')::numeric / nullif(count(DISTINCT metadata ->> '_user'), 0)",
    Rolled::RequestsPerUser,
);
pub const ERRORS: Measure = measure("count(*) FILTER (WHERE NOT is_success)", Rolled::Errors);
pub const ERROR_RATE: Measure =
    measure("100.0 * count(*) FILTER (WHERE NOT is_success) / nullif(count(*), 0)", Rolled::ErrorRate);
pub const SUCCESS_RATE: Measure =
    measure("100.0 * count(*) FILTER (WHERE is_success) / nullif(count(*), 0)", Rolled::SuccessRate);
pub const ERROR_CODES: Measure =
    measure("count(DISTINCT response_status_code) FILTER (WHERE NOT is_success)", Rolled::ErrorCodes);
pub const RESCUED_BY_RETRY: Measure =
    measure("count(*) FILTER (WHERE is_success AND retry_success_count > 0)", Rolled::Retried);
pub const RESCUED_BY_FALLBACK: Measure = measure("count(*) FILTER (WHERE is_success AND attempt > 0)", Rolled::Fallen);
pub const HITS: Measure = measure("count(*) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT'))", Rolled::Hits);
pub const SIMPLE_HITS: Measure = measure("count(*) FILTER (WHERE cache_status = 'HIT')", Rolled::SimpleHits);
pub const SEMANTIC_HITS: Measure =
    measure("count(*) FILTER (WHERE cache_status = 'SEMANTIC HIT')", Rolled::SemanticHits);
pub const HIT_RATE: Measure = measure(
    "100.0 * count(*) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT')) / nullif(count(*), 0)",
    Rolled::HitRate,
);
pub const SIMPLE_SAVINGS: Measure =
    measure("sum(cache_saved_cost) FILTER (WHERE cache_status = 'HIT')", Rolled::SimpleSaved);
pub const SEMANTIC_SAVINGS: Measure =
    measure("sum(cache_saved_cost) FILTER (WHERE cache_status = 'SEMANTIC HIT')", Rolled::SemanticSaved);
pub const HIT_LATENCY: Measure =
    measure("avg(response_time) FILTER (WHERE cache_status IN ('HIT', 'SEMANTIC HIT'))", Rolled::HitLatency);
pub const OTHER_LATENCY: Measure =
    measure("avg(response_time) FILTER (WHERE cache_status NOT IN ('HIT', 'SEMANTIC HIT'))", Rolled::OtherLatency);

/// Milliseconds since 1970.
pub const FIRST_SEEN: Measure = measure("extract(epoch FROM min(created_at)) * 1000", Rolled::FirstSeen);
pub const LAST_SEEN: Measure = measure("extract(epoch FROM max(created_at)) * 1000", Rolled::LastSeen);
/// Of calls that are joined with what was said of their traces.
pub const AVG_FEEDBACK: Measure = of_logs("avg(said)");
pub const FEEDBACK_COUNT: Measure = of_logs("count(said)");

// Of feedback.
pub const FEEDBACKS: Measure = of_logs("count(*)");
pub const WEIGHTED: Measure = of_logs("avg(weighted)");

/// The columns of a select list, as `m0`, `m1`, …
pub(super) fn columns(measures: &[Measure]) -> String {
    let columns = measures.iter().enumerate().map(|(n, measure)| format!("{} AS m{n}", rounded(measure.sql)));
    columns.collect::<Vec<_>>().join(", ")
}

/// As a number with at most ten decimals, which is what costs have.
fn rounded(sql: &str) -> String {
    format!("round(coalesce(({sql})::numeric, 0), 10)")
}

/// The values of a row that was selected by `columns`.
pub(super) fn values(row: &Row, count: usize) -> Result<Vec<Value>, Error> {
    (0..count).map(|n| row.try_get::<_, Decimal>(format!("m{n}").as_str()).map(row::number)).collect()
}
