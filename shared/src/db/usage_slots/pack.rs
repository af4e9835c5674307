//! The figures of all values of a slot as bytes: numbers of variable length, one value after the other in the order of their texts,
//! compressed where that is shorter. A row for each value would take many times the room, most of it for zeros and keys.

use super::counted_call::CountedCall;
use super::figures::Figures;
use super::metadata_values::{MetadataPairs, MetadataValues};
use super::sketch::Sketch;
use super::slot_dimension::SlotDimension;
use crate::db::table::RowError;
use crate::log_store::{Packer, unpack};
use chrono::{DateTime, Utc};
use foldhash::fast::RandomState;
use std::borrow::Cow;
use std::collections::HashMap;

/// Something of each value: they are looked up for every figure of every slot.
pub type ValueMap<T> = HashMap<String, T, RandomState>;
/// Figures by value.
pub type ByValue = ValueMap<Figures>;

/// Of one slot, divided by one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlotValues {
    Listed(ByValue),
    /// Divided by the names of metadata.
    ByName(Box<MetadataValues>),
    /// More than are worth keeping: whoever asks counts logs.
    TooMany,
}

/// Values that a slot is divided into, at most.
pub const MAX_VALUES: usize = 100_000;

/// What the first byte says of the others.
const PLAIN: u8 = 0;
const COMPRESSED: u8 = 1;
/// Shorter ones gain little.
const WORTH_COMPRESSING: usize = 256;
/// Of a pack that is not compressed.
const MAX_PACK: usize = 256 << 20;

impl Default for SlotValues {
    fn default() -> Self {
        Self::Listed(ByValue::default())
    }
}

impl SlotValues {
    /// Nothing yet.
    pub fn new(dimension: SlotDimension) -> Self {
        match dimension {
            SlotDimension::Metadata => Self::ByName(Box::default()),
            _ => Self::default(),
        }
    }

    /// Adds a call by its metadata, if that can be read.
    pub fn add_pairs(&mut self, call: &CountedCall<'_>, pairs: Option<&MetadataPairs>) {
        let Self::ByName(values) = self else { return };
        if !pairs.is_some_and(|pairs| values.add_call(call, pairs)) {
            *self = Self::TooMany;
        }
    }

    /// Adds what was counted of another stretch of time.
    #[cfg(test)]
    pub fn add(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::ByName(mine), Self::ByName(theirs)) => {
                if !mine.merge(theirs) {
                    *self = Self::TooMany;
                }
            }
            (Self::Listed(_), Self::Listed(theirs)) => {
                for (value, figures) in theirs {
                    if let Some(sum) = self.entry(Cow::Borrowed(value)) {
                        sum.merge(figures);
                    }
                }
            }
            (_, Self::Listed(_) | Self::ByName(_) | Self::TooMany) => *self = Self::TooMany,
        }
    }

    /// Sets of figures in it.
    pub fn count(&self) -> usize {
        match self {
            Self::Listed(values) => values.len(),
            Self::ByName(values) => values.count(),
            Self::TooMany => 0,
        }
    }

    /// Leaves out what is not worth keeping.
    pub fn trim(&mut self) {
        if let Self::ByName(values) = self {
            values.trim();
        }
    }

    /// The figures of a value, to add to; none once there are too many.
    pub fn entry(&mut self, value: Cow<'_, str>) -> Option<&mut Figures> {
        let is_full =
            matches!(self, Self::Listed(values) if values.len() >= MAX_VALUES && !values.contains_key(&*value));
        if is_full {
            *self = Self::TooMany;
        }
        let Self::Listed(values) = self else { return None };
        // Two looks instead of a text for each call.
        match values.contains_key(&*value) {
            true => values.get_mut(&*value),
            false => Some(values.entry(value.into_owned()).or_default()),
        }
    }

    /// Everything in some stored bytes.
    pub fn merge(&mut self, stored: &[u8], slot: DateTime<Utc>) -> Result<(), RowError> {
        let is_whole = match self {
            Self::ByName(mine) => {
                let mut theirs = MetadataValues::default();
                read(stored, slot, |text, figures| theirs.take(text, figures))? && mine.merge(&theirs)
            }
            Self::Listed(_) | Self::TooMany => read(stored, slot, |value, figures| {
                if let Some(sum) = self.entry(Cow::Borrowed(value)) {
                    sum.merge(figures);
                }
            })?,
        };
        if !is_whole {
            *self = Self::TooMany;
        }
        Ok(())
    }

    /// The same bytes for the same figures; none at all for too many.
    pub fn payload(&self, slot: DateTime<Utc>) -> Vec<u8> {
        let mut values: Vec<(Cow<'_, str>, Cow<'_, Figures>)> = match self {
            Self::TooMany => return Vec::new(),
            Self::Listed(values) => {
                values.iter().map(|(value, figures)| (Cow::Borrowed(value.as_str()), Cow::Borrowed(figures))).collect()
            }
            Self::ByName(values) => values.flat(),
        };
        values.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut bytes = Vec::with_capacity(values.len() * 48 + 8);
        put(&mut bytes, values.len() as u128);
        for (value, figures) in values {
            put(&mut bytes, value.len() as u128);
            bytes.extend_from_slice(value.as_bytes());
            put_figures(&mut bytes, &figures, slot);
        }
        bytes
    }
}

/// As it is stored.
pub fn stored(payload: &[u8], packer: &mut Packer) -> Vec<u8> {
    let packed = (payload.len() >= WORTH_COMPRESSING).then(|| packer.pack(payload).ok()).flatten();
    match packed.filter(|packed| packed.len() < payload.len()) {
        Some(packed) => [&[COMPRESSED][..], &packed[..]].concat(),
        None => [&[PLAIN][..], payload].concat(),
    }
}

/// The same as if it were not worth compressing, for whoever reads it more than once.
pub fn uncompressed(stored: Vec<u8>) -> Result<Vec<u8>, RowError> {
    match stored.first() {
        Some(&COMPRESSED) => Ok([&[PLAIN][..], &unpacked(&stored)?[..]].concat()),
        _ => Ok(stored),
    }
}

/// The payload of what is stored.
pub fn unpacked(stored: &[u8]) -> Result<Cow<'_, [u8]>, RowError> {
    match stored.split_first() {
        Some((&PLAIN, payload)) => Ok(Cow::Borrowed(payload)),
        Some((&COMPRESSED, packed)) => unpack(packed, MAX_PACK).map(Cow::Owned).map_err(|_| damaged()),
        _ => Err(damaged()),
    }
}

/// What is wanted of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    /// All but response times one by one.
    Sums,
    Everything,
}

/// Calls `each` with every value and its figures. False for a slot that has too many of them.
pub fn read(stored: &[u8], slot: DateTime<Utc>, each: impl FnMut(&str, &Figures)) -> Result<bool, RowError> {
    read_some(stored, slot, |_, _| Wanted::Everything, each)
}

/// The same with what `wants` says of each value and its number of requests; the rest is passed over.
pub fn read_some(
    stored: &[u8],
    slot: DateTime<Utc>,
    mut wants: impl FnMut(&str, u64) -> Wanted,
    mut each: impl FnMut(&str, &Figures),
) -> Result<bool, RowError> {
    let payload = unpacked(stored)?;
    if payload.is_empty() {
        return Ok(false);
    }
    let mut left = &payload[..];
    let mut figures = Figures::default();
    for _ in 0..take(&mut left)? {
        let length = usize::try_from(take(&mut left)?).map_err(|_| damaged())?;
        let (value, rest) = left.split_at_checked(length).ok_or_else(damaged)?;
        left = rest;
        let value = std::str::from_utf8(value).map_err(|_| damaged())?;
        figures.requests = take(&mut left)?;
        let wanted = wants(value, figures.requests);
        match wanted {
            Wanted::Nothing => skip(&mut left, AFTER_REQUESTS)?,
            Wanted::Sums | Wanted::Everything => take_figures(&mut left, &mut figures, slot)?,
        }
        match wanted {
            Wanted::Everything => take_sketch(&mut left, &mut figures.sketch)?,
            Wanted::Nothing | Wanted::Sums => {
                figures.sketch.clear();
                let buckets = take(&mut left)?;
                skip(&mut left, buckets.checked_mul(2).ok_or_else(damaged)?)?;
            }
        }
        if wanted != Wanted::Nothing {
            each(value, &figures);
        }
    }
    if left.is_empty() { Ok(true) } else { Err(damaged()) }
}

fn put_figures(bytes: &mut Vec<u8>, figures: &Figures, slot: DateTime<Utc>) {
    let Figures { requests, user_requests, errors, req_units, res_units, cost, simple_hits, semantic_hits, .. } =
        figures;
    let Figures { simple_saved, semantic_saved, saved, response_time, hit_time, retried, fallen, sketch, .. } = figures;
    for number in [requests, user_requests, errors, req_units, res_units, simple_hits, semantic_hits] {
        put(bytes, (*number).into());
    }
    for money in [cost, simple_saved, semantic_saved, saved] {
        put(bytes, *money);
    }
    for number in [response_time, hit_time, retried, fallen] {
        put(bytes, (*number).into());
    }
    let first = figures.first_seen - slot.timestamp_micros();
    put(bytes, first.max(0).unsigned_abs().into());
    put(bytes, (figures.last_seen - figures.first_seen).max(0).unsigned_abs().into());
    put(bytes, sketch.buckets().count() as u128);
    let mut last = -1;
    for (bucket, calls) in sketch.buckets() {
        put(bytes, (bucket - last).max(0).unsigned_abs().into());
        put(bytes, calls.into());
        last = bucket;
    }
}

/// Numbers of a value between its requests and its response times.
const AFTER_REQUESTS: u64 = 16;

fn take_figures(left: &mut &[u8], into: &mut Figures, slot: DateTime<Utc>) -> Result<(), RowError> {
    into.user_requests = take(left)?;
    into.errors = take(left)?;
    into.req_units = take(left)?;
    into.res_units = take(left)?;
    into.simple_hits = take(left)?;
    into.semantic_hits = take(left)?;
    into.cost = take_wide(left)?;
    into.simple_saved = take_wide(left)?;
    into.semantic_saved = take_wide(left)?;
    into.saved = take_wide(left)?;
    into.response_time = take(left)?;
    into.hit_time = take(left)?;
    into.retried = take(left)?;
    into.fallen = take(left)?;
    into.first_seen = slot.timestamp_micros().saturating_add_unsigned(take(left)?);
    into.last_seen = into.first_seen.saturating_add_unsigned(take(left)?);
    Ok(())
}

fn take_sketch(left: &mut &[u8], into: &mut Sketch) -> Result<(), RowError> {
    into.clear();
    let mut last: i16 = -1;
    for _ in 0..take(left)? {
        // Nearly all are two numbers of a byte.
        let (step, calls) = match left.split_first_chunk() {
            Some(([step, calls], rest)) if (step | calls) < 0x80 => {
                *left = rest;
                (i16::from(*step), u64::from(*calls))
            }
            _ => (i16::try_from(take(left)?).map_err(|_| damaged())?, take(left)?),
        };
        last = last.checked_add(step).ok_or_else(damaged)?;
        if !into.push(last, calls) {
            return Err(damaged());
        }
    }
    Ok(())
}

/// Seven bits a byte, the lowest first; the highest bit says that there are more.
fn put(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Passes over so many numbers: each ends with a byte whose highest bit is not set.
fn skip(left: &mut &[u8], mut count: u64) -> Result<(), RowError> {
    const HIGHEST: u64 = 0x8080_8080_8080_8080;
    while count >= 8
        && let Some((word, rest)) = left.split_first_chunk()
    {
        count -= u64::from((!u64::from_le_bytes(*word) & HIGHEST).count_ones());
        *left = rest;
    }
    while count > 0 {
        let (byte, rest) = left.split_first().ok_or_else(damaged)?;
        *left = rest;
        count -= u64::from(*byte < 0x80);
    }
    Ok(())
}

fn take(left: &mut &[u8]) -> Result<u64, RowError> {
    // Most are short.
    if let Some((byte, rest)) = left.split_first()
        && *byte < 0x80
    {
        *left = rest;
        return Ok((*byte).into());
    }
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = left.split_first().ok_or_else(damaged)?;
        *left = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(damaged())
}

fn take_wide(left: &mut &[u8]) -> Result<u128, RowError> {
    let mut number = 0_u128;
    for shift in (0..128).step_by(7) {
        let (byte, rest) = left.split_first().ok_or_else(damaged)?;
        *left = rest;
        number |= u128::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(damaged())
}

fn damaged() -> RowError {
    RowError::Shape("figures of a slot cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slot() -> DateTime<Utc> {
        "2026-01-15T10:30:00Z".parse().unwrap()
    }

    fn any_figures() -> impl Strategy<Value = Figures> {
        let times = proptest::collection::vec(-5..100_000_i32, 1..20);
        let money = any::<u64>();
        (any::<[u64; 11]>(), [money, any::<u64>(), any::<u64>(), any::<u64>()], times, 0..1_800_000_000_i64).prop_map(
            |([requests, a, b, c, d, e, f, g, h, i, j], [cost, simple, semantic, saved], times, later)| {
                let mut sketch = Sketch::default();
                times.iter().for_each(|time| sketch.add(*time));
                Figures {
                    requests: requests.max(1),
                    user_requests: a,
                    errors: b,
                    req_units: c,
                    res_units: d,
                    cost: u128::from(cost) * 1_000_000,
                    simple_hits: e,
                    semantic_hits: f,
                    simple_saved: simple.into(),
                    semantic_saved: semantic.into(),
                    saved: saved.into(),
                    response_time: g,
                    hit_time: h,
                    retried: i,
                    fallen: j,
                    first_seen: slot().timestamp_micros(),
                    last_seen: slot().timestamp_micros() + later,
                    sketch,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_packed_is_read_again(values in proptest::collection::hash_map(".{0,12}", any_figures(), 0..40)) {
            let values: ByValue = values.into_iter().collect();
            let values = SlotValues::Listed(values);
            let bytes = stored(&values.payload(slot()), &mut Packer::default());
            let mut again = SlotValues::default();
            again.merge(&bytes, slot()).unwrap();
            prop_assert_eq!(&again, &values);
            prop_assert_eq!(again.payload(slot()), values.payload(slot()));
            let mut once_more = SlotValues::default();
            once_more.merge(&uncompressed(bytes.clone()).unwrap(), slot()).unwrap();
            prop_assert_eq!(&once_more, &values);
            let mut sums = ByValue::default();
            let wants = |value: &str, _| if value.len().is_multiple_of(2) { Wanted::Nothing } else { Wanted::Sums };
            read_some(&bytes, slot(), wants, |value, figures| drop(sums.insert(value.to_owned(), figures.clone()))).unwrap();
            let SlotValues::Listed(values) = &values else { unreachable!() };
            let odd = values.iter().filter(|(value, _)| !value.len().is_multiple_of(2));
            let odd: ByValue = odd
                .map(|(value, figures)| (value.clone(), Figures { sketch: Sketch::default(), ..figures.clone() }))
                .collect();
            prop_assert_eq!(sums, odd);
        }

        #[test]
        fn damaged_bytes_are_an_error_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes, slot(), |_, _| {});
        }
    }

    #[test]
    fn too_many_values_are_not_kept() {
        let mut values = SlotValues::default();
        for n in 0..=MAX_VALUES {
            if let Some(figures) = values.entry(n.to_string().into()) {
                figures.requests += 1;
            }
        }
        assert_eq!(values, SlotValues::TooMany);
        let bytes = stored(&values.payload(slot()), &mut Packer::default());
        assert!(!read(&bytes, slot(), |_, _| {}).unwrap());
        let mut merged = SlotValues::default();
        merged.merge(&bytes, slot()).unwrap();
        assert_eq!(merged, SlotValues::TooMany);
    }
}
