//! Rows into types by the names of fields. A type that derives `Deserialize` states its columns once: `read` fills it
//! from a row, and `fields` is its select list. `#[serde(rename = "type")]` names a column that Rust cannot.
//!
//! Types that need more than a column for a field (sealed values, columns of another type) read their rows by hand.

use crate::amount::Amount;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::de::value::{SeqDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::Value;
use std::error::Error;
use std::fmt;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

/// Fills a struct from the columns that its fields are named after.
pub fn read<T: DeserializeOwned>(row: &Row) -> Result<T, RowError> {
    T::deserialize(Cells(row))
}

/// One column into a type that serde knows: an enum by the name of its variant.
pub fn column<T: DeserializeOwned>(row: &Row, name: &'static str) -> Result<T, RowError> {
    T::deserialize(Cell { row, name })
}

/// The names of a struct's fields, as a select list.
pub fn fields<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names = Vec::new();
    // Ends with an error once it has noted the names: there is no row.
    let _ = T::deserialize(FieldNames(&mut names));
    names
}

/// A row that is not of its type's shape. Statements and types stand side by side in the code, so this is a bug there.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    #[error(transparent)]
    Postgres(#[from] tokio_postgres::Error),
    #[error("a row does not fit its type: {0}")]
    Shape(String),
}

impl de::Error for RowError {
    fn custom<M: fmt::Display>(message: M) -> Self {
        Self::Shape(message.to_string())
    }
}

struct Cells<'r>(&'r Row);

impl<'de> Deserializer<'de> for Cells<'_> {
    type Error = RowError;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        visitor.visit_map(Walk { row: self.0, left: fields, name: "" })
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RowError> {
        Err(de::Error::custom("a row is read into a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// From field to field.
struct Walk<'r> {
    row: &'r Row,
    left: &'static [&'static str],
    name: &'static str,
}

impl<'de> MapAccess<'de> for Walk<'_> {
    type Error = RowError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, RowError> {
        let Some((name, left)) = self.left.split_first() else { return Ok(None) };
        (self.name, self.left) = (name, left);
        seed.deserialize((*name).into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, RowError> {
        seed.deserialize(Cell { row: self.row, name: self.name })
    }
}

/// One column of one row.
#[derive(Clone, Copy)]
struct Cell<'r> {
    row: &'r Row,
    name: &'static str,
}

impl<'r> Cell<'r> {
    fn get<T: FromSql<'r>>(self) -> Result<T, RowError> {
        Ok(self.row.try_get(self.name)?)
    }

    fn kind(self) -> Result<&'r Type, RowError> {
        let column = self.row.columns().iter().find(|column| column.name() == self.name);
        column.map(|column| column.type_()).ok_or_else(|| de::Error::custom(format!("no column `{}`", self.name)))
    }

    fn is_null(self) -> Result<bool, RowError> {
        Ok(self.get::<Option<Anything>>()?.is_none())
    }
}

impl<'de> Deserializer<'de> for Cell<'_> {
    type Error = RowError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.is_null()? {
            return visitor.visit_unit();
        }
        match *self.kind()? {
            Type::BOOL => visitor.visit_bool(self.get()?),
            Type::INT2 => visitor.visit_i16(self.get()?),
            Type::INT4 => visitor.visit_i32(self.get()?),
            Type::INT8 => visitor.visit_i64(self.get()?),
            Type::FLOAT8 => visitor.visit_f64(self.get()?),
            Type::TEXT | Type::VARCHAR => visitor.visit_str(self.get()?),
            Type::UUID => visitor.visit_str(&self.get::<Uuid>()?.to_string()),
            Type::NUMERIC => visitor.visit_str(&self.get::<Decimal>()?.to_string()),
            Type::TIMESTAMPTZ => visitor.visit_str(&self.get::<DateTime<Utc>>()?.to_rfc3339()),
            Type::JSON | Type::JSONB => self.get::<Value>()?.deserialize_any(visitor).map_err(de::Error::custom),
            Type::INT4_ARRAY => visitor.visit_seq(SeqDeserializer::new(self.get::<Vec<i32>>()?.into_iter())),
            Type::TEXT_ARRAY => visitor.visit_seq(SeqDeserializer::new(self.get::<Vec<String>>()?.into_iter())),
            Type::UUID_ARRAY => {
                let ids = self.get::<Vec<Uuid>>()?.into_iter().map(|id| id.to_string());
                visitor.visit_seq(SeqDeserializer::new(ids))
            }
            ref other => Err(de::Error::custom(format!("column `{}` is of the type {other}", self.name))),
        }
    }

    /// A number may stand in a column of decimals.
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        match *self.kind()? {
            Type::NUMERIC if !self.is_null()? => visitor.visit_f64(Amount(self.get()?).to_float()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, RowError> {
        if self.is_null()? { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, RowError> {
        visitor.visit_newtype_struct(self)
    }

    /// An enum is stored as the name of its variant.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, RowError> {
        let name: StrDeserializer<'_, RowError> = self.get::<&str>()?.into_deserializer();
        visitor.visit_enum(name).map_err(|error| match error {
            RowError::Shape(why) => RowError::Shape(format!("column `{}`: {why}", self.name)),
            other => other,
        })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// Any value, to ask only whether there is one.
struct Anything;

impl<'a> FromSql<'a> for Anything {
    fn from_sql(_: &Type, _: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Notes which fields a struct asks for.
struct FieldNames<'n>(&'n mut Vec<&'static str>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = de::value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        self.0.extend(fields);
        Err(de::Error::custom("there is no row"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("a row is read into a struct"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only its names are of interest")]
    struct Thing {
        id: Uuid,
        #[serde(rename = "type")]
        kind: Option<String>,
    }

    #[test]
    fn a_type_names_its_columns_as_it_is_written() {
        assert_eq!(fields::<Thing>(), ["id", "type"]);
        assert!(fields::<String>().is_empty());
    }
}
