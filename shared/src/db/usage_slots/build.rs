//! Slots from logs, and from smaller slots. Logs are read once for all that they are divided by.
//!
//! However many tenants there are and whatever their metadata is, little of it is held: logs are read by cursor in the order of
//! workspaces and slots, one slot of one workspace is counted at a time, and what is done is handed on (`SlotSink`).

use super::counted_call::{COLUMNS, CountedCall};
use super::metadata_values::MetadataPairs;
use super::pack::{self, SlotValues};
use super::slot_dimension::SlotDimension;
use super::{Retention, SlotSize};
use crate::db::table::RowError;
use crate::log_store::Packer;
use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use tokio_postgres::{Error, GenericClient, Row};
use uuid::Uuid;

/// What a row of slots is found by, but for its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotKey {
    pub organisation_id: Uuid,
    pub workspace_id: Uuid,
    pub slot: DateTime<Utc>,
    pub dimension: SlotDimension,
}

/// Equal for the same figures, however they are compressed.
pub type PayloadDigest = [u8; 32];

/// Where slots go that were counted.
#[derive(Debug)]
pub enum SlotSink {
    Store,
    /// Only what they are known by is kept, to compare it with what is stored.
    Digest(HashMap<SlotKey, PayloadDigest, RandomState>),
}

/// One slot of one workspace that is being counted, by what it is divided by.
#[derive(Debug, Default)]
struct Tally {
    cell: Option<(Uuid, DateTime<Utc>)>,
    values: HashMap<SlotKey, SlotValues, RandomState>,
    calls: usize,
}

/// Slots that are counted and not handed on yet.
#[derive(Debug, Default)]
struct CountedSlots {
    slots: Vec<(SlotKey, SlotValues)>,
    /// About as many bytes as their figures take in memory.
    weight: usize,
    /// Sets of figures in them.
    figures: usize,
}

/// Logs, and rows of slots, that are read at once.
const LOGS_AT_ONCE: usize = 500;
pub const SLOTS_AT_ONCE: usize = 64;
/// What is counted is handed on when it is this heavy.
const HEAVY: usize = 16 << 20;
/// About what the figures of one call take at most: a value of each name of metadata.
const CALL_WEIGHT: usize = 20 << 10;
/// About how much larger figures are in memory than stored.
const UNPACKED: usize = 16;

/// Counts the logs of a stretch of time, in slots of this width.
pub async fn tally_logs(
    db: &impl GenericClient,
    size: SlotSize,
    [from, until]: [DateTime<Utc>; 2],
    sink: &mut SlotSink,
) -> Result<MostHeld, RowError> {
    let declare = format!(
        "DECLARE counted_logs NO SCROLL CURSOR FOR SELECT {COLUMNS}, metadata::text FROM request_logs
         WHERE created_at >= $1 AND created_at < $2 ORDER BY workspace_id, created_at"
    );
    db.execute(&declare, &[&from, &until]).await?;
    let (mut tally, mut counted, mut most) = (Tally::default(), CountedSlots::default(), MostHeld::default());
    let fetch = format!("FETCH {LOGS_AT_ONCE} FROM counted_logs");
    let mut is_last = false;
    while !is_last {
        let rows = db.query(&fetch, &[]).await?;
        is_last = rows.len() < LOGS_AT_ONCE;
        for row in &rows {
            tally.count(row, size, &mut counted)?;
        }
        // Freed before anything is waited for.
        drop(rows);
        most.note(counted.figures + tally.figures());
        if counted.weight >= HEAVY {
            sink.take(db, size, &mut counted).await?;
        }
    }
    tally.finish(size, &mut counted);
    sink.take(db, size, &mut counted).await?;
    db.batch_execute("CLOSE counted_logs").await?;
    Ok(most)
}

/// The most sets of figures that were in memory at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MostHeld(pub usize);

impl MostHeld {
    pub fn note(&mut self, held: usize) {
        self.0 = self.0.max(held);
    }
}

impl Tally {
    fn count(&mut self, row: &Row, size: SlotSize, counted: &mut CountedSlots) -> Result<(), RowError> {
        let call = CountedCall::read(row)?;
        let slot = size.beginning(call.created_at);
        let (organisation_id, workspace_id) = (call.organisation_id, call.workspace_id);
        if self.cell.is_some_and(|cell| cell != (workspace_id, slot)) {
            self.finish(size, counted);
        }
        self.cell = Some((workspace_id, slot));
        self.calls += 1;
        let key = |dimension| SlotKey { organisation_id, workspace_id, slot, dimension };
        for dimension in SlotDimension::EVERY {
            dimension.each(&call, |value| {
                if let Some(figures) = self.values.entry(key(dimension)).or_default().entry(value) {
                    figures.add_call(&call);
                }
            });
        }
        let pairs = MetadataPairs::parse(row.try_get(row.len() - 1)?);
        let by_name = self.values.entry(key(SlotDimension::Metadata));
        by_name.or_insert_with(|| SlotValues::new(SlotDimension::Metadata)).add_pairs(&call, pairs.as_ref());
        Ok(())
    }

    fn figures(&self) -> usize {
        self.values.values().map(SlotValues::count).sum()
    }

    fn finish(&mut self, size: SlotSize, counted: &mut CountedSlots) {
        counted.figures += self.figures();
        let Self { values, calls, .. } = std::mem::take(self);
        counted.weight += calls * CALL_WEIGHT;
        counted.slots.extend(values.into_iter().map(|(key, mut values)| {
            if size != SlotSize::Minute {
                values.trim();
            }
            (key, values)
        }));
    }
}

impl SlotSink {
    /// Packs what was counted, off the threads that answer requests, and keeps it.
    async fn take(
        &mut self,
        db: &impl GenericClient,
        size: SlotSize,
        counted: &mut CountedSlots,
    ) -> Result<(), RowError> {
        let CountedSlots { slots, .. } = std::mem::take(counted);
        if slots.is_empty() {
            return Ok(());
        }
        match self {
            Self::Store => {
                let packed = off_thread(move || {
                    let mut packer = Packer::default();
                    slots.into_iter().map(|(key, values)| PackedSlot::new(key, &values, &mut packer)).collect()
                });
                let packed: Vec<PackedSlot> = packed.await;
                store(db, size, &packed).await?;
            }
            Self::Digest(digests) => {
                let digest = |(key, values): (SlotKey, SlotValues)| (key, digest(&values.payload(key.slot)));
                let found = off_thread(move || slots.into_iter().map(digest).collect::<Vec<_>>());
                digests.extend(found.await);
            }
        }
        Ok(())
    }
}

pub fn digest(payload: &[u8]) -> PayloadDigest {
    Sha256::digest(payload).into()
}

/// A panic there is one here.
pub async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A slot from those that it is made of, which are all there.
pub async fn merge_smaller(
    db: &impl GenericClient,
    size: SlotSize,
    slot: DateTime<Utc>,
    retention: &Retention,
    sink: &mut SlotSink,
) -> Result<(), RowError> {
    // In the order of keys, so that one of them is held at a time.
    const SMALLER: &str = "DECLARE smaller_slots NO SCROLL CURSOR FOR
        SELECT organisation_id, workspace_id, dimension, slot, figures FROM usage_slots
        WHERE size = $1 AND slot >= $2 AND slot < $3 ORDER BY organisation_id, workspace_id, dimension";
    let (width, until) = (size.smaller().minutes(), slot + size.width());
    db.execute(SMALLER, &[&width, &slot, &until]).await?;
    let (mut held, mut counted): (Option<(SlotKey, SlotValues)>, _) = (None, CountedSlots::default());
    let fetch = format!("FETCH {SLOTS_AT_ONCE} FROM smaller_slots");
    let mut is_last = false;
    while !is_last {
        let rows = db.query(&fetch, &[]).await?;
        is_last = rows.len() < SLOTS_AT_ONCE;
        for row in &rows {
            let Some(dimension) = SlotDimension::named(row.try_get("dimension")?) else { continue };
            // Of a week of which a part is gone.
            if dimension == SlotDimension::Metadata && retention.is_sealed(slot) {
                continue;
            }
            let (organisation_id, workspace_id) = (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
            let key = SlotKey { organisation_id, workspace_id, slot, dimension };
            if held.as_ref().is_some_and(|(one, _)| *one != key) {
                counted.add_merged(held.take());
            }
            let (_, values) = held.get_or_insert_with(|| (key, SlotValues::new(dimension)));
            let figures: &[u8] = row.try_get("figures")?;
            values.merge(figures, row.try_get("slot")?)?;
            counted.weight += figures.len() * UNPACKED;
        }
        drop(rows);
        if counted.weight >= HEAVY {
            sink.take(db, size, &mut counted).await?;
        }
    }
    counted.add_merged(held);
    sink.take(db, size, &mut counted).await?;
    db.batch_execute("CLOSE smaller_slots").await?;
    Ok(())
}

impl CountedSlots {
    fn add_merged(&mut self, merged: Option<(SlotKey, SlotValues)>) {
        self.slots.extend(merged.map(|(key, mut values)| {
            values.trim();
            (key, values)
        }));
    }
}

/// A row of `usage_slots`, but for its width.
struct PackedSlot {
    key: SlotKey,
    figures: Vec<u8>,
}

impl PackedSlot {
    fn new(key: SlotKey, values: &SlotValues, packer: &mut Packer) -> Self {
        Self { key, figures: pack::stored(&values.payload(key.slot), packer) }
    }
}

/// Rows that are sent at once.
const AT_ONCE: usize = 1000;

async fn store(db: &impl GenericClient, size: SlotSize, packed: &[PackedSlot]) -> Result<(), Error> {
    const STORE: &str = "INSERT INTO usage_slots (organisation_id, workspace_id, size, slot, dimension, figures)
        SELECT organisation, workspace, $1::smallint, slot, dimension, figures
        FROM unnest($2::uuid[], $3::uuid[], $4::timestamptz[], $5::text[], $6::bytea[])
            AS packed (organisation, workspace, slot, dimension, figures)";
    for packed in packed.chunks(AT_ONCE) {
        let organisations: Vec<Uuid> = packed.iter().map(|one| one.key.organisation_id).collect();
        let workspaces: Vec<Uuid> = packed.iter().map(|one| one.key.workspace_id).collect();
        let slots: Vec<DateTime<Utc>> = packed.iter().map(|one| one.key.slot).collect();
        let dimensions: Vec<&str> = packed.iter().map(|one| one.key.dimension.name()).collect();
        let figures: Vec<&[u8]> = packed.iter().map(|one| one.figures.as_slice()).collect();
        db.execute(STORE, &[&size.minutes(), &organisations, &workspaces, &slots, &dimensions, &figures]).await?;
    }
    Ok(())
}
