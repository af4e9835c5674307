//! Which traces have calls on a day: a Bloom filter for each workspace, beside the slots of the day. It knows every trace of the day
//! and takes one in a hundred others for one. So whoever looks for some traces in months of logs asks the index of few days for
//! each. It is as stale as the slot of its day, and goes with it.

use super::SlotSize;
use crate::db::table::RowError;
use chrono::{DateTime, Utc};
use futures::{TryStreamExt as _, pin_mut};
use std::collections::BTreeMap;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// What rows of `usage_slots` have it, which are of days alone.
pub const TRACES: &str = "trace";
/// How a filter begins; one that begins otherwise may have any trace.
const VERSION: u8 = 1;
const BITS_PER_TRACE: usize = 10;
const BITS_OF_TRACE: u64 = 7;
/// Of a day, at most. A day with more has no filters.
const MAX_TRACES: usize = 4_000_000;

/// A trace as filters know it: the same in every version and on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceHash(u64);

impl TraceHash {
    pub fn new(trace: &str) -> Self {
        // FNV-1a, whose low bits are better than its high ones until they are mixed.
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(mixed(trace.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, add)))
    }

    /// Whether some call of the day may have this trace.
    pub fn may_be_in(self, filter: &[u8]) -> bool {
        match filter.split_first() {
            Some((&VERSION, bits)) if !bits.is_empty() => {
                self.places(bits.len()).all(|(byte, bit)| bits.get(byte).is_none_or(|byte| byte & bit != 0))
            }
            _ => true,
        }
    }

    fn places(self, bytes: usize) -> impl Iterator<Item = (usize, u8)> {
        let (step, bits) = (mixed(self.0) | 1, bytes as u128 * 8);
        (0..BITS_OF_TRACE).map(move |n| {
            let place = (u128::from(self.0.wrapping_add(step.wrapping_mul(n))) * bits) >> 64;
            ((place / 8) as usize, 1 << (place % 8))
        })
    }
}

/// The last step of SplitMix64.
fn mixed(hash: u64) -> u64 {
    let z = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn filter(traces: &[TraceHash]) -> Vec<u8> {
    let bytes = (traces.len() * BITS_PER_TRACE).div_ceil(8).max(1);
    let mut filter = vec![0; bytes + 1];
    if let Some((version, bits)) = filter.split_first_mut() {
        *version = VERSION;
        for (byte, bit) in traces.iter().flat_map(|trace| trace.places(bytes)) {
            if let Some(byte) = bits.get_mut(byte) {
                *byte |= bit;
            }
        }
    }
    filter
}

/// By organisation and workspace.
type DayFilters = BTreeMap<(Uuid, Uuid), Vec<u8>>;

/// What the logs of a day have; none when there are too many.
async fn from_logs(db: &impl GenericClient, day: DateTime<Utc>) -> Result<DayFilters, RowError> {
    const READ: &str = "SELECT DISTINCT organisation_id, workspace_id, trace_id FROM request_logs
                        WHERE created_at >= $1 AND created_at < $2";
    let rows = db.query_raw(READ, [day, day + SlotSize::Day.width()]).await?;
    pin_mut!(rows);
    let (mut traces, mut held): (BTreeMap<(Uuid, Uuid), Vec<TraceHash>>, usize) = Default::default();
    while let Some(row) = rows.try_next().await? {
        held += 1;
        if held > MAX_TRACES {
            return Ok(DayFilters::new());
        }
        let workspace = (row.try_get("organisation_id")?, row.try_get("workspace_id")?);
        traces.entry(workspace).or_default().push(TraceHash::new(row.try_get("trace_id")?));
    }
    Ok(traces.into_iter().map(|(workspace, traces)| (workspace, filter(&traces))).collect())
}

/// Stores those of a day that has none.
pub(super) async fn store(transaction: &impl GenericClient, day: DateTime<Utc>) -> Result<(), RowError> {
    const STORE: &str = "INSERT INTO usage_slots (organisation_id, workspace_id, size, slot, dimension, figures)
        SELECT organisation, workspace, $1::smallint, $2, $3, filter
        FROM unnest($4::uuid[], $5::uuid[], $6::bytea[]) AS traces (organisation, workspace, filter)";
    let filters = from_logs(transaction, day).await?;
    let (organisations, workspaces): (Vec<Uuid>, Vec<Uuid>) = filters.keys().copied().unzip();
    let filters: Vec<&[u8]> = filters.values().map(Vec::as_slice).collect();
    let size = SlotSize::Day.minutes();
    transaction.execute(STORE, &[&size, &day, &TRACES, &organisations, &workspaces, &filters]).await?;
    Ok(())
}

/// How many of a day are not what its logs have, too many and missing ones included.
pub(super) async fn differing(db: &impl GenericClient, day: DateTime<Utc>) -> Result<u64, RowError> {
    const STORED: &str = "SELECT organisation_id, workspace_id, figures FROM usage_slots
        WHERE size = $1 AND slot = $2 AND dimension = $3";
    let mut expected = from_logs(db, day).await?;
    let mut wrong = 0;
    for row in db.query(STORED, &[&SlotSize::Day.minutes(), &day, &TRACES]).await? {
        let should = expected.remove(&(row.try_get("organisation_id")?, row.try_get("workspace_id")?));
        wrong += u64::from(should.as_deref() != Some(row.try_get("figures")?));
    }
    Ok(wrong + expected.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(name: &str, count: usize) -> Vec<TraceHash> {
        (0..count).map(|n| TraceHash::new(&format!("{name}-{n:08x}"))).collect()
    }

    #[test]
    fn a_filter_has_all_of_its_traces_and_few_others() {
        for count in [1, 2, 30, 1000, 50_000] {
            let traces = hashes("trace", count);
            let filter = filter(&traces);
            assert!(filter.len() <= count * BITS_PER_TRACE / 8 + 2);
            assert!(traces.iter().all(|trace| trace.may_be_in(&filter)), "{count}");
        }
        let filter = filter(&hashes("trace", 50_000));
        let others = hashes("other", 50_000).iter().filter(|trace| trace.may_be_in(&filter)).count();
        assert!(others < 750, "{others}");
    }

    #[test]
    fn a_filter_that_is_not_known_may_have_anything() {
        let trace = TraceHash::new("t");
        assert!(trace.may_be_in(&[]) && trace.may_be_in(&[VERSION]) && trace.may_be_in(&[VERSION + 1, 0, 0]));
        assert!(!trace.may_be_in(&[VERSION, 0, 0]));
    }

    #[test]
    fn traces_have_the_same_places_for_ever() {
        let places: Vec<(usize, u8)> = TraceHash::new("trace-1").places(1000).collect();
        assert_eq!(places, [(425, 32), (921, 1), (416, 4), (911, 16), (406, 64), (902, 1), (397, 4)]);
    }
}
