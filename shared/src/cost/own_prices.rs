//! What an integration says about prices, read from its rows: factors on the whole list, and prices of single models.
//!
//! Admin refuses what this cannot read, so an error here means a row that another release wrote. Whoever bills then
//! knows that the price is unknown, which is not the same as the list price.

use super::adjust::Multipliers;
use super::pricing::PricingConfig;
use super::rates::{PriceMode, Terms};
use crate::model::{Integration, IntegrationModel};
use serde::Deserialize as _;
use serde_json::{Map, Value};

/// Read once, and used for as many calls as there are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OwnPrices {
    price: Option<PricingConfig>,
    multipliers: Option<Multipliers>,
}

#[derive(Debug, thiserror::Error)]
#[error("{field} cannot be read: {cause}")]
pub struct UnreadablePrices {
    pub field: &'static str,
    cause: serde_json::Error,
}

impl OwnPrices {
    /// `model` is what the integration says about the model that was called, if it says anything.
    pub fn for_model(integration: &Integration, model: Option<&IntegrationModel>) -> Result<Self, UnreadablePrices> {
        let price = model.and_then(|model| model.pricing_config.as_ref());
        Self::parse(integration.pricing_adjustments.as_ref(), price)
    }

    /// The same from the two columns: `pricing_adjustments` of the integration, `pricing_config` of the model.
    pub fn parse(adjustments: Option<&Value>, price: Option<&Value>) -> Result<Self, UnreadablePrices> {
        let price = price.filter(|price| !price.is_null()).map(PricingConfig::deserialize).transpose();
        let factors = adjustments.and_then(|adjustments| adjustments["multiplier"].as_object()).map(dotted);
        let multipliers = factors.map(|factors| Multipliers::deserialize(Value::Object(factors))).transpose();
        Ok(Self {
            price: price.map_err(|cause| UnreadablePrices { field: "pricing_config", cause })?,
            multipliers: multipliers.map_err(|cause| UnreadablePrices { field: "pricing_adjustments", cause })?,
        })
    }

    /// For `cost`. A model that no list knows is billed over `Entry::default()` when it has a price of its own.
    pub fn terms<'a>(&'a self, region: Option<&'a str>, mode: PriceMode) -> Terms<'a> {
        Terms { region, mode, own_price: self.price.as_ref(), multipliers: self.multipliers.as_ref() }
    }

    /// Whether the model is priced here, so that no list needs to know it.
    pub fn has_price(&self) -> bool {
        self.price.is_some()
    }
}

/// The name under which the price list knows a model: a fine-tuned or renamed one costs what its base does.
pub fn listed_name<'a>(model: Option<&'a IntegrationModel>, called: &'a str) -> &'a str {
    model.and_then(|model| model.base_model_slug.as_deref()).unwrap_or(called)
}

/// Groups such as `image: {default}` become `image.default`, as the factors are looked up.
fn dotted(factors: &Map<String, Value>) -> Map<String, Value> {
    let flat = factors.iter().flat_map(|(name, value)| match value {
        Value::Object(parts) => {
            parts.iter().map(|(part, value)| (format!("{name}.{part}"), value.clone())).collect::<Vec<_>>()
        }
        value => vec![(name.clone(), value.clone())],
    });
    flat.collect()
}

#[cfg(test)]
mod tests;
