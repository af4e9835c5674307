//! Drops the days of logs that are older than `LOG_RETENTION_DAYS`. A day is a table of its own, so that this costs
//! the same however many rows it had; the folders of its bodies in the log store are noted for `delete_objects`.

use super::{Job, JobRun};
use crate::app::App;
use chrono::{Days, NaiveDate};
use futures::FutureExt as _;
use shared::db::request_logs::days;
use shared::db::usage_slots;
use shared::log_store;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "expire_logs", every: Duration::from_secs(15 * 60), work: |app, tx| work(app, tx).boxed() };

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // Dropping a day waits for everybody who reads or writes logs, and they wait behind it: better to come again later.
    const PATIENCE: &str = "1s";
    const TODAY: &str = "SELECT (now() AT TIME ZONE 'UTC')::date";
    let retention_days = app.retention.log_days();
    let Some(oldest) = oldest_day(tx.query_one(TODAY, &[]).await?.try_get(0)?, retention_days) else {
        return Ok(JobRun { items: 0, is_all: true });
    };
    let due: Vec<NaiveDate> = days::days(tx).await?.into_iter().filter(|day| *day < oldest).collect();
    // One in each transaction, so that the lock is held as shortly as can be.
    let Some(day) = due.first() else { return Ok(JobRun { items: 0, is_all: true }) };
    note_bodies(tx, *day).await?;
    usage_slots::seal(tx, days::end_of(*day)).await?;
    days::drop_day(tx, *day, PATIENCE).await?;
    tracing::info!(%day, retention_days = retention_days, "a day of logs was dropped");
    Ok(JobRun { items: 1, is_all: due.len() == 1 })
}

/// Each workspace has a folder for each day.
async fn note_bodies(tx: &Transaction<'_>, day: NaiveDate) -> anyhow::Result<()> {
    const NOTE: &str = "INSERT INTO object_deletions (folder) VALUES ($1) ON CONFLICT DO NOTHING";
    for (organisation, workspace) in days::workspaces_of(tx, day).await? {
        tx.execute(NOTE, &[&log_store::day_prefix(organisation, workspace, day)]).await?;
    }
    Ok(())
}

/// The first day of which something may still be younger than so many days; none when all are kept.
fn oldest_day(today: NaiveDate, days: u32) -> Option<NaiveDate> {
    (days > 0).then(|| today.checked_sub_days(Days::new(days.into()))).flatten()
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
            assert_eq!(oldest_day(day(today), days), expected, "{today} {days}");
        }
    }
}
