//! A model's price list as the files have it. Unknown keys are ignored: the files come from elsewhere and grow.

use super::flat_rates::FlatRates;
use super::formula::Calculate;
use super::price::Price;
use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Entry {
    /// The month or the day of the list that this was read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    pub pricing_config: PricingConfig,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_pricing: Option<CustomPricing>,
    /// Pages that parts of it were read on, each with its day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    #[serde(skip)]
    derived: Derived,
}

/// `2026-11-18`
const MAX_DATE: usize = 10;

/// What an entry comes to in other forms, made when it is first asked for, and what is known of its model.
#[derive(Debug, Clone, Default)]
struct Derived {
    edition: OnceLock<Box<str>>,
    flat_rates: OnceLock<Option<FlatRates>>,
    text_prices: OnceLock<Box<str>>,
    /// Not of the price: it stands here so that whoever has found the price of a call needs no second look-up.
    deprecation_date: OnceLock<NaiveDate>,
}

impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Entry {
    pub fn new(as_of: &str, pricing_config: PricingConfig, custom_pricing: Option<CustomPricing>) -> Self {
        Self { as_of: Some(as_of.to_owned()), pricing_config, custom_pricing, ..Self::default() }
    }

    /// The list price of what no list knows.
    pub fn unlisted() -> &'static Self {
        static UNLISTED: LazyLock<Entry> = LazyLock::new(Entry::default);
        &UNLISTED
    }

    /// Tells this price from the one that stands in the list after its next edition: a digest, behind the date if it has one.
    pub fn edition(&self) -> &str {
        self.derived.edition.get_or_init(|| {
            let written = serde_json::to_vec(&(&self.pricing_config, &self.custom_pricing)).unwrap_or_default();
            let digest = hex::encode(&Sha256::digest(&written)[..8]);
            match &self.as_of {
                Some(date) => format!("{}.{digest}", date.chars().take(MAX_DATE).collect::<String>()).into(),
                None => digest.into(),
            }
        })
    }

    /// The day after which the provider no longer promises the model, once its facts are known.
    pub fn deprecation_date(&self) -> Option<NaiveDate> {
        self.derived.deprecation_date.get().copied()
    }

    pub(crate) fn note_deprecation_date(&self, date: NaiveDate) {
        // The first one holds for as long as this edition of the list.
        let _ = self.derived.deprecation_date.set(date);
    }

    /// What `unit_prices` says of a call of plain text.
    pub(super) fn text_prices(&self, written: impl FnOnce() -> String) -> &str {
        self.derived.text_prices.get_or_init(|| written().into())
    }

    /// Its price in whole numbers, if that is all it says.
    pub(super) fn flat_rates(&self, find: impl FnOnce() -> Option<FlatRates>) -> Option<&FlatRates> {
        self.derived.flat_rates.get_or_init(find).as_ref()
    }
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PricingConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pay_as_you_go: Option<Rates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_config: Option<Rates>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finetune_config: Option<FinetuneConfig>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_cost: Option<FixedCost>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calculate: Option<Calculate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// Prices by what is counted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Rates {
    /// Quality → size → price of one image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub image: BTreeMap<String, BTreeMap<String, Rate>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_units: BTreeMap<String, Rate>,
    /// `request_token`, `response_token`, `cache_read_input_token` and so on.
    #[serde(flatten)]
    pub tokens: BTreeMap<String, Rate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Rate {
    pub price: Price,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FinetuneConfig {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pay_per_token: Option<Rate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pay_per_hour: Option<Rate>,
}

/// What a call costs whatever it carries.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct FixedCost {
    #[serde(default)]
    pub request: Rate,
    #[serde(default)]
    pub response: Rate,
}

/// Prices that depend on where, how and with how much context a model is called.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CustomPricing {
    /// Lower bound of prompt tokens → name of the tier above it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context_tier_map: BTreeMap<String, String>,
    pub regions: BTreeMap<String, Region>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Region {
    pub execution_modes: BTreeMap<String, ModePricing>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ModePricing {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing_config: Option<PricingConfig>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context_tiers: BTreeMap<String, Tier>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Tier {
    pub pricing_config: PricingConfig,
}

impl Entry {
    /// This entry, with what it leaves open taken from the provider's default.
    pub fn over(mut self, default: &Self) -> Self {
        let (own, rest) = (&mut self.pricing_config, &default.pricing_config);
        own.pay_as_you_go = merged(own.pay_as_you_go.take(), rest.pay_as_you_go.as_ref());
        own.batch_config = merged(own.batch_config.take(), rest.batch_config.as_ref());
        own.calculate = own.calculate.take().or_else(|| rest.calculate.clone());
        own.fixed_cost = own.fixed_cost.or(rest.fixed_cost);
        own.currency = own.currency.take().or_else(|| rest.currency.clone());
        self.as_of = self.as_of.take().or_else(|| default.as_of.clone());
        self
    }

    /// Whether anything here has a price above zero.
    pub fn is_priced(&self) -> bool {
        let costs = |rate: &Rate| !rate.price.0.is_zero();
        let rates = self.pricing_config.pay_as_you_go.iter();
        let by_token = rates.clone().flat_map(|rates| rates.tokens.values()).any(costs);
        let by_unit = rates.clone().flat_map(|rates| rates.additional_units.values()).any(costs);
        let by_image = rates.flat_map(|rates| rates.image.values()).flat_map(BTreeMap::values).any(costs);
        let by_call =
            self.pricing_config.fixed_cost.is_some_and(|fixed| costs(&fixed.request) || costs(&fixed.response));
        by_token || by_unit || by_image || by_call || self.custom_pricing.is_some()
    }
}

/// Key by key: the model's own rate, else the provider's.
fn merged(own: Option<Rates>, default: Option<&Rates>) -> Option<Rates> {
    let (Some(mut own), Some(default)) = (own.clone(), default) else { return own.or_else(|| default.cloned()) };
    for (name, rate) in &default.tokens {
        own.tokens.entry(name.clone()).or_insert(*rate);
    }
    for (name, rate) in &default.additional_units {
        own.additional_units.entry(name.clone()).or_insert(*rate);
    }
    if own.image.is_empty() {
        own.image = default.image.clone();
    }
    Some(own)
}
