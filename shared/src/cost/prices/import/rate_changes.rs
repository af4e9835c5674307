//! Which rates differ between two prices of a model.

use crate::cost::{Entry, PricingConfig, Rates};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::fmt;

/// A rate before and after, in cents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateChange {
    /// `request_token`, `batch request_token`, `flex gt-200k additional search`.
    pub rate: String,
    pub before: Option<Decimal>,
    pub after: Option<Decimal>,
}

impl fmt::Display for RateChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            |cents: Option<Decimal>| cents.map_or_else(|| "none".to_owned(), |cents| cents.normalize().to_string());
        match (self.before, self.after) {
            (None, Some(after)) => write!(f, "{} {}", self.rate, after.normalize()),
            (before, after) => write!(f, "{} {} → {}", self.rate, shown(before), shown(after)),
        }
    }
}

/// In the order of their names; none when both prices are the same.
pub fn between(before: Option<&Entry>, after: Option<&Entry>) -> Vec<RateChange> {
    let (before, after) = (before.map(rates).unwrap_or_default(), after.map(rates).unwrap_or_default());
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let change = |rate: &String| {
        let (before, after) = (before.get(rate).copied(), after.get(rate).copied());
        (before != after).then(|| RateChange { rate: rate.clone(), before, after })
    };
    names.into_iter().filter_map(change).collect()
}

/// Every rate of a price under a name of its own.
fn rates(entry: &Entry) -> BTreeMap<String, Decimal> {
    let mut found = BTreeMap::new();
    add_config(&mut found, "", &entry.pricing_config);
    for (region, modes) in entry.custom_pricing.iter().flat_map(|custom| &custom.regions) {
        let region = if region == "default" { String::new() } else { format!("{region} ") };
        for (mode, priced) in &modes.execution_modes {
            if let Some(config) = &priced.pricing_config {
                add_config(&mut found, &format!("{region}{mode} "), config);
            }
            for (tier, config) in &priced.context_tiers {
                add_config(&mut found, &format!("{region}{mode} {tier} "), &config.pricing_config);
            }
        }
    }
    found
}

fn add_config(found: &mut BTreeMap<String, Decimal>, place: &str, config: &PricingConfig) {
    add_rates(found, place, config.pay_as_you_go.as_ref());
    add_rates(found, &format!("{place}batch "), config.batch_config.as_ref());
    if let Some(fixed) = &config.fixed_cost {
        found.insert(format!("{place}each request"), fixed.request.price.0);
        found.insert(format!("{place}each response"), fixed.response.price.0);
    }
    if let Some(finetune) = &config.finetune_config {
        for (name, rate) in [("token", finetune.pay_per_token), ("hour", finetune.pay_per_hour)] {
            found.extend(rate.map(|rate| (format!("{place}finetune {name}"), rate.price.0)));
        }
    }
}

fn add_rates(found: &mut BTreeMap<String, Decimal>, place: &str, rates: Option<&Rates>) {
    let Some(rates) = rates else { return };
    let named = rates.tokens.iter().chain(&rates.additional_units);
    found.extend(named.map(|(name, rate)| (format!("{place}{name}"), rate.price.0)));
    for (quality, sizes) in &rates.image {
        let sizes = sizes.iter().map(|(size, rate)| (format!("{place}image {quality} {size}"), rate.price.0));
        found.extend(sizes);
    }
}
