//! Drops the days of logs that are older than `LOG_RETENTION_DISPLAY`. A day is a table of its own, so that this costs
//! the same however many rows it had; the folders of its bodies in the log store are noted for `delete_objects`.

use super::{Job, JobRun};
use crate::app::App;
use chrono::{Days, NaiveDate, NaiveTime};
use futures::FutureExt as _;
use shared::db::usage_slots;
use shared::log_store;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "expire_logs", every: Duration::from_secs(15 * 60), work: |app, tx| work(app, tx).boxed() };

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // Dropping a day waits for everybody who reads or writes logs, and they wait behind it: better to come again later.
    const BE_BRIEF: &str = "SET LOCAL lock_timeout = '1s'";
    const TODAY: &str = "SELECT (now() AT TIME ZONE 'UTC')::date";
    const DAYS: &str = "SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
                        WHERE i.inhparent = 'request_logs'::regclass ORDER BY c.relname";
    let kept = app.retention.log_retention_display;
    let Some(oldest) = oldest_kept(tx.query_one(TODAY, &[]).await?.try_get(0)?, kept) else {
        return Ok(JobRun { items: 0, is_all: true });
    };
    let mut due = Vec::new();
    for row in tx.query(DAYS, &[]).await? {
        due.extend(day_of(row.try_get(0)?).filter(|day| *day < oldest));
    }
    // One in each transaction, so that the lock is held as shortly as can be.
    let Some(day) = due.first() else { return Ok(JobRun { items: 0, is_all: true }) };
    note_bodies(tx, *day).await?;
    usage_slots::seal(tx, (*day + Days::new(1)).and_time(NaiveTime::MIN).and_utc()).await?;
    tx.batch_execute(BE_BRIEF).await?;
    tx.batch_execute(&format!("DROP TABLE {}", table_of(*day))).await?;
    tracing::info!(%day, kept_days = kept, "a day of logs was dropped");
    Ok(JobRun { items: 1, is_all: due.len() == 1 })
}

/// Each workspace has a folder for each day. They are found by jumping from one to the next in the index, not by reading
/// the rows.
async fn note_bodies(tx: &Transaction<'_>, day: NaiveDate) -> anyhow::Result<()> {
    const NOTE: &str = "INSERT INTO object_deletions (folder) VALUES ($1) ON CONFLICT DO NOTHING";
    let table = table_of(day);
    let workspaces = format!(
        "WITH RECURSIVE found AS (
            (SELECT organisation_id, workspace_id FROM {table} ORDER BY workspace_id LIMIT 1) UNION ALL
            SELECT next.* FROM found, LATERAL (SELECT organisation_id, workspace_id FROM {table} t
                WHERE t.workspace_id > found.workspace_id ORDER BY workspace_id LIMIT 1) next)
         SELECT organisation_id, workspace_id FROM found"
    );
    for row in tx.query(&workspaces, &[]).await? {
        let (organisation, workspace) = (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
        tx.execute(NOTE, &[&log_store::day_prefix(organisation, workspace, day)]).await?;
    }
    Ok(())
}

/// The first day of which something may still be younger than so many days; none when all are kept.
fn oldest_kept(today: NaiveDate, days: u32) -> Option<NaiveDate> {
    (days > 0).then(|| today.checked_sub_days(Days::new(days.into()))).flatten()
}

const PREFIX: &str = "request_logs_";

fn table_of(day: NaiveDate) -> String {
    format!("{PREFIX}{}", day.format("%Y%m%d"))
}

/// The day whose table this is. Tables that somebody attached under another name are theirs to drop.
fn day_of(table: &str) -> Option<NaiveDate> {
    let day = NaiveDate::parse_from_str(table.strip_prefix(PREFIX)?, "%Y%m%d").ok()?;
    (table_of(day) == table).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_due_when_its_last_moment_is_older_than_the_retention() {
        let day = |text: &str| text.parse::<NaiveDate>().unwrap();
        for (today, days, expected) in [
            ("2026-03-31", 90, Some(day("2025-12-31"))),
            ("2026-03-31", 1, Some(day("2026-03-30"))),
            ("2026-03-31", 0, None),
        ] {
            assert_eq!(oldest_kept(day(today), days), expected, "{today} {days}");
        }
    }

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
