//! Limits on a thing (a key, a workspace, a provider, the grant of an integration) as the proxy needs them: as they were
//! stored, without what is only for people.

use super::policy::{BudgetKind, RateKind, RateUnit, UnknownPrice};
use crate::amount::Amount;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::Json;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectLimits {
    pub rates: Vec<ObjectRate>,
    pub budget: Option<Budget>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRate {
    #[serde(rename = "type")]
    pub kind: RateKind,
    pub unit: RateUnit,
    /// Zero lets nothing pass.
    pub value: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    #[serde(rename = "type", default = "cost")]
    pub kind: BudgetKind,
    /// Dollars or tokens; none when only a threshold is watched.
    pub credit_limit: Option<Amount>,
    #[serde(default)]
    pub strict: bool,
    /// None follows the proxy's setting.
    #[serde(default)]
    pub unknown_price: Option<UnknownPrice>,
    /// When its present period began.
    #[serde(default)]
    pub last_reset_at: DateTime<Utc>,
}

fn cost() -> BudgetKind {
    BudgetKind::Cost
}

impl ObjectLimits {
    /// From `rate_limits`, an array, and `usage_limits`, an object; none when there are none.
    pub fn from_row(row: &Row) -> Result<Option<Arc<Self>>, tokio_postgres::Error> {
        let rates: Option<Json<Vec<ObjectRate>>> = row.try_get("rate_limits")?;
        let budget: Option<Json<Budget>> = row.try_get("usage_limits")?;
        let rates = rates.map(|rates| rates.0).unwrap_or_default();
        Ok(Self { rates, budget: budget.map(|budget| budget.0) }.shared())
    }

    /// Of a workspace, whose budgets are an array of at most one.
    pub fn of_workspace(row: &Row) -> Result<Option<Arc<Self>>, tokio_postgres::Error> {
        let rates: Option<Json<Vec<ObjectRate>>> = row.try_get("rate_limits")?;
        let budgets: Option<Json<Vec<Budget>>> = row.try_get("usage_limits")?;
        let budget = budgets.and_then(|budgets| budgets.0.first().copied());
        Ok(Self { rates: rates.map(|rates| rates.0).unwrap_or_default(), budget }.shared())
    }

    pub fn is_empty(&self) -> bool {
        self.rates.is_empty() && self.budget.is_none()
    }

    fn shared(self) -> Option<Arc<Self>> {
        (!self.is_empty()).then(|| Arc::new(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_stored_is_read_and_what_is_for_people_is_passed_over() {
        let rates: Vec<ObjectRate> =
            serde_json::from_value(json!([{ "type": "tokens", "unit": "rph", "value": 0 }])).unwrap();
        assert_eq!(rates, [ObjectRate { kind: RateKind::Tokens, unit: RateUnit::Rph, value: 0 }]);
        let budget: Budget = serde_json::from_value(json!({
            "type": "tokens", "credit_limit": 5.5, "alert_threshold": 4, "strict": true, "periodic_reset": "weekly",
            "last_reset_at": "2026-02-01T00:00:00.000Z",
        }))
        .unwrap();
        assert_eq!(
            (budget.kind, budget.credit_limit, budget.strict),
            (BudgetKind::Tokens, Amount::from_float(5.5), true)
        );
        assert_eq!(budget.last_reset_at.timestamp(), 1_769_904_000);
        let plain: Budget = serde_json::from_value(json!({ "credit_limit": 1 })).unwrap();
        assert_eq!((plain.kind, plain.strict, plain.unknown_price), (BudgetKind::Cost, false, None));
        let wary: Budget = serde_json::from_value(json!({ "credit_limit": 1, "unknown_price": "refuse" })).unwrap();
        assert_eq!(wary.unknown_price, Some(UnknownPrice::Refuse));
        assert!(serde_json::from_value::<Vec<ObjectRate>>(json!([{ "type": "tokens" }])).is_err());
    }
}
