//! Rules that every price keeps, bundled or imported. They find slips of a transcription: a price by the minute taken for one by
//! the token, a cached token dearer than a fresh one, a decimal point in the wrong place.

use crate::cost::{Entry, Rates};
use rust_decimal::Decimal;

/// Cents for a token: a dollar for a thousand.
pub const MAX_TOKEN: Decimal = Decimal::from_parts(1, 0, 0, false, 1);
/// Cents for one of anything else: ten thousand dollars.
const MAX_UNIT: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);

/// What is read from a cache, and what is read anew.
pub const CACHED: [(&str, &str); 3] = [
    ("cache_read_input_token", "request_token"),
    ("cache_read_audio_input_token", "request_audio_token"),
    ("cache_read_image_input_token", "request_image_token"),
];

/// What an entry breaks; nothing when it is sane.
pub fn slips(entry: &Entry) -> Vec<String> {
    let mut slips = Vec::new();
    let usual = entry.pricing_config.pay_as_you_go.clone().unwrap_or_default();
    if entry.as_of.is_none() {
        slips.push("no date".into());
    }
    for (place, rates) in all_rates(entry) {
        for (cached, fresh) in CACHED {
            let whole = price(rates, fresh).or_else(|| price(&usual, fresh));
            if price(rates, cached).zip(whole).is_some_and(|(cached, whole)| cached > whole) {
                slips.push(format!("{place}: {cached} is dearer than {fresh}"));
            }
        }
        for (name, rate) in &rates.tokens {
            if rate.price.0 > MAX_TOKEN {
                slips.push(format!("{place}: {name} is more than a dollar for a thousand"));
            }
            let full = price(&usual, name);
            let is_cheap = matches!(place.as_str(), "batch" | "flex");
            if is_cheap && full.is_some_and(|full| rate.price.0 > full) {
                slips.push(format!("{place}: {name} is dearer than usually"));
            }
        }
        for (name, rate) in &rates.additional_units {
            let lifetime = matches!(name.as_str(), "cache_write_1h" | "cache_write_12h");
            let fresh = price(rates, "request_token").or_else(|| price(&usual, "request_token"));
            if lifetime && fresh.is_some_and(|fresh| place == "usual" && rate.price.0 < fresh) {
                slips.push(format!("{place}: {name} is cheaper than what is read once"));
            }
        }
        let images = rates.image.values().flat_map(|sizes| sizes.values());
        if rates.additional_units.values().chain(images).any(|rate| rate.price.0 > MAX_UNIT) {
            slips.push(format!("{place}: a unit costs more than ten thousand dollars"));
        }
    }
    slips
}

fn price(rates: &Rates, key: &str) -> Option<Decimal> {
    rates.tokens.get(key).map(|rate| rate.price.0)
}

/// Every set of rates of an entry, with its place.
fn all_rates(entry: &Entry) -> Vec<(String, &Rates)> {
    let mut found: Vec<(String, &Rates)> = Vec::new();
    for (name, rates) in [("usual", &entry.pricing_config.pay_as_you_go), ("batch", &entry.pricing_config.batch_config)]
    {
        found.extend(rates.as_ref().map(|rates| (name.to_owned(), rates)));
    }
    let regions = entry.custom_pricing.iter().flat_map(|custom| &custom.regions);
    for (mode, priced) in regions.flat_map(|(_, region)| &region.execution_modes) {
        let own = priced.pricing_config.as_ref().and_then(|config| config.pay_as_you_go.as_ref());
        found.extend(own.map(|rates| (mode.clone(), rates)));
        for (tier, config) in &priced.context_tiers {
            let rates = config.pricing_config.pay_as_you_go.as_ref();
            found.extend(rates.map(|rates| (format!("{mode} {tier}"), rates)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::{bundled_prices, bundled_providers};
    use std::collections::BTreeMap;

    /// The same model at two providers.
    const MAX_RATIO: u64 = 20;

    /// Models whose prices at two providers are further apart, with the reason.
    const FAR_APART: [(&str, &str); 13] = [
        ("bge-large-en-v1.5", "Workers AI takes more than others for small embeddings"),
        ("mistral-7b-instruct-v0.1", "Workers AI has old models at their first price"),
        ("deepseek-r1", "Hyperbolic has one low price for what is read and written"),
        ("deepseek-r1-0528", "Hyperbolic has one low price for what is read and written"),
        ("deepseek-v3", "Hyperbolic has one low price for what is read and written"),
        ("meta-llama-3.1-405b-instruct", "Azure has the price of 2024"),
        ("meta-llama-3.1-70b-instruct", "Azure has the price of 2024"),
        ("deepseek-r1-distill-qwen-32b", "Nscale is far below the others"),
        ("deepseek-r1-distill-qwen-14b", "Nscale is far below the others"),
        ("llama-3.1-8b-instruct", "Nscale is far below the others"),
        ("llama-guard-3-8b", "Nebius is far below the others"),
        ("minimax-m1-80k", "Fireworks prices by size"),
        ("llama-3-8b-instruct", "Workers AI has old models at their first price"),
    ];

    /// Prices of a token by the last part of the model's name, in small letters, at each provider.
    fn by_model(key: &str) -> BTreeMap<String, Vec<(Decimal, &'static str)>> {
        let mut models: BTreeMap<String, Vec<(Decimal, &'static str)>> = BTreeMap::new();
        for provider in bundled_providers() {
            let list = bundled_prices(provider).unwrap_or_default();
            for (model, entry) in list.iter() {
                let name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
                let price = entry.pricing_config.pay_as_you_go.as_ref().and_then(|rates| price(rates, key));
                if let Some(price) = price.filter(|price| !price.is_zero()) {
                    models.entry(name).or_default().push((price, provider));
                }
            }
        }
        models
    }

    #[test]
    fn every_bundled_price_is_sane() {
        let mut broken = Vec::new();
        for provider in bundled_providers() {
            let list = bundled_prices(provider).unwrap_or_default();
            for (model, entry) in list.iter() {
                broken.extend(slips(entry).into_iter().map(|slip| format!("{provider} {model}: {slip}")));
            }
        }
        assert!(broken.is_empty(), "{broken:#?}");
    }

    #[test]
    fn a_model_costs_about_the_same_everywhere_or_is_listed_with_the_reason() {
        let mut apart = Vec::new();
        for key in ["request_token", "response_token"] {
            for (model, prices) in by_model(key) {
                let (Some(low), Some(high)) = (prices.iter().min(), prices.iter().max()) else { continue };
                let is_listed = FAR_APART.iter().any(|(name, reason)| *name == model && !reason.is_empty());
                if high.0 > low.0 * Decimal::from(MAX_RATIO) && !is_listed {
                    apart.push(format!("{model} {key}: {low:?} {high:?}"));
                }
            }
        }
        assert!(apart.is_empty(), "{apart:#?}");
    }

    #[test]
    fn what_is_not_text_is_priced_by_its_own_unit() {
        for (provider, model, unit, cents) in [
            ("openai", "whisper-1", "audio_seconds", "0.01"),
            ("openai", "gpt-4o-transcribe", "audio_seconds", "0.01"),
            ("openai", "tts-1", "characters", "0.0015"),
            ("openai", "tts-1-hd", "characters", "0.003"),
            ("cohere", "rerank-v3.5", "search", "0.2"),
            ("anthropic", "claude-sonnet-4-5", "cache_write_1h", "0.0006"),
            ("mistral-ai", "mistral-ocr-2512", "pages", "0.2"),
            ("openai", "sora-2", "video_seconds", "10"),
        ] {
            let list = bundled_prices(provider).unwrap_or_default();
            let rates = list.find(provider, model).and_then(|found| found.entry.pricing_config.pay_as_you_go.as_ref());
            let rate = rates.and_then(|rates| rates.additional_units.get(unit)).map(|rate| rate.price.0.to_string());
            assert_eq!(rate.as_deref(), Some(cents), "{provider} {model}");
        }
        for model in ["dall-e-2", "dall-e-3"] {
            let list = bundled_prices("openai").unwrap_or_default();
            let found = list.find("openai", model).and_then(|found| found.entry.pricing_config.pay_as_you_go.clone());
            assert!(found.is_some_and(|rates| !rates.image.is_empty() && rates.tokens.is_empty()), "{model}");
        }
    }
}
