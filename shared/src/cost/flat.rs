//! What text costs by a price that depends on nothing but how many tokens there are, in whole numbers. Nearly all prices
//! are of this kind and nearly all calls are text, and limits ask for every call, before it and after it.

use super::pricing::Entry;
use super::rates::{Effective, PriceMode, Terms};
use super::usage::Usage;
use super::{cost, response_text, text, thinking, written};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// Decimals of a cent in which prices are kept here: as many as costs are stored with.
const SCALE: u32 = 10;

/// Prices of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flat {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
}

impl Flat {
    /// None when a price depends on more, or has more decimals.
    pub fn from_entry(entry: &Entry) -> Option<Self> {
        let config = &entry.pricing_config;
        if entry.custom_pricing.is_some() || config.fixed_cost.is_some() || config.calculate.is_some() {
            return None;
        }
        let rates = Effective::for_usage(entry, &Usage::default(), &Terms::default());
        let whole = |price: Option<Decimal>| {
            let mut price = price.unwrap_or_default().normalize();
            if price.scale() > SCALE {
                return None;
            }
            price.rescale(SCALE);
            price.mantissa().to_u64()
        };
        Some(Self {
            input: whole(text(&rates))?,
            cache_read: whole(super::cache_read(&rates))?,
            cache_write: whole(written(&rates))?,
            output: whole(response_text(&rates))?,
            reasoning: whole(thinking(&rates))?,
        })
    }

    /// In parts of `SCALE`. None when something else was used, or more than can be counted here.
    fn price(&self, usage: &Usage) -> Option<u128> {
        let others = [
            usage.cache_write_1h,
            usage.audio_input,
            usage.cache_read_audio,
            usage.image_input,
            usage.cache_read_image,
            usage.audio_output,
            usage.image_output,
        ];
        if others.into_iter().any(|count| count > 0) || usage.images.is_some() || !usage.units.is_empty() {
            return None;
        }
        let kinds = [
            (usage.input, self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
            (usage.output.saturating_sub(usage.reasoning), self.output),
            (usage.reasoning, self.reasoning),
        ];
        kinds
            .into_iter()
            .try_fold(0, |sum: u128, (count, price)| sum.checked_add(u128::from(count) * u128::from(price)))
    }
}

/// A cost in thousand-millionths of a cent, rounded up. None when it cannot be counted.
pub fn nano_cents(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Option<u64> {
    match flat_price(usage, entry, terms) {
        Some(price) => u64::try_from(price.div_ceil(10)).ok(),
        None => in_nano_cents(cost(usage, entry, terms).ok()?.cents()),
    }
}

/// The same in cents, as stored.
pub fn cents(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Option<Decimal> {
    let price = flat_price(usage, entry, terms).and_then(|price| i128::try_from(price).ok());
    let flat = price.and_then(|price| Decimal::try_from_i128_with_scale(price, SCALE).ok());
    flat.map(|cents| cents.normalize()).or_else(|| cost(usage, entry, terms).ok().map(|cost| cost.cents()))
}

/// Whether a call is plain: priced by the list alone.
pub fn is_listed(terms: &Terms<'_>) -> bool {
    terms.own_price.is_none() && terms.multipliers.is_none() && terms.mode != PriceMode::Batch
}

fn flat_price(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Option<u128> {
    entry.flat().filter(|_| is_listed(terms))?.price(usage)
}

fn in_nano_cents(cents: Decimal) -> Option<u64> {
    cents.checked_mul(Decimal::from(1_000_000_000_u64))?.ceil().to_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(prices: serde_json::Value) -> Entry {
        serde_json::from_value(json!({ "pricing_config": { "pay_as_you_go": prices } })).unwrap()
    }

    #[test]
    fn money_is_rounded_up() {
        for (cents, nano) in [("0", 0), ("0.35", 350_000_000), ("0.0000000001", 1)] {
            assert_eq!(in_nano_cents(cents.parse().unwrap()), Some(nano));
        }
        let price = entry(json!({ "request_token": { "price": "0.0000000001" } }));
        let usage = |input| Usage { input, ..Usage::default() };
        let found = [0, 1, 10, 11].map(|input| nano_cents(&usage(input), &price, &Terms::default()));
        assert_eq!(found, [Some(0), Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn whole_numbers_come_to_what_decimals_come_to() {
        let prices = [
            entry(json!({ "request_token": { "price": "0.00025" }, "response_token": { "price": "0.0000000003" } })),
            entry(json!({ "request_token": { "price": 3 }, "cache_read_input_token": { "price": "0.1" },
                "cache_write_input_token": { "price": "7.25" }, "reasoning_token": { "price": 2 } })),
            entry(json!({ "request_text_token": { "price": 1 }, "request_token": { "price": 9 },
                "additional_units": { "thinking_token": { "price": 4 }, "web_search": { "price": 1 } } })),
            entry(json!({ "request_token": { "price": "0.00000000001" }, "response_token": { "price": 1 } })),
            entry(json!({ "response_token": { "price": "79228162514264337593543950335" } })),
            entry(json!({})),
        ];
        let counts = [0, 1, 7, 1234, 1 << 40, u64::MAX];
        for price in &prices {
            for n in 0..counts.len().pow(3) {
                let of = |place: u32| counts[n / counts.len().pow(place) % counts.len()];
                let mut usage = Usage { input: of(0), output: of(1), cache_read: of(2), ..Usage::default() };
                (usage.cache_write, usage.reasoning) = (of(2) / 3, of(1) / 2);
                if n % 5 == 0 {
                    usage.units.insert("web_search".into(), 2.into());
                }
                let exact = cost(&usage, price, &Terms::default()).ok().map(|cost| cost.cents());
                let found = cents(&usage, price, &Terms::default());
                // What one of them cannot count the other may.
                assert!(exact.is_none() || found == exact, "{usage:?} {price:?}: {found:?} {exact:?}");
                let nano = exact.and_then(in_nano_cents);
                assert!(nano.is_none() || nano_cents(&usage, price, &Terms::default()) == nano, "{usage:?} {price:?}");
            }
        }
        assert_eq!(prices.each_ref().map(|price| price.flat().is_some()), [true, true, true, false, false, true]);
    }
}
