//! Deletes what was used, by minute, once it is older than `METRICS_RETENTION_DISPLAY`, and running totals of days and
//! shorter that no limit looks at any more.

use super::{Done, Job};
use crate::app::App;
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "expire_metrics", every: Duration::from_secs(60 * 60), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: i64 = 10_000;
/// Limits add up the days of a month: however short metrics are kept, totals must outlast that.
const COUNTERS_KEPT: u32 = 62;
const WINDOWS_KEPT: u32 = 2;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<Done> {
    // By place instead of by key, because the keys are long; `IN` would not use it.
    const METRICS: &str = "DELETE FROM usage_by_minute WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM usage_by_minute WHERE minute < now() - make_interval(days => $1) LIMIT $2))";
    const COUNTERS: &str = "DELETE FROM usage_counters WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM usage_counters WHERE period <> 'total' AND starts_at < now() - make_interval(days => $1)
        LIMIT $2))";
    // Windows that end within a day are of no use after it, and there is one for each group of a policy.
    const WINDOWS: &str = "DELETE FROM usage_counters WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM usage_counters WHERE period <> 'total' AND period IN ('minute', 'hour')
          AND starts_at < now() - make_interval(days => $1) LIMIT $2))";
    let kept = app.retention.metrics_retention_display;
    let mut done = Done { items: 0, is_all: true };
    let forever: &[(&str, u32)] = &[(METRICS, kept), (COUNTERS, kept.max(COUNTERS_KEPT))];
    let long = if kept == 0 { &[] } else { forever };
    for (sql, days) in [(WINDOWS, WINDOWS_KEPT)].iter().chain(long) {
        let deleted = tx.execute(*sql, &[&i32::try_from(*days)?, &AT_ONCE]).await?;
        done.items += deleted;
        done.is_all &= deleted < AT_ONCE.unsigned_abs();
    }
    Ok(done)
}
