//! Prices that an operator sets: factors on the catalogue's prices for a whole account, and prices of single models.
//! Factors are strict, because a misspelt one would silently bill at the list price.

use crate::http::ApiError;
use serde_json::{Map, Value};
use shared::cost::{Multipliers, OwnPrices};

const NO_PRICE: &str = "holds a figure that is too large, or a group where a price belongs";

/// `{multiplier: {rate: factor}}`; `image` and `additional_units` may be written nested or with a dot.
pub fn adjustments(sent: Map<String, Value>) -> Result<Value, ApiError> {
    let stranger = sent.keys().find(|name| *name != "multiplier");
    if let Some(name) = stranger {
        return Err(unknown(&format!("pricing_adjustments.{}", short(name))));
    }
    if let Some(multiplier) = sent.get("multiplier").filter(|value| !value.is_null()) {
        let at = "pricing_adjustments.multiplier";
        let factors = multiplier.as_object().ok_or_else(|| ApiError::field(at, "must be an object"))?;
        for (name, value) in factors {
            factor(&format!("{at}.{}", short(name)), name, value)?;
        }
    }
    let sent = Value::Object(sent);
    // Whatever the rules above let pass must be readable where costs are worked out.
    OwnPrices::parse(Some(&sent), None).map_err(|error| ApiError::field(error.field, NO_PRICE))?;
    Ok(sent)
}

fn factor(at: &str, name: &str, value: &Value) -> Result<(), ApiError> {
    match (name, value) {
        ("image" | "additional_units", Value::Object(parts)) => parts
            .iter()
            .try_for_each(|(part, value)| factor(&format!("{at}.{}", short(part)), &format!("{name}.{part}"), value)),
        (name, value) if Multipliers::is_known(name) => {
            let is_factor = value.is_null() || value.as_f64().is_some_and(|factor| factor >= 0.0);
            if is_factor { Ok(()) } else { Err(ApiError::field(at, "must be a number of at least 0, or null")) }
        }
        _ => Err(unknown(at)),
    }
}

/// The price of a model: `{type: static, pay_as_you_go: {rate: {price}}}`, in cents.
pub fn model_price(sent: Map<String, Value>) -> Result<Value, ApiError> {
    match sent.get("type") {
        None => {}
        Some(kind) if kind == "static" => {}
        Some(_) => return Err(ApiError::field("pricing_config.type", "must be `static`")),
    }
    let at = "pricing_config.pay_as_you_go";
    match sent.get("pay_as_you_go") {
        None => return Err(ApiError::field(at, "is required")),
        Some(Value::Object(rates)) => {
            rates.iter().try_for_each(|(name, rate)| price(&format!("{at}.{}", short(name)), rate, 3))?
        }
        Some(_) => return Err(ApiError::field(at, "must be an object")),
    }
    let sent = Value::Object(sent);
    OwnPrices::parse(None, Some(&sent)).map_err(|error| ApiError::field(error.field, NO_PRICE))?;
    Ok(sent)
}

/// A rate is `{price}`, or a group of rates.
fn price(at: &str, rate: &Value, depth: u8) -> Result<(), ApiError> {
    let Some(fields) = rate.as_object().filter(|_| depth > 0) else {
        return Err(ApiError::field(at, "must be an object with a price"));
    };
    match fields.get("price") {
        Some(price) if price.as_f64().is_some_and(|price| price >= 0.0) => Ok(()),
        Some(_) => Err(ApiError::field(format!("{at}.price"), "must be a number of at least 0")),
        None if fields.is_empty() => Err(ApiError::field(format!("{at}.price"), "is required")),
        None => fields.iter().try_for_each(|(name, rate)| price(&format!("{at}.{}", short(name)), rate, depth - 1)),
    }
}

fn unknown(at: &str) -> ApiError {
    ApiError::field(at, "is not a field of this object")
}

fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(outcome: Result<Value, ApiError>) -> Option<String> {
        match outcome {
            Ok(_) => None,
            Err(ApiError::Invalid { field, .. }) => Some(field.unwrap_or_default()),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_factor_is_known_by_name_and_not_negative() {
        for (multiplier, expected) in [
            (json!({}), None),
            (json!({ "default": 1.2, "request_token": 0, "reasoning_token": null }), None),
            (json!({ "image": { "default": 2 }, "additional_units": { "web_search": 3 } }), None),
            (json!({ "image.default": 2, "additional_units.web_search": 3 }), None),
            (json!({ "requst_token": 1 }), Some("requst_token")),
            (json!({ "default": -1 }), Some("default")),
            (json!({ "default": "1" }), Some("default")),
            (json!({ "image": { "hd": 1 } }), Some("image.hd")),
            (json!({ "image": 1 }), Some("image")),
            (json!({ "image": { "default": 1e300 } }), Some("")),
        ] {
            let sent = json!({ "multiplier": multiplier });
            let expected = expected.map(|name| match name {
                "" => "pricing_adjustments".to_owned(),
                name => format!("pricing_adjustments.multiplier.{name}"),
            });
            assert_eq!(fault(adjustments(sent.as_object().unwrap().clone())), expected, "{sent}");
        }
        let stranger = json!({ "factor": {} });
        assert!(adjustments(stranger.as_object().unwrap().clone()).is_err());
    }

    #[test]
    fn a_models_price_is_a_price_per_rate() {
        for (sent, expected) in [
            (json!({ "type": "static", "pay_as_you_go": { "request_token": { "price": 0.1 } } }), None),
            (json!({ "pay_as_you_go": { "additional_units": { "web_search": { "price": 1 } } } }), None),
            (json!({ "type": "dynamic", "pay_as_you_go": {} }), Some("pricing_config.type")),
            (json!({}), Some("pricing_config.pay_as_you_go")),
            (json!({ "pay_as_you_go": { "request_token": 1 } }), Some("pricing_config.pay_as_you_go.request_token")),
            (
                json!({ "pay_as_you_go": { "request_token": { "price": -1 } } }),
                Some("pricing_config.pay_as_you_go.request_token.price"),
            ),
            (
                json!({ "pay_as_you_go": { "request_token": {} } }),
                Some("pricing_config.pay_as_you_go.request_token.price"),
            ),
            (json!({ "pay_as_you_go": { "other": { "group": { "price": 1 } } } }), Some("pricing_config")),
            (json!({ "pay_as_you_go": { "request_token": { "price": 1e300 } } }), Some("pricing_config")),
            (json!({ "pay_as_you_go": {}, "calculate": 5 }), Some("pricing_config")),
        ] {
            assert_eq!(fault(model_price(sent.as_object().unwrap().clone())).as_deref(), expected, "{sent}");
        }
    }
}
