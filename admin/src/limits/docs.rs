//! How limits are described, wherever they are sent and shown.

use super::RateRules;
use crate::openapi::schema::{self, Schema};
use serde_json::json;

const MAX_AMOUNT: i64 = 1_000_000_000_000_000;

/// As sent: an object, an array of at most one, or null for none.
pub fn usage_limits() -> Schema {
    let one = fields(schema::object("UsageLimits")).closed().eg(eg());
    let array = schema::list(one.clone()).at_most(1);
    schema::either([one, array, schema::nothing()]).says("A budget; null removes it.")
}

/// As shown: with what was used so far.
pub fn usage_state() -> Schema {
    let shown = fields(schema::object("UsageState"))
        .may("type", schema::choice(&["cost", "tokens"]).or_null())
        .may("strict", schema::flag())
        .may("next_usage_reset_at", schema::time().or_null())
        .may("unconfirmed", schema::number(0).says("Part of current_usage: promised to calls whose proxy died."))
        .may("current_usage", schema::number(0))
        .may("status", schema::choice(&["active", "exhausted"]))
        .may("is_threshold_alerts_sent", schema::flag())
        .may("is_exhausted_alerts_sent", schema::flag())
        .may("is_expired_alerts_sent", schema::flag());
    shown.whole()
}

fn fields(object: Schema) -> Schema {
    object
        .may("type", schema::choice(&["cost", "tokens"]).or_null())
        .may("credit_limit", schema::number(1).up_to(MAX_AMOUNT).eg(500).or_null().says("In dollars, or in tokens."))
        .may("alert_threshold", schema::number(1).up_to(MAX_AMOUNT).eg(400).or_null().says("Below credit_limit."))
        .may("periodic_reset", schema::choice(&["monthly", "weekly"]).or_null())
        .may("periodic_reset_days", schema::whole(1..=365).or_null().eg(json!(null)))
        .may("next_usage_reset_at", schema::moment().or_null())
        .may("strict", schema::flag().or_null().says("Never overspent, at the price of waiting for the database."))
        .may("unknown_price", unknown_price())
}

pub fn unknown_price() -> Schema {
    let says = "What becomes of calls whose model has no known price; null follows the setting UNKNOWN_PRICE.";
    schema::choice(&["allow", "refuse"]).or_null().says(says)
}

fn eg() -> serde_json::Value {
    json!({ "type": "cost", "credit_limit": 500, "alert_threshold": 400, "periodic_reset": "monthly" })
}

/// As sent: an array, one object, or null for none.
pub fn rate_limits(rates: &RateRules) -> Schema {
    let one = rate_limit(rates).closed();
    schema::either([schema::list(one.clone()), one, schema::nothing()]).says("At most one per type and unit.")
}

pub fn rate_limits_shown(rates: &RateRules) -> Schema {
    schema::list(rate_limit(rates).closed())
}

fn rate_limit(rates: &RateRules) -> Schema {
    let title = if rates.least == 0 { "KeyRateLimit" } else { "RateLimit" };
    schema::object(title)
        .need("type", schema::choice(&["requests", "tokens"]))
        .need("unit", schema::choice(rates.units))
        .need("value", schema::whole(rates.least..=MAX_AMOUNT).eg(100))
}
