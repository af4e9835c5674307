//! Proves that slots are what their logs add up to, a day at a time, and builds those again that are not. A day that slots do not
//! reach back to is built, so that they begin earlier.

use super::build::{PackedSlot, SlotKey, Tally, add_to_day, merge_smaller, packed, tally_logs};
use super::pack::{self, SlotValues};
use super::trace_filter::{self, TRACES};
use super::{Kept, SlotDimension, SlotSize, day_of, lock, rebuild};
use crate::db::table::RowError;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{HashMap, HashSet};
use std::fmt;
use tokio_postgres::GenericClient;

/// What was found of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayVerdict {
    /// Slots and logs agree.
    Sound,
    /// So many figures did not, and do now.
    Mended { figures: u64 },
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
pub async fn verify_day(transaction: &impl GenericClient, day: DateTime<Utc>) -> Result<DayVerdict, RowError> {
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
    let figures = differing(transaction, day, &kept).await?;
    if figures == 0 {
        return Ok(DayVerdict::Sound);
    }
    build_day(transaction, day).await?;
    Ok(DayVerdict::Mended { figures })
}

/// All of its slots, from the narrowest on; its week is stale then.
async fn build_day(transaction: &impl GenericClient, day: DateTime<Utc>) -> Result<(), RowError> {
    for size in [SlotSize::Minute, SlotSize::HalfHour, SlotSize::Day] {
        rebuild(transaction, size, &slots_of(day, size)).await?;
    }
    Ok(())
}

fn slots_of(day: DateTime<Utc>, size: SlotSize) -> Vec<DateTime<Utc>> {
    (0..1440 / i32::from(size.minutes())).map(|n| day + size.width() * n).collect()
}

/// How many sets of figures of slots are not those of the logs. What is known to be stale is not asked.
async fn differing(db: &impl GenericClient, day: DateTime<Utc>, kept: &Kept) -> Result<u64, RowError> {
    let stale = StaleSlots::read(db, day).await?;
    let (mut differing, mut whole) = (0, Tally::default());
    for slot in slots_of(day, SlotSize::HalfHour) {
        let piece = [slot, slot + SlotSize::HalfHour.width()];
        if day >= kept.minutes_from {
            let minutes = tally_logs(db, SlotSize::Minute, piece).await?;
            differing += compared(db, SlotSize::Minute, piece, &packed(&minutes), &stale).await?;
        }
        let half_hour = tally_logs(db, SlotSize::HalfHour, piece).await?;
        differing += compared(db, SlotSize::HalfHour, piece, &packed(&half_hour), &stale).await?;
        add_to_day(&mut whole, &half_hour);
    }
    whole.values_mut().for_each(SlotValues::trim);
    let piece = [day, day + SlotSize::Day.width()];
    differing += compared(db, SlotSize::Day, piece, &packed(&whole), &stale).await?;
    if !stale.has(SlotSize::Day, day) {
        differing += trace_filter::differing(db, day).await?;
    }
    let week = SlotSize::Week.beginning(day);
    let piece = [week, week + SlotSize::Week.width()];
    // With its last day, all that it is made of is there.
    if piece[1] == day + SlotSize::Day.width() && week >= kept.begins_at {
        let merged = merge_smaller(db, SlotSize::Week, week, kept).await?;
        differing += compared(db, SlotSize::Week, piece, &merged, &StaleSlots::read(db, week).await?).await?;
    }
    Ok(differing)
}

/// How many rows of a stretch of time are not what they should be, too many and missing ones included.
async fn compared(
    db: &impl GenericClient,
    size: SlotSize,
    [from, until]: [DateTime<Utc>; 2],
    expected: &[PackedSlot],
    stale: &StaleSlots,
) -> Result<u64, RowError> {
    const STORED: &str = "SELECT organisation_id, workspace_id, dimension, slot, figures FROM usage_slots
        WHERE size = $1 AND slot >= $2 AND slot < $3 AND dimension <> $4";
    let expected: HashMap<SlotKey, &[u8]> = expected.iter().map(|one| (one.key, one.figures.as_slice())).collect();
    let (mut wrong, mut found) = (0, HashSet::new());
    for row in db.query(STORED, &[&size.minutes(), &from, &until, &TRACES]).await? {
        let slot: DateTime<Utc> = row.try_get("slot")?;
        if stale.has(size, slot) {
            continue;
        }
        let key = SlotDimension::named(row.try_get("dimension")?).map(|dimension| -> Result<_, RowError> {
            let (organisation_id, workspace_id) = (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
            Ok(SlotKey { organisation_id, workspace_id, slot, dimension })
        });
        let key = key.transpose()?;
        let should = key.and_then(|key| expected.get(&key)).map(|figures| pack::unpacked(figures)).transpose()?;
        let is = pack::unpacked(row.try_get("figures")?).ok();
        wrong += u64::from(should.is_none() || should != is);
        found.extend(key);
    }
    let missing = expected.keys().filter(|key| !found.contains(*key) && !stale.has(size, key.slot)).count();
    Ok(wrong + missing as u64)
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
