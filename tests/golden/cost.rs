//! Cost vectors: usage as a provider reports it, the price list that holds, and the sum worked out by hand. Each proves
//! the rule it is named after, exact to 10⁻¹⁰ USD.

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Value;
use shared::cost::prices::{Matched, bundled_prices};
use shared::cost::{Entry, Images, Multipliers, OwnPrices, PriceMode, PricingConfig, Terms, Usage, cost};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    rule: String,
    model: String,
    /// The stated prices are those that are bundled.
    #[serde(default)]
    listed: bool,
    entry: Entry,
    usage: Value,
    region: Option<String>,
    mode: Option<String>,
    multipliers: Option<Multipliers>,
    own_price: Option<PricingConfig>,
    /// What an integration and its row of the model hold, as they are stored.
    pricing_adjustments: Option<Value>,
    model_pricing_config: Option<Value>,
    sum: String,
    usd: Decimal,
}

fn vectors() -> Vec<(String, Vector)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/cost");
    let mut found = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let provider = path.file_stem().unwrap().to_string_lossy().into_owned();
        let vectors: Vec<Vector> = serde_json::from_str(&std::fs::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        found.extend(vectors.into_iter().map(|vector| (provider.clone(), vector)));
    }
    found
}

/// A provider's own usage object; what no usage object has (images by piece, seconds) stands beside it.
fn usage_of(written: &Value) -> Usage {
    let mut usage = Usage::parse(written).unwrap_or_default();
    if let Some(units) = written.get("units") {
        usage.units = serde_json::from_value::<BTreeMap<String, Decimal>>(units.clone()).unwrap();
    }
    if let Some(images) = written.get("images") {
        let text = |key: &str| images[key].as_str().unwrap().to_owned();
        let count = images["count"].as_u64().unwrap();
        usage.images = Some(Images { quality: text("quality"), size: text("size"), count });
    }
    usage
}

#[test]
fn every_vector_costs_what_was_worked_out_by_hand() {
    let precision: Decimal = "0.0000000001".parse().unwrap();
    for (provider, vector) in vectors() {
        let own = OwnPrices::parse(vector.pricing_adjustments.as_ref(), vector.model_pricing_config.as_ref()).unwrap();
        let mode = vector.mode.as_deref().map_or(PriceMode::Standard, PriceMode::of_service_tier);
        let stored = own.terms(vector.region.as_deref(), mode);
        let terms = Terms {
            own_price: vector.own_price.as_ref().or(stored.own_price),
            multipliers: vector.multipliers.as_ref().or(stored.multipliers),
            ..stored
        };
        let found = cost(&usage_of(&vector.usage), &vector.entry, &terms).unwrap().usd();
        let apart = (found - vector.usd).abs();
        assert!(apart <= precision, "{provider}: {}: {found} is not {} = {}", vector.rule, vector.usd, vector.sum);
    }
}

#[test]
fn the_prices_stated_in_listed_vectors_are_the_bundled_ones() {
    for (provider, vector) in vectors().into_iter().filter(|(_, vector)| vector.listed) {
        let list = bundled_prices(&provider).unwrap_or_else(|| panic!("{provider} has no prices"));
        let found = list.find(&provider, &vector.model).unwrap_or_else(|| panic!("{provider} {}", vector.model));
        assert_ne!(found.by, Matched::Default, "{provider} {}", vector.model);
        assert_eq!(found.entry.pricing_config, vector.entry.pricing_config, "{provider}: {}", vector.rule);
        assert_eq!(found.entry.custom_pricing, vector.entry.custom_pricing, "{provider}: {}", vector.rule);
    }
}

#[test]
fn the_vectors_are_many_distinct_and_over_many_providers() {
    let vectors = vectors();
    let rules: BTreeSet<&str> = vectors.iter().map(|(_, vector)| &*vector.rule).collect();
    let providers: BTreeSet<&str> = vectors.iter().map(|(provider, _)| &**provider).collect();
    assert_eq!(rules.len(), vectors.len());
    assert!(rules.len() >= 40 && providers.len() >= 8, "{} rules, {} providers", rules.len(), providers.len());
}
