//! A field of an update: absent keeps, null clears, a value replaces. `Option` cannot tell the first two apart.

use serde::{Deserialize, Deserializer};

/// Use with `#[serde(default)]` on the struct. For fields that cannot be cleared, `Option` does: null keeps.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Field<T> {
    #[default]
    Absent,
    Null,
    Value(T),
}

impl<T> Field<T> {
    /// For `Columns::set_if`: nothing, null, or the value.
    pub fn sent(self) -> Option<Option<T>> {
        match self {
            Self::Absent => None,
            Self::Null => Some(None),
            Self::Value(value) => Some(Some(value)),
        }
    }

    /// The value, where absent and null mean the same: on creation.
    pub fn value(self) -> Option<T> {
        self.sent().flatten()
    }

    pub fn is_sent(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    pub fn as_ref(&self) -> Field<&T> {
        match self {
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Value(value) => Field::Value(value),
        }
    }

    /// Checks or converts a value, and leaves the other two as they are.
    pub fn try_map<U, E>(self, convert: impl FnOnce(T) -> Result<U, E>) -> Result<Field<U>, E> {
        Ok(match self {
            Self::Absent => Field::Absent,
            Self::Null => Field::Null,
            Self::Value(value) => Field::Value(convert(value)?),
        })
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(deserializer)?.map_or(Self::Null, Self::Value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Change {
        description: Field<String>,
    }

    #[test]
    fn absent_null_and_value_are_three_things() {
        for (body, sent) in [
            ("{}", None),
            (r#"{"description": null}"#, Some(None)),
            (r#"{"description": ""}"#, Some(Some(String::new()))),
        ] {
            let change: Change = serde_json::from_str(body).unwrap();
            assert_eq!(change.description.sent(), sent, "{body}");
        }
    }
}
