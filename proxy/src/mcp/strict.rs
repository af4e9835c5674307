//! Whether a message reads the same to every reader: no field twice at any depth, no number or text that only some accept,
//! no nesting that some give up on. It is the rule of `guardrails::parse_unique` without making values of what is read,
//! because every message of either side is asked for it, and an answer may be long.

use foldhash::quality::RandomState;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::LazyLock;

/// Of names of fields: keyed anew in each process, so nobody can choose names that look equal.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::default);

/// The error says which rule is broken and repeats nothing of the message.
pub fn check_strict(message: &[u8]) -> Result<(), NotStrict> {
    match serde_json::from_slice::<Strict>(message) {
        Ok(Strict) => Ok(()),
        Err(error) if error.to_string().starts_with(TWICE) => Err(NotStrict::Twice),
        Err(_) => Err(NotStrict::Unreadable),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotStrict {
    #[error("a field of the message is there twice")]
    Twice,
    #[error("the message is no JSON that every reader reads alike")]
    Unreadable,
}

const TWICE: &str = "twice";

struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values)
    }
}

/// A name of a field, as its hash.
struct FieldName(u64);

impl<'de> Deserialize<'de> for FieldName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Names)
    }
}

struct Names;

impl Visitor<'_> for Names {
    type Value = FieldName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<FieldName, E> {
        Ok(FieldName(HASHES.hash_one(name)))
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut seen = HashSet::new();
        while let Some(FieldName(name)) = map.next_key()? {
            if !seen.insert(name) {
                return Err(A::Error::custom(TWICE));
            }
            map.next_value::<Strict>()?;
        }
        Ok(Strict)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Strict, A::Error> {
        while list.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_str<E>(self, _: &str) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict)
    }
}

/// Messages that two readers could read differently, for the tests of every place where messages come in.
#[cfg(test)]
pub(crate) fn loose_values() -> Vec<String> {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    [r#"{"a":1,"a":2}"#, r#"{"a":1,"\u0061":2}"#, r#"[{"b":{"a":1,"a":1}}]"#, "1e999", r#""\ud800""#, &deep]
        .map(str::to_owned)
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guardrails::parse_unique;

    #[test]
    fn it_is_the_rule_by_which_guardrails_read() {
        let plain = [r#"{"z":1,"a":[-1,0.5,1e300,18446744073709551615,true,null,"é\n\u0000",{}],"":{}}"#, "[]", "7"];
        let broken = ["{", "", "{} x", "[1,]", "\"\u{1}\"", "01"];
        let all = plain.into_iter().chain(broken).map(str::to_owned).chain(loose_values());
        for message in all {
            let (ours, theirs) = (check_strict(message.as_bytes()), parse_unique(message.as_bytes()));
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{message}");
        }
        assert!(loose_values().iter().all(|message| check_strict(message.as_bytes()).is_err()));
        assert!(plain.iter().all(|message| check_strict(message.as_bytes()).is_ok()));
        assert_eq!(check_strict(br#"{"secret":1,"secret":1}"#).unwrap_err().to_string(), NotStrict::Twice.to_string());
    }
}
