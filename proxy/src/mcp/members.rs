//! The fields of one object of a message as they are written. Some readers take names of fields in any case, and of two
//! fields of one name some the first and some the last: what is judged here would then not be what they do.

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashSet;
use std::fmt;

/// The fields of the envelope of a message.
pub const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// The fields of an object, none twice.
pub struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    /// None for what is no object, and for one that some readers would read otherwise: `judged` names are written exactly
    /// so, or not at all.
    pub fn read(raw: &'a RawValue, judged: &[&str]) -> Option<Self> {
        let members: Self = serde_json::from_str(raw.get()).ok()?;
        let mut seen = HashSet::new();
        let is_plain = |name: &str| {
            let folded = name.to_uppercase().to_lowercase();
            !judged.contains(&folded.as_str()) || name == folded
        };
        members.0.iter().all(|(name, _)| seen.insert(name.as_str()) && is_plain(name)).then_some(())?;
        Some(members)
    }

    pub fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|value| serde_json::from_str(value.get()).ok())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Fields).map(Self)
    }
}
