//! The most that a call can cost within the bounds of its request: at the dearest tier of service, cache lifetime and context
//! tier that the request leaves to its provider. Strict budgets reserve it, so nothing here may be a guess: what may be used
//! and has no rate makes the whole unknown.

use super::cost;
use super::flat::in_nano_cents;
use super::pricing::Entry;
use super::rates::{Effective, PriceMode, Terms};
use super::token_kinds::{cache_read, cache_write, response_text, text, thinking};
use super::usage::{SEARCH_CONTEXTS, Usage};
use rust_decimal::Decimal;

/// What a request allows.
#[derive(Debug, Clone, Copy)]
pub struct CallBounds<'b> {
    /// Most tokens that are read, all of text.
    pub prompt: u64,
    /// Most tokens that are written, of whatever kind.
    pub answer: u64,
    /// Tiers of service that may serve it.
    pub modes: &'b [PriceMode],
    pub cache: CacheLifetime,
}

/// The longest time that a provider may keep what it reads, where that is paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum CacheLifetime {
    #[default]
    None,
    FiveMinutes,
    OneHour,
    Any,
}

/// What a provider that searches by itself reads cannot be bounded.
const UNBOUNDED: &str = "citation_token";
/// Kinds of answers that have rates of their own, where a model writes more than text.
const ANSWERS: [&str; 3] = ["response_audio_token", "response_image_token", "response_video_token"];

/// In thousand-millionths of a cent, rounded up. None where something has no rate, has no bound or cannot be counted.
pub fn dearest(bounds: &CallBounds<'_>, entry: &Entry, terms: &Terms<'_>) -> Option<u64> {
    let mut most = Decimal::ZERO;
    for mode in bounds.modes {
        let terms = Terms { mode: *mode, ..*terms };
        for prompt in prompts(bounds.prompt, entry) {
            most = most.max(dearest_of_prompt(prompt, bounds, entry, &terms)?);
        }
    }
    in_nano_cents(most)
}

/// Whether a list has rates for a tier of service.
pub fn prices_tier(entry: &Entry, terms: &Terms<'_>) -> bool {
    Effective::for_usage(entry, &Usage::default(), terms).prices_tier()
}

/// The longest prompt in each context tier that it may come to: inside of one the longest costs most.
fn prompts(longest: u64, entry: &Entry) -> impl Iterator<Item = u64> {
    let bounds = entry.custom_pricing.iter().flat_map(|custom| custom.context_tier_map.keys());
    let bounds = bounds.filter_map(|bound| bound.parse::<u64>().ok());
    bounds.filter(move |bound| (1..longest).contains(bound)).chain([longest])
}

fn dearest_of_prompt(prompt: u64, bounds: &CallBounds<'_>, entry: &Entry, terms: &Terms<'_>) -> Option<Decimal> {
    let plain = Usage { input: prompt, output: bounds.answer, ..Usage::default() };
    let rates = Effective::for_usage(entry, &plain, terms);
    if !rates.prices_tier() || rates.unit(UNBOUNDED).is_some_and(|rate| !rate.is_zero()) {
        return None;
    }
    let fee = SEARCH_CONTEXTS.into_iter().filter_map(|name| rates.unit(name)).max().unwrap_or_default();
    let tokens = match rates.calculate {
        Some(formulas) if formulas.is_linear() => by_formula(&plain, bounds, entry, terms)?,
        Some(_) => return None,
        None => {
            let read = count(prompt, || dearest_read(&rates, bounds.cache))?;
            let answer = count(bounds.answer, || dearest_answer(&rates))?;
            read.checked_add(answer)?.checked_add(rates.fixed)?
        }
    };
    tokens.checked_add(fee)
}

/// No tokens need no rate.
fn count(tokens: u64, rate: impl FnOnce() -> Option<Decimal>) -> Option<Decimal> {
    if tokens == 0 { Some(Decimal::ZERO) } else { rate()?.checked_mul(tokens.into()) }
}

/// The dearest way to read a token: afresh, from a cache, or on its way into one.
fn dearest_read(rates: &Effective<'_>, cache: CacheLifetime) -> Option<Decimal> {
    let mut dearest = text(rates)?.max(cache_read(rates)?);
    for (lifetime, rate) in [
        (CacheLifetime::FiveMinutes, cache_write(rates)),
        (CacheLifetime::OneHour, rates.unit("cache_write_1h")),
        (CacheLifetime::Any, rates.unit("cache_write_12h")),
    ] {
        dearest = dearest.max(rate.filter(|_| lifetime <= cache).unwrap_or_default());
    }
    Some(dearest)
}

fn dearest_answer(rates: &Effective<'_>) -> Option<Decimal> {
    let others = ANSWERS.into_iter().filter_map(|key| rates.first(&[key]));
    Some(others.fold(response_text(rates)?.max(thinking(rates)?), Decimal::max))
}

/// A list's own formula is asked for every way of reading and of answering: where every token adds the same amount, all of them
/// together cost most in one of the ways.
fn by_formula(plain: &Usage, bounds: &CallBounds<'_>, entry: &Entry, terms: &Terms<'_>) -> Option<Decimal> {
    let (prompt, answer) = (plain.input, bounds.answer);
    let cached = Usage { input: 0, cache_write: prompt, ..plain.clone() };
    let reads = [
        (CacheLifetime::None, plain.clone()),
        (CacheLifetime::None, Usage { input: 0, cache_read: prompt, ..plain.clone() }),
        (CacheLifetime::None, Usage { input: 0, image_input: prompt, ..plain.clone() }),
        (CacheLifetime::None, Usage { input: 0, video_input: prompt, ..plain.clone() }),
        (CacheLifetime::FiveMinutes, cached.clone()),
        (CacheLifetime::OneHour, Usage { cache_write_1h: prompt, ..cached.clone() }),
        (CacheLifetime::Any, Usage { cache_write_12h: prompt, ..cached }),
    ];
    // What a formula does not count is nothing that its model does, beside plain text.
    cost(plain, entry, terms).ok().filter(|found| found.is_complete)?;
    let mut most = Decimal::ZERO;
    for (_, read) in reads.into_iter().filter(|(lifetime, _)| *lifetime <= bounds.cache) {
        let reasoned = Usage { reasoning: answer, ..read.clone() };
        let spoken = Usage { output: 0, audio_output: answer, ..read.clone() };
        let drawn = Usage { output: 0, image_output: answer, ..read.clone() };
        let filmed = Usage { output: 0, video_output: answer, ..read.clone() };
        for usage in [read, reasoned, spoken, drawn, filmed] {
            let found = cost(&usage, entry, terms).ok()?;
            most = most.max(found.request + found.response + found.units);
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::bill;
    use crate::cost::prices::{bundled_prices, bundled_providers};
    use serde_json::{Value, json};

    const MODES: [PriceMode; 5] =
        [PriceMode::Standard, PriceMode::Batch, PriceMode::Flex, PriceMode::Priority, PriceMode::Fast];

    fn cents(prompt: u64, answer: u64, modes: &[PriceMode], cache: CacheLifetime, entry: &Value) -> Option<u64> {
        let entry: Entry = serde_json::from_value(entry.clone()).unwrap();
        let found = dearest(&CallBounds { prompt, answer, modes, cache }, &entry, &Terms::default());
        found.map(|nano_cents| nano_cents / 1_000_000_000)
    }

    #[test]
    fn the_dearest_that_may_be_chosen_is_reserved() {
        use CacheLifetime::{Any, FiveMinutes, None as Nothing, OneHour};
        use PriceMode::{Fast, Flex, Priority, Standard};
        let price = |cents: u64| json!({ "price": cents });
        let entry = json!({
            "pricing_config": { "pay_as_you_go": { "request_token": price(2), "response_token": price(10),
                "cache_read_input_token": price(1), "cache_write_input_token": price(3),
                "additional_units": { "cache_write_1h": price(4), "cache_write_12h": price(6) } } },
            "custom_pricing": { "context_tier_map": { "100": "gt" }, "regions": { "default": { "execution_modes": {
                "standard": { "context_tiers": { "gt": { "pricing_config": { "pay_as_you_go": { "request_token": price(5) } } } } },
                "flex": { "pricing_config": { "pay_as_you_go": { "request_token": price(1), "response_token": price(5) } } },
                "priority": { "pricing_config": { "pay_as_you_go": { "request_token": price(7), "response_token": price(20) } } },
            } } } },
        });
        let cheaper_when_long = json!({
            "pricing_config": { "pay_as_you_go": { "request_token": price(10), "response_token": price(3) } },
            "custom_pricing": { "context_tier_map": { "100": "gt" }, "regions": { "default": { "execution_modes": {
                "standard": { "context_tiers": { "gt": { "pricing_config": { "pay_as_you_go": { "request_token": price(1) } } } } },
            } } } },
        });
        let fixed = json!({ "pricing_config": { "pay_as_you_go": { "request_token": price(1), "response_token": price(1),
            "reasoning_token": price(3), "additional_units": { "request_low_context": price(50), "request_high_context": price(70) } },
            "fixed_cost": { "request": price(5), "response": price(0) } } });
        let citing = json!({ "pricing_config": { "pay_as_you_go": { "request_token": price(1), "response_token": price(1),
            "additional_units": { "citation_token": price(1) } } } });
        let drawing = json!({ "pricing_config": { "pay_as_you_go": { "request_token": price(1), "response_token": price(2),
            "response_image_token": price(9) } } });
        let reading = json!({ "pricing_config": { "pay_as_you_go": { "request_token": price(1) } } });
        let product = |tokens: &str, rate: &str| json!({ "operation": "multiply", "operands": [{ "value": tokens }, { "value": rate }] });
        let formula = json!({ "pricing_config": {
            "pay_as_you_go": { "request_token": price(2), "cache_write_input_token": price(9), "response_token": price(1) },
            "calculate": {
                "request": { "operation": "sum", "operands": [
                    product("input_tokens", "rates.request_token"), product("cache_write_tokens", "rates.cache_write_input_token") ] },
                "response": product("output_tokens", "rates.response_token"),
            } } });
        for (prompt, answer, modes, cache, entry, expected) in [
            (10, 1, &[Standard][..], Nothing, &entry, Some(20 + 10)),
            (10, 1, &[Standard], FiveMinutes, &entry, Some(30 + 10)),
            (10, 1, &[Standard], OneHour, &entry, Some(40 + 10)),
            (10, 1, &[Standard], Any, &entry, Some(60 + 10)),
            (10, 1, &[Standard, Flex], Nothing, &entry, Some(20 + 10)),
            (10, 1, &[Standard, Priority], Nothing, &entry, Some(70 + 20)),
            (100, 0, &[Standard], Nothing, &entry, Some(200)),
            (101, 0, &[Standard], Nothing, &entry, Some(505)),
            (101, 0, &[Standard], Nothing, &cheaper_when_long, Some(1000)),
            (10, 2, &[Standard], Nothing, &fixed, Some(10 + 6 + 5 + 70)),
            (10, 2, &[Standard], Nothing, &citing, None),
            (10, 2, &[Standard], Nothing, &drawing, Some(10 + 18)),
            // The tier has no rates.
            (10, 1, &[Standard, Fast], Nothing, &entry, None),
            (10, 0, &[Standard, Priority], Nothing, &reading, None),
            (10, 0, &[Standard], Nothing, &reading, Some(10)),
            (10, 1, &[Standard], Nothing, &reading, None),
            (10, 1, &[Standard], Nothing, &formula, Some(20 + 1)),
            (10, 1, &[Standard], FiveMinutes, &formula, Some(90 + 1)),
        ] {
            assert_eq!(cents(prompt, answer, modes, cache, entry), expected, "{prompt} {answer} {modes:?} {cache:?}");
        }
        let huge = json!({ "pricing_config": { "pay_as_you_go": { "request_token": { "price": "79228162514264337593543950335" } } } });
        assert_eq!(cents(2, 0, &[Standard], Nothing, &huge), None);
    }

    /// Usages of answers that keep to a prompt of `longest` and an answer of `answer` tokens.
    fn answers(longest: u64, answer: u64) -> Vec<(CacheLifetime, Usage)> {
        use CacheLifetime::{Any, FiveMinutes, None as Nothing, OneHour};
        let mut found = Vec::new();
        for prompt in [longest / 3, longest] {
            for output in [0, answer] {
                let nothing = Usage::default();
                let plain = Usage { output, ..nothing.clone() };
                let half = Usage { input: prompt - prompt / 2, ..plain.clone() };
                let fee =
                    |name: &str| Usage { units: [(name.to_owned(), 1.into())].into(), input: prompt, ..plain.clone() };
                found.extend(SEARCH_CONTEXTS.map(|name| (Nothing, fee(name))));
                found.extend([
                    (Nothing, Usage { input: prompt, ..plain.clone() }),
                    (Nothing, Usage { cache_read: prompt / 2, reasoning: output, ..half.clone() }),
                    (Nothing, Usage { input: prompt, audio_output: output, ..nothing.clone() }),
                    (Nothing, Usage { input: prompt, image_output: output, ..nothing.clone() }),
                    (Nothing, Usage { input: prompt, output: output / 2, video_output: output / 2, ..nothing }),
                    (FiveMinutes, Usage { cache_write: prompt / 2, ..half.clone() }),
                    (OneHour, Usage { cache_write: prompt, cache_write_1h: prompt / 2, ..plain.clone() }),
                    (OneHour, Usage { cache_write: prompt, cache_write_1h: prompt, ..plain.clone() }),
                    (Any, Usage { cache_write: prompt, cache_write_12h: prompt, reasoning: output / 2, ..plain }),
                ]);
            }
        }
        found
    }

    /// Compares what is reserved with what every permitted answer costs: how many times it was reserved, and compared.
    fn compare(name: &str, entry: &Entry) -> (usize, usize) {
        let (mut reserved, mut compared) = (0, 0);
        let tiers = entry.custom_pricing.iter().flat_map(|custom| custom.context_tier_map.keys());
        let edges = tiers.filter_map(|bound| bound.parse::<u64>().ok()).flat_map(|bound| [bound, bound + 7]);
        for longest in edges.chain([1000]) {
            let usages = answers(longest, 500);
            let lifetimes =
                [CacheLifetime::None, CacheLifetime::FiveMinutes, CacheLifetime::OneHour, CacheLifetime::Any];
            for (cache, chosen) in lifetimes.into_iter().flat_map(|cache| MODES.map(|chosen| (cache, chosen))) {
                // A provider that has no room in the tier serves it in the usual one.
                let modes = [PriceMode::Standard, chosen];
                let bounds = CallBounds { prompt: longest, answer: 500, modes: &modes, cache };
                let Some(most) = dearest(&bounds, entry, &Terms::default()) else { continue };
                reserved += 1;
                for (_, usage) in usages.iter().filter(|(needs, _)| *needs <= cache) {
                    let bill = bill(usage, entry, &Terms { mode: chosen, ..Terms::default() });
                    let spent = bill.cents.and_then(in_nano_cents).unwrap_or(0);
                    // Of other kinds a list need not have rates.
                    let is_text =
                        usage.units.is_empty() && usage.cache_write == 0 && usage.completion_tokens() == usage.output;
                    let is_known = bill.is_complete || !is_text || entry.pricing_config.calculate.is_some();
                    assert!(is_known && spent <= most, "{name} {chosen:?} {cache:?} {usage:?} {bill:?}");
                    compared += 1;
                }
            }
        }
        (reserved, compared)
    }

    #[test]
    fn no_permitted_answer_of_any_bundled_model_costs_more_than_was_reserved() {
        let (mut models, mut reserved, mut compared) = (0, 0, 0);
        for provider in bundled_providers() {
            for (model, entry) in bundled_prices(provider).unwrap().iter() {
                let found = compare(&format!("{provider} {model}"), entry);
                (models, reserved, compared) = (models + 1, reserved + found.0, compared + found.1);
            }
        }
        // Many models have no rate for text, and most none for tiers.
        assert!(models > 3000 && reserved > models * 4 && compared > reserved * 20, "{models} {reserved} {compared}");
    }

    /// A prompt may be of images altogether, and an answer too.
    #[test]
    fn a_formula_that_counts_images_is_reserved_for_as_if_all_were_images() {
        let value = |name: &str| json!({ "value": name });
        let product =
            |one: &str, other: &str| json!({ "operation": "multiply", "operands": [value(one), value(other)] });
        let sum = |one: Value, other: Value| json!({ "operation": "sum", "operands": [one, other] });
        let read = product("input_tokens", "rates.request_token");
        let seen = product("image_input_tokens", "rates.request_image_token");
        let written = product("output_tokens", "rates.response_token");
        let drawn = product("image_output_tokens", "rates.response_image_token");
        let entry = json!({ "pricing_config": {
            "pay_as_you_go": { "request_token": { "price": 2 }, "response_token": { "price": 1 },
                "request_image_token": { "price": 5 }, "response_image_token": { "price": 7 } },
            "calculate": { "request": sum(read, seen), "response": sum(written, drawn) } } });
        assert_eq!(cents(10, 3, &[PriceMode::Standard], CacheLifetime::None, &entry), Some(10 * 5 + 3 * 7));
        let usage = Usage { image_input: 10, image_output: 3, ..Usage::default() };
        let bill = bill(&usage, &serde_json::from_value(entry.clone()).unwrap(), &Terms::default());
        assert_eq!(bill.cents, Some(Decimal::from(10 * 5 + 3 * 7)), "as much as it may cost");
        compare("a formula with images", &serde_json::from_value(entry).unwrap());
    }

    #[test]
    fn a_formula_is_reserved_for_only_where_every_token_adds_the_same() {
        let value = |name: &str| json!({ "value": name });
        let product = |one: Value, other: Value| json!({ "operation": "multiply", "operands": [one, other] });
        let sum = |one: Value, other: Value| json!({ "operation": "sum", "operands": [one, other] });
        let entry = |request: Value| {
            json!({ "pricing_config": { "pay_as_you_go": { "request_token": { "price": 2 }, "cache_read_input_token": { "price": 1 },
                "response_token": { "price": 1 } }, "calculate": { "request": request } } })
        };
        let read = || product(value("input_tokens"), value("rates.request_token"));
        let cached = || product(value("cache_read_tokens"), value("rates.cache_read_input_token"));
        for (request, expected) in [
            (read(), Some(21)),
            (sum(read(), cached()), Some(21)),
            (product(sum(read(), cached()), value("3")), Some(61)),
            (product(value("input_tokens"), value("rates.unheard_of")), None),
            (product(value("input_tokens"), value("cache_read_tokens")), None),
            (product(read(), sum(value("1"), cached())), None),
            (sum(read(), value("-1")), None),
        ] {
            let entry = entry(request);
            assert_eq!(cents(10, 1, &[PriceMode::Standard], CacheLifetime::Any, &entry), expected, "{entry}");
            compare("a formula", &serde_json::from_value(entry).unwrap());
        }
    }
}
