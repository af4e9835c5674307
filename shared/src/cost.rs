//! What a request costs: normalised usage × a model's price list, in exact decimals. One algebra for every provider, so
//! that logs, budgets and analytics can never disagree.
//!
//! Prices are US cents per token or unit, as in the files. A price list may bring its own formula; without one every
//! kind of token is multiplied by its own rate, or by the one that `token_kinds` says holds for it.
//! What then has no rate has no known price, which is not the same as none: the cost is that of the rest, and incomplete.
//! A tier of service that a list has no rates for has no known price either, whatever the usual one costs.

mod adjust;
mod bound;
mod flat;
mod flat_rates;
mod formula;
mod formula_value;
mod own_prices;
mod price;
pub mod prices;
mod pricing;
mod rates;
mod token_kinds;
mod usage;

pub use adjust::Multipliers;
pub use bound::{CacheLifetime, CallBounds, dearest, prices_tier};
pub use flat::{Bill, bill, cents, nano_cents};
pub use formula::{Calculate, Expr};
pub use own_prices::{OwnPrices, UnreadablePrices, listed_name};
pub use price::Price;
pub use pricing::{CustomPricing, Entry, FixedCost, ModePricing, PricingConfig, Rate, Rates, Region, Tier};
pub use rates::{PriceMode, Terms};
pub use usage::{Counts, Images, ReportedUsage, TOOL_UNITS, Usage, unit_names};

use rates::Effective;
use rust_decimal::Decimal;
use std::borrow::Cow;
use std::fmt::Write as _;
use token_kinds::{TokenKind, TokenRate, request_kinds, response_kinds, text};
use usage::SEARCH_CONTEXTS;

/// The parts of a cost, in US cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    pub request: Decimal,
    pub response: Decimal,
    /// Searches, seconds, images by piece, and what every call costs.
    pub units: Decimal,
    /// Something of what was used has a rate.
    pub is_known: bool,
    /// All of it has, in the tier of service that served it.
    pub is_complete: bool,
}

/// Figures that no decimal can hold; only broken usage or prices make them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cost is larger than can be counted")]
pub struct TooLarge;

impl Cost {
    /// US cents, as stored: ten decimals.
    pub fn cents(&self) -> Decimal {
        (self.request + self.response + self.units).round_dp(10).normalize()
    }

    /// US dollars, as budgets count.
    pub fn usd(&self) -> Decimal {
        ((self.request + self.response + self.units) / Decimal::ONE_HUNDRED).normalize()
    }
}

pub fn cost(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Result<Cost, TooLarge> {
    let rates = Effective::for_usage(entry, usage, terms);
    let usage = &*without_paid_images(usage, &rates);
    let (request, response) = (request(usage, &rates)?, response(usage, &rates)?);
    let units = units(usage, &rates)?;
    let parts = [request, response, units];
    let cost = Cost {
        request: request.sum,
        response: response.sum,
        units: units.sum,
        is_known: parts.iter().any(|part| part.is_known),
        is_complete: rates.prices_tier() && !parts.iter().any(|part| part.is_unknown),
    };
    // So that adding the parts up later cannot overflow.
    let whole = cost.request.checked_add(cost.response).and_then(|sum| sum.checked_add(cost.units));
    whole.map(|_| cost).ok_or(TooLarge)
}

/// The cents per unit that a cost is made of, by their names in the price list; of what was not used, none, and `null` of what
/// has no rate. A JSON object.
pub fn unit_prices(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> String {
    let text = Usage { input: usage.input, output: usage.output, ..Usage::default() };
    let is_text = usage.input > 0 && usage.output > 0 && *usage == text;
    match is_text && flat::is_flat(usage, entry, terms) {
        true => entry.text_prices(|| written_prices(usage, entry, terms)).to_owned(),
        false => written_prices(usage, entry, terms),
    }
}

fn written_prices(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> String {
    let rates = Effective::for_usage(entry, usage, terms);
    let usage = &*without_paid_images(usage, &rates);
    let kinds: [(u64, &[&'static str]); 15] = [
        (usage.input, &["request_text_token", "request_token"]),
        (usage.cache_read, &["cache_read_text_input_token", "cached_text_input_token", "cache_read_input_token"]),
        (usage.cache_write, &["cache_write_input_token"]),
        (usage.cache_write_1h, &["cache_write_1h"]),
        (usage.cache_write_12h, &["cache_write_12h"]),
        (usage.audio_input, &["request_audio_token"]),
        (usage.cache_read_audio, &["cache_read_audio_input_token"]),
        (usage.image_input, &["request_image_token"]),
        (usage.cache_read_image, &["cache_read_image_input_token", "cached_image_input_token"]),
        (usage.output, &["response_text_token", "response_token"]),
        (usage.reasoning, &["reasoning_token"]),
        (usage.audio_output, &["response_audio_token"]),
        (usage.image_output, &["response_image_token"]),
        (usage.video_input, &["request_video_token"]),
        (usage.video_output, &["response_video_token"]),
    ];
    let mut written = String::with_capacity(64);
    written.push('{');
    let mut put = |name: &str, price: Option<Decimal>| {
        let comma = if written.len() > 1 { "," } else { "" };
        // Names of the price list and of our own; none needs an escape.
        let _ = match price {
            Some(price) => write!(written, "{comma}\"{name}\":\"{}\"", price.normalize()),
            None => write!(written, "{comma}\"{name}\":null"),
        };
    };
    let unpriced = unpriced_tokens(usage, &rates);
    for (_, keys) in kinds.into_iter().filter(|(count, _)| *count > 0) {
        let price = |key: &str| {
            let rate = || rates.first(&[key]).or_else(|| rates.unit(key));
            if unpriced.contains(&key) { None } else { rate() }
        };
        if let Some((key, price)) = keys.iter().find_map(|key| Some((key, price(key)?))) {
            put(key, Some(price));
        }
    }
    for name in unpriced {
        put(name, None);
    }
    if let Some(images) = &usage.images {
        put("image", rates.image(&images.quality, &images.size));
    }
    for name in usage.units.keys().filter(|name| is_due(name, usage, &rates)) {
        // Names of resolutions come from answers.
        if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            put(name, rates.unit(name));
        }
    }
    written.push('}');
    written
}

fn request(usage: &Usage, rates: &Effective<'_>) -> Result<Tally, TooLarge> {
    match rates.calculate.and_then(Calculate::request) {
        Some(formula) => by_formula(formula, &request_kinds(usage), usage, rates),
        None => total(&request_kinds(usage), rates),
    }
}

fn response(usage: &Usage, rates: &Effective<'_>) -> Result<Tally, TooLarge> {
    match rates.calculate.and_then(Calculate::response) {
        Some(formula) => by_formula(formula, &response_kinds(usage), usage, rates),
        None => total(&response_kinds(usage), rates),
    }
}

/// Tokens that a formula does not count have no price in it.
fn by_formula(formula: &Expr, kinds: &[TokenKind], usage: &Usage, rates: &Effective<'_>) -> Result<Tally, TooLarge> {
    let value = formula_value::value(formula, usage, rates)?;
    let is_unknown =
        value.is_unknown || kinds.iter().any(|kind| kind.count > 0 && !formula_value::prices(formula, kind));
    Ok(Tally { sum: value.amount, is_known: !is_unknown || !value.amount.is_zero(), is_unknown })
}

/// The keys of the rates that are lacking of tokens that were used; that of formulas where one of them is not understood.
fn unpriced_tokens(usage: &Usage, rates: &Effective<'_>) -> Vec<&'static str> {
    let (request, response) = (request_kinds(usage), response_kinds(usage));
    let formulas = rates.calculate.map_or((None, None), |formulas| (formulas.request(), formulas.response()));
    let lacking = |kinds: &[TokenKind], formula: Option<&Expr>| -> Vec<&'static str> {
        let value = formula.and_then(|formula| formula_value::value(formula, usage, rates).ok());
        let lacks_rate = value.is_none_or(|value| value.is_unknown);
        let is_priced = |kind: &TokenKind| {
            let has_rate = !lacks_rate || matches!(kind.rate(rates), TokenRate::Known(_));
            has_rate && formula.is_none_or(|formula| formula_value::prices(formula, kind))
        };
        let mut names: Vec<_> =
            kinds.iter().filter(|kind| kind.count > 0 && !is_priced(kind)).map(|kind| kind.name).collect();
        if names.is_empty() && value.is_some_and(|value| value.is_unknown) {
            names.push("calculate");
        }
        names
    };
    [lacking(&request, formulas.0), lacking(&response, formulas.1)].concat()
}

/// What is priced by piece: tools, seconds, whole images, and the call itself.
fn units(usage: &Usage, rates: &Effective<'_>) -> Result<Tally, TooLarge> {
    let mut tally = Tally { sum: rates.fixed, is_known: !rates.fixed.is_zero(), is_unknown: false };
    for (name, count) in usage.units.iter().filter(|(name, _)| is_due(name, usage, rates)) {
        let rate = rates.unit(name);
        // What is spoken and paid by token: at least the text is known, about.
        if rate.is_none() && name == "characters" {
            let tokens = (*count / CHARACTERS_PER_TOKEN).ceil();
            text(rates).map(|rate| tally.add(Some(rate), tokens)).transpose()?;
        }
        tally.add(rate, *count)?;
    }
    if let Some(images) = &usage.images {
        // What is paid by its size.
        let by_size = || rates.unit("megapixels")?.checked_mul(megapixels(&images.size)?);
        tally.add(rates.image(&images.quality, &images.size).or_else(by_size), images.count.into())?;
    }
    Ok(tally)
}

const CHARACTERS_PER_TOKEN: Decimal = Decimal::from_parts(4, 0, 0, false, 0);

/// Whether a unit is paid for. Searches of an answer are paid one by one, all at once or by how much they bring in: of these
/// the ones that have a rate.
fn is_due(name: &str, usage: &Usage, rates: &Effective<'_>) -> bool {
    const ONE_BY_ONE: &str = "web_search";
    const AT_ONCE: &str = "grounded_prompt";
    let is_paid = |other: &str| usage.units.contains_key(other) && rates.unit(other).is_some();
    match name {
        ONE_BY_ONE if is_paid(AT_ONCE) => false,
        ONE_BY_ONE => is_paid(name) || !SEARCH_CONTEXTS.iter().any(|context| is_paid(context)),
        AT_ONCE => is_paid(name) || !usage.units.contains_key(ONE_BY_ONE),
        name if SEARCH_CONTEXTS.contains(&name) => is_paid(name) || !is_paid(ONE_BY_ONE),
        _ => true,
    }
}

/// Images that are embedded are reported by their pixels and as tokens, and paid once: by their pixels where these have a rate.
fn without_paid_images<'u>(usage: &'u Usage, rates: &Effective<'_>) -> Cow<'u, Usage> {
    const PIXELS: &str = "image_pixels";
    let is_paid_by_pixels = usage.units.contains_key(PIXELS) && rates.unit(PIXELS).is_some();
    match is_paid_by_pixels && usage.image_input > 0 {
        true => Cow::Owned(Usage { image_input: 0, ..usage.clone() }),
        false => Cow::Borrowed(usage),
    }
}

/// Of a size such as `1024x1024`.
fn megapixels(size: &str) -> Option<Decimal> {
    let (width, height) = size.split_once('x')?;
    let pixels = width.parse::<u32>().ok()?.checked_mul(height.parse().ok()?)?;
    Some(Decimal::from(pixels) / Decimal::from(1_000_000))
}

/// A part of a cost while it is added up.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    sum: Decimal,
    is_known: bool,
    is_unknown: bool,
}

impl Tally {
    fn add(&mut self, price: Option<Decimal>, count: Decimal) -> Result<(), TooLarge> {
        match price {
            Some(price) => {
                let part = price.checked_mul(count).ok_or(TooLarge)?;
                self.sum = self.sum.checked_add(part).ok_or(TooLarge)?;
                self.is_known = true;
            }
            None => self.is_unknown = true,
        }
        Ok(())
    }
}

fn total(kinds: &[TokenKind], rates: &Effective<'_>) -> Result<Tally, TooLarge> {
    let mut tally = Tally::default();
    for kind in kinds.iter().filter(|kind| kind.count > 0) {
        let rate = kind.rate(rates);
        tally.add(rate.amount(), kind.count.into())?;
        tally.is_unknown |= !matches!(rate, TokenRate::Known(_));
    }
    Ok(tally)
}

#[cfg(test)]
mod tests;
