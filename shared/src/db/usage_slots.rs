//! Figures by slots of time (`usage_slots`): which of them are stale, and how they are built from logs. A trigger
//! notes the minutes of logs that are added, changed or deleted as stale, in the same transaction; `refresh` builds them anew, from
//! the narrowest width to the widest. Building is the same for a slot that never was, that got late rows and that lost erased ones.

mod build;
mod verify;

pub use build::SlotSize;
pub use verify::{DayVerdict, verify_day};

use build::{build_from_logs, build_from_smaller};
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use tokio_postgres::{Error, GenericClient};

/// Whoever writes slots does so alone.
pub async fn lock(transaction: &impl GenericClient) -> Result<(), Error> {
    // Compiling a statement over every day of logs takes longer than running it.
    transaction.batch_execute("SET LOCAL jit = off; SELECT pg_advisory_xact_lock(hashtext('usage_slots'))").await
}

/// What was rebuilt, and whether more is stale that could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refreshed {
    pub slots: u64,
    pub is_all: bool,
}

/// Slots of one width that are built in one transaction.
const AT_ONCE: i64 = 20;

/// Builds slots that are stale and over. The one that time is in changes with every call, and is counted from logs meanwhile.
pub async fn refresh(transaction: &impl GenericClient, now: DateTime<Utc>) -> Result<Refreshed, Error> {
    const OLDER: &str = "DELETE FROM usage_stale WHERE slot < $1";
    lock(transaction).await?;
    transaction.execute(OLDER, &[&Kept::read(transaction).await?.begin()]).await?;
    let mut done = Refreshed { slots: 0, is_all: true };
    for size in SlotSize::ALL {
        let due = due(transaction, size, now).await?;
        done.is_all &= (due.len() as i64) < AT_ONCE;
        done.slots += due.len() as u64;
        rebuild(transaction, size, &due).await?;
    }
    Ok(done)
}

/// The oldest stale slots of a width that are over, and in which nothing smaller is stale.
async fn due(db: &impl GenericClient, size: SlotSize, now: DateTime<Utc>) -> Result<Vec<DateTime<Utc>>, Error> {
    const DUE: &str = "SELECT slot FROM (SELECT DISTINCT slot FROM usage_stale WHERE size = $1 AND slot <= $2) AS stale
        WHERE NOT EXISTS (SELECT FROM usage_stale s WHERE s.size < $1 AND s.slot >= stale.slot
            AND s.slot < stale.slot + make_interval(mins => $1::smallint::int))
        ORDER BY slot LIMIT $3";
    let rows = db.query(DUE, &[&size.minutes(), &(now - size.width()), &AT_ONCE]).await?;
    rows.iter().map(|row| row.try_get("slot")).collect()
}

/// Builds these slots of a width anew and notes the wider ones around them as stale.
pub async fn rebuild(transaction: &impl GenericClient, size: SlotSize, slots: &[DateTime<Utc>]) -> Result<(), Error> {
    const CLEAN: &str = "DELETE FROM usage_stale WHERE size = $1 AND slot = ANY($2)";
    const FORGET: &str = "DELETE FROM usage_slots WHERE size = $1 AND slot = ANY($2)";
    const WIDER: &str = "INSERT INTO usage_stale (size, slot) SELECT DISTINCT $1::smallint,
        date_bin(make_interval(mins => $1::smallint::int), slot, TIMESTAMPTZ '2001-01-01 00:00:00+00') FROM unnest($2::timestamptz[]) AS slot";
    if slots.is_empty() {
        return Ok(());
    }
    let kept = Kept::read(transaction).await?;
    transaction.execute(CLEAN, &[&size.minutes(), &slots]).await?;
    let slots: Vec<DateTime<Utc>> = slots.iter().copied().filter(|slot| *slot >= kept.begin()).collect();
    let has_minutes = |slot: &DateTime<Utc>| *slot >= kept.minutes_from;
    // Old minutes are not kept: what is late for them is late for their half hour.
    let (smaller, from_logs): (Vec<_>, Vec<_>) = match size {
        SlotSize::Minute => (Vec::new(), slots.iter().copied().filter(has_minutes).collect()),
        SlotSize::HalfHour => slots.iter().copied().partition(has_minutes),
        SlotSize::Day => (slots.clone(), Vec::new()),
    };
    transaction.execute(FORGET, &[&size.minutes(), &slots]).await?;
    if !from_logs.is_empty() {
        transaction.execute(&build_from_logs(), &[&from_logs, &size.minutes()]).await?;
    }
    if !smaller.is_empty() {
        transaction.execute(&build_from_smaller(), &[&smaller, &size.minutes(), &size.smaller().minutes()]).await?;
    }
    if let Some(wider) = size.wider() {
        transaction.execute(WIDER, &[&wider.minutes(), &slots]).await?;
    }
    Ok(())
}

/// From when on there are slots of which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub begins_at: DateTime<Utc>,
    pub minutes_from: DateTime<Utc>,
    /// None where all logs are there.
    pub sealed_until: Option<DateTime<Utc>>,
}

impl Kept {
    pub async fn read(db: &impl GenericClient) -> Result<Self, Error> {
        const READ: &str =
            "SELECT begins_at, minutes_from, CASE WHEN isfinite(sealed_until) THEN sealed_until END AS sealed
                            FROM usage_slots_kept";
        let row = db.query_one(READ, &[]).await?;
        Ok(Self {
            begins_at: row.try_get("begins_at")?,
            minutes_from: row.try_get("minutes_from")?,
            sealed_until: row.try_get("sealed")?,
        })
    }

    /// The first moment whose slots can be built.
    pub fn begin(&self) -> DateTime<Utc> {
        self.sealed_until.map_or(self.begins_at, |sealed| sealed.max(self.begins_at))
    }
}

/// Logs of before this day are deleted: what was built of them stays as it is.
pub async fn seal(transaction: &impl GenericClient, until: DateTime<Utc>) -> Result<(), Error> {
    const SEAL: &str = "UPDATE usage_slots_kept SET sealed_until = greatest(sealed_until, $1)";
    const CLEAN: &str = "DELETE FROM usage_stale WHERE slot < $1";
    lock(transaction).await?;
    transaction.execute(SEAL, &[&until]).await?;
    // What is stale now can never be built again: better what is known than nothing.
    transaction.execute(CLEAN, &[&until]).await.map(|_| ())
}

/// Takes a person's name out of all slots of an organisation. Their calls stay counted without it.
pub async fn forget_user(transaction: &impl GenericClient, organisation: uuid::Uuid, user: &str) -> Result<u64, Error> {
    const FORGET: &str =
        "DELETE FROM usage_slots WHERE organisation_id = $1 AND dimension = 'user' AND value = left('u' || $2, 500)";
    lock(transaction).await?;
    transaction.execute(FORGET, &[&organisation, &user]).await
}

/// The beginning of the day (UTC) that a moment is in.
pub fn day_of(time: DateTime<Utc>) -> DateTime<Utc> {
    time.duration_trunc(TimeDelta::days(1)).unwrap_or(time)
}
