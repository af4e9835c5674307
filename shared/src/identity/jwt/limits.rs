//! Budgets and rates that a token brings along. Read strictly and carried; whoever admits requests enforces them.

use super::rejection::Rejection;
use crate::amount::Amount;
use crate::settings::limits::UnknownPrice;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageLimit {
    pub id: Option<String>,
    pub status: Option<String>,
    #[serde(rename = "type", default)]
    pub kind: UsageKind,
    pub credit_limit: Option<Amount>,
    pub alert_threshold: Option<Amount>,
    pub periodic_reset: Option<Period>,
    pub periodic_reset_days: Option<u16>,
    pub next_usage_reset_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub strict: bool,
    pub unknown_price: Option<UnknownPrice>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UsageKind {
    #[default]
    Cost,
    Tokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Period {
    Weekly,
    Monthly,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    #[serde(rename = "type")]
    pub kind: RateKind,
    pub unit: RateUnit,
    /// Zero blocks the token altogether.
    pub value: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RateKind {
    Requests,
    Tokens,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RateUnit {
    Rps,
    Rpm,
    Rph,
    Rpd,
    Rpw,
}

pub fn usage_limits(claim: Option<&Value>) -> Result<Vec<UsageLimit>, Rejection> {
    let limits: Vec<UsageLimit> = one_or_many("usage_limits", claim)?;
    match limits.iter().find_map(UsageLimit::mistake) {
        Some(why) => Err(Rejection::Claim { name: "usage_limits", why: why.into() }),
        None => Ok(limits),
    }
}

pub fn rate_limits(claim: Option<&Value>) -> Result<Vec<RateLimit>, Rejection> {
    let limits: Vec<RateLimit> = one_or_many("rate_limits", claim)?;
    let repeats = |(n, limit): (usize, &RateLimit)| {
        limits[..n].iter().any(|other| (other.kind, other.unit) == (limit.kind, limit.unit))
    };
    match limits.iter().enumerate().any(repeats) {
        true => Err(Rejection::Claim { name: "rate_limits", why: "repeats a limit of the same type and unit".into() }),
        false => Ok(limits),
    }
}

impl UsageLimit {
    fn mistake(&self) -> Option<&'static str> {
        let is_amount = |value: Option<Amount>| value.is_none_or(|value| value.is_limit_from(1));
        if !is_amount(self.credit_limit) || !is_amount(self.alert_threshold) {
            return Some("has an amount below 1");
        }
        if self.alert_threshold.is_some_and(|threshold| self.credit_limit.is_none_or(|limit| threshold >= limit)) {
            return Some("has an alert_threshold that is not below its credit_limit");
        }
        if self.periodic_reset.is_some() && self.periodic_reset_days.is_some() {
            return Some("has both periodic_reset and periodic_reset_days");
        }
        self.periodic_reset_days.filter(|days| !(1..=365).contains(days)).map(|_| "resets after 1 to 365 days only")
    }
}

fn one_or_many<T: DeserializeOwned>(name: &'static str, claim: Option<&Value>) -> Result<Vec<T>, Rejection> {
    let items = match claim {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items.clone(),
        Some(one) => vec![one.clone()],
    };
    let read = items.into_iter().map(serde_json::from_value);
    read.collect::<Result<_, _>>().map_err(|error| Rejection::Claim { name, why: format!("is not valid: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_is_understood_wholly_or_refuses_the_token() {
        for (claim, outcome) in [
            (json!(null), Ok(0)),
            (json!([]), Ok(0)),
            (json!({ "credit_limit": 5 }), Ok(1)),
            (json!([{ "id": "a", "status": "active", "type": "tokens", "credit_limit": 100.5 }]), Ok(1)),
            (json!({ "credit_limit": 5, "alert_threshold": 4, "periodic_reset": "weekly" }), Ok(1)),
            (json!({ "credit_limt": 5 }), Err("unknown field")),
            (json!({ "credit_limit": "5" }), Err("is not valid")),
            (json!({ "credit_limit": 0 }), Err("below 1")),
            (json!({ "credit_limit": 5, "alert_threshold": 5 }), Err("alert_threshold")),
            (json!({ "periodic_reset": "weekly", "periodic_reset_days": 3 }), Err("both")),
            (json!({ "periodic_reset_days": 400 }), Err("1 to 365")),
            (json!("5 dollars"), Err("is not valid")),
        ] {
            judge(&claim, usage_limits(Some(&claim)).map(|limits| limits.len()), outcome);
        }
        let rpm = json!({ "type": "requests", "unit": "rpm", "value": 10 });
        for (claim, outcome) in [
            (json!([rpm, { "type": "tokens", "unit": "rpm", "value": 0 }]), Ok(2)),
            (json!([rpm, rpm]), Err("repeats")),
            (json!([{ "type": "requests", "unit": "rpx", "value": 10 }]), Err("is not valid")),
            (json!([{ "type": "requests", "unit": "rpm", "value": -1 }]), Err("is not valid")),
            (json!([{ "type": "requests", "unit": "rpm" }]), Err("is not valid")),
        ] {
            judge(&claim, rate_limits(Some(&claim)).map(|limits| limits.len()), outcome);
        }
    }

    fn judge(claim: &Value, read: Result<usize, Rejection>, expected: Result<usize, &str>) {
        match (read, expected) {
            (Ok(count), Ok(expected)) => assert_eq!(count, expected, "{claim}"),
            (Err(refused), Err(part)) => assert!(refused.to_string().contains(part), "{claim}: {refused}"),
            (read, _) => panic!("{claim}: {read:?}"),
        }
    }
}
