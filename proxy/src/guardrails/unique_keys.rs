//! Whether a body says everything once. Of a field that is there twice one reader takes the first and another the last: what a
//! check judged would not be what the provider reads.

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// The name of a field that is there twice.
pub fn repeated_key(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<Unique>(body).err().map(|error| error.to_string()).filter(|why| why.contains(TWICE))
}

const TWICE: &str = "is there twice";

struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = Unique;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<Unique>()?;
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("`{key}` {TWICE}")));
            }
            seen.insert(key);
        }
        Ok(Unique)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Unique, A::Error> {
        while list.next_element::<Unique>()?.is_some() {}
        Ok(Unique)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_str<E>(self, _: &str) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_unit<E>(self) -> Result<Unique, E> {
        Ok(Unique)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Unique, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Unique)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_there_twice_is_found_however_deep() {
        for (body, is_repeated) in [
            (r#"{"a":1,"b":[{"a":null},{"a":"x"}],"c":{"a":1.5,"b":true}}"#, false),
            (r#"{"a":1,"a":1}"#, true),
            (r#"{"a":1,"\u0061":1}"#, true),
            (r#"{"messages":[{"content":"bad","content":"good"}]}"#, true),
            (r#"{"a":"\"a\":1,\"a\":1 is there twice"}"#, false),
            ("{", false),
        ] {
            assert_eq!(repeated_key(body.as_bytes()).is_some(), is_repeated, "{body}");
        }
    }
}
