//! How many logs match a filter: exact up to a bound, and not at all where finding out would take long.

use crate::http::ApiError;
use serde_json::Value;
use shared::db::table::Filter;
use tokio_postgres::GenericClient;

/// Totals are counted, and pages numbered, up to here.
pub const COUNTED: i64 = 10_000;
/// What a count may cost, in Postgres' own unit: some 100 ms.
const DEAR: f64 = 20_000.0;

/// How many match, up to one beyond the bound. None when finding out would take long: filters that leave one row of many
/// find a page soon and have to look at all rows to be counted.
pub async fn count(db: &impl GenericClient, filter: &Filter) -> Result<Option<i64>, ApiError> {
    let (mut values, beyond) = (filter.values(), COUNTED + 1);
    values.push(&beyond);
    let (matching, n) = (filter.sql(), values.len());
    let count = format!("SELECT count(*) FROM (SELECT FROM request_logs WHERE {matching} LIMIT ${n}) matches");
    let plan: Value = db.query_one(&format!("EXPLAIN (FORMAT JSON) {count}"), &values).await?.try_get(0)?;
    let cost = plan[0]["Plan"]["Total Cost"].as_f64().unwrap_or(f64::INFINITY);
    if cost > DEAR {
        return Ok(None);
    }
    Ok(Some(db.query_one(&count, &values).await?.try_get(0)?))
}
