//! What is known of models, by provider: their prices, their facts and what they can do. Files of one form, whether they are bundled,
//! an operator's own, or fetched; see `sources` for the order in which they are asked.

mod bundled;
mod capabilities;
mod facts;
mod folder;
pub mod import;
mod price_list;
mod price_store;
mod release;
mod sanity;
pub mod sources;

pub use capabilities::{ModelCapabilities, ThinkingWay};
pub use facts::ModelFacts;
pub use price_list::{ListedPrice, Matched, PriceList};
pub use price_store::PriceStore;
pub use release::listed_release;
pub use sources::{FetchedPrices, Kind, PriceFetch, Sources};

use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// The bundled prices of a provider.
pub fn bundled_prices(provider: &str) -> Option<PriceList> {
    let text = bundled::text(Kind::Pricing, provider)?;
    PriceList::parse(text).ok()
}

/// The names of a provider's models with bundled prices, in the order of letters; the prices are not read.
pub fn bundled_models(provider: &str) -> Vec<String> {
    let text = bundled::text(Kind::Pricing, provider).unwrap_or("{}");
    let listed: BTreeMap<String, IgnoredAny> = serde_json::from_str(text).unwrap_or_default();
    listed.into_keys().filter(|name| name != price_list::DEFAULT).collect()
}

/// Every provider that has bundled prices.
pub fn bundled_providers() -> impl Iterator<Item = &'static str> {
    bundled::FILES.iter().map(|(provider, _, _)| *provider)
}
