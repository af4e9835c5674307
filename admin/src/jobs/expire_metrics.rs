//! Deletes figures (`usage_slots`) once they are older than `METRICS_RETENTION_DAYS`, and running totals of days and
//! shorter that no limit looks at any more; windows of rates two days after they are over at the latest.

use super::{Job, JobRun};
use crate::app::App;
use futures::FutureExt as _;
use shared::db::usage_slots;
use std::time::Duration;
use tokio_postgres::Transaction;

pub const JOB: Job =
    Job { name: "expire_metrics", every: Duration::from_secs(60 * 60), work: |app, tx| work(app, tx).boxed() };

const AT_ONCE: i64 = 10_000;
/// Limits add up the days of a month: however short metrics are kept, totals must outlast that.
const COUNTER_DAYS: u32 = 62;
const WINDOW_DAYS: u32 = 2;
/// Days. Narrow slots are for graphs of the last hours.
const MINUTE_DAYS: i32 = 2;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // By place instead of by key, because the keys are long; `IN` would not use it.
    const COUNTERS: &str = "DELETE FROM usage_counters WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM usage_counters WHERE period <> 'total' AND starts_at < now() - make_interval(days => $1)
        LIMIT $2))";
    // Windows of rates are of no use once they are over, and each group of a policy has one.
    const WINDOWS: &str = "DELETE FROM usage_counters WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM usage_counters
        WHERE period <> 'total' AND (period IN ('minute', 'hour') OR scope = 'policy' OR scope LIKE '%\\_rate')
          AND starts_at < now() - make_interval(days => CASE period WHEN 'week' THEN $1 + 7 ELSE $1 END) LIMIT $2))";
    let retention_days = app.retention.metrics_days();
    let mut done = JobRun { items: 0, is_all: true };
    // Zero keeps what is shown for ever.
    let shown = (retention_days > 0).then_some((COUNTERS, retention_days.max(COUNTER_DAYS)));
    for (sql, days) in [(WINDOWS, WINDOW_DAYS)].into_iter().chain(shown) {
        let deleted = tx.execute(sql, &[&i32::try_from(days)?, &AT_ONCE]).await?;
        done.items += deleted;
        done.is_all &= deleted < AT_ONCE.unsigned_abs();
    }
    let deleted = expire_slots(tx, retention_days).await?;
    done.items += deleted;
    done.is_all &= deleted < AT_ONCE.unsigned_abs();
    Ok(done)
}

/// First it is noted that there are none any more, for who reads; then they are deleted in pieces.
async fn expire_slots(tx: &Transaction<'_>, retention_days: u32) -> anyhow::Result<u64> {
    const KEEP: &str = "UPDATE usage_slots_kept SET
        minutes_from = greatest(minutes_from, date_trunc('day', now(), 'UTC') - make_interval(days => $1)),
        begins_at = CASE WHEN $2 = 0 THEN begins_at
            ELSE greatest(begins_at, date_trunc('day', now(), 'UTC') - make_interval(days => $2)) END";
    const DELETE: &str = "DELETE FROM usage_slots WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM usage_slots s, usage_slots_kept k
        WHERE (s.size = 1 AND s.slot < k.minutes_from) OR s.slot < k.begins_at LIMIT $1))";
    usage_slots::lock(tx).await?;
    tx.execute(KEEP, &[&MINUTE_DAYS, &i32::try_from(retention_days)?]).await?;
    Ok(tx.execute(DELETE, &[&AT_ONCE]).await?)
}
