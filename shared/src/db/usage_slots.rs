//! Figures by slots of time (`usage_slots`): which of them are stale, and how they are built from logs. A trigger
//! notes the minutes of logs that are added, changed or deleted as stale, in the same transaction; `refresh` builds them anew, from
//! the narrowest width to the widest. Building is the same for a slot that never was, that got late rows and that lost erased ones.

mod build;
mod counted_call;
mod figures;
mod metadata_values;
mod pack;
mod sketch;
mod slot_dimension;
mod slot_size;
mod trace_filter;
mod verify;

pub use counted_call::{COLUMNS, CountedCall};
pub use figures::{Figures, MONEY_SCALE};
pub use metadata_values::{USER as USER_NAME, read_name};
pub use pack::{ByValue, ValueMap, Wanted, read, read_some, uncompressed};
pub use sketch::Sketch;
pub use slot_dimension::SlotDimension;
pub use slot_size::SlotSize;
pub use trace_filter::{TRACES, TraceHash};
pub use verify::{DayVerdict, verify_day};

use crate::db::table::RowError;
use crate::log_store::Packer;
pub use build::MostHeld;
use build::{SlotSink, merge_smaller, tally_logs};
use chrono::{DateTime, DurationRound as _, TimeDelta, Utc};
use pack::SlotValues;
use slot_dimension::user_value;
use std::time::{Duration, Instant};
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

/// Takes the lock of those who write slots if nobody has it now.
pub async fn try_lock(transaction: &impl GenericClient) -> Result<bool, Error> {
    const TRY: &str = "SELECT pg_try_advisory_xact_lock(hashtext('usage_slots'))";
    transaction.query_one(TRY, &[]).await?.try_get(0)
}

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
    /// Of figures that were counted from logs.
    pub most_held: MostHeld,
}

/// Slots of one width that are built in one transaction.
const AT_ONCE: i64 = 60;
/// Slots that are built between two looks at the clock, and for how long one transaction goes on: others wait for its lock.
const BETWEEN_LOOKS: usize = 5;
const MAX_TRANSACTION: Duration = Duration::from_secs(3);

/// Builds slots that are stale and over. The one that time is in changes with every call, and is counted from logs meanwhile.
pub async fn refresh(transaction: &impl GenericClient, now: DateTime<Utc>) -> Result<Refreshed, RowError> {
    const OLDER: &str = "DELETE FROM usage_stale WHERE slot < CASE size WHEN $3 THEN $2::timestamptz ELSE $1 END";
    lock(transaction).await?;
    let began = Instant::now();
    let retention = Retention::read(transaction).await?;
    let week = SlotSize::Week.minutes();
    transaction
        .execute(OLDER, &[&retention.begin_of(SlotSize::Day), &retention.begin_of(SlotSize::Week), &week])
        .await?;
    let mut done = Refreshed { is_all: true, ..Refreshed::default() };
    for size in SlotSize::ALL {
        let due = due(transaction, size, now).await?;
        done.is_all &= (due.len() as i64) < AT_ONCE;
        for slots in due.chunks(BETWEEN_LOOKS) {
            if began.elapsed() >= MAX_TRANSACTION {
                return Ok(Refreshed { is_all: false, ..done });
            }
            done.slots += slots.len() as u64;
            done.most_held.note(rebuild(transaction, size, slots).await?.0);
        }
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
pub async fn rebuild(
    transaction: &impl GenericClient,
    size: SlotSize,
    slots: &[DateTime<Utc>],
) -> Result<MostHeld, RowError> {
    const CLEAN: &str = "DELETE FROM usage_stale WHERE size = $1 AND slot = ANY($2)";
    const FORGET: &str = "DELETE FROM usage_slots WHERE size = $1 AND slot = ANY($2)";
    const WIDER: &str = "INSERT INTO usage_stale (size, slot) SELECT DISTINCT $1::smallint, slot FROM unnest($2::timestamptz[]) AS slot";
    let mut most = MostHeld::default();
    if slots.is_empty() {
        return Ok(most);
    }
    let retention = Retention::read(transaction).await?;
    transaction.execute(CLEAN, &[&size.minutes(), &slots]).await?;
    let slots: Vec<DateTime<Utc>> = slots.iter().copied().filter(|slot| *slot >= retention.begin_of(size)).collect();
    let has_minutes = |slot: &DateTime<Utc>| *slot >= retention.minutes_from;
    // Old minutes are not kept: what is late for them is late for their half hour.
    let (smaller, from_logs): (Vec<_>, Vec<_>) = match size {
        SlotSize::Minute => (Vec::new(), slots.iter().copied().filter(has_minutes).collect()),
        SlotSize::HalfHour => slots.iter().copied().partition(has_minutes),
        SlotSize::Day | SlotSize::Week => (slots.clone(), Vec::new()),
    };
    transaction.execute(FORGET, &[&size.minutes(), &slots]).await?;
    for piece in pieces(&from_logs, size) {
        most.note(tally_logs(transaction, size, piece, &mut SlotSink::Store).await?.0);
    }
    for slot in smaller {
        merge_smaller(transaction, size, slot, &retention, &mut SlotSink::Store).await?;
        if size == SlotSize::Day {
            trace_filter::store(transaction, slot).await?;
        }
    }
    if let Some(wider) = size.wider() {
        let around: Vec<DateTime<Utc>> = slots.iter().map(|slot| wider.beginning(*slot)).collect();
        transaction.execute(WIDER, &[&wider.minutes(), &around]).await?;
    }
    Ok(most)
}

/// Stretches without gaps, each within half an hour, so that little of the logs is sorted at once.
fn pieces(slots: &[DateTime<Utc>], size: SlotSize) -> Vec<[DateTime<Utc>; 2]> {
    let mut pieces: Vec<[DateTime<Utc>; 2]> = Vec::new();
    for slot in slots {
        let until = *slot + size.width();
        match pieces.last_mut() {
            Some([from, end])
                if *end == *slot && SlotSize::HalfHour.beginning(*from) == SlotSize::HalfHour.beginning(*slot) =>
            {
                *end = until;
            }
            _ => pieces.push([*slot, until]),
        }
    }
    pieces
}

/// From when on there are slots of which kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    pub begins_at: DateTime<Utc>,
    pub minutes_from: DateTime<Utc>,
    /// None where all logs are there.
    pub sealed_until: Option<DateTime<Utc>>,
}

impl Retention {
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

    /// Whether logs of a slot that begins here are gone.
    pub fn is_sealed(&self, slot: DateTime<Utc>) -> bool {
        self.sealed_until.is_some_and(|sealed| slot < sealed)
    }

    /// What there is of slots that do not outlast their logs.
    pub fn with_logs(self) -> Self {
        let Some(sealed) = self.sealed_until else { return self };
        Self { begins_at: self.begins_at.max(sealed), minutes_from: self.minutes_from.max(sealed), ..self }
    }

    /// The first moment whose slots can be built. Weeks are built from days, which outlast their logs.
    pub fn begin_of(&self, size: SlotSize) -> DateTime<Utc> {
        let sealed = self.sealed_until.filter(|_| size != SlotSize::Week);
        sealed.map_or(self.begins_at, |sealed| sealed.max(self.begins_at))
    }
}

/// Logs of before this day are deleted: what was built of them stays as it is, but for metadata, of which nobody could say any more
/// whose it was, and for what finds logs.
pub async fn seal(transaction: &impl GenericClient, until: DateTime<Utc>) -> Result<(), Error> {
    const SEAL: &str = "UPDATE usage_slots_kept SET sealed_until = greatest(sealed_until, $1)";
    const CLEAN: &str = "DELETE FROM usage_stale WHERE slot < $1 AND size < $2";
    const FORGET: &str = "DELETE FROM usage_slots
        WHERE size = ANY($1) AND slot < $2 AND ($3::timestamptz IS NULL OR slot >= $3) AND dimension = ANY($4)";
    lock(transaction).await?;
    let sizes = SlotSize::ALL.map(SlotSize::minutes);
    // Those of before are forgotten already, but for the week that was sealed in part.
    let since = Retention::read(transaction).await?.sealed_until.map(|sealed| sealed - SlotSize::Week.width());
    let forgotten = [SlotDimension::Metadata.name(), TRACES];
    transaction.execute(FORGET, &[&sizes.as_slice(), &until, &since, &forgotten.as_slice()]).await?;
    transaction.execute(SEAL, &[&until]).await?;
    // What is stale now can never be built again: better what is known than nothing. Weeks can.
    transaction.execute(CLEAN, &[&until, &SlotSize::Week.minutes()]).await.map(|_| ())
}

/// Takes a person's name out of the slots of an organisation whose logs are gone. Their calls stay counted without it. All other
/// slots are stale where logs of theirs were erased, and built again.
///
/// Whoever builds slots is not waited for: None when somebody does, and then it is to be done later.
pub async fn forget_user(
    transaction: &impl GenericClient,
    organisation: Uuid,
    user: &str,
) -> Result<Option<u64>, RowError> {
    const SEALED: &str = "SELECT workspace_id, size, slot, figures FROM usage_slots
        WHERE organisation_id = $1 AND dimension = $2 AND size = $3 AND slot < $4 AND slot >= $5 ORDER BY slot";
    const CHANGE: &str = "UPDATE usage_slots SET figures = $5
        WHERE workspace_id = $1 AND size = $2 AND dimension = $3 AND slot = $4";
    if !try_lock(transaction).await? {
        return Ok(None);
    }
    let retention = Retention::read(transaction).await?;
    let Some(sealed) = retention.sealed_until else { return Ok(Some(0)) };
    let (dimension, name) = (SlotDimension::User.name(), user_value(user));
    let (mut forgotten, mut packer) = (0, Packer::default());
    for size in SlotSize::ALL {
        // Week by week, so that little is held at once.
        let mut week = SlotSize::Week.beginning(retention.begins_at);
        while week < sealed {
            let until = sealed.min(week + SlotSize::Week.width());
            let rows = transaction.query(SEALED, &[&organisation, &dimension, &size.minutes(), &until, &week]).await?;
            for row in rows {
                let slot: DateTime<Utc> = row.try_get("slot")?;
                let mut values = SlotValues::default();
                values.merge(row.try_get("figures")?, slot)?;
                let SlotValues::Listed(mut named) = values else { continue };
                if named.remove(&name).is_none() {
                    continue;
                }
                let figures = pack::stored(&SlotValues::Listed(named).payload(slot), &mut packer);
                let workspace: Uuid = row.try_get("workspace_id")?;
                transaction.execute(CHANGE, &[&workspace, &size.minutes(), &dimension, &slot, &figures]).await?;
                forgotten += 1;
            }
            week += SlotSize::Week.width();
        }
    }
    Ok(Some(forgotten))
}

/// The beginning of the day (UTC) that a moment is in.
pub fn day_of(time: DateTime<Utc>) -> DateTime<Utc> {
    time.duration_trunc(TimeDelta::days(1)).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        format!("2026-01-15T{text}Z").parse().unwrap()
    }

    #[test]
    fn logs_are_read_in_stretches_of_half_an_hour_at_most() {
        let slots = ["10:28:00", "10:29:00", "10:30:00", "10:31:00", "10:40:00"].map(time);
        let expected = [["10:28:00", "10:30:00"], ["10:30:00", "10:32:00"], ["10:40:00", "10:41:00"]];
        assert_eq!(pieces(&slots, SlotSize::Minute), expected.map(|piece| piece.map(time)));
        let slots = ["10:00:00", "10:30:00"].map(time);
        let expected = [["10:00:00", "10:30:00"], ["10:30:00", "11:00:00"]];
        assert_eq!(pieces(&slots, SlotSize::HalfHour), expected.map(|piece| piece.map(time)));
        assert!(pieces(&[], SlotSize::Minute).is_empty());
    }

    #[test]
    fn weeks_can_be_built_where_logs_are_gone() {
        let (begins_at, sealed) = (time("00:00:00"), time("12:00:00"));
        let retention = Retention { begins_at, minutes_from: begins_at, sealed_until: Some(sealed) };
        assert_eq!((retention.begin_of(SlotSize::Day), retention.begin_of(SlotSize::Week)), (sealed, begins_at));
        let retention = Retention { sealed_until: None, ..retention };
        assert_eq!(retention.begin_of(SlotSize::Minute), begins_at);
    }
}
