//! The one way into `request_logs`, for whoever brings rows: they are staged in a temporary table, inserted unless they are
//! there, and added up into `usage_counters`, all in one transaction (and `usage_slots` learns of it). Everything is added up from
//! the rows that were new, and in the order of its key, so that two writers wait for each other instead of deadlocking.
//! What else is done to rows stands beside it: their days, where their bodies lie, and how they are erased. Who reads them for
//! people goes through admin's `log_data`.

pub mod bodies;
pub mod days;
pub mod erasure;

use rust_decimal::Decimal;
use serde_json::Value;
use tokio_postgres::{Error, GenericClient};

/// Whether the column of costs can hold so many cents.
pub fn is_storable(cents: &Decimal) -> bool {
    *cents < Decimal::from(100_000_000_000_000_u64)
}

/// Read below whoever brings rows; null where it is not brought.
const OF_CACHE: &str = "cache_status";

/// Makes the temporary table `staged` with these columns; `on_commit` as SQL says it.
pub fn stage(columns: &str, on_commit: &str) -> String {
    let is_brought = columns.split(',').any(|column| column.trim() == OF_CACHE);
    let more = if is_brought { String::new() } else { format!(", {OF_CACHE}") };
    format!(
        "CREATE TEMPORARY TABLE staged ON COMMIT {on_commit} AS SELECT {columns}{more} FROM request_logs WITH NO DATA"
    )
}

/// Fills `staged` with rows that are JSON objects.
pub async fn fill_from_json(transaction: &impl GenericClient, columns: &str, rows: Vec<Value>) -> Result<(), Error> {
    let fill = format!(
        "INSERT INTO staged ({columns}) SELECT {columns} FROM jsonb_populate_recordset(NULL::request_logs, $1)"
    );
    transaction.execute(&fill, &[&Value::Array(rows)]).await.map(drop)
}

/// Stores the `count` staged rows and answers how many were new. Their days must have partitions (`request_logs_day`).
pub async fn add_staged(transaction: &impl GenericClient, columns: &str, count: u64) -> Result<u64, Error> {
    let again = transaction.execute(&insert(columns), &[]).await?;
    if again < count {
        transaction.execute(COUNT, &[]).await?;
    }
    Ok(count.saturating_sub(again))
}

/// Inserts what is not there yet and leaves only that in the temporary table. Answers how many were there.
fn insert(columns: &str) -> String {
    format!(
        "WITH fresh AS (
             INSERT INTO request_logs ({columns}) SELECT {columns} FROM staged ORDER BY created_at, id
             ON CONFLICT (created_at, id) DO NOTHING
             RETURNING created_at, id)
         DELETE FROM staged s
         WHERE NOT EXISTS (SELECT FROM fresh f WHERE f.created_at = s.created_at AND f.id = s.id)"
    )
}

/// Calls that were refused before a provider was chosen use nothing up; those that were answered from the cache are counted
/// as requests of whoever asked, and use neither tokens nor a provider.
const COUNT: &str = "
    INSERT INTO usage_counters AS c (organisation_id, scope, scope_id, unit, period, starts_at, value)
    SELECT s.organisation_id, scope.name, scope.id, unit.name, period.name, period.start, sum(unit.amount)
    FROM (SELECT organisation_id, workspace_id, api_key_id,
              CASE WHEN cache_status IN ('HIT', 'SEMANTIC HIT') THEN NULL ELSE virtual_key END AS provider,
              date_trunc('day', created_at, 'UTC') AS day, count(*) AS requests,
              sum(CASE WHEN cache_status IN ('HIT', 'SEMANTIC HIT') THEN 0 ELSE req_units + res_units END) AS tokens,
              coalesce(sum(cost), 0) AS cost
          FROM staged WHERE ai_org IS NOT NULL
          GROUP BY organisation_id, workspace_id, api_key_id, provider, day) s
    CROSS JOIN LATERAL (VALUES ('organisation', s.organisation_id::text), ('workspace', s.workspace_id::text),
        ('api_key', s.api_key_id::text), ('provider', s.workspace_id || '/' || s.provider)) AS scope (name, id)
    CROSS JOIN LATERAL (VALUES ('requests', s.requests::numeric), ('tokens', s.tokens), ('cost', s.cost))
        AS unit (name, amount)
    CROSS JOIN LATERAL (VALUES ('day', s.day), ('total', '-infinity'::timestamptz)) AS period (name, start)
    WHERE scope.id IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5, 6
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (organisation_id, scope, scope_id, unit, period, starts_at)
    DO UPDATE SET value = c.value + excluded.value, last_updated_at = now()";
