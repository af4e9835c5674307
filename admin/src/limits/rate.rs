//! Rate limits: at most one per kind and unit.

use crate::http::{ApiError, json};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    #[serde(rename = "type")]
    pub kind: RateKind,
    pub unit: String,
    pub value: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RateKind {
    Requests,
    Tokens,
}

/// What differs between the places that have rate limits.
pub struct RateRules {
    pub units: &'static [&'static str],
    pub least: i64,
}

pub const USUAL_RATES: RateRules = RateRules { units: &["rpm", "rph", "rpd"], least: 1 };
/// Zero blocks the key altogether.
pub const KEY_RATES: RateRules = RateRules { units: &["rps", "rpm", "rph", "rpd", "rpw"], least: 0 };

/// What was sent as `rate_limits`: an array, a single object, or null for none.
pub fn rate_limits(sent: Value, rates: &RateRules) -> Result<Vec<RateLimit>, ApiError> {
    let sent = match sent {
        Value::Null => Value::Array(Vec::new()),
        one @ Value::Object(_) => Value::Array(vec![one]),
        other => other,
    };
    let limits: Vec<RateLimit> = json::parse_at("rate_limits", sent)?;
    for (n, limit) in limits.iter().enumerate() {
        checked(limit, &limits[..n], rates).map_err(|error| error.under(&format!("rate_limits[{n}]")))?;
    }
    Ok(limits)
}

fn checked(limit: &RateLimit, earlier: &[RateLimit], rates: &RateRules) -> Result<(), ApiError> {
    const MAX_AMOUNT: i64 = 1_000_000_000_000_000;
    if !rates.units.contains(&limit.unit.as_str()) {
        return Err(ApiError::field("unit", format!("must be one of {}", rates.units.join(", "))));
    }
    if !(rates.least..=MAX_AMOUNT).contains(&limit.value) {
        return Err(ApiError::field("value", format!("must be at least {} and at most {MAX_AMOUNT}", rates.least)));
    }
    if earlier.iter().any(|other| other.kind == limit.kind && other.unit == limit.unit) {
        return Err(ApiError::invalid("repeats a limit of the same type and unit"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rate_limits_are_taken_in_either_shape_and_strictly() {
        let item = json!({ "type": "requests", "unit": "rpm", "value": 10 });
        for (sent, outcome) in [
            (json!(null), Ok(0)),
            (json!([]), Ok(0)),
            (item.clone(), Ok(1)),
            (json!([item, { "type": "tokens", "unit": "rpm", "value": 1 }]), Ok(2)),
            (json!([item, item]), Err("rate_limits[1]")),
            (json!([{ "type": "requests", "unit": "rpw", "value": 1 }]), Err("rate_limits[0].unit")),
            (json!([{ "type": "request", "unit": "rpm", "value": 1 }]), Err("rate_limits[0].type")),
            (json!([{ "type": "requests", "unit": "rpm", "value": 0 }]), Err("rate_limits[0].value")),
            (json!([{ "type": "requests", "unit": "rpm", "value": 1.5 }]), Err("rate_limits[0].value")),
            (json!([{ "type": "requests", "unit": "rpm", "value": "1" }]), Err("rate_limits[0].value")),
            (json!([{ "type": "requests", "unit": "rpm" }]), Err("rate_limits[0].value")),
            (json!([{ "type": "requests", "unit": "rpm", "value": 1, "vlaue": 2 }]), Err("rate_limits[0].vlaue")),
            (json!("10 rpm"), Err("rate_limits")),
        ] {
            let taken = rate_limits(sent.clone(), &USUAL_RATES).map(|limits| limits.len());
            match (taken, outcome) {
                (Ok(count), Ok(expected)) => assert_eq!(count, expected, "{sent}"),
                (Err(ApiError::Invalid { field: Some(field), .. }), Err(expected)) => {
                    assert_eq!(field, expected, "{sent}")
                }
                (other, _) => panic!("{sent}: {other:?}"),
            }
        }
        let blocked = json!([{ "type": "requests", "unit": "rps", "value": 0 }]);
        assert!(rate_limits(blocked.clone(), &KEY_RATES).is_ok() && rate_limits(blocked, &USUAL_RATES).is_err());
    }
}
