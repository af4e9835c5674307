//! What a request costs: normalised usage × a model's price list, in exact decimals. One algebra for every provider, so
//! that logs, budgets and analytics can never disagree.
//!
//! Prices are US cents per token or unit, as in the files. A price list may bring its own formula; without one every
//! kind of token is multiplied by its own rate, and a kind without a rate of its own costs what plain text costs.

mod adjust;
mod flat;
mod formula;
mod own_prices;
mod price;
mod pricing;
mod rates;
mod usage;

pub use adjust::Multipliers;
pub use flat::{cents, nano_cents};
pub use formula::{Calculate, Expr};
pub use own_prices::{OwnPrices, UnreadablePrices, listed_name};
pub use price::Price;
pub use pricing::{CustomPricing, Entry, FixedCost, PricingConfig, Rate, Rates};
pub use rates::{PriceMode, Terms};
pub use usage::{Counts, Images, ReportedUsage, Usage};

use rates::Effective;
use rust_decimal::Decimal;
use std::fmt::Write as _;

/// The parts of a cost, in US cents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    pub request: Decimal,
    pub response: Decimal,
    /// Searches, seconds, images by piece, and what every call costs.
    pub units: Decimal,
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
    let cost = match rates.calculate {
        Some(formulas) => Cost {
            request: formulas.request(usage, &rates)?,
            response: formulas.response(usage, &rates)?,
            units: units(usage, &rates)?,
        },
        None => {
            Cost { request: request(usage, &rates)?, response: response(usage, &rates)?, units: units(usage, &rates)? }
        }
    };
    // So that adding the parts up later cannot overflow.
    let whole = cost.request.checked_add(cost.response).and_then(|sum| sum.checked_add(cost.units));
    whole.map(|_| cost).ok_or(TooLarge)
}

/// The cents per unit that a cost is made of, by their names in the price list; of what was not used, none. A JSON object.
pub fn unit_prices(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> String {
    let text = Usage { input: usage.input, output: usage.output, ..Usage::default() };
    let is_text = usage.input > 0 && usage.output > 0 && *usage == text;
    match is_text && flat::is_listed(terms) && entry.flat().is_some() {
        true => entry.text_prices(|| written_prices(usage, entry, terms)).to_owned(),
        false => written_prices(usage, entry, terms),
    }
}

fn written_prices(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> String {
    let rates = Effective::for_usage(entry, usage, terms);
    let kinds: [(u64, &[&'static str]); 10] = [
        (usage.input, &["request_text_token", "request_token"]),
        (usage.cache_read, &["cache_read_text_input_token", "cached_text_input_token", "cache_read_input_token"]),
        (usage.cache_write, &["cache_write_input_token"]),
        (usage.audio_input, &["request_audio_token"]),
        (usage.cache_read_audio, &["cache_read_audio_input_token"]),
        (usage.image_input, &["request_image_token"]),
        (usage.output, &["response_text_token", "response_token"]),
        (usage.reasoning, &["reasoning_token"]),
        (usage.audio_output, &["response_audio_token"]),
        (usage.image_output, &["response_image_token"]),
    ];
    let mut written = String::with_capacity(64);
    written.push('{');
    let mut put = |name: &str, price: Decimal| {
        let comma = if written.len() > 1 { "," } else { "" };
        // Names of the price list and of our own; none needs an escape.
        let _ = write!(written, "{comma}\"{name}\":\"{}\"", price.normalize());
    };
    for (_, keys) in kinds.into_iter().filter(|(count, _)| *count > 0) {
        if let Some((key, price)) = keys.iter().find_map(|key| Some((key, rates.first(&[key])?))) {
            put(key, price);
        }
    }
    for name in usage.units.keys() {
        if let Some(price) = rates.unit(name) {
            put(name, price);
        }
    }
    written.push('}');
    written
}

fn request(usage: &Usage, rates: &Effective<'_>) -> Result<Decimal, TooLarge> {
    let text = || text(rates);
    let write = || written(rates);
    let audio = || rates.first(&["request_audio_token"]).or_else(text);
    let image = || rates.first(&["request_image_token"]).or_else(text);
    let read_image = || rates.first(&["cache_read_image_input_token", "cached_image_input_token"]);
    total(&[
        (usage.input, &text),
        (usage.cache_read, &|| cache_read(rates)),
        (usage.cache_write.saturating_sub(usage.cache_write_1h), &write),
        (usage.cache_write_1h, &|| rates.unit("cache_write_1h").or_else(write)),
        (usage.audio_input, &audio),
        (usage.cache_read_audio, &|| rates.first(&["cache_read_audio_input_token"]).or_else(audio)),
        (usage.image_input, &image),
        (usage.cache_read_image, &|| read_image().or_else(image)),
    ])
}

fn response(usage: &Usage, rates: &Effective<'_>) -> Result<Decimal, TooLarge> {
    let text = || response_text(rates);
    total(&[
        (usage.output.saturating_sub(usage.reasoning), &text),
        (usage.reasoning, &|| thinking(rates)),
        (usage.audio_output, &|| rates.first(&["response_audio_token"]).or_else(text)),
        (usage.image_output, &|| rates.first(&["response_image_token"]).or_else(text)),
    ])
}

fn text(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["request_text_token", "request_token"])
}

fn cache_read(rates: &Effective<'_>) -> Option<Decimal> {
    let read = rates.first(&["cache_read_text_input_token", "cached_text_input_token", "cache_read_input_token"]);
    read.or_else(|| text(rates))
}

fn written(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["cache_write_input_token"]).or_else(|| text(rates))
}

fn response_text(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["response_text_token", "response_token"])
}

fn thinking(rates: &Effective<'_>) -> Option<Decimal> {
    let own = rates.first(&["reasoning_token"]).or_else(|| rates.unit("thinking_token"));
    own.or_else(|| response_text(rates))
}

/// What is priced by piece: tools, seconds, whole images, and the call itself.
fn units(usage: &Usage, rates: &Effective<'_>) -> Result<Decimal, TooLarge> {
    let mut sum = rates.fixed;
    for (name, count) in &usage.units {
        let price = rates.unit(name).unwrap_or_default();
        sum = add(sum, price, *count)?;
    }
    if let Some(images) = &usage.images {
        let price = rates.image(&images.quality, &images.size).unwrap_or_default();
        sum = add(sum, price, images.count.into())?;
    }
    Ok(sum)
}

/// Tokens, and how to find what one costs: most calls have few of the kinds.
type Counted<'k> = (u64, &'k dyn Fn() -> Option<Decimal>);

fn total(kinds: &[Counted<'_>]) -> Result<Decimal, TooLarge> {
    let used = kinds.iter().filter(|(tokens, _)| *tokens > 0);
    used.into_iter()
        .try_fold(Decimal::ZERO, |sum, (tokens, rate)| add(sum, rate().unwrap_or_default(), (*tokens).into()))
}

fn add(sum: Decimal, price: Decimal, count: Decimal) -> Result<Decimal, TooLarge> {
    price.checked_mul(count).and_then(|part| sum.checked_add(part)).ok_or(TooLarge)
}

#[cfg(test)]
mod tests;
