//! Values of a record as MessagePack. Every call writes a record and every record is read once, and fifty small fields
//! through a general writer and reader cost several times as much as their bytes. What is written is what `rmp_serde`
//! would write; what is written in any other way is left to it.

use super::{CacheStatus, Mode};
use crate::limits::charge::Charges;
use shared::model::id::Id;
use uuid::Uuid;

const NIL: u8 = 0xc0;
const FALSE: u8 = 0xc2;
const TRUE: u8 = 0xc3;
/// What long values begin with: their length follows in one, two or four bytes.
const BIN: [u8; 3] = [0xc4, 0xc5, 0xc6];
const TEXT: [u8; 3] = [0xd9, 0xda, 0xdb];
const LIST: [u8; 3] = [NOTHING, 0xdc, 0xdd];
const NUMBER: [u8; 3] = [0xcc, 0xcd, 0xce];
const LONG_NUMBER: u8 = 0xcf;
const SIGNED: u8 = 0xd0;
/// Short values have their length in their first byte, after these bits.
const SHORT_TEXT: u8 = 0xa0;
const SHORT_LIST: u8 = 0x90;
/// There is no form with a length of one byte. No value begins with it.
const NOTHING: u8 = 0xc1;

pub trait Packed<'a>: Sized {
    fn pack(&self, out: &mut Vec<u8>);

    /// Takes a value from the beginning of `rest`. None of one that `pack` would have written otherwise.
    fn unpack(rest: &mut &'a [u8]) -> Option<Self>;
}

/// A list of so many values follows.
pub fn pack_list(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(short @ 0..=15) => out.push(SHORT_LIST | short),
        _ => pack_length(LIST, length, out),
    }
}

fn pack_length([one, two, four]: [u8; 3], length: usize, out: &mut Vec<u8>) {
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(length), _) if one != NOTHING => out.extend_from_slice(&[one, length]),
        (_, Ok(length)) => {
            out.push(two);
            out.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            out.push(four);
            out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(taken)
}

fn take_slice<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

/// The number that follows what a value begins with, in as many bytes as that says.
fn take_number([one, two, four]: [u8; 3], first: u8, rest: &mut &[u8]) -> Option<u32> {
    match first {
        NOTHING => None,
        _ if first == one => take::<1>(rest).map(|[length]| (*length).into()),
        _ if first == two => take(rest).map(|length| u16::from_be_bytes(*length).into()),
        _ if first == four => take(rest).map(|length| u32::from_be_bytes(*length)),
        _ => None,
    }
}

impl<'a, T: Packed<'a>> Packed<'a> for Option<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.pack(out),
            None => out.push(NIL),
        }
    }

    fn unpack(rest: &mut &'a [u8]) -> Option<Self> {
        match rest.split_first()? {
            (&NIL, after) => {
                *rest = after;
                Some(None)
            }
            _ => T::unpack(rest).map(Some),
        }
    }
}

impl<'a> Packed<'a> for &'a [u8] {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_length(BIN, self.len(), out);
        out.extend_from_slice(self);
    }

    fn unpack(rest: &mut &'a [u8]) -> Option<Self> {
        let [first] = *take::<1>(rest)?;
        let length = take_number(BIN, first, rest)?;
        take_slice(rest, usize::try_from(length).ok()?)
    }
}

impl<'a> Packed<'a> for &'a str {
    fn pack(&self, out: &mut Vec<u8>) {
        match u8::try_from(self.len()) {
            Ok(short @ 0..=31) => out.push(SHORT_TEXT | short),
            _ => pack_length(TEXT, self.len(), out),
        }
        out.extend_from_slice(self.as_bytes());
    }

    fn unpack(rest: &mut &'a [u8]) -> Option<Self> {
        let length = match *take::<1>(rest)? {
            [first @ SHORT_TEXT..=0xbf] => u32::from(first & 0x1f),
            [first] => take_number(TEXT, first, rest)?,
        };
        std::str::from_utf8(take_slice(rest, usize::try_from(length).ok()?)?).ok()
    }
}

impl<'a> Packed<'a> for Vec<&'a str> {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_list(self.len(), out);
        self.iter().for_each(|text| text.pack(out));
    }

    /// None of a long one either.
    fn unpack(rest: &mut &'a [u8]) -> Option<Self> {
        match *take::<1>(rest)? {
            [first @ SHORT_LIST..=0x9f] => (0..first & 0x0f).map(|_| <&str>::unpack(rest)).collect(),
            _ => None,
        }
    }
}

impl Packed<'_> for Uuid {
    fn pack(&self, out: &mut Vec<u8>) {
        let mut packed = [0; 18];
        packed[..2].copy_from_slice(&[BIN[0], 16]);
        packed[2..].copy_from_slice(self.as_bytes());
        out.extend_from_slice(&packed);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        match take::<2>(rest)? {
            [first, 16] if *first == BIN[0] => take(rest).map(|bytes| Self::from_bytes(*bytes)),
            _ => None,
        }
    }
}

impl<T> Packed<'_> for Id<T> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.uuid().pack(out);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        Uuid::unpack(rest).map(Self::new)
    }
}

impl Packed<'_> for bool {
    fn pack(&self, out: &mut Vec<u8>) {
        out.push(if *self { TRUE } else { FALSE });
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        match take::<1>(rest)? {
            [TRUE] => Some(true),
            [FALSE] => Some(false),
            _ => None,
        }
    }
}

impl Packed<'_> for u64 {
    fn pack(&self, out: &mut Vec<u8>) {
        match (u8::try_from(*self), u32::try_from(*self)) {
            (Ok(small @ 0..=0x7f), _) => out.push(small),
            (_, Ok(number)) => pack_length(NUMBER, number as usize, out),
            _ => {
                out.push(LONG_NUMBER);
                out.extend_from_slice(&self.to_be_bytes());
            }
        }
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        match *take::<1>(rest)? {
            [small @ 0..=0x7f] => Some(small.into()),
            [LONG_NUMBER] => take(rest).map(|number| Self::from_be_bytes(*number)),
            [first] => take_number(NUMBER, first, rest).map(Self::from),
        }
    }
}

impl Packed<'_> for u32 {
    fn pack(&self, out: &mut Vec<u8>) {
        u64::from(*self).pack(out);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        u64::unpack(rest)?.try_into().ok()
    }
}

impl Packed<'_> for u16 {
    fn pack(&self, out: &mut Vec<u8>) {
        u64::from(*self).pack(out);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        u64::unpack(rest)?.try_into().ok()
    }
}

impl Packed<'_> for u8 {
    fn pack(&self, out: &mut Vec<u8>) {
        u64::from(*self).pack(out);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        u64::unpack(rest)?.try_into().ok()
    }
}

impl Packed<'_> for i8 {
    fn pack(&self, out: &mut Vec<u8>) {
        match *self {
            // Its own bits: of a small number they are the number, of a small one below zero they say so.
            short @ -32..=127 => out.push(short.cast_unsigned()),
            long => out.extend_from_slice(&[SIGNED, long.cast_unsigned()]),
        }
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        match *take::<1>(rest)? {
            [short @ (0..=0x7f | 0xe0..=0xff)] => Some(short.cast_signed()),
            [SIGNED] => take::<1>(rest).map(|[long]| long.cast_signed()),
            _ => None,
        }
    }
}

impl Packed<'_> for (u64, u64) {
    fn pack(&self, out: &mut Vec<u8>) {
        pack_list(2, out);
        self.0.pack(out);
        self.1.pack(out);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        match take::<1>(rest)? {
            [first] if *first == SHORT_LIST | 2 => Some((u64::unpack(rest)?, u64::unpack(rest)?)),
            _ => None,
        }
    }
}

impl<'a> Packed<'a> for Charges<'a> {
    fn pack(&self, out: &mut Vec<u8>) {
        self.as_bytes().pack(out);
    }

    fn unpack(rest: &mut &'a [u8]) -> Option<Self> {
        Charges::from_bytes(<&[u8]>::unpack(rest)?)
    }
}

impl Packed<'_> for Mode {
    fn pack(&self, out: &mut Vec<u8>) {
        mode_word(*self).pack(out);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        let word = <&str>::unpack(rest)?;
        [Self::Single, Self::Loadbalance, Self::Fallback, Self::Conditional]
            .into_iter()
            .find(|mode| mode_word(*mode) == word)
    }
}

const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Single => "Single",
        Mode::Loadbalance => "Loadbalance",
        Mode::Fallback => "Fallback",
        Mode::Conditional => "Conditional",
    }
}

impl Packed<'_> for CacheStatus {
    fn pack(&self, out: &mut Vec<u8>) {
        status_word(*self).pack(out);
    }

    fn unpack(rest: &mut &[u8]) -> Option<Self> {
        let word = <&str>::unpack(rest)?;
        Self::ALL.into_iter().find(|status| status_word(*status) == word)
    }
}

const fn status_word(status: CacheStatus) -> &'static str {
    match status {
        CacheStatus::Disabled => "Disabled",
        CacheStatus::Miss => "Miss",
        CacheStatus::Hit => "Hit",
        CacheStatus::Refresh => "Refresh",
        CacheStatus::SemanticMiss => "SemanticMiss",
        CacheStatus::SemanticHit => "SemanticHit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;
    use std::fmt::Debug;

    /// Written as `rmp_serde` does, read back, and not read when it is cut.
    fn holds<'a, T: Packed<'a> + Serialize + PartialEq + Debug>(value: T, out: &'a mut Vec<u8>) {
        value.pack(out);
        assert_eq!(*out, rmp_serde::to_vec(&value).unwrap(), "{value:?}");
        let out: &'a [u8] = out;
        let mut rest = out;
        assert_eq!(T::unpack(&mut rest), Some(value));
        assert!(rest.is_empty());
        for end in 0..out.len().min(300) {
            assert!(T::unpack(&mut &out[..end]).is_none(), "{end} bytes of {out:?}");
        }
    }

    #[test]
    fn values_are_written_as_a_general_writer_writes_them() {
        for number in [0, 1, 127, 128, 255, 256, 65_535, 65_536, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            holds(number, &mut Vec::new());
            holds(Some((number, 7)), &mut Vec::new());
        }
        for number in i8::MIN..=i8::MAX {
            holds(number, &mut Vec::new());
        }
        for flag in [true, false] {
            holds(flag, &mut Vec::new());
        }
        for length in [0, 1, 31, 32, 255, 256, 65_535, 65_536] {
            let text = "x".repeat(length);
            holds(text.as_str(), &mut Vec::new());
            holds(Some(text.as_str()), &mut Vec::new());
        }
        for count in [0, 1, 2, 15] {
            holds(vec!["é"; count], &mut Vec::new());
        }
        holds(None::<u32>, &mut Vec::new());
        holds(u32::MAX, &mut Vec::new());
        holds(u16::MAX, &mut Vec::new());
        holds(u8::MAX, &mut Vec::new());
        holds(Uuid::from_u128(7), &mut Vec::new());
        for mode in [Mode::Single, Mode::Loadbalance, Mode::Fallback, Mode::Conditional] {
            holds(mode, &mut Vec::new());
        }
        for status in CacheStatus::ALL {
            holds(status, &mut Vec::new());
        }
    }

    #[test]
    fn a_number_that_is_too_large_for_its_field_is_none() {
        let mut bytes = Vec::new();
        300_u64.pack(&mut bytes);
        assert_eq!(u8::unpack(&mut &bytes[..]), None);
        assert_eq!(u16::unpack(&mut &bytes[..]), Some(300));
        assert_eq!(<&str>::unpack(&mut &b"\xa1\xff"[..]), None, "no text");
        assert_eq!(bool::unpack(&mut &[NOTHING][..]), None);
    }

    #[test]
    fn long_lists_are_written_and_left_to_a_general_reader() {
        for count in [16, 70_000] {
            let mut bytes = Vec::new();
            vec!["a"; count].pack(&mut bytes);
            assert_eq!(bytes, rmp_serde::to_vec(&vec!["a"; count]).unwrap());
            assert_eq!(Vec::<&str>::unpack(&mut &bytes[..]), None);
        }
    }
}
