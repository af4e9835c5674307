//! Rules that every price keeps, bundled or imported. They find slips of a transcription: a price by the minute taken for one by
//! the token, a cached token dearer than a fresh one, a decimal point in the wrong place.

use super::{bundled_prices, bundled_providers};
use crate::cost::{Entry, Rates};
use rust_decimal::Decimal;
use std::collections::BTreeMap;
use std::sync::LazyLock;

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

/// What a provider's price of a model breaks; nothing when it is sane.
pub fn slips(provider: &str, model: &str, entry: &Entry) -> Vec<String> {
    let mut slips = slips_alone(entry);
    slips.extend(far_from_others(provider, model, entry));
    slips
}

/// What an entry breaks by itself.
fn slips_alone(entry: &Entry) -> Vec<String> {
    let mut slips = Vec::new();
    let usual = entry.pricing_config.pay_as_you_go.clone().unwrap_or_default();
    if entry.as_of.is_none() {
        slips.push("no date".into());
    }
    let all = all_rates(entry);
    for (place, rates) in &all {
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
        }
        if let Some(full) = full_rates(place, &all) {
            let dearer = dearer_rates(rates, full);
            slips.extend(dearer.into_iter().map(|name| format!("{place}: {name} is dearer than usually")));
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

/// What the rates of a cheaper tier of service are compared with: the usual ones, in the same context tier.
fn full_rates<'r>(place: &str, all: &[(String, &'r Rates)]) -> Option<&'r Rates> {
    let full = match place.split_once(' ').unwrap_or((place, "")) {
        ("batch" | "flex", "") => "usual".to_owned(),
        ("batch" | "flex", context) => format!("standard {context}"),
        _ => return None,
    };
    all.iter().find(|(place, _)| *place == full).map(|(_, rates)| *rates)
}

/// The names of rates that are above those of the same name.
fn dearer_rates(rates: &Rates, full: &Rates) -> Vec<String> {
    let named = |rates: &Rates| -> BTreeMap<String, Decimal> {
        let plain = rates.tokens.iter().chain(&rates.additional_units);
        let plain = plain.map(|(name, rate)| (name.clone(), rate.price.0));
        let images = rates.image.iter().flat_map(|(quality, sizes)| {
            sizes.iter().map(move |(size, rate)| (format!("image {quality} {size}"), rate.price.0))
        });
        plain.chain(images).collect()
    };
    let full = named(full);
    let is_dearer = |(name, price): &(String, Decimal)| full.get(name).is_some_and(|full| price > full);
    named(rates).into_iter().filter(is_dearer).map(|(name, _)| name).collect()
}

/// Prices of tokens of a model at each provider that has bundled ones.
type PricesByProvider = Vec<(Decimal, &'static str)>;

/// By the kind of token, then by the name of the model.
static BUNDLED: LazyLock<[(&str, BTreeMap<String, PricesByProvider>); 2]> =
    LazyLock::new(|| ["request_token", "response_token"].map(|key| (key, bundled_by_model(key))));

fn bundled_by_model(key: &str) -> BTreeMap<String, PricesByProvider> {
    let mut models: BTreeMap<String, PricesByProvider> = BTreeMap::new();
    for provider in bundled_providers() {
        let list = bundled_prices(provider).unwrap_or_default();
        for (model, entry) in list.iter() {
            if let Some(price) = usual_price(entry, key) {
                models.entry(common_name(model)).or_default().push((price, provider));
            }
        }
    }
    models
}

fn far_from_others(provider: &str, model: &str, entry: &Entry) -> Vec<String> {
    let name = common_name(model);
    if FAR_APART.iter().any(|(listed, _)| *listed == name) {
        return Vec::new();
    }
    let ratio = Decimal::from(MAX_RATIO);
    let far = |(key, models): &(&str, BTreeMap<String, PricesByProvider>)| {
        let own = usual_price(entry, key)?;
        let mut others = models.get(&name)?.iter().filter(|(_, other)| *other != provider);
        let is_far = |other: Decimal| [(own, other), (other, own)].iter().any(|(one, other)| one / ratio > *other);
        let (other, at) = others.find(|(other, _)| is_far(*other))?;
        Some(format!("{key} is more than {MAX_RATIO} times apart from the {} of {at}", other.normalize()))
    };
    BUNDLED.iter().filter_map(far).collect()
}

/// The last part of a model's name, in small letters: what several providers call it.
fn common_name(model: &str) -> String {
    model.rsplit('/').next().unwrap_or(model).to_lowercase()
}

/// Above 0.
fn usual_price(entry: &Entry, key: &str) -> Option<Decimal> {
    let rates = entry.pricing_config.pay_as_you_go.as_ref()?;
    price(rates, key).filter(|price| !price.is_zero())
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
    use crate::cost::prices::Matched;
    use serde_json::json;

    #[test]
    fn every_bundled_price_is_sane() {
        let mut broken = Vec::new();
        for provider in bundled_providers() {
            let list = bundled_prices(provider).unwrap_or_default();
            for (model, entry) in list.iter() {
                broken.extend(
                    slips(provider, model, entry).into_iter().map(|slip| format!("{provider} {model}: {slip}")),
                );
            }
        }
        assert!(broken.is_empty(), "{broken:#?}");
    }

    #[test]
    fn a_model_that_costs_about_the_same_everywhere_is_not_listed_as_far_apart() {
        let far = |name: &str| {
            BUNDLED.iter().filter_map(|(_, models)| models.get(name)).any(|prices| {
                let (low, high) = (prices.iter().min(), prices.iter().max());
                low.zip(high).is_some_and(|(low, high)| high.0 > low.0 * Decimal::from(MAX_RATIO))
            })
        };
        for (name, reason) in FAR_APART {
            assert!(far(name) && !reason.is_empty(), "{name}");
        }
    }

    fn entry(price: serde_json::Value) -> Entry {
        let mut entry = serde_json::json!({ "as_of": "2026-11-18" });
        entry.as_object_mut().unwrap().extend(price.as_object().unwrap().clone());
        serde_json::from_value(entry).unwrap()
    }

    #[test]
    fn each_rule_names_what_breaks_it() {
        let price = |cents: &str| json!({ "price": cents });
        let usual = json!({ "request_token": price("0.001"), "response_token": price("0.002"),
            "image": { "hd": { "1x1": price("4") } }, "additional_units": { "pages": price("2") } });
        let with = |name: &str, cents: &str| {
            let mut rates = usual.clone();
            rates[name] = price(cents);
            json!({ "pricing_config": { "pay_as_you_go": rates } })
        };
        let batch =
            |rates: serde_json::Value| json!({ "pricing_config": { "pay_as_you_go": usual, "batch_config": rates } });
        let tiered = |cents: &str| {
            json!({ "pricing_config": { "pay_as_you_go": usual }, "custom_pricing": {
            "context_tier_map": { "100": "gt" }, "regions": { "default": { "execution_modes": {
                "standard": { "context_tiers": { "gt": { "pricing_config": { "pay_as_you_go": { "request_token": price("0.004") } } } } },
                "batch": { "context_tiers": { "gt": { "pricing_config": { "pay_as_you_go": { "request_token": price(cents) } } } } },
            } } } } })
        };
        for (price, expected) in [
            (with("request_token", "0.001"), None),
            (with("request_token", "0.1"), None),
            (
                with("cache_read_input_token", "0.0011"),
                Some("usual: cache_read_input_token is dearer than request_token"),
            ),
            (with("response_token", "0.11"), Some("usual: response_token is more than a dollar for a thousand")),
            (batch(json!({ "request_token": price("0.001") })), None),
            (batch(json!({ "request_token": price("0.0011") })), Some("batch: request_token is dearer than usually")),
            (
                batch(json!({ "additional_units": { "pages": price("3") } })),
                Some("batch: pages is dearer than usually"),
            ),
            (
                batch(json!({ "image": { "hd": { "1x1": price("5") } } })),
                Some("batch: image hd 1x1 is dearer than usually"),
            ),
            (tiered("0.004"), None),
            (tiered("0.0041"), Some("batch gt: request_token is dearer than usually")),
        ] {
            let found = slips("openai", "nobody-else-has-this", &entry(price.clone()));
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{price}");
        }
        let undated: Entry = serde_json::from_value(with("request_token", "0.001")).unwrap();
        assert_eq!(slips("openai", "m", &undated), ["no date"]);
        assert!(serde_json::from_value::<Entry>(with("response_token", "-0.001")).is_err());
    }

    #[test]
    fn a_price_far_from_those_of_other_providers_is_a_slip() {
        let of = |provider: &str, model: &str, cents: &str| {
            let rates = json!({ "request_token": { "price": cents } });
            slips(provider, model, &entry(json!({ "pricing_config": { "pay_as_you_go": rates } })))
        };
        // Azure has it at 0.00025.
        assert_eq!(of("openai", "gpt-4o", "0.00025"), Vec::<String>::new());
        assert_eq!(of("openai", "gpt-4o", "0"), Vec::<String>::new());
        for cents in ["0.0051", "0.000012"] {
            let found = of("openai", "gpt-4o", cents);
            assert!(found.iter().any(|slip| slip.contains("20 times apart from the 0.00025 of")), "{cents} {found:?}");
            assert_eq!(of("groq", "openai/GPT-4o", cents).len(), 1, "{cents}");
        }
        assert_eq!(of("nobody", "deepseek-r1", "0.09"), Vec::<String>::new(), "listed with its reason");
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
    }

    #[test]
    fn images_by_the_piece_and_what_is_free_are_listed_with_their_source() {
        let list = bundled_prices("openai").unwrap_or_default();
        let listed = |model: &str| list.find("openai", model).filter(|found| found.by == Matched::Name).unwrap().entry;
        for (model, quality, size, cents) in [
            ("dall-e-2", "default", "256x256", "1.6"),
            ("dall-e-2", "default", "512x512", "1.8"),
            ("dall-e-2", "default", "1024x1024", "2"),
            ("dall-e-3", "standard", "1024x1024", "4"),
            ("dall-e-3", "standard", "1024x1792", "8"),
            ("dall-e-3", "standard", "1792x1024", "8"),
            ("dall-e-3", "hd", "1024x1024", "8"),
            ("dall-e-3", "hd", "1024x1792", "12"),
            ("dall-e-3", "hd", "1792x1024", "12"),
        ] {
            let rates = listed(model).pricing_config.pay_as_you_go.as_ref().unwrap();
            assert_eq!(rates.image[quality][size].price.0.to_string(), cents, "{model} {quality} {size}");
            assert!(rates.tokens.is_empty() && !listed(model).sources.is_empty(), "{model}");
        }
        // Realtime models, of which sound is far dearer than text.
        for (model, cents) in [
            ("gpt-4o-realtime-preview", "0.004"),
            ("gpt-4o-realtime-preview-2024-10-01", "0.01"),
            ("gpt-4o-realtime-preview-2024-12-17", "0.004"),
            ("gpt-4o-realtime-preview-2025-06-03", "0.004"),
            ("gpt-4o-mini-realtime-preview", "0.001"),
        ] {
            let rates = listed(model).pricing_config.pay_as_you_go.as_ref().unwrap();
            assert_eq!(rates.tokens["request_audio_token"].price.0.to_string(), cents, "{model}");
        }
        for model in
            ["omni-moderation-latest", "omni-moderation-2024-09-26", "text-moderation-latest", "text-moderation-stable"]
        {
            assert!(!listed(model).is_priced() && !listed(model).sources.is_empty(), "{model}");
            assert!(
                listed(model).pricing_config.pay_as_you_go.as_ref().unwrap().tokens.contains_key("request_token"),
                "{model}"
            );
        }
    }
}
