//! Slots from logs, and from smaller slots. Logs are read once for all that they are divided by.

use super::counted_call::{COLUMNS, CountedCall};
use super::metadata_values::MetadataPairs;
use super::pack::{self, SlotValues};
use super::slot_dimension::SlotDimension;
use super::{Kept, SlotSize};
use crate::db::table::RowError;
use crate::log_store::Packer;
use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use futures::{TryStreamExt as _, pin_mut};
use std::collections::HashMap;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

/// What a row of slots is found by, but for its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotKey {
    pub organisation_id: Uuid,
    pub workspace_id: Uuid,
    pub slot: DateTime<Utc>,
    pub dimension: SlotDimension,
}

pub type Tally = HashMap<SlotKey, SlotValues, RandomState>;

/// The logs of a stretch of time, in slots of this width. All of it is held: ask for half an hour at most.
pub async fn tally_logs(
    db: &impl GenericClient,
    size: SlotSize,
    [from, until]: [DateTime<Utc>; 2],
) -> Result<Tally, RowError> {
    let sql = format!("SELECT {COLUMNS}, metadata::text FROM request_logs WHERE created_at >= $1 AND created_at < $2");
    let rows = db.query_raw(&sql, [from, until]).await?;
    pin_mut!(rows);
    let mut tally = Tally::default();
    while let Some(row) = rows.try_next().await? {
        let call = CountedCall::read(&row)?;
        let slot = size.beginning(call.created_at);
        let (organisation_id, workspace_id) = (call.organisation_id, call.workspace_id);
        let key = |dimension| SlotKey { organisation_id, workspace_id, slot, dimension };
        for dimension in SlotDimension::EVERY {
            dimension.each(&call, |value| {
                if let Some(figures) = tally.entry(key(dimension)).or_default().entry(value) {
                    figures.add_call(&call);
                }
            });
        }
        let pairs = MetadataPairs::parse(row.try_get(row.len() - 1)?);
        let by_name = tally.entry(key(SlotDimension::Metadata));
        by_name.or_insert_with(|| SlotValues::new(SlotDimension::Metadata)).add_pairs(&call, pairs.as_ref());
    }
    if size != SlotSize::Minute {
        tally.values_mut().for_each(SlotValues::trim);
    }
    Ok(tally)
}

/// A slot from those that it is made of, which are all there.
pub async fn merge_smaller(
    db: &impl GenericClient,
    size: SlotSize,
    slot: DateTime<Utc>,
    kept: &Kept,
) -> Result<Vec<PackedSlot>, RowError> {
    // In the order of keys, so that one of them is held at a time.
    const SMALLER: &str = "SELECT organisation_id, workspace_id, dimension, slot, figures FROM usage_slots
        WHERE size = $1 AND slot >= $2 AND slot < $3 ORDER BY organisation_id, workspace_id, dimension";
    let (width, until) = (size.smaller().minutes(), slot + size.width());
    let values: [&(dyn ToSql + Sync); 3] = [&width, &slot, &until];
    let rows = db.query_raw(SMALLER, values).await?;
    pin_mut!(rows);
    let (mut held, mut merged): (Option<(SlotKey, SlotValues)>, Vec<PackedSlot>) = (None, Vec::new());
    let mut packer = Packer::default();
    while let Some(row) = rows.try_next().await? {
        let Some(dimension) = SlotDimension::named(row.try_get("dimension")?) else { continue };
        // Of a week of which a part is gone.
        if dimension == SlotDimension::Metadata && kept.is_sealed(slot) {
            continue;
        }
        let (organisation_id, workspace_id) = (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
        let key = SlotKey { organisation_id, workspace_id, slot, dimension };
        if held.as_ref().is_some_and(|(one, _)| *one != key) {
            merged.extend(held.take().map(|merged| packed_whole(merged, &mut packer)));
        }
        let (_, values) = held.get_or_insert_with(|| (key, SlotValues::new(dimension)));
        values.merge(row.try_get("figures")?, row.try_get("slot")?)?;
    }
    merged.extend(held.map(|merged| packed_whole(merged, &mut packer)));
    Ok(merged)
}

fn packed_whole((key, mut values): (SlotKey, SlotValues), packer: &mut Packer) -> PackedSlot {
    values.trim();
    PackedSlot::new(key, &values, packer)
}

/// What was counted, as it is stored.
pub fn packed(tally: &Tally) -> Vec<PackedSlot> {
    let mut packer = Packer::default();
    tally.iter().map(|(key, values)| PackedSlot::new(*key, values, &mut packer)).collect()
}

/// Adds half hours up to a day, without asking for them again.
pub fn add_to_day(day: &mut Tally, half_hours: &Tally) {
    for (key, values) in half_hours {
        let sum = day.entry(SlotKey { slot: SlotSize::Day.beginning(key.slot), ..*key });
        sum.or_insert_with(|| SlotValues::new(key.dimension)).add(values);
    }
}

/// A row of `usage_slots`, but for its width.
pub struct PackedSlot {
    pub key: SlotKey,
    pub figures: Vec<u8>,
}

impl PackedSlot {
    fn new(key: SlotKey, values: &SlotValues, packer: &mut Packer) -> Self {
        Self { key, figures: pack::stored(&values.payload(key.slot), packer) }
    }
}

/// Rows that are sent at once.
const AT_ONCE: usize = 1000;

pub async fn store(db: &impl GenericClient, size: SlotSize, packed: &[PackedSlot]) -> Result<(), Error> {
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
