//! What text costs by a price that depends on nothing but how many tokens there are, in whole numbers. Nearly all prices
//! are of this kind and nearly all calls are text, and limits ask for every call, before it and after it.

use super::cost;
use super::flat_rates::{FlatRates, SCALE};
use super::pricing::{CustomPricing, Entry};
use super::rates::{Effective, PriceMode, Terms};
use super::token_kinds::{cache_read, own_cache_write, response_text, text, thinking};
use super::usage::Usage;
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;

/// What a call costs, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bill {
    /// US cents, as stored, of all that has a rate. None when nothing has, and when it cannot be counted.
    pub cents: Option<Decimal>,
    /// Nothing lacks a rate.
    pub is_complete: bool,
}

/// None when a price depends on more, or has more decimals.
fn flat_rates(entry: &Entry) -> Option<FlatRates> {
    let config = &entry.pricing_config;
    if config.fixed_cost.is_some() || config.calculate.is_some() {
        return None;
    }
    let max_prompt = match &entry.custom_pricing {
        Some(custom) => usual_prompts(custom)?,
        None => u64::MAX,
    };
    let rates = Effective::for_usage(entry, &Usage::default(), &Terms::default());
    // The outer none is of what does not fit.
    let whole = |price: Option<Decimal>| -> Option<Option<u64>> {
        let Some(price) = price else { return Some(None) };
        let mut price = price.normalize();
        if price.scale() > SCALE {
            return None;
        }
        price.rescale(SCALE);
        price.mantissa().to_u64().map(Some)
    };
    Some(FlatRates {
        input: whole(text(&rates))?,
        cache_read: whole(cache_read(&rates))?,
        cache_write: whole(own_cache_write(&rates))?,
        output: whole(response_text(&rates))?,
        reasoning: whole(thinking(&rates))?,
        max_prompt,
    })
}

/// How long prompts may be whose price, in the usual tier of service, depends on nothing else. None when all depend on more.
fn usual_prompts(custom: &CustomPricing) -> Option<u64> {
    let has_default = custom.regions.len() == 1;
    let modes = &custom.regions.get("default").filter(|_| has_default)?.execution_modes;
    let Some(standard) = modes.get(PriceMode::Standard.name()) else { return Some(u64::MAX) };
    if standard.pricing_config.is_some() {
        return None;
    }
    let bounds = custom.context_tier_map.iter().filter(|(_, tier)| standard.context_tiers.contains_key(*tier));
    let lowest = bounds.filter_map(|(bound, _)| bound.parse().ok()).min().unwrap_or(u64::MAX);
    (lowest > 0).then_some(lowest)
}

/// A cost in thousand-millionths of a cent, rounded up, of all that has a rate, and whether nothing lacks one. None when
/// nothing has a rate, and when it cannot be counted.
pub fn nano_cents(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Option<(u64, bool)> {
    if let Some(price) = flat_price(usage, entry, terms) {
        return Some((u64::try_from(price.div_ceil(10)).ok()?, true));
    }
    let cost = cost(usage, entry, terms).ok().filter(|cost| cost.is_known || cost.is_complete)?;
    Some((in_nano_cents(cost.cents())?, cost.is_complete))
}

/// The same in cents, as stored.
pub fn bill(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Bill {
    let price = flat_price(usage, entry, terms).and_then(|price| i128::try_from(price).ok());
    if let Some(flat) = price.and_then(|price| Decimal::try_from_i128_with_scale(price, SCALE).ok()) {
        return Bill { cents: Some(flat.normalize()), is_complete: true };
    }
    match cost(usage, entry, terms) {
        Ok(cost) => {
            Bill { cents: (cost.is_known || cost.is_complete).then(|| cost.cents()), is_complete: cost.is_complete }
        }
        Err(_) => Bill { cents: None, is_complete: false },
    }
}

pub fn cents(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Option<Decimal> {
    bill(usage, entry, terms).cents
}

/// Whether the price depends on nothing but how many tokens of text there are.
pub fn is_flat(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> bool {
    flat_price(usage, entry, terms).is_some()
}

/// Of a call in the usual tier of service that is priced by the list alone.
fn flat_price(usage: &Usage, entry: &Entry, terms: &Terms<'_>) -> Option<u128> {
    let is_listed = terms.own_price.is_none() && terms.multipliers.is_none() && terms.mode == PriceMode::Standard;
    entry.flat_rates(|| flat_rates(entry)).filter(|_| is_listed)?.price(usage)
}

pub(super) fn in_nano_cents(cents: Decimal) -> Option<u64> {
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
        assert_eq!(found, [0, 1, 1, 2].map(|nano| Some((nano, true))));
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
                let exact =
                    cost(&usage, price, &Terms::default()).ok().filter(|cost| cost.is_known || cost.is_complete);
                let exact = exact.map(|cost| cost.cents());
                let found = cents(&usage, price, &Terms::default());
                // What one of them cannot count the other may.
                assert!(exact.is_none() || found == exact, "{usage:?} {price:?}: {found:?} {exact:?}");
                let nano = exact.and_then(in_nano_cents);
                let found = nano_cents(&usage, price, &Terms::default()).map(|(nano, _)| nano);
                assert!(nano.is_none() || found == nano, "{usage:?} {price:?}");
            }
        }
        assert_eq!(
            prices.each_ref().map(|price| price.flat_rates(|| flat_rates(price)).is_some()),
            [true, true, true, false, false, true]
        );
    }

    #[test]
    fn tiers_of_service_and_of_context_are_flat_below_their_bounds() {
        let tiered: Entry = serde_json::from_value(json!({
            "pricing_config": { "pay_as_you_go": { "request_token": { "price": 2 }, "response_token": { "price": 8 } } },
            "custom_pricing": { "context_tier_map": { "100": "gt" }, "regions": { "default": { "execution_modes": {
                "standard": { "context_tiers": { "gt": { "pricing_config": { "pay_as_you_go": { "request_token": { "price": 4 } } } } } },
                "priority": { "pricing_config": { "pay_as_you_go": { "request_token": { "price": 3 } } } },
            } } } },
        }))
        .unwrap();
        let call = |input, mode| {
            let (usage, terms) = (Usage { input, output: 1, ..Usage::default() }, Terms { mode, ..Terms::default() });
            (is_flat(&usage, &tiered, &terms), cents(&usage, &tiered, &terms).map(|cents| cents.to_string()))
        };
        assert_eq!(call(100, PriceMode::Standard), (true, Some("208".into())));
        assert_eq!(call(101, PriceMode::Standard), (false, Some("412".into())));
        assert_eq!(call(100, PriceMode::Priority), (false, Some("308".into())));
    }

    #[test]
    fn what_has_no_rate_is_unknown_and_never_free() {
        let price = entry(json!({ "request_token": { "price": 2 }, "additional_units": { "pages": { "price": 1 } } }));
        let units = |name: &str| Usage { units: [(name.to_owned(), Decimal::TWO)].into(), ..Usage::default() };
        for (usage, cents, is_complete) in [
            (Usage::default(), Some(0), true),
            (Usage { input: 3, ..Usage::default() }, Some(6), true),
            (Usage { input: 3, output: 1, ..Usage::default() }, Some(6), false),
            (Usage { output: 1, ..Usage::default() }, None, false),
            (units("pages"), Some(2), true),
            (units("audio_seconds"), None, false),
            (units("request_low_context"), None, false),
            (Usage { input: 1, ..units("web_search") }, Some(2), false),
        ] {
            let found = bill(&usage, &price, &Terms::default());
            assert_eq!(found, Bill { cents: cents.map(Decimal::from), is_complete }, "{usage:?}");
        }
    }

    #[test]
    fn a_tier_of_service_without_rates_is_counted_as_the_usual_one_and_is_no_whole_bill() {
        let usual = json!({ "request_token": { "price": 2 }, "response_token": { "price": 3 },
            "additional_units": { "web_search": { "price": 7 }, "cache_write_1h": { "price": 5 }, "pages": { "price": 1 } } });
        let plain = entry(usual.clone());
        let formula = json!({ "operation": "multiply", "operands": [{ "value": "input_tokens" }, { "value": "rates.request_token" }] });
        let by_formula: Entry = serde_json::from_value(
            json!({ "pricing_config": { "pay_as_you_go": usual, "calculate": { "request": formula } } }),
        )
        .unwrap();
        let tiered: Entry = serde_json::from_value(json!({ "pricing_config": { "pay_as_you_go": usual },
            "custom_pricing": { "regions": {
                "default": { "execution_modes": { "flex": {}, "priority": { "pricing_config": { "pay_as_you_go": {
                    "request_token": { "price": 4 } } } } } },
                "eu": { "execution_modes": { "standard": {} } },
            } } }))
        .unwrap();
        let text = || Usage { input: 10, output: 1, ..Usage::default() };
        let units = |name: &str| [(name.to_owned(), Decimal::ONE)].into();
        let searching = || Usage { units: units("web_search"), ..text() };
        let own: crate::cost::PricingConfig = serde_json::from_value(json!({ "pay_as_you_go": usual })).unwrap();
        use PriceMode::{Batch, Fast, Flex, Priority, Standard};
        for (usage, entry, mode, region, own_price, cents, is_complete) in [
            (text(), &plain, Standard, None, None, Some(23), true),
            // The usual price of one call holds for one of a batch.
            (text(), &plain, Batch, None, None, Some(23), true),
            (text(), &plain, Flex, None, None, Some(23), false),
            (text(), &plain, Priority, None, None, Some(23), false),
            (text(), &by_formula, Standard, None, None, Some(23), true),
            (text(), &by_formula, Priority, None, None, Some(23), false),
            (searching(), &plain, Priority, None, None, Some(30), false),
            (Usage { units: units("pages"), ..text() }, &plain, Priority, None, None, Some(24), false),
            (Usage { cache_write: 1, cache_write_1h: 1, ..text() }, &plain, Fast, None, None, Some(28), false),
            (text(), &tiered, Priority, None, None, Some(43), true),
            (searching(), &tiered, Priority, None, None, Some(50), true),
            (text(), &tiered, Fast, None, None, Some(23), false),
            // A tier may say that it costs what the usual one does.
            (text(), &tiered, Flex, None, None, Some(23), true),
            (text(), &tiered, Priority, Some("eu"), None, Some(23), false),
            (text(), &tiered, Priority, Some("us"), None, Some(43), true),
            (text(), &plain, Priority, None, Some(&own), Some(23), true),
        ] {
            let terms = Terms { mode, region, own_price, ..Terms::default() };
            let expected = Bill { cents: cents.map(Decimal::from), is_complete };
            assert_eq!(bill(&usage, entry, &terms), expected, "{usage:?} {mode:?} {region:?}");
        }
    }
}
