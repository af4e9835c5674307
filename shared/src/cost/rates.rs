//! Which price holds for one call: the layers of a price list that apply to it, the most particular first. Nothing is
//! copied; a rate is looked up through the layers.

use super::adjust::Multipliers;
use super::formula::Calculate;
use super::pricing::{CustomPricing, Entry, FixedCost, ModePricing, PricingConfig, Rates};
use super::usage::Usage;
use rust_decimal::Decimal;

/// How a call was made, as far as prices depend on it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Terms<'a> {
    pub region: Option<&'a str>,
    pub mode: PriceMode,
    /// The integration's own price for this model; it takes the place of the catalog's.
    pub own_price: Option<&'a PricingConfig>,
    pub multipliers: Option<&'a Multipliers>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PriceMode {
    #[default]
    Standard,
    Batch,
    Flex,
    Priority,
    Fast,
}

impl PriceMode {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Batch => "batch",
            Self::Flex => "flex",
            Self::Priority => "priority",
            Self::Fast => "fast",
        }
    }

    /// From `service_tier` of a request or an answer; words that no price list knows are standard.
    pub fn of_service_tier(tier: &str) -> Self {
        match tier {
            "batch" => Self::Batch,
            "flex" | "ON_DEMAND_FLEX" => Self::Flex,
            "priority" | "ON_DEMAND_PRIORITY" => Self::Priority,
            "fast" | "ultrafast" => Self::Fast,
            _ => Self::Standard,
        }
    }

    /// Whether the usual rates say nothing of it. A batch without rates of its own costs what single calls do.
    const fn needs_own_rates(self) -> bool {
        matches!(self, Self::Flex | Self::Priority | Self::Fast)
    }
}

/// The rates of one call.
pub struct Effective<'a> {
    layers: [Option<&'a Rates>; 4],
    /// The list has no rates for the tier of service: what the usual one costs stands for it, and is no whole bill.
    is_unpriced_tier: bool,
    multipliers: Option<&'a Multipliers>,
    pub calculate: Option<&'a Calculate>,
    /// Cents for the call itself.
    pub fixed: Decimal,
}

impl<'a> Effective<'a> {
    pub fn for_usage(entry: &'a Entry, usage: &Usage, terms: &Terms<'a>) -> Self {
        let list = &entry.pricing_config;
        let main = terms.own_price.unwrap_or(list);
        let custom = match terms.own_price {
            Some(_) => None,
            None => entry.custom_pricing.as_ref().and_then(|custom| Some((custom, mode_pricing(custom, terms)?))),
        };
        let tier = custom.and_then(|(custom, (mode, _))| tier(custom, mode, usage.prompt_tokens()));
        let in_mode = custom.and_then(|(_, (mode, _))| mode.pricing_config.as_ref());
        let has_own_rates = custom.is_some_and(|(_, (_, is_exact))| is_exact);
        // A batch price of the region and mode is more particular than the list's plain one.
        let batch = main.batch_config.as_ref().filter(|_| terms.mode == PriceMode::Batch && !has_own_rates);
        // An integration's own price holds for every tier.
        let is_unpriced_tier = terms.own_price.is_none() && terms.mode.needs_own_rates() && !has_own_rates;
        Self {
            layers: [rates(tier), batch.or(rates(in_mode)), rates(in_mode), main.pay_as_you_go.as_ref()],
            is_unpriced_tier,
            multipliers: terms.multipliers,
            calculate: main.calculate.as_ref().or(list.calculate.as_ref()),
            fixed: main.fixed_cost.or(list.fixed_cost).map_or(Decimal::ZERO, |fixed| fixed_cents(fixed, terms)),
        }
    }

    /// Whether the tier of service has rates.
    pub fn prices_tier(&self) -> bool {
        !self.is_unpriced_tier
    }

    /// The first of these keys that has a rate, already multiplied.
    pub fn first(&self, keys: &[&str]) -> Option<Decimal> {
        keys.iter().find_map(|key| {
            let rate = self.layers().find_map(|rates| rates.tokens.get(*key))?;
            self.multiplied(rate.price.0, key)
        })
    }

    pub fn unit(&self, name: &str) -> Option<Decimal> {
        let listed = |name: &str| self.layers().find_map(|rates| rates.additional_units.get(name));
        // A resolution without a price of its own costs what the second costs.
        let usual = || name.starts_with("video_seconds_").then_some("video_seconds");
        let rate = listed(name).or_else(|| listed(usual()?))?;
        match self.multipliers {
            None => Some(rate.price.0),
            Some(multipliers) => rate.price.0.checked_mul(multipliers.of_unit(name)),
        }
    }

    /// The price of one image; an unknown quality or size costs what `default` does.
    pub fn image(&self, quality: &str, size: &str) -> Option<Decimal> {
        let rate = self.layers().find_map(|rates| {
            let sizes = rates.image.get(quality).or_else(|| rates.image.get("default"))?;
            sizes.get(size).or_else(|| sizes.get("default"))
        })?;
        self.multiplied(rate.price.0, "image.default")
    }

    fn layers(&self) -> impl Iterator<Item = &'a Rates> {
        self.layers.into_iter().flatten()
    }

    fn multiplied(&self, price: Decimal, key: &str) -> Option<Decimal> {
        match self.multipliers {
            None => Some(price),
            Some(multipliers) => price.checked_mul(multipliers.factor(key)),
        }
    }
}

/// More than can be counted is so much that every sum with it is too large.
fn fixed_cents(fixed: FixedCost, terms: &Terms<'_>) -> Decimal {
    let factor = terms.multipliers.map_or(Decimal::ONE, |multipliers| multipliers.factor("default"));
    let sum = fixed.request.price.0.checked_add(fixed.response.price.0);
    sum.and_then(|sum| sum.checked_mul(factor)).unwrap_or(Decimal::MAX)
}

fn rates(config: Option<&PricingConfig>) -> Option<&Rates> {
    config.and_then(|config| config.pay_as_you_go.as_ref())
}

/// The region's prices for the mode, and whether they are for this very mode.
fn mode_pricing<'a>(custom: &'a CustomPricing, terms: &Terms<'_>) -> Option<(&'a ModePricing, bool)> {
    let named = |name: &str| custom.regions.iter().find(|(key, _)| key.split(',').any(|one| one.trim() == name));
    let (_, region) = terms.region.and_then(named).or_else(|| named("default"))?;
    let modes = &region.execution_modes;
    match modes.get(terms.mode.name()) {
        Some(mode) => Some((mode, true)),
        None => modes.get(PriceMode::Standard.name()).map(|mode| (mode, false)),
    }
}

/// The tier whose bound the prompt exceeds by the most; the bound itself still belongs to the tier below.
fn tier<'a>(custom: &CustomPricing, mode: &'a ModePricing, prompt_tokens: u64) -> Option<&'a PricingConfig> {
    let bounds = custom.context_tier_map.iter().filter_map(|(bound, name)| Some((bound.parse::<u64>().ok()?, name)));
    let (_, name) =
        bounds.filter(|(bound, _)| *bound == 0 || prompt_tokens > *bound).max_by_key(|(bound, _)| *bound)?;
    mode.context_tiers.get(name).map(|tier| &tier.pricing_config)
}
