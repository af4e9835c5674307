//! Usage and rate limits as the interface takes them, on keys, workspaces, providers and integrations: strict, so
//! that a misspelt limit is refused instead of limiting nothing. Pure: the clock is an argument.

mod crossing;
pub mod docs;
pub mod owners;
mod rate;
pub mod reset;
mod usage;

pub use crossing::{BudgetCrossing, BudgetMarks, is_raised};
pub use rate::{KEY_RATES, RateLimit, RateRules, USUAL_RATES, rate_limits};
pub use usage::{UsageKind, UsageLimits, usage_limits};

use crate::http::ApiError;
use serde_json::Value;
use shared::settings::Features;

/// Refuses limits where the installation has switched them off. Removing one is always possible.
pub fn allowed(features: &Features, sent: Option<&Value>) -> Result<(), ApiError> {
    let removes = sent.is_none_or(|value| value.is_null() || value.as_array().is_some_and(Vec::is_empty));
    if removes || features.usage_limits_enabled {
        return Ok(());
    }
    Err(ApiError::FeatureOff { setting: "USAGE_LIMITS_ENABLED" })
}
