//! A price: an exact decimal, never negative. Files write it as text (`"0.00025"`); a JSON number is read as it was
//! written, and written back as a number, because that is what clients of the price list expect.

use crate::amount;
use rust_decimal::Decimal;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr as _;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Price(pub Decimal);

impl Serialize for Price {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        amount::as_number(self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Price {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PriceVisitor)
    }
}

struct PriceVisitor;

impl Visitor<'_> for PriceVisitor {
    type Value = Price;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a price: a number of at least 0")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Price, E> {
        let parsed = Decimal::from_str(text).or_else(|_| Decimal::from_scientific(text));
        parsed
            .ok()
            .filter(|price| !price.is_sign_negative() || price.is_zero())
            .map(Price)
            .ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
    }

    /// The shortest text of a float is the one its author wrote.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Price, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Price, E> {
        Ok(Price(number.into()))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Price, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_keeps_every_digit_of_a_text_or_a_number() {
        for (written, read) in [
            ("\"0.00025\"", "0.00025"),
            ("0.00025", "0.00025"),
            ("1e-7", "0.0000001"),
            ("\"1.25e-5\"", "0.0000125"),
            ("3", "3"),
            ("0", "0"),
            ("\"0.0000000000000000000000000001\"", "0.0000000000000000000000000001"),
            ("0.1", "0.1"),
        ] {
            let price: Price = serde_json::from_str(written).unwrap();
            assert_eq!(price.0.to_string(), read, "{written}");
            assert_eq!(serde_json::to_string(&price).unwrap(), read, "{written}");
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for written in ["-1", "\"-0.1\"", "\"free\"", "null", "true", "\"\"", "1e300", "{}"] {
            assert!(serde_json::from_str::<Price>(written).is_err(), "{written}");
        }
    }
}
