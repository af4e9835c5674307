//! Logs in the order in which they arrived. A trigger notes them while somebody watches their organisation (`log_watchers`).
//!
//! Numbers are given out before their transaction is committed, so a lower one can become visible behind a higher one. Each
//! arrival therefore has the id of its transaction, and each look at them says below which id all transactions are over.

use super::question::LogSearch;
use super::row::{self, FoundLog};
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// Arrivals of one organisation that one look reads; so many are there only when a transaction was held open for long.
pub const MAX_READ: i64 = 20_000;

/// A log that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    pub number: i64,
    /// Of the transaction that brought it.
    pub xid: i64,
    pub created_at: DateTime<Utc>,
    pub id: Uuid,
}

/// What is known of transactions at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// All before this one are over.
    pub settled: i64,
    /// This one has not begun.
    pub next: i64,
    /// The highest number that was given out.
    pub number: i64,
    /// Since 1970.
    pub seconds: i64,
}

pub async fn moment(db: &impl GenericClient) -> Result<Moment, ApiError> {
    const FIND: &str =
        "SELECT pg_snapshot_xmin(seen)::text::bigint AS settled, pg_snapshot_xmax(seen)::text::bigint AS next,
            (SELECT last_value FROM log_arrivals_number) AS number, extract(epoch FROM now())::bigint AS seconds
        FROM pg_current_snapshot() AS seen";
    let row = db.query_one(FIND, &[]).await?;
    Ok(Moment {
        settled: row.try_get("settled")?,
        next: row.try_get("next")?,
        number: row.try_get("number")?,
        seconds: row.try_get("seconds")?,
    })
}

/// Those of transactions from this one on, in the order of their numbers, up to `MAX_READ`.
pub async fn since(db: &impl GenericClient, organisation: Uuid, xid: i64) -> Result<Vec<Arrival>, ApiError> {
    const FIND: &str = "SELECT number, xid::text::bigint AS xid, created_at, id FROM log_arrivals
        WHERE organisation_id = $1 AND xid >= $2::text::xid8 ORDER BY number LIMIT $3";
    let rows = db.query(FIND, &[&organisation, &xid.to_string(), &MAX_READ]).await?;
    let read = |row: &Row| {
        Ok(Arrival {
            number: row.try_get("number")?,
            xid: row.try_get("xid")?,
            created_at: row.try_get("created_at")?,
            id: row.try_get("id")?,
        })
    };
    Ok(rows.iter().map(read).collect::<Result<_, tokio_postgres::Error>>()?)
}

/// Forgets arrivals of so many seconds ago; whether any are left.
pub async fn forget(db: &impl GenericClient, seconds: i64) -> Result<bool, ApiError> {
    const FORGET: &str = "DELETE FROM log_arrivals WHERE arrived_at < now() - $1 * interval '1 second'";
    const ARE_LEFT: &str = "SELECT EXISTS (SELECT FROM log_arrivals)";
    db.execute(FORGET, &[&(seconds as f64)]).await?;
    Ok(db.query_one(ARE_LEFT, &[]).await?.try_get(0)?)
}

/// Those of some arrivals that a search finds, in their order.
pub async fn matching(
    db: &impl GenericClient,
    which: &LogSearch<'_>,
    arrivals: &[Arrival],
) -> Result<Vec<Arrival>, ApiError> {
    let rows = found(db, which, arrivals, "id").await?;
    let mut ids: HashMap<Uuid, ()> = HashMap::with_capacity(rows.len());
    for row in &rows {
        ids.insert(row.try_get("id")?, ());
    }
    Ok(arrivals.iter().filter(|one| ids.contains_key(&one.id)).copied().collect())
}

/// The logs of some arrivals that a search finds, as they are listed and in the order of the arrivals.
pub async fn logs(
    db: &impl GenericClient,
    which: &LogSearch<'_>,
    arrivals: &[Arrival],
) -> Result<Vec<(Arrival, FoundLog)>, ApiError> {
    let rows = found(db, which, arrivals, &row::columns()).await?;
    let mut logs: HashMap<Uuid, FoundLog> = HashMap::with_capacity(rows.len());
    for row in &rows {
        let log = FoundLog::read(row, which.view)?;
        logs.insert(log.id, log);
    }
    Ok(arrivals.iter().filter_map(|one| logs.remove(&one.id).map(|log| (*one, log))).collect())
}

/// Each is looked up by its key: `OFFSET 0` keeps Postgres from walking through the logs of all the time between them. The
/// bounds leave partitions out before a plan is made.
async fn found(
    db: &impl GenericClient,
    which: &LogSearch<'_>,
    arrivals: &[Arrival],
    columns: &str,
) -> Result<Vec<Row>, ApiError> {
    let times: Vec<DateTime<Utc>> = arrivals.iter().map(|one| one.created_at).collect();
    let ids: Vec<Uuid> = arrivals.iter().map(|one| one.id).collect();
    let (Some(first), Some(last)) = (times.iter().min(), times.iter().max()) else { return Ok(Vec::new()) };
    let filter = which.filter()?;
    let mut values = filter.values();
    let n = values.len();
    values.extend([&times as &(dyn ToSql + Sync), &ids, first, last]);
    let sql = format!(
        "SELECT found.* FROM unnest(${}::timestamptz[], ${}::uuid[]) AS arrived (log_time, log_id)
         CROSS JOIN LATERAL (SELECT {columns} FROM request_logs
             WHERE created_at = log_time AND id = log_id AND created_at BETWEEN ${} AND ${} AND {} OFFSET 0) AS found",
        n + 1,
        n + 2,
        n + 3,
        n + 4,
        filter.sql(),
    );
    Ok(db.query(&sql, &values).await?)
}
