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
pub use sources::{FetchedPrices, Kind, PriceFetch, Sources};

/// The bundled prices of a provider.
pub fn bundled_prices(provider: &str) -> Option<PriceList> {
    let text = bundled::text(Kind::Pricing, provider)?;
    PriceList::parse(text).ok()
}

/// Every provider that has bundled prices.
pub fn bundled_providers() -> impl Iterator<Item = &'static str> {
    bundled::FILES.iter().map(|(provider, _, _)| *provider)
}
