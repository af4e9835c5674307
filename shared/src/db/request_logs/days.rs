//! The days of logs. Each is a table of its own, so that dropping one costs the same however many rows it had.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

/// So many days admin may be away.
pub const DAYS_AHEAD: i32 = 7;

const PREFIX: &str = "request_logs_";

/// Makes the table of a day, unless it is there.
pub async fn make_day(client: &impl GenericClient, day: NaiveDate) -> Result<(), Error> {
    client.execute("SELECT request_logs_day($1)", &[&day]).await.map(drop)
}

/// Makes the tables of today (UTC) and of so many days after it. Answers how many there were not.
pub async fn make_coming_days(client: &impl GenericClient, ahead: i32) -> Result<u64, Error> {
    const MAKE: &str = "SELECT request_logs_day(day)
        FROM (SELECT (now() AT TIME ZONE 'UTC')::date + ahead AS day FROM generate_series(0, $1::int) ahead) days
        WHERE to_regclass('request_logs_' || to_char(day, 'YYYYMMDD')) IS NULL";
    Ok(client.query(MAKE, &[&ahead]).await?.len() as u64)
}

/// The days that have a table, the oldest first. Tables that somebody attached under another name are theirs.
pub async fn days(client: &impl GenericClient) -> Result<Vec<NaiveDate>, Error> {
    const DAYS: &str = "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                        WHERE i.inhparent = 'request_logs'::regclass ORDER BY c.relname";
    let mut days = Vec::new();
    for row in client.query(DAYS, &[]).await? {
        days.extend(day_of(row.try_get(0)?));
    }
    Ok(days)
}

/// Organisation and workspace of all calls of a day. They are found by jumping from one to the next in the index, not by
/// reading the rows.
pub async fn workspaces_of(client: &impl GenericClient, day: NaiveDate) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let table = table_of(day);
    let workspaces = format!(
        "WITH RECURSIVE found AS (
            (SELECT organisation_id, workspace_id FROM {table} ORDER BY workspace_id LIMIT 1) UNION ALL
            SELECT next.* FROM found, LATERAL (SELECT organisation_id, workspace_id FROM {table} t
                WHERE t.workspace_id > found.workspace_id ORDER BY workspace_id LIMIT 1) next)
         SELECT organisation_id, workspace_id FROM found"
    );
    let rows = client.query(&workspaces, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get("organisation_id")?, row.try_get("workspace_id")?))).collect()
}

/// Drops a day with all its rows. Waits no longer than `patience` (as SQL says it) for those who read or write logs: they wait
/// behind it meanwhile.
pub async fn drop_day(client: &impl GenericClient, day: NaiveDate, patience: &str) -> Result<(), Error> {
    client.execute("SELECT set_config('lock_timeout', $1, true)", &[&patience]).await?;
    // Of a date alone: names cannot be bound.
    client.batch_execute(&format!("DROP TABLE {}", table_of(day))).await
}

/// The first moment of the day after.
pub fn end_of(day: NaiveDate) -> DateTime<Utc> {
    day.succ_opt().unwrap_or(day).and_time(NaiveTime::MIN).and_utc()
}

fn table_of(day: NaiveDate) -> String {
    format!("{PREFIX}{}", day.format("%Y%m%d"))
}

fn day_of(table: &str) -> Option<NaiveDate> {
    let day = NaiveDate::parse_from_str(table.strip_prefix(PREFIX)?, "%Y%m%d").ok()?;
    (table_of(day) == table).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tables_that_are_named_as_a_day_are_one() {
        for (table, expected) in [
            ("request_logs_20260331", Some("2026-03-31")),
            ("request_logs_20260332", None),
            ("request_logs_2026331", None),
            ("request_logs_20260331_old", None),
            ("request_logs_default", None),
            ("other_20260331", None),
        ] {
            assert_eq!(day_of(table).map(|day| day.to_string()).as_deref(), expected, "{table}");
        }
    }
}
