//! Proves that slots are what their logs add up to, a day at a time, and builds those again that are not. A day that slots do not
//! reach back to is built, so that they begin earlier.
//!
//! Nothing is locked while a day is read: what seems to differ may have been built meanwhile, so it is looked at again under the lock
//! of those who write slots, which is held for these few alone.

use super::build::{PayloadDigest, SLOTS_AT_ONCE, SlotKey, SlotSink, digest, merge_smaller, off_thread, tally_logs};
use super::pack;
use super::trace_filter::{self, TRACES};
use super::{Retention, SlotDimension, SlotSize, day_of, lock, rebuild};
use crate::db::table::RowError;
use chrono::{DateTime, TimeDelta, Utc};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use tokio_postgres::GenericClient;

/// What was found of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayVerdict {
    /// Slots and logs agree.
    Sound,
    /// So many figures did not, and do now.
    Mended { figures: u64 },
    /// It had no slots. They are noted as stale, which has them built a few at a time.
    Begun,
    /// Its logs are gone, or it is not over.
    Skipped,
}

impl fmt::Display for DayVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sound => write!(f, "agrees with its logs"),
            Self::Mended { figures } => write!(f, "{figures} figures differed from the logs and were built again"),
            Self::Begun => write!(f, "being built from its logs"),
            Self::Skipped => write!(f, "skipped: its logs are gone, or it is not over"),
        }
    }
}

/// Slots that are built again while the lock is held. More of them are noted as stale, and built a few at a time like others.
const MAX_REBUILT: usize = 120;

/// Minutes of a day are looked at in pieces: what all slots of a piece are known by is in memory.
const HOURS_AT_ONCE: i64 = 2;

/// Looks at the day (UTC) that a moment is in. Whoever goes through several begins with the latest: slots have no gaps.
pub async fn verify_day(transaction: &impl GenericClient, day: DateTime<Utc>) -> Result<DayVerdict, RowError> {
    const BEGIN: &str = "UPDATE usage_slots_kept SET begins_at = $1";
    // Compiling a statement over every day of logs takes longer than running it.
    transaction.batch_execute("SET LOCAL jit = off").await?;
    let now: DateTime<Utc> = transaction.query_one("SELECT now()", &[]).await?.try_get(0)?;
    let (day, retention) = (day_of(day), Retention::read(transaction).await?);
    let next = day + TimeDelta::days(1);
    if next > now || retention.sealed_until.is_some_and(|sealed| day < sealed) || next < retention.begins_at {
        return Ok(DayVerdict::Skipped);
    }
    if day < retention.begins_at {
        lock(transaction).await?;
        transaction.execute(BEGIN, &[&day]).await?;
        for size in SlotSize::ALL {
            note_stale(transaction, size, &slots_of(day, size)).await?;
        }
        return Ok(DayVerdict::Begun);
    }
    let suspects = differing_slots(transaction, day, &retention).await?;
    if suspects.is_empty() {
        return Ok(DayVerdict::Sound);
    }
    lock(transaction).await?;
    if suspects.len() > MAX_REBUILT {
        // Counting them all again would hold the lock for as long as the first look took.
        mend(transaction, &suspects.keys().copied().collect()).await?;
        return Ok(DayVerdict::Mended { figures: suspects.into_values().sum() });
    }
    let retention = Retention::read(transaction).await?;
    let (mut figures, mut wrong) = (0, BTreeSet::new());
    for (size, slot) in suspects.into_keys() {
        let found = differing_in(transaction, size, [slot, slot + size.width()], &retention).await?;
        figures += found.values().sum::<u64>();
        wrong.extend(found.into_keys().map(|slot| (size, slot)));
    }
    if figures == 0 {
        return Ok(DayVerdict::Sound);
    }
    mend(transaction, &wrong).await?;
    Ok(DayVerdict::Mended { figures })
}

/// Builds these slots again, from the narrowest on, or notes them as stale where they are many.
async fn mend(transaction: &impl GenericClient, wrong: &BTreeSet<(SlotSize, DateTime<Utc>)>) -> Result<(), RowError> {
    let mut around: Vec<DateTime<Utc>> = Vec::new();
    for size in SlotSize::ALL {
        let own = wrong.iter().filter(|(width, _)| *width == size).map(|(_, slot)| *slot);
        let slots: BTreeSet<DateTime<Utc>> = own.chain(around.drain(..).map(|slot| size.beginning(slot))).collect();
        let slots: Vec<DateTime<Utc>> = slots.into_iter().collect();
        match wrong.len() > MAX_REBUILT {
            true => note_stale(transaction, size, &slots).await?,
            // Built from its days when it is over, like any other.
            false if size == SlotSize::Week => note_stale(transaction, size, &slots).await?,
            false => {
                rebuild(transaction, size, &slots).await?;
            }
        }
        around = slots;
    }
    Ok(())
}

/// Has slots built again, a few at a time like those of logs that came late.
async fn note_stale(
    transaction: &impl GenericClient,
    size: SlotSize,
    slots: &[DateTime<Utc>],
) -> Result<(), tokio_postgres::Error> {
    const STALE: &str = "INSERT INTO usage_stale (size, slot) SELECT DISTINCT $1::smallint, slot FROM unnest($2::timestamptz[]) AS slot";
    transaction.execute(STALE, &[&size.minutes(), &slots]).await.map(drop)
}

/// Those that a day is made of, and the one that it lies in.
fn slots_of(day: DateTime<Utc>, size: SlotSize) -> Vec<DateTime<Utc>> {
    let count = 1440 / i32::from(size.minutes());
    (0..count.max(1)).map(|n| size.beginning(day) + size.width() * n).collect()
}

/// Slots of a day, and of the week that ends with it, with figures that are not those of the logs.
async fn differing_slots(
    db: &impl GenericClient,
    day: DateTime<Utc>,
    retention: &Retention,
) -> Result<BTreeMap<(SlotSize, DateTime<Utc>), u64>, RowError> {
    let mut differing = BTreeMap::new();
    let mut pieces = Vec::new();
    if day >= retention.minutes_from {
        let beginnings = (0..24 / HOURS_AT_ONCE).map(|n| day + TimeDelta::hours(n * HOURS_AT_ONCE));
        pieces.extend(beginnings.map(|from| (SlotSize::Minute, [from, from + TimeDelta::hours(HOURS_AT_ONCE)])));
    }
    let next = day + SlotSize::Day.width();
    pieces.extend([(SlotSize::HalfHour, [day, next]), (SlotSize::Day, [day, next])]);
    let week = SlotSize::Week.beginning(day);
    // With its last day, all that it is made of is there.
    if week + SlotSize::Week.width() == next && week >= retention.begins_at {
        pieces.push((SlotSize::Week, [week, next]));
    }
    for (size, piece) in pieces {
        let found = differing_in(db, size, piece, retention).await?;
        differing.extend(found.into_iter().map(|(slot, figures)| ((size, slot), figures)));
    }
    Ok(differing)
}

/// How many sets of figures of a stretch of time are not what they should be, by slot. What is known to be stale is not asked.
async fn differing_in(
    db: &impl GenericClient,
    size: SlotSize,
    piece: [DateTime<Utc>; 2],
    retention: &Retention,
) -> Result<BTreeMap<DateTime<Utc>, u64>, RowError> {
    let mut sink = SlotSink::Digest(HashMap::default());
    match size {
        SlotSize::Minute | SlotSize::HalfHour => {
            tally_logs(db, size, piece, &mut sink).await?;
        }
        // What they are made of is looked at as well.
        SlotSize::Day | SlotSize::Week => merge_smaller(db, size, piece[0], retention, &mut sink).await?,
    }
    let SlotSink::Digest(expected) = sink else { return Ok(BTreeMap::new()) };
    let mut wrong = compared(db, size, piece, expected).await?;
    if size == SlotSize::Day {
        let traces = trace_filter::differing(db, piece[0]).await?;
        if traces > 0 {
            *wrong.entry(piece[0]).or_default() += traces;
        }
    }
    if wrong.is_empty() {
        return Ok(wrong);
    }
    // Read last: whatever was counted above and is not built yet is stale by now.
    let stale = StaleSlots::read(db, piece[0]).await?;
    wrong.retain(|slot, _| !stale.has(size, *slot));
    Ok(wrong)
}

/// How many rows of each slot are not what they should be, too many and missing ones included.
async fn compared(
    db: &impl GenericClient,
    size: SlotSize,
    [from, until]: [DateTime<Utc>; 2],
    mut expected: HashMap<SlotKey, PayloadDigest, RandomState>,
) -> Result<BTreeMap<DateTime<Utc>, u64>, RowError> {
    const STORED: &str = "DECLARE stored_slots NO SCROLL CURSOR FOR
        SELECT organisation_id, workspace_id, dimension, slot, figures FROM usage_slots
        WHERE size = $1 AND slot >= $2 AND slot < $3 AND dimension <> $4";
    db.execute(STORED, &[&size.minutes(), &from, &until, &TRACES]).await?;
    let mut wrong = BTreeMap::new();
    let fetch = format!("FETCH {SLOTS_AT_ONCE} FROM stored_slots");
    let mut is_last = false;
    while !is_last {
        let rows = db.query(&fetch, &[]).await?;
        is_last = rows.len() < SLOTS_AT_ONCE;
        let mut read = Vec::with_capacity(rows.len());
        for row in rows {
            let slot: DateTime<Utc> = row.try_get("slot")?;
            let (organisation_id, workspace_id) = (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
            let dimension = SlotDimension::named(row.try_get("dimension")?);
            let key = dimension.map(|dimension| SlotKey { organisation_id, workspace_id, slot, dimension });
            read.push((slot, key, row.try_get::<_, Vec<u8>>("figures")?));
        }
        let digested = off_thread(move || {
            let digested = |figures: &[u8]| pack::unpacked(figures).ok().map(|payload| digest(&payload));
            read.into_iter().map(|(slot, key, figures)| (slot, key, digested(&figures))).collect::<Vec<_>>()
        });
        for (slot, key, is) in digested.await {
            let should = key.and_then(|key| expected.remove(&key));
            if should.is_none() || should != is {
                *wrong.entry(slot).or_default() += 1;
            }
        }
    }
    db.batch_execute("CLOSE stored_slots").await?;
    for key in expected.into_keys() {
        *wrong.entry(key.slot).or_default() += 1;
    }
    Ok(wrong)
}

/// Slots of a week, from some day on, that are known to be stale.
struct StaleSlots(HashSet<(i16, DateTime<Utc>)>);

impl StaleSlots {
    async fn read(db: &impl GenericClient, from: DateTime<Utc>) -> Result<Self, RowError> {
        const STALE: &str = "SELECT DISTINCT size, slot FROM usage_stale WHERE slot >= $1 AND slot < $1::timestamptz + interval '168 hours'";
        let rows = db.query(STALE, &[&from]).await?;
        let stale = rows.iter().map(|row| Ok((row.try_get("size")?, row.try_get("slot")?)));
        Ok(Self(stale.collect::<Result<_, tokio_postgres::Error>>()?))
    }

    /// A slot is stale with anything in it.
    fn has(&self, size: SlotSize, slot: DateTime<Utc>) -> bool {
        let until = slot + size.width();
        self.0.iter().any(|(width, stale)| *width <= size.minutes() && *stale >= slot && *stale < until)
    }
}
