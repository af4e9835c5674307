//! How much of a budget: dollars, tokens or requests, as an exact decimal. JSON holds it as a number, and so do columns,
//! as `double precision` or `numeric`: either is read and written, so that a later migration may turn one into the other
//! while this version still runs.

use bytes::BytesMut;
use rust_decimal::Decimal;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::error::Error;
use std::fmt;
use std::str::FromStr as _;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(pub Decimal);

impl Amount {
    pub const ZERO: Self = Self(Decimal::ZERO);
    /// The largest that can be set as a limit.
    pub const MAX: u64 = 1_000_000_000_000_000;

    /// The decimal that the author of a float wrote: its shortest text. None for what is no number; beyond all decimals
    /// there is the largest one, which no limit may be.
    pub fn from_float(number: f64) -> Option<Self> {
        let beyond = if number < 0.0 { Decimal::MIN } else { Decimal::MAX };
        number.is_finite().then(|| Self(Decimal::from_str(&number.to_string()).unwrap_or(beyond)))
    }

    /// The nearest float.
    pub fn to_float(self) -> f64 {
        self.0.to_string().parse().expect("a decimal is written as floats are")
    }

    /// Whether it can be set as a limit that has to be at least this.
    pub fn is_limit_from(self, least: u64) -> bool {
        (Decimal::from(least)..=Decimal::from(Self::MAX)).contains(&self.0)
    }
}

impl From<u64> for Amount {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

/// Whole amounts without a fraction.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0.normalize(), f)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_number(self.0, serializer)
    }
}

/// A decimal as a JSON number: never in exponents, and not through a float, but digit for digit.
pub fn as_number<S: Serializer>(decimal: Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    RawValue::from_string(decimal.normalize().to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_f64(AmountVisitor)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = Amount;

    /// Clients are told so where they send something else.
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("f64")
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
        Amount::from_float(number).ok_or_else(|| E::invalid_value(de::Unexpected::Float(number), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
        Ok(number.into())
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
        Ok(Amount(number.into()))
    }
}

impl<'a> FromSql<'a> for Amount {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        match *kind {
            Type::NUMERIC => Decimal::from_sql(kind, raw).map(Self),
            _ => Self::from_float(f64::from_sql(kind, raw)?).ok_or_else(|| "an amount is a number".into()),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::FLOAT8 | Type::NUMERIC)
    }
}

impl ToSql for Amount {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match *kind {
            Type::NUMERIC => self.0.to_sql(kind, out),
            _ => self.to_float().to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        <Self as FromSql<'_>>::accepts(kind)
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_the_number_that_was_written() {
        for (written, shown) in [
            ("500", "500"),
            ("500.0", "500"),
            ("99.5", "99.5"),
            ("0.1", "0.1"),
            ("0.29", "0.29"),
            ("1e15", "1000000000000000"),
            ("123456789.123456", "123456789.123456"),
            ("-3", "-3"),
            ("1e-300", "0"),
        ] {
            let amount: Amount = serde_json::from_str(written).unwrap();
            assert_eq!(serde_json::to_string(&amount).unwrap(), shown, "{written}");
            assert_eq!(amount.to_string(), shown, "{written}");
            let expected: serde_json::Value = serde_json::from_str(shown).unwrap();
            assert_eq!(serde_json::to_value(amount).unwrap(), expected, "{written}");
        }
        for written in ["\"5\"", "null", "true", "[1]"] {
            assert!(serde_json::from_str::<Amount>(written).is_err(), "{written}");
        }
    }

    #[test]
    fn what_no_decimal_can_hold_is_too_much_for_a_limit() {
        for (written, least, expected) in [
            ("1", 1, true),
            ("0.99", 1, false),
            ("99", 100, false),
            ("1e15", 1, true),
            ("1000000000000000.5", 1, false),
            ("1e300", 1, false),
            ("-1e300", 0, false),
        ] {
            let amount: Amount = serde_json::from_str(written).unwrap();
            assert_eq!(amount.is_limit_from(least), expected, "{written}");
        }
    }

    #[test]
    fn a_column_of_either_type_gives_back_what_was_stored() {
        for kind in [Type::FLOAT8, Type::NUMERIC] {
            for text in ["1", "10.25", "0.1", "999999999999.99", "1000000000000000"] {
                let (amount, mut raw) = (Amount(text.parse().unwrap()), BytesMut::new());
                let _ = amount.to_sql(&kind, &mut raw).unwrap();
                assert_eq!(Amount::from_sql(&kind, &raw).unwrap(), amount, "{kind} {text}");
            }
        }
        assert!(Amount::from_sql(&Type::FLOAT8, &f64::NAN.to_be_bytes()).is_err());
    }
}
