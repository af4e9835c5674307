//! Proves that slots are what their logs add up to, a day at a time, and builds those again that are not. A day that slots do not
//! reach back to is built, so that they begin earlier.

use super::{Kept, SlotSize, day_of, lock, rebuild};
use chrono::{DateTime, TimeDelta, Utc};
use std::fmt;
use tokio_postgres::{Error, GenericClient};

/// What was found of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayVerdict {
    /// Slots and logs agree.
    Sound,
    /// So many figures did not, and do now.
    Mended { figures: i64 },
    /// It had no slots, and has some now.
    Built,
    /// Its logs are gone, or it is not over.
    Skipped,
}

impl fmt::Display for DayVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sound => write!(f, "agrees with its logs"),
            Self::Mended { figures } => write!(f, "{figures} figures differed from the logs and were built again"),
            Self::Built => write!(f, "built from its logs"),
            Self::Skipped => write!(f, "skipped: its logs are gone, or it is not over"),
        }
    }
}

/// Looks at the day (UTC) that a moment is in. Whoever goes through several begins with the latest: slots have no gaps.
pub async fn verify_day(transaction: &impl GenericClient, day: DateTime<Utc>) -> Result<DayVerdict, Error> {
    const BEGIN: &str = "UPDATE usage_slots_kept SET begins_at = $1";
    lock(transaction).await?;
    let now: DateTime<Utc> = transaction.query_one("SELECT now()", &[]).await?.try_get(0)?;
    let (day, kept) = (day_of(day), Kept::read(transaction).await?);
    let next = day + TimeDelta::days(1);
    if next > now || kept.sealed_until.is_some_and(|sealed| day < sealed) || next < kept.begins_at {
        return Ok(DayVerdict::Skipped);
    }
    if day < kept.begins_at {
        transaction.execute(BEGIN, &[&day]).await?;
        build_day(transaction, day).await?;
        return Ok(DayVerdict::Built);
    }
    let figures = differing(transaction, day).await?;
    if figures == 0 {
        return Ok(DayVerdict::Sound);
    }
    build_day(transaction, day).await?;
    Ok(DayVerdict::Mended { figures })
}

/// All of its slots, from the narrowest on.
async fn build_day(transaction: &impl GenericClient, day: DateTime<Utc>) -> Result<(), Error> {
    for size in SlotSize::ALL {
        let count = 1440 / i32::from(size.minutes());
        let slots: Vec<DateTime<Utc>> = (0..count).map(|n| day + size.width() * n).collect();
        rebuild(transaction, size, &slots).await?;
    }
    Ok(())
}

/// How many figures of slots are not those of the logs. What is known to be stale is not asked.
async fn differing(db: &impl GenericClient, day: DateTime<Utc>) -> Result<i64, Error> {
    const DIFFERING: &str = "
        WITH sizes AS (
            SELECT size, make_interval(mins => size) AS width FROM (VALUES (1), (30), (1440)) AS sizes (size)
            WHERE size > 1 OR $1::timestamptz >= (SELECT minutes_from FROM usage_slots_kept)),
        stale AS (SELECT DISTINCT size, slot FROM usage_stale WHERE slot >= $1 AND slot < $1 + interval '1 day'),
        logs AS (
            SELECT size, date_bin(width, created_at, $1) AS slot, workspace_id, count(*) AS requests,
                count(*) FILTER (WHERE NOT is_success) AS errors, sum(req_units) AS req_units, sum(res_units) AS res_units,
                coalesce(sum(cost), 0) AS cost, sum(response_time) AS response_time, max(created_at) AS last_seen
            FROM request_logs CROSS JOIN sizes WHERE created_at >= $1 AND created_at < $1 + interval '1 day' GROUP BY 1, 2, 3),
        expected AS (SELECT * FROM logs CROSS JOIN (VALUES (''), ('model'), ('ai_service'), ('provider'), ('config'), ('prompt'),
            ('status_code'), ('api_key'), ('cache_status'), ('prompt_version'), ('user')) AS by (dimension)),
        found AS (
            SELECT s.size::int AS size, s.slot, s.workspace_id, s.dimension, sum(s.requests) AS requests, sum(s.errors) AS errors,
                sum(s.req_units) AS req_units, sum(s.res_units) AS res_units, sum(s.cost) AS cost,
                sum(s.response_time) AS response_time, max(s.last_seen) AS last_seen
            FROM usage_slots s JOIN sizes ON sizes.size = s.size
            WHERE s.slot >= $1 AND s.slot < $1 + interval '1 day' AND s.dimension NOT IN ('service_model', 'retries')
            GROUP BY 1, 2, 3, 4)
        SELECT count(*) FROM (
            SELECT size AS width, slot AS beginning FROM expected e FULL JOIN found f USING (size, slot, workspace_id, dimension)
            WHERE (e.requests, e.errors, e.req_units, e.res_units, e.cost, e.response_time, e.last_seen)
                IS DISTINCT FROM (f.requests, f.errors, f.req_units, f.res_units, f.cost, f.response_time, f.last_seen)) AS wrong
        WHERE NOT EXISTS (SELECT FROM stale WHERE stale.size <= wrong.width AND stale.slot >= wrong.beginning
            AND stale.slot < wrong.beginning + make_interval(mins => wrong.width))";
    db.query_one(DIFFERING, &[&day]).await?.try_get(0)
}
