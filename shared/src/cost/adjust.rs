//! `pricing_adjustments` of an integration: what its organisation pays in relation to the list, by kind of token. A key
//! that is not set takes `default`, and that is 1.

use super::price::Price;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Multipliers(BTreeMap<String, Option<Price>>);

/// Every key that may be set, beside `additional_units.<name>`.
const KEYS: &[&str] = &[
    "default",
    "request_token",
    "response_token",
    "cache_read_input_token",
    "cache_write_input_token",
    "cache_read_audio_input_token",
    "request_audio_token",
    "response_audio_token",
    "reasoning_token",
    "prediction_accepted_token",
    "prediction_rejected_token",
    "request_image_token",
    "response_image_token",
    "request_text_token",
    "response_text_token",
    "cache_read_image_input_token",
    "cache_read_text_input_token",
    "cache_write_text_input_token",
    "cache_write_image_input_token",
    "image.default",
];

const MAX_UNIT: usize = 64;

impl Multipliers {
    pub fn factor(&self, key: &str) -> Decimal {
        self.set(key).or_else(|| self.set("default")).unwrap_or(Decimal::ONE)
    }

    pub fn of_unit(&self, name: &str) -> Decimal {
        let named = self.0.iter().find(|(key, _)| key.strip_prefix("additional_units.") == Some(name));
        named.and_then(|(_, value)| value.map(|value| value.0)).unwrap_or_else(|| self.factor("default"))
    }

    /// Whether a key means anything, so that a misspelt discount is refused instead of ignored.
    pub fn is_known(key: &str) -> bool {
        let unit = key.strip_prefix("additional_units.");
        KEYS.contains(&key) || unit.is_some_and(|name| (1..=MAX_UNIT).contains(&name.len()))
    }

    fn set(&self, key: &str) -> Option<Decimal> {
        self.0.get(key).copied().flatten().map(|value| value.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_inherits_the_default_and_that_is_one() {
        let multipliers = |text: &str| serde_json::from_str::<Multipliers>(text).unwrap();
        for (text, key, expected) in [
            ("{}", "request_token", "1"),
            (r#"{"default":0.9}"#, "request_token", "0.9"),
            (r#"{"default":0.9,"request_token":null}"#, "request_token", "0.9"),
            (r#"{"default":0.9,"request_token":"0.5"}"#, "request_token", "0.5"),
            (r#"{"default":0.9,"request_token":0}"#, "request_token", "0"),
        ] {
            assert_eq!(multipliers(text).factor(key).to_string(), expected, "{text}");
        }
        let units = multipliers(r#"{"default":0.9,"additional_units.web_search":2}"#);
        assert_eq!((units.of_unit("web_search"), units.of_unit("x")), (Decimal::TWO, "0.9".parse().unwrap()));
        for (key, is_known) in [
            ("image.default", true),
            ("additional_units.web_search", true),
            ("request_tokens", false),
            ("additional_units.", false),
        ] {
            assert_eq!(Multipliers::is_known(key), is_known, "{key}");
        }
        assert!(serde_json::from_str::<Multipliers>(r#"{"default":-1}"#).is_err());
    }
}
