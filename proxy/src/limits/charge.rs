//! The counters that a record is charged to. Every call writes one for each of its limits, so they are packed as bytes,
//! which the record carries as one field; what older processes wrote has a list of words.

use crate::limits::{CounterKind, Due};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use uuid::Uuid;

/// A counter of the record's organisation, by its key in `usage_counters`, and the lease that was taken from. How much is
/// what the row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Charge<'a> {
    pub sort: CounterKind,
    pub scope_id: &'a str,
    /// Microseconds since 1970.
    pub starts_at: i64,
    pub lease: Option<Uuid>,
}

/// Any number of them, one after the other: the sort, how long the id is, the id, the start and the lease.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Charges<'a>(Cow<'a, [u8]>);

impl<'a> From<Due<'a>> for Charge<'a> {
    fn from(due: Due<'a>) -> Self {
        let Due { counter, starts_at, lease } = due;
        Self { sort: counter.sort(), scope_id: counter.scope_id(), starts_at, lease }
    }
}

impl<'a> Charges<'a> {
    /// None where nobody can read one of them.
    pub fn from_bytes(packed: &'a [u8]) -> Option<Self> {
        let mut rest = packed;
        while !rest.is_empty() {
            (_, rest) = unpack(rest)?;
        }
        Some(Self(Cow::Borrowed(packed)))
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Charge<'_>> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (charge, after) = unpack(rest)?;
            rest = after;
            Some(charge)
        })
    }

    fn push(&mut self, charge: &Charge<'_>) {
        // Ids of counters are shorter by far.
        let Ok(length) = u16::try_from(charge.scope_id.len()) else { return };
        let [low, high] = length.to_le_bytes();
        let mut end = [0; 24];
        end[..8].copy_from_slice(&charge.starts_at.to_le_bytes());
        end[8..].copy_from_slice(charge.lease.unwrap_or_default().as_bytes());
        let packed = self.0.to_mut();
        packed.extend_from_slice(&[charge.sort.code(), low, high]);
        packed.extend_from_slice(charge.scope_id.as_bytes());
        packed.extend_from_slice(&end);
    }
}

/// The first charge and what follows it; none when it is not one.
fn unpack(packed: &[u8]) -> Option<(Charge<'_>, &[u8])> {
    let (code, rest) = packed.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (scope_id, rest) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
    let (starts_at, rest) = rest.split_first_chunk()?;
    let (lease, rest) = rest.split_first_chunk()?;
    let charge = Charge {
        sort: CounterKind::from_code(*code)?,
        scope_id: std::str::from_utf8(scope_id).ok()?,
        starts_at: i64::from_le_bytes(*starts_at),
        lease: Some(Uuid::from_bytes(*lease)).filter(|lease| !lease.is_nil()),
    };
    Some((charge, rest))
}

impl<'c> FromIterator<Charge<'c>> for Charges<'_> {
    fn from_iter<I: IntoIterator<Item = Charge<'c>>>(charges: I) -> Self {
        // As much as a request with a handful of limits needs.
        let mut packed = Self(Cow::Owned(Vec::with_capacity(384)));
        charges.into_iter().for_each(|charge| packed.push(&charge));
        packed
    }
}

impl fmt::Debug for Charges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Charges<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Charges<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChargesVisitor)
    }
}

struct ChargesVisitor;

impl<'de> Visitor<'de> for ChargesVisitor {
    type Value = Charges<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("charges")
    }

    fn visit_borrowed_bytes<E: Error>(self, packed: &'de [u8]) -> Result<Charges<'de>, E> {
        Charges::from_bytes(packed).ok_or_else(|| E::custom("nobody can read this charge"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Charges<'de>, A::Error> {
        type InWords<'w> = (&'w str, &'w str, &'w str, &'w str, i64, Option<Uuid>);
        let mut packed = Charges::default();
        while let Some((scope, scope_id, unit, period, starts_at, lease)) = list.next_element::<InWords<'de>>()? {
            let sort = CounterKind::from_words(scope, unit, period);
            let sort = sort.ok_or_else(|| A::Error::custom("nobody knows this sort of counter"))?;
            packed.push(&Charge { sort, scope_id, starts_at, lease });
        }
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [(&str, &str, &str, Option<Uuid>); 2] =
        [("policy", "cost", "total", None), ("api_key_rate", "tokens", "day", Some(Uuid::from_u128(7)))];

    fn charge<'a>((scope, unit, period, lease): (&str, &str, &str, Option<Uuid>), scope_id: &'a str) -> Charge<'a> {
        Charge { sort: CounterKind::from_words(scope, unit, period).unwrap(), scope_id, starts_at: -5, lease }
    }

    #[test]
    fn charges_are_read_as_they_are_written_now_and_as_they_were_before() {
        let charges = [charge(WORDS[0], "a/é"), charge(WORDS[1], "")];
        let packed: Charges<'_> = charges.into_iter().collect();
        let now = rmp_serde::to_vec(&packed).unwrap();
        let before = WORDS.map(|(scope, unit, period, lease)| {
            (scope, if lease.is_none() { "a/é" } else { "" }, unit, period, -5_i64, lease)
        });
        for bytes in [now, rmp_serde::to_vec(&before).unwrap()] {
            let read: Charges<'_> = rmp_serde::from_slice(&bytes).unwrap();
            assert_eq!(read.iter().collect::<Vec<_>>(), charges);
            assert_eq!(read, packed);
        }
        for nothing in [rmp_serde::to_vec(&Charges::default()).unwrap(), rmp_serde::to_vec(&[0_u8; 0]).unwrap()] {
            assert!(rmp_serde::from_slice::<Charges<'_>>(&nothing).unwrap().is_empty());
        }
    }

    #[test]
    fn what_is_no_charge_is_an_error() {
        let whole: Charges<'_> = [charge(WORDS[0], "a")].into_iter().collect();
        for cut in 1..whole.0.len() {
            assert!(rmp_serde::from_slice::<Charges<'_>>(&bin(&whole.0[..cut])).is_err(), "{cut}");
        }
        let unknown = rmp_serde::to_vec(&[("planet", "a", "cost", "total", 1_i64, None::<Uuid>)]).unwrap();
        let mut odd = whole.0.to_vec();
        odd[0] = 250;
        for bytes in [unknown, bin(&odd), rmp_serde::to_vec(&"policy").unwrap(), rmp_serde::to_vec(&7).unwrap()] {
            assert!(rmp_serde::from_slice::<Charges<'_>>(&bytes).is_err(), "{bytes:?}");
        }
    }

    fn bin(bytes: &[u8]) -> Vec<u8> {
        rmp_serde::to_vec(&Charges(bytes.into())).unwrap()
    }
}
