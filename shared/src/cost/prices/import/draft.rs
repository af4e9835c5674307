//! The price of one model while it is collected: rates in cents by tier of service and context, by the names of our price lists.
//! Rows of a list that are about the same model (its images of several sizes) end up in one draft.

use super::listed::{ListedModel, ListedRate};
use super::model_name::ImageSize;
use crate::cost::PriceMode;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Rates by token: the list's name and the key of our price list.
const TOKENS: [(&str, &str); 14] = [
    ("input_cost_per_token", "request_token"),
    ("output_cost_per_token", "response_token"),
    ("cache_read_input_token_cost", "cache_read_input_token"),
    ("input_cost_per_token_cache_hit", "cache_read_input_token"),
    ("cache_creation_input_token_cost", "cache_write_input_token"),
    ("input_cost_per_audio_token", "request_audio_token"),
    ("output_cost_per_audio_token", "response_audio_token"),
    ("cache_read_input_audio_token_cost", "cache_read_audio_input_token"),
    ("input_cost_per_image_token", "request_image_token"),
    ("output_cost_per_image_token", "response_image_token"),
    ("cache_read_input_image_token_cost", "cache_read_image_input_token"),
    ("input_cost_per_video_token", "request_video_token"),
    ("output_cost_per_video_token", "response_video_token"),
    ("output_cost_per_reasoning_token", "reasoning_token"),
];

/// Rates by another unit: its name among `additional_units`. Seconds are named by `seconds_unit`.
const UNITS: [(&str, &str); 14] = [
    ("cache_creation_input_token_cost_above_1hr", "cache_write_1h"),
    ("cache_creation_input_token_cost_above_12hr", "cache_write_12h"),
    ("citation_cost_per_token", "citation_token"),
    ("input_cost_per_character", "characters"),
    ("output_cost_per_character", "output_characters"),
    ("input_cost_per_query", "search"),
    ("google_maps_grounding_cost_per_query", "maps"),
    ("code_interpreter_cost_per_session", "code_execution"),
    ("ocr_cost_per_page", "pages"),
    ("annotation_cost_per_page", "annotated_pages"),
    ("input_cost_per_image", "input_image"),
    ("input_cost_per_audio_per_second", "audio_seconds"),
    ("input_cost_per_video_per_second", "input_video_seconds"),
    ("output_cost_per_video_per_second", "video_seconds"),
];

const PIXELS: [&str; 2] = ["input_cost_per_pixel", "output_cost_per_pixel"];
const IMAGES: [&str; 2] = ["input_cost_per_image", "output_cost_per_image"];
const MEGA: Decimal = Decimal::from_parts(1_000_000, 0, 0, false, 0);
const HALF: Decimal = Decimal::from_parts(5, 0, 0, false, 1);

#[derive(Debug, Default)]
pub struct PriceDraft {
    /// By tier of service, then by the bound of the context tier, which is 0 without one.
    pub modes: BTreeMap<&'static str, BTreeMap<u64, RateDraft>>,
    /// Cents for each call.
    pub fixed: Option<Decimal>,
}

#[derive(Debug, Default, Clone, PartialEq)]
pub struct RateDraft {
    pub tokens: BTreeMap<&'static str, Decimal>,
    pub units: BTreeMap<String, Decimal>,
    /// Quality → size → cents for an image.
    pub images: BTreeMap<String, BTreeMap<String, Decimal>>,
}

impl PriceDraft {
    pub fn rates(&mut self, mode: PriceMode, above_tokens: u64) -> &mut RateDraft {
        self.modes.entry(mode.name()).or_default().entry(above_tokens).or_default()
    }

    /// Adds one rate; an error says why it has no place here.
    pub fn add(&mut self, model: &ListedModel, rate: &ListedRate) -> Result<(), String> {
        let cents = (rate.dollars * Decimal::ONE_HUNDRED).normalize();
        let rates = self.rates(rate.mode, rate.above_tokens);
        let name = rate.name.as_str();
        let key =
            |table: &[(&str, &'static str)]| table.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
        if let Some(key) = key(&TOKENS) {
            rates.tokens.insert(key, cents);
        } else if let Some(unit) = key(&UNITS) {
            rates.units.insert(unit.to_owned(), cents);
        } else if name == "input_cost_per_request" {
            self.fixed = Some(cents);
        } else if let Some(size) = name.strip_prefix("output_cost_per_image") {
            let size = size.trim_start_matches('_');
            let size = if size.is_empty() { "default" } else { size };
            rates.images.entry("default".into()).or_default().insert(size.to_owned(), cents);
        } else if PIXELS.contains(&name) {
            // Many rows have 0 for a pixel beside their real price.
            if !cents.is_zero() {
                rates.units.insert("megapixels".into(), (cents * MEGA).normalize());
            }
        } else if name.contains("per_second") {
            let unit = seconds_unit(name, &model.kind)?;
            // One rate under two names counts once.
            let known = rates.units.entry(unit).or_default();
            *known = cents.max(*known);
        } else {
            return Err(format!("rate {name} is not known"));
        }
        Ok(())
    }

    /// A row such as `hd/1024-x-1024/dall-e-3`: the price of one image of this quality and size.
    pub fn add_image(
        &mut self,
        model: &ListedModel,
        quality: Option<&str>,
        size: Option<ImageSize>,
    ) -> Result<(), String> {
        let mut price = None;
        for rate in model.rates.iter().filter(|rate| !rate.dollars.is_zero()) {
            let cents = (rate.dollars * Decimal::ONE_HUNDRED).normalize();
            match size {
                // Lists have it by pixel, rounded; prices of images are whole hundredths of a cent.
                Some(size) if PIXELS.contains(&rate.name.as_str()) => {
                    price = cents.checked_mul(size.pixels().into()).map(|cents| cents.round_dp(2).normalize());
                }
                _ if IMAGES.contains(&rate.name.as_str()) => price = Some(cents),
                _ => {}
            }
        }
        let price = price.ok_or("an image without a price")?;
        let size = size.map_or_else(|| "default".to_owned(), |size| size.to_string());
        let images = &mut self.rates(PriceMode::Standard, 0).images;
        images.entry(quality.unwrap_or("default").to_owned()).or_default().insert(size, price);
        Ok(())
    }

    /// Of providers whose batches cost half of everything, also of cache writes that lists have no batch rate for.
    pub fn halve_cache_writes_of_batches(&mut self) {
        let usual = self.rates(PriceMode::Standard, 0).units.clone();
        let Some(batch) = self.modes.get_mut(PriceMode::Batch.name()).and_then(|bounds| bounds.get_mut(&0)) else {
            return;
        };
        for (name, cents) in
            usual.into_iter().filter(|(name, _)| matches!(name.as_str(), "cache_write_1h" | "cache_write_12h"))
        {
            batch.units.entry(name).or_insert((cents * HALF).normalize());
        }
    }

    /// Whether anything costs anything.
    pub fn is_priced(&self) -> bool {
        let rates = self.modes.values().flat_map(BTreeMap::values);
        let mut cents = rates.flat_map(|rates| {
            let images = rates.images.values().flat_map(BTreeMap::values);
            rates.tokens.values().chain(rates.units.values()).chain(images)
        });
        cents.any(|cents| !cents.is_zero()) || self.fixed.is_some_and(|cents| !cents.is_zero())
    }

    /// As an entry of our price lists.
    pub fn entry(&self, as_of: &str) -> Value {
        let (mut config, mut modes, mut bounds) = (Map::new(), Map::new(), BTreeSet::new());
        let plain =
            |mode: PriceMode| self.modes.get(mode.name()).and_then(|bounds| bounds.get(&0)).map(RateDraft::written);
        for (key, mode) in [("pay_as_you_go", PriceMode::Standard), ("batch_config", PriceMode::Batch)] {
            config.extend(plain(mode).filter(|rates| !rates.is_empty()).map(|rates| (key.to_owned(), rates.into())));
        }
        if let Some(cents) = self.fixed {
            config.insert("fixed_cost".into(), json!({ "request": price(cents), "response": price(Decimal::ZERO) }));
        }
        for (mode, by_bound) in &self.modes {
            let (mut entry, mut tiers) = (Map::new(), Map::new());
            for (bound, rates) in by_bound.iter().filter(|(bound, rates)| **bound > 0 && !rates.is_empty()) {
                bounds.insert(*bound);
                tiers.insert(tier_name(*bound), json!({ "pricing_config": { "pay_as_you_go": rates.written() } }));
            }
            let own = by_bound.get(&0).filter(|rates| *mode != PriceMode::Standard.name() && !rates.is_empty());
            // A batch has a list of its own, unless it has tiers.
            if let Some(own) = own.filter(|_| *mode != PriceMode::Batch.name() || !tiers.is_empty()) {
                entry.insert("pricing_config".into(), json!({ "pay_as_you_go": own.written() }));
            }
            if !tiers.is_empty() {
                entry.insert("context_tiers".into(), tiers.into());
            }
            if !entry.is_empty() {
                modes.insert((*mode).to_owned(), entry.into());
            }
        }
        let mut entry = json!({ "as_of": as_of, "pricing_config": config });
        if !modes.is_empty() {
            entry["custom_pricing"] = json!({ "regions": { "default": { "execution_modes": modes } } });
        }
        if !bounds.is_empty() {
            let names = bounds.iter().map(|bound| (bound.to_string(), tier_name(*bound).into()));
            entry["custom_pricing"]["context_tier_map"] = Value::Object(names.collect());
        }
        entry
    }
}

impl RateDraft {
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty() && self.units.is_empty() && self.images.is_empty()
    }

    fn written(&self) -> Map<String, Value> {
        let mut written: Map<String, Value> =
            self.tokens.iter().map(|(name, cents)| ((*name).to_owned(), price(*cents))).collect();
        if !self.images.is_empty() {
            let sizes = |sizes: &BTreeMap<String, Decimal>| -> Map<String, Value> {
                sizes.iter().map(|(size, cents)| (size.clone(), price(*cents))).collect()
            };
            let images = self.images.iter().map(|(quality, by_size)| (quality.clone(), sizes(by_size).into()));
            written.insert("image".into(), Value::Object(images.collect()));
        }
        if !self.units.is_empty() {
            let units = self.units.iter().map(|(name, cents)| (name.clone(), price(*cents)));
            written.insert("additional_units".into(), Value::Object(units.collect()));
        }
        written
    }
}

/// Text, so that no reader makes a float of it.
fn price(cents: Decimal) -> Value {
    json!({ "price": cents.normalize().to_string() })
}

fn tier_name(bound: u64) -> String {
    if bound.is_multiple_of(1000) { format!("gt-{}k", bound / 1000) } else { format!("gt-{bound}") }
}

/// Whose seconds a rate is for, by the kind of model; `_720p` and the like stay behind it.
fn seconds_unit(rate: &str, kind: &str) -> Result<String, String> {
    if rate == "cost_per_second" {
        return Err("a rate by the second of a machine".into());
    }
    let suffix = rate.strip_prefix("input_cost_per_second").or_else(|| rate.strip_prefix("output_cost_per_second"));
    let suffix = suffix.filter(|suffix| suffix.is_empty() || suffix.starts_with('_'));
    let suffix = suffix.ok_or_else(|| format!("rate {rate} is not known"))?;
    Ok(match kind {
        "video_generation" => format!("video_seconds{suffix}"),
        "audio_speech" => "speech_seconds".into(),
        // Transcriptions have one rate, under one of two names or both.
        _ => "audio_seconds".into(),
    })
}
